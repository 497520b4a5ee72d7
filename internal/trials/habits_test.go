package trials

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
)

// Most habits, in percent, that may cost a turn; none may cost two.
const mayCost = 10

// habit is a call as models are used to write it elsewhere, and what a model does that
// does literally what the error says, if it does not work at once.
type habit struct{ call, then string }

func habits() []habit {
	return []habit{
		{`Bash {"command":"ls","description":"List the files"}`, ""},
		{`Bash {"command":"ls","timeout":120000}`, ""},
		{`Bash {"command":"true","run_in_background":true}`, ""},
		{`Shell {"command":"ls"}`, ""},
		{`shell {"command":["bash","-lc","ls"],"workdir":"."}`, ""},
		{`shell {"command":["ls","-la"],"timeout_ms":5000}`, ""},
		{`exec_command {"cmd":"ls","yield_time_ms":1000,"max_output_tokens":500}`, ""},
		{`run_command {"command":"ls"}`, ""},
		{`run_terminal_cmd {"command":"ls","is_background":false,"explanation":"to look"}`, ""},
		{`run_shell_command {"command":"ls","directory":"sub"}`, ""},
		{`execute_command {"command":"ls","requires_approval":false}`, ""},
		{`bash {"cmd":"ls"}`, ""},
		{`bash {"command":"ls","cwd":"sub"}`, ""},
		{`bash {"command":"ls","timeout":"30"}`, ""},
		{`bash {"script":"ls"}`, ""},
		{`Read {"file_path":"a.go"}`, ""},
		{`Read {"file_path":"a.go","offset":1,"limit":5}`, ""},
		{`ReadFile {"path":"a.go"}`, ""},
		{`view {"path":"a.go","view_range":[1,2]}`, ""},
		{`cat {"path":"a.go"}`, ""},
		{`open_file {"filename":"a.go"}`, ""},
		{`read_file {"file_path":"a.go"}`, ""},
		{`read_file {"path":"a.go","start_line":1,"end_line":2}`, ""},
		{`read_file {"target_file":"a.go","should_read_entire_file":true,"explanation":"x"}`, ""},
		{`read_file {"path":"a.go","offset":"1"}`, ""},
		{`read_file {"path":"a.og"}`, `read_file {"path":"a.go"}`},
		{`read_file {"path":"sub"}`, `list_files {"path":"sub"}`},
		{`Write {"file_path":"n1","content":"x"}`, ""},
		{`create_file {"path":"n2","file_text":"x"}`, ""},
		{`write_file {"file_path":"n3","contents":"x"}`, ""},
		{`write_to_file {"path":"n4","content":"x"}`, ""},
		{`Edit {"file_path":"a.go","old_string":"one","new_string":"two"}`, ""},
		{`str_replace {"path":"b.go","old_str":"one","new_str":"two"}`, ""},
		{`edit_file {"path":"c.go","old_string":"one","new_string":"two"}`, ""},
		{`edit_file {"path":"c.go","edits":"[{\"old_string\":\"two\",\"new_string\":\"three\"}]"}`, ""},
		{`edit_file {"path":"c.go","edits":{"old_string":"three","new_string":"four"}}`, ""},
		{`MultiEdit {"file_path":"d.go","edits":[{"old_string":"one","new_string":"two","replace_all":false}]}`, ""},
		{`str_replace_editor {"command":"view","path":"d.go"}`, ""},
		{`str_replace_editor {"command":"create","path":"n5","file_text":"x"}`, ""},
		{`str_replace_based_edit_tool {"command":"str_replace","path":"d.go","old_str":"two","new_str":"three"}`, ""},
		{`apply_patch {"input":"*** Begin Patch\n*** Update File: d.go\n@@\n-three\n+four\n*** End Patch"}`, ""},
		{`apply_patch {"patch":"*** Begin Patch\n*** Add File: n6\n+x\n*** End Patch"}`, ""},
		{
			`replace {"file_path":"d.go","old_string":"four","new_string":"five","instruction":"x"}`,
			`edit_file {"path":"d.go","old_string":"four","new_string":"five"}`,
		},
		{
			`edit_file {"path":"q.go","old_string":"say(‘hi’)","new_string":"say('ho')"}`,
			`edit_file {"path":"q.go","old_string":"say('hi')","new_string":"say('ho')"}`,
		},
		{`Grep {"pattern":"package","path":".","output_mode":"files_with_matches","-n":true}`, ""},
		{`Grep {"pattern":"package","type":"go","-i":true,"-C":1,"head_limit":3}`, ""},
		{`grep_search {"query":"package","include":"*.go","case_sensitive":true}`, ""},
		{`search_file_content {"pattern":"package","path":"."}`, ""},
		{`search_files {"regex":"package","file_pattern":"*.go"}`, ""},
		{`Glob {"pattern":"**/*.go"}`, ""},
		{`find_files {"glob_pattern":"*.go"}`, ""},
		{`LS {"path":"."}`, ""},
		{`list_dir {"dir_path":"sub"}`, ""},
		{`list_directory {"path":".","ignore":["x"]}`, ""},
		{`list_files {"directory":".","recursive":true}`, ""},
		{`TodoWrite {"todos":[{"content":"a","status":"in_progress","activeForm":"doing a"}]}`, ""},
		{`update_plan {"explanation":"x","plan":[{"step":"a","status":"pending"},{"step":"b","status":"completed"}]}`, ""},
		{`todo {"todos":[{"content":"a","status":"completed","id":"1","priority":"high"}]}`, ""},
		{`todo {"items":[{"text":"a","state":"Done"}]}`, ""},
		{`todo_write {"todos":[{"content":"a","status":"done"}],"merge":false}`, ""},
		{`BashOutput {"bash_id":"1"}`, ""},
		{`jobs {"action":"READ","job_id":"1"}`, ""},
		{`KillShell {"shell_id":"1"}`, ""},
		{`git {"action":"status"}`, ""},
		{`call_tool {"name":"git","arguments":"{\"action\":\"log\"}"}`, ""},
		{`tool_search {"query":"git","max_results":5}`, ""},
		{`read_file {"path":"./sub/../a.go","description":"look again"}`, ""},
		{`bash {"command":"ls","description":"x","restart":false}`, ""},
	}
}

// TestHabits holds that what models are used to costs next to no turns.
func TestHabits(t *testing.T) {
	work := workspace(t)
	for _, f := range []string{"a.go", "b.go", "c.go", "d.go", "sub/e.go"} {
		put(t, work, f, "package a\none\n")
	}
	put(t, work, "q.go", "say('hi')\n")
	put(t, work, "begin", "")
	script := "call: bash {\"command\":\"git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x\"}\n" +
		"call: bash {\"command\":\"sleep 60\",\"background\":true}\n"
	list, cost := habits(), 0
	for _, h := range list {
		script += "call: " + h.call + "\n"
		if h.then != "" {
			script += "call: " + h.then + "\n"
			cost++
		}
	}
	ends := outcomes(t, work, script)[2:]
	for _, h := range list {
		first := ends[0]
		ends = ends[1:]
		if works := first.Outcome == event.OutcomeOK; works != (h.then == "") {
			t.Errorf("%s: %s: %s", h.call, first.Outcome, first.Parts.Text())
		}
		if h.then == "" {
			continue
		}
		if ends[0].Outcome != event.OutcomeOK {
			t.Errorf("%s: %s: %s", h.then, ends[0].Outcome, ends[0].Parts.Text())
		}
		ends = ends[1:]
	}
	t.Logf("%d of %d habits cost a turn", cost, len(list))
	if len(list) < 60 || cost*100 > mayCost*len(list) {
		t.Errorf("%d of %d habits cost a turn", cost, len(list))
	}
}

// workspace is a folder to work in, with a home of its own.
func workspace(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(home, "config"))
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(home, "state"))
	return t.TempDir()
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// events are those of a run that nobody attends, in mode yolo.
func events(t testing.TB, work, prompt string) (list []event.Body) {
	t.Helper()
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Host(app.Options{Model: "script", Mode: "yolo", Unattended: true}, func(string) {}).New(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for e, err := range s.Run(t.Context(), event.Say(prompt)) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Body)
	}
	return list
}

func outcomes(t testing.TB, work, prompt string) (list []event.Ended) {
	t.Helper()
	for _, b := range events(t, work, prompt) {
		if e, ok := b.(event.Ended); ok {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		t.Fatal(fmt.Errorf("no call was made"))
	}
	return list
}
