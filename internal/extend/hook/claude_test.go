//go:build unix

package hook_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// wild opens a workspace with a file of hooks from testdata in it.
func wild(t *testing.T, name string) (*hook.Set, *warnings, []string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "wild", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s, w := set(t)
	var notes []string
	for _, f := range archive.Files {
		if filepath.Ext(f.Name) != ".json" {
			write(t, s.Env.Root, f.Name, string(f.Data))
			continue
		}
		hooks, more, err := hook.ReadClaude(f.Data, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		s.Hooks, notes = append(s.Hooks, hooks...), append(notes, more...)
		if bytes.Contains(f.Data, []byte("python3")) {
			if _, err := exec.LookPath("python3"); err != nil {
				t.Skip("there is no python3")
			}
		}
	}
	return s, w, notes
}

func bash(t *testing.T, s *hook.Set, command string) string {
	t.Helper()
	args, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return brief(must(t, s, call(tool.BeforeCall, s.Env, "bash", string(args))))
}

func TestFormatAfterEdit(t *testing.T) {
	s, w, notes := wild(t, "format-after-edit")
	root := s.Env.Root
	for name, args := range map[string]string{
		"write_file": `{"path":"a.txt","content":"x  "}`,
		"edit_file":  `{"path":"a.txt","edits":[{"old_string":"a","new_string":"b"}]}`,
		"edit_lines": `{"path":"` + root + `/a.txt","first_line":1,"expect":"a","text":"b"}`,
	} {
		write(t, root, "a.txt", "text  \n")
		if got := brief(must(t, s, call(tool.AfterCall, s.Env, name, args))); got != "" {
			t.Errorf("%s: %q", name, got)
		}
		if got := read(t, root, "a.txt"); got != "text\n" {
			t.Errorf("%s: the file holds %q", name, got)
		}
	}
	write(t, root, "a.txt", "text  \n")
	must(t, s, call(tool.AfterCall, s.Env, "read_file", `{"path":"a.txt"}`))
	failed := call(tool.AfterCall, s.Env, "write_file", `{"path":"a.txt"}`)
	failed.Failed = "it could not"
	must(t, s, failed)
	if got := read(t, root, "a.txt"); got != "text  \n" {
		t.Errorf("the file holds %q", got)
	}
	has(t, "told", w.take()+strings.Join(notes, ""))
}

func TestBlockRm(t *testing.T) {
	s, w, _ := wild(t, "block-rm")
	for command, want := range map[string]string{
		"rm -rf /tmp/build":             "deny reason=Destructive command blocked by hook",
		"git push origin main --force":  "deny reason=Blocked: no forced pushes",
		"git push origin main":          "",
		"echo 'a < b' && ls \"quoted\"": "",
	} {
		if got := bash(t, s, command); got != want {
			t.Errorf("%s: %q", command, got)
		}
	}
	has(t, "told", w.take())
}

func TestLogAll(t *testing.T) {
	s, w, _ := wild(t, "log-all")
	s.Log = func(session string) string { return "/state/" + session + ".jsonl" }
	root := s.Env.Root
	for _, m := range []tool.Moment{tool.BeforeCall, tool.AfterCall} {
		must(t, s, call(m, s.Env, "bash", `{"command":"ls","timeout":5,"background":true}`))
	}
	exit := 1
	failed := call(tool.AfterCall, s.Env, "bash", `{"command":"false"}`)
	failed.Result.Exit = &exit
	must(t, s, failed)
	failed = call(tool.AfterCall, s.Env, "read_file", `{"path":"/a","offset":3}`)
	failed.Failed = "no such file"
	must(t, s, failed)
	head := `{"cwd":"` + root + `",`
	mid := `"permission_mode":"default","session_id":"s1",`
	want := head + `"hook_event_name":"PreToolUse",` + mid + `"tool_input":{"command":"ls","run_in_background":true,"timeout":5000},"tool_name":"Bash","tool_use_id":"c1","transcript_path":"/state/s1.jsonl"}
` + head + `"hook_event_name":"PostToolUse",` + mid + `"tool_input":{"command":"ls","run_in_background":true,"timeout":5000},"tool_name":"Bash","tool_response":{"interrupted":false,"isImage":false,"stderr":"","stdout":"brought"},"tool_use_id":"c1","transcript_path":"/state/s1.jsonl"}
` + head + `"error":"Exit code 1\nbrought","hook_event_name":"PostToolUseFailure","is_interrupt":false,` + mid + `"tool_input":{"command":"false"},"tool_name":"Bash","tool_use_id":"c1","transcript_path":"/state/s1.jsonl"}
` + head + `"error":"no such file","hook_event_name":"PostToolUseFailure","is_interrupt":false,` + mid + `"tool_input":{"file_path":"/a","offset":3},"tool_name":"Read","tool_use_id":"c1","transcript_path":"/state/s1.jsonl"}
`
	if diff := cmp.Diff(want, read(t, root, "calls.jsonl")); diff != "" {
		t.Error(diff)
	}
	has(t, "told", w.take())
}

func TestPythonValidator(t *testing.T) {
	s, w, notes := wild(t, "python-validator")
	for command, want := range map[string]string{
		"ls -l":            "allow reason=only lists",
		"grep x y":         "deny reason=• Use 'rg' instead of 'grep'",
		"npm install left": "ask reason=installs text=the lock file is checked in",
		"make":             "",
	} {
		if got := bash(t, s, command); got != want {
			t.Errorf("%s: %q", command, got)
		}
	}
	has(t, "crash", bash(t, s, "crash"), "deny reason=it failed, and nothing passes without it: exit code 1: Traceback")
	out := must(t, s, call(tool.BeforeCall, s.Env, "bash", `{"command":"make","timeout":600,"network":["x.org"]}`))
	if got := brief(out); got != `allow args={"command":"make","network":["x.org"],"timeout":60}` {
		t.Errorf("rewritten: %q", got)
	}
	has(t, "told", w.take()+strings.Join(notes, ""))
}

func TestNotification(t *testing.T) {
	s, w, notes := wild(t, "notification")
	if got := brief(must(t, s, tool.Point{Moment: tool.RunStop, Text: "All done.", Why: "done"})); got != "" {
		t.Errorf("got %q", got)
	}
	closed(t, s)
	has(t, "stdin", read(t, s.Env.Root, "notified"), `"hook_event_name":"Stop"`,
		`"stop_hook_active":false`, `"last_assistant_message":"All done."`)
	if diff := cmp.Diff([]string{".claude/settings.json: hooks.Notification: inspan has no such moment, so its hooks do not run"},
		notes); diff != "" {
		t.Error(diff)
	}
	has(t, "told", w.take(), ": ding")
}

func TestPromptContext(t *testing.T) {
	s, w, _ := wild(t, "prompt-context")
	for _, tc := range []struct {
		point tool.Point
		want  string
	}{
		{tool.Point{Moment: tool.SessionStart, Why: "new"}, "text=Branch: main"},
		{tool.Point{Moment: tool.SessionStart, Why: "resumed"}, "text=Branch: main"},
		{tool.Point{Moment: tool.AfterCompact, Why: "window"}, "text=Reminder: use Bun, not npm."},
		{tool.Point{Moment: tool.PromptSaid, Text: "build it"}, "text=Today is a Sunday.\n\nNo secrets in it."},
		{
			tool.Point{Moment: tool.PromptSaid, Text: "my password: x"},
			"deny reason=Security policy violation: prompt contains secrets. text=Today is a Sunday.",
		},
	} {
		if got := brief(must(t, s, tc.point)); got != tc.want {
			t.Errorf("%+v: %q", tc.point, got)
		}
	}
	has(t, "told", w.take())
}

func TestStopGate(t *testing.T) {
	s, w, _ := wild(t, "stop-gate")
	stop := tool.Point{Moment: tool.RunStop, Why: "done"}
	if got := brief(must(t, s, stop)); got != "text=Tests fail. Fix them first." {
		t.Errorf("red: %q", got)
	}
	stop.Rounds = 1
	if got := brief(must(t, s, stop)); got != "" {
		t.Errorf("second round: %q", got)
	}
	has(t, "told", w.take(), "gave up")
	stop.Rounds = 0
	write(t, s.Env.Root, "fixed", "")
	if got := brief(must(t, s, stop)); got != "" {
		t.Errorf("green: %q", got)
	}
	if got := brief(must(t, s, tool.Point{Moment: tool.AgentStop})); got != "text=look again" {
		t.Errorf("subagent: %q", got)
	}
	for kind, want := range map[string]string{"explore": "text=Read only.", "Explore": "text=Read only.", "plan": ""} {
		if got := brief(must(t, s, tool.Point{Moment: tool.AgentStart, Who: tool.Actor{Kind: kind}})); got != want {
			t.Errorf("%s: %q", kind, got)
		}
	}
	has(t, "told", w.take())
}

func TestRegexpMatchers(t *testing.T) {
	s, w, notes := wild(t, "regexp-matchers")
	plugin := filepath.Join(s.Env.Root, "plug in")
	for i := range s.Hooks {
		s.Hooks[i].PluginRoot = plugin
	}
	for _, tc := range []struct{ name, args, want string }{
		{"mcp__notes__delete_all", `{}`, "deny reason=denied by " + plugin + ": it's $HOME " + s.Env.Root},
		{"mcp__notes__read", `{}`, ""},
		{"todo", `{}`, "deny reason=not this"},
		{"web_fetch", `{"url":"https://example.com"}`, "deny reason=denied by " + plugin + ": web"},
		{"bash", `{"command":"make && A=1 git push origin"}`, "deny reason=no pushes"},
		{"bash", `{"command":"git pull"}`, ""},
		{"write_file", `{"path":"sub/go.lock","content":""}`, "deny reason=locked"},
		{"edit_file", `{"path":"go.lock","edits":[]}`, "deny reason=locked"},
		{"edit_file", `{"path":"go.mod","edits":[]}`, ""},
	} {
		if got := brief(must(t, s, call(tool.BeforeCall, s.Env, tc.name, tc.args))); got != tc.want {
			t.Errorf("%s %s: %q", tc.name, tc.args, got)
		}
	}
	for why, want := range map[string]string{"window": "text=Keep the list of open questions.", "asked": ""} {
		if got := brief(must(t, s, tool.Point{Moment: tool.BeforeCompact, Why: why})); got != want {
			t.Errorf("%s: %q", why, got)
		}
	}
	all := strings.Join(notes, "\n")
	has(t, "notes", all, `PreToolUse[3].hooks[1]: it does not run: inspan has no hooks of type "prompt"`, `hooks in "powershell"`, "hooks.PermissionRequest: inspan has "+
		"no such moment")
	if len(notes) != 3 {
		t.Errorf("%d notes:\n%s", len(notes), all)
	}
	has(t, "told", w.take())
}

// TestUnreadableGuards checks that a guard of a file that can't be read denies what it might guard, and why, and that
// everything else that can't be read is only noted.
func TestUnreadableGuards(t *testing.T) {
	const run = `{"type":"command","command":"true"}`
	group := func(matcher, handler string) string {
		return `{"hooks":{"PreToolUse":[{"matcher":` + matcher + `,"hooks":[` + handler + `]}]}}`
	}
	for _, tc := range []struct{ file, bash, write, prompt string }{
		{group(`"Bash("`, run), `hooks[0] can't be read: match "Bash("`, `match "Bash("`, ""},
		{group(`"^(?!Bash"`, run), `match "^(?!Bash"`, `match "^(?!Bash"`, ""},
		{group(`["Bash","Edit"]`, run), "hooks.PreToolUse[0] can't be read", "PreToolUse[0] can't be read", ""},
		{group(`"Bash"`, `{"type":"command","comand":"true"}`), "hooks[0] can't be read: it has no command", "", ""},
		{group(`"Bash"`, `{"type":"command","command":"true","timeout":"5"}`), "hooks[0] can't be read", "", ""},
		{group(`"Bash"`, `{"type":"comand","command":"true"}`), `unknown hook type "comand"`, "", ""},
		{group(`"Bash"`, `{"type":"command","command":"true","onFailure":"allow","timeout":"5"}`), "", "", ""},
		{group(`"Bash"`, `{"type":"http","url":"http://example.com"}`), "", "", ""},
		{group(`"Bash"`, `{"type":"prompt","prompt":"?"}`), "", "", ""},
		{group(`"Bash("`, `{"type":"command","command":"true","async":true}`), "", "", ""},
		{`{"hooks":{"PreToolUse":{"matcher":"Bash","hooks":[` + run + `]}}}`, "hooks.PreToolUse can't be read: it is not a list", "it is not a list", ""},
		{`{"hooks":{"PreToolUse":["true"]}}`, "PreToolUse[0] can't be read", "PreToolUse[0] can't be read", ""},
		{`{"hooks":{"UserPromptSubmit":[{"hooks":["true"]}]}}`, "", "", "hooks.UserPromptSubmit[0].hooks[0] can't be read"},
		{`{"hooks":{"PostToolUse":[{"matcher":"Bash(","hooks":[` + run + `]}]}}`, "", "", ""},
		// A hook that does the same where it can be read does not stand in for it.
		{`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[` + run + `]},{"matcher":"Bash(","hooks":[` + run + `]}]}}`, `match "Bash("`, `match "Bash("`, ""},
	} {
		hooks, notes, err := hook.ReadClaude([]byte(tc.file), "x.json")
		if err != nil || len(notes) != 1 {
			t.Errorf("%s: %v, notes %q", tc.file, err, notes)
		}
		s, w := set(t, hooks...)
		for _, one := range []struct {
			at   tool.Point
			want string
		}{
			{call(tool.BeforeCall, s.Env, "bash", `{"command":"ls"}`), tc.bash},
			{call(tool.BeforeCall, s.Env, "write_file", `{"path":"a","content":""}`), tc.write},
			{tool.Point{Moment: tool.PromptSaid, Text: "hi"}, tc.prompt},
		} {
			out := must(t, s, one.at)
			if (out.Action == tool.Deny) != (one.want != "") || !strings.Contains(out.Reason, one.want) {
				t.Errorf("%s: %s, %q; want %q", tc.file, out.Action, out.Reason, one.want)
			}
		}
		has(t, "told", w.take())
	}
}

func TestRedactOutput(t *testing.T) {
	s, w, _ := wild(t, "redact-output")
	p := call(tool.AfterCall, s.Env, "bash", `{"command":"env"}`)
	p.Result.Parts = llm.Say("KEY=sk-abc123 and so on")
	if got := brief(must(t, s, p)); got != "result=KEY=[redacted] and so on" {
		t.Errorf("got %q", got)
	}
	p.Result.Parts = llm.Say("nothing")
	if got := brief(must(t, s, p)); got != "" {
		t.Errorf("got %q", got)
	}
	has(t, "told", w.take())
	exit := 1
	p.Result.Exit, p.Result.Parts = &exit, llm.Say("FAIL")
	if got := brief(must(t, s, p)); got != "text=Run make setup first." {
		t.Errorf("got %q", got)
	}
	has(t, "told", w.take(), "tests are red")
	if got := brief(must(t, s, call(tool.AfterCall, s.Env, "mcp__cal__list", `{}`))); got != "text=check the dates result=new" {
		t.Errorf("got %q", got)
	}
}

// TestClaudeAnswers checks the meaning of each field of an answer.
func TestClaudeAnswers(t *testing.T) {
	specific := func(event, fields string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + event + `",` + fields + `}}`
	}
	for _, tc := range []struct {
		on     tool.Moment
		answer string
		want   string
		told   string
	}{
		{tool.BeforeCall, `{}`, "", ""},
		{tool.BeforeCall, `{"continue":true,"suppressOutput":true,"terminalSequence":"x","whatever":[1]}`, "", ""},
		{tool.BeforeCall, `{"decision":"approve","reason":"old way"}`, "allow reason=old way", ""},
		{tool.BeforeCall, `{"decision":"block","reason":"old way"}`, "deny reason=old way", ""},
		{tool.BeforeCall, specific("PreToolUse", `"permissionDecision":"defer"`), "", ""},
		{tool.BeforeCall, specific("PreToolUse", `"permissionDecision":"deny"`), "deny reason=the hook gave no reason", ""},
		{
			tool.BeforeCall, specific("PreToolUse", `"permissionDecision":"deny","updatedInput":{"command":"x"}`),
			"deny reason=the hook gave no reason", "",
		},
		{
			tool.BeforeCall, specific("PreToolUse", `"permissionDecision":"ask","updatedInput":{"command":"pwd","description":"where"}`),
			`ask args={"command":"pwd"}`, "",
		},
		{tool.BeforeCall, specific("PreToolUse", `"updatedInput":"pwd"`), "", "not an object"},
		{tool.BeforeCall, specific("PreToolUse", `"permissionDecision":"maybe"`), "", `decision is "maybe"`},
		{tool.BeforeCall, specific("PostToolUse", `"permissionDecision":"allow"`), "", "for PostToolUse, not for PreToolUse"},
		{
			tool.BeforeCall, `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no event"}}`,
			"deny reason=no event", "",
		},
		{tool.BeforeCall, `{"continue":false,"stopReason":"enough"}`, "deny reason=enough", ""},
		{tool.BeforeCall, `{"decision":7}`, "", "valid output of a Claude Code hook"},
		{tool.AfterCall, `{"decision":"block","reason":"lint"}`, "text=lint", ""},
		{tool.AfterCall, specific("PostToolUse", `"updatedToolOutput":"plain","additionalContext":"more"`), "text=more result=plain", ""},
		{tool.AfterCall, specific("PostToolUse", `"updatedToolOutput":{"stdout":"a","stderr":"b"}`), "result=a\nb", ""},
		{tool.AfterCall, specific("PostToolUse", `"updatedToolOutput":{"type":"text","file":{"content":"c"}}`), "result=c", ""},
		{tool.AfterCall, specific("PostToolUse", `"updatedToolOutput":{"x":1}`), `result={"x":1}`, ""},
		{tool.AfterCall, specific("PostToolUse", `"updatedToolOutput":[{"type":"image"}]`), `result=[{"type":"image"}]`, ""},
		{tool.AfterCall, `{"continue":false,"stopReason":"enough"}`, "text=End your turn now, and tell the person why: enough", "enough"},
		{tool.AfterCall, `{"decision":"maybe"}`, "", `decision is "maybe"`},
		{tool.PromptSaid, `{"decision":"block","reason":"no"}`, "deny reason=no", ""},
		{tool.PromptSaid, `{"continue":false}`, "deny reason=a hook stops the work here", ""},
		{tool.PromptSaid, `{"systemMessage":"careful"}`, "", ": careful"},
		{tool.BeforeCompact, `{"decision":"block","reason":"later"}`, "deny reason=later", ""},
		{tool.RunStop, `{"decision":"block","reason":"on","hookSpecificOutput":{"additionalContext":"x"}}`, "text=on", ""},
		{tool.RunStop, `{"decision":"block","reason":"on","continue":false}`, "", "a hook stops the work here"},
		{tool.AgentStop, `{"decision":"block","reason":"on"}`, "text=on", ""},
		{tool.SessionEnd, specific("SessionEnd", `"additionalContext":"x"`), "", ""},
		{tool.SessionStart, `{"decision":"block","reason":"can't"}`, "", "can't"},
		{tool.SessionStart, `{oops`, "", "valid output"},
	} {
		s, w := set(t, hook.Config{On: tc.on, Command: "cat answer", Claude: true})
		write(t, s.Env.Root, "answer", tc.answer)
		if got := brief(must(t, s, at(tc.on, s.Env))); got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.on, tc.answer, got, tc.want)
		}
		if warned := w.take(); tc.told == "" {
			has(t, tc.answer, warned)
		} else {
			has(t, tc.answer, warned, tc.told)
		}
	}
}

// TestClaudeNames checks the arguments of each tool as Claude Code has them, and that they come back as ours.
func TestClaudeNames(t *testing.T) {
	env := local(t)
	for _, tc := range []struct{ name, args, theirs, change, back string }{
		{
			"bash", `{"command":"ls","timeout":5}`, `"tool_input":{"command":"ls","timeout":5000},"tool_name":"Bash"`,
			`{"command":"pwd","timeout":1500}`, `{"command":"pwd","timeout":1}`,
		},
		{"read_file", `{"path":"a","limit":3}`, `"tool_input":{"file_path":"` + env.Root + `/a","limit":3},"tool_name":"Read"`, `{"file_path":"` +
			env.Root + `/a","limit":9}`, `{"limit":9,"path":"a"}`},
		{"read_file", `{"path":"blob:x"}`, `"tool_input":{"file_path":"blob:x"}`, `{"file_path":"/b"}`, `{"path":"/b"}`},
		{
			"write_file", `{"path":"/a","content":"<x>"}`, `"tool_input":{"content":"<x>","file_path":"/a"},"tool_name":"Write"`,
			`{"file_path":"/b","content":"y"}`, `{"content":"y","path":"/b"}`,
		},
		{
			"edit_file", `{"path":"/a","edits":[{"old_string":"o","new_string":"n"}]}`,
			`"tool_input":{"file_path":"/a","new_string":"n","old_string":"o"},"tool_name":"Edit"`,
			`{"file_path":"/a","new_string":"m","old_string":"o","replace_all":true}`,
			`{"edits":[{"new_string":"m","old_string":"o","replace_all":true}],"path":"/a"}`,
		},
		{
			"edit_file", `{"path":"/a","edits":[{"old_string":"o","new_string":"n"},{"old_string":"p","new_string":"q"}]}`,
			`"tool_input":{"edits":[{"new_string":"n","old_string":"o"},{"new_string":"q","old_string":"p"}],"file_path":"/a"},` +
				`"tool_name":"MultiEdit"`, `{"edits":[],"file_path":"/a"}`, `{"edits":[],"path":"/a"}`,
		},
		{
			"edit_lines", `{"path":"/a","first_line":2,"expect":"o","text":"n"}`,
			`"tool_input":{"file_path":"/a","first_line":2,"new_string":"n","old_string":"o"},"tool_name":"Edit"`,
			`{"file_path":"/a","first_line":2,"new_string":"m","old_string":"o"}`, `{"expect":"o","first_line":2,"path":"/a","text":"m"}`,
		},
		{"find_files", `{"pattern":"*.go"}`, `"tool_input":{"pattern":"*.go"},"tool_name":"Glob"`, `{"pattern":"*.c"}`, `{"pattern":"*.c"}`},
		{
			"search_files", `{"pattern":"x","ignore_case":true,"context":2,"max":5}`,
			`"tool_input":{"-C":2,"-i":true,"head_limit":5,"pattern":"x"},"tool_name":"Grep"`, `{"pattern":"y","-i":false}`,
			`{"ignore_case":false,"pattern":"y"}`,
		},
		{"list_files", `{"path":"a"}`, `"tool_input":{"path":"a"},"tool_name":"LS"`, `{}`, `{}`},
		{
			"web_fetch", `{"url":"https://a.b","find":"c"}`, `"tool_input":{"prompt":"c","url":"https://a.b"},"tool_name":"WebFetch"`,
			`{"url":"https://c.d","prompt":""}`, `{"find":"","url":"https://c.d"}`,
		},
		{
			"web_search", `{"query":"q","domains":["a"],"exclude":["b"]}`,
			`"tool_input":{"allowed_domains":["a"],"blocked_domains":["b"],"query":"q"},"tool_name":"WebSearch"`,
			`{"query":"r","allowed_domains":[]}`, `{"domains":[],"query":"r"}`,
		},
		{
			"todo", `{"items":[{"text":"a","state":"doing"},{"text":"b","state":"open"}]}`,
			`"tool_input":{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"pending"}]},"tool_name":"TodoWrite"`,
			`{"todos":[{"content":"a","status":"completed","activeForm":"doing a"}]}`, `{"items":[{"state":"done","text":"a"}]}`,
		},
		{
			"spawn_agent", `{"task":"look at\nit","agent":"explore","background":true}`,
			`"tool_input":{"description":"look at it","prompt":"look at\nit","run_in_background":true,"subagent_type":"explore"},"tool_name":"Agent"`,
			`{"prompt":"q","subagent_type":"plan","description":"d","isolation":"worktree"}`, `{"agent":"plan","isolation":"worktree","task":"q"}`,
		},
		{
			"spawn_agent", `{"task":"t"}`, `"tool_input":{"description":"t","prompt":"t","subagent_type":"worker"}`,
			`{"prompt":"u","subagent_type":"general-purpose"}`, `{"agent":"worker","task":"u"}`,
		},
		{"mcp__a__b", `{"file_path":"x"}`, `"tool_name":"mcp__a__b"`, `{"n":1}`, `{"n":1}`},
	} {
		s := &hook.Set{Env: env, Hooks: []hook.Config{{On: tool.BeforeCall, Claude: true, Command: "cat > told; cat answer"}}}
		write(t, env.Root, "answer", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":`+tc.change+`}}`)
		p := call(tool.BeforeCall, env, tc.name, tc.args)
		if got := string(must(t, s, p).Args); got != tc.back {
			t.Errorf("%s: back comes %s, want %s", tc.name, got, tc.back)
		}
		has(t, tc.name, read(t, env.Root, "told"), tc.theirs)
		// Arguments that come back unchanged are not a change.
		s = &hook.Set{Env: env, Hooks: []hook.Config{{
			On: tool.BeforeCall, Claude: true,
			Command: `sed 's/.*"tool_input":\(.*\),"tool_name".*/{"hookSpecificOutput":{"updatedInput":\1}}/'`,
		}}}
		if out := must(t, s, p); brief(out) != "" {
			t.Errorf("%s: unchanged arguments come back as %q", tc.name, brief(out))
		}
	}
}

func TestClaudeMoments(t *testing.T) {
	s, _ := set(t)
	s.Log = func(id string) string { return "/logs/" + id }
	for _, m := range tool.Moments() {
		s.Hooks = append(s.Hooks, hook.Config{On: m, Claude: true, Command: "cat > told"})
	}
	root := s.Env.Root
	for _, tc := range []struct {
		point tool.Point
		mode  string
		want  []string
	}{
		{
			tool.Point{Moment: tool.SessionStart, Why: "new", Mode: "yolo"},
			"bypassPermissions",
			[]string{`"hook_event_name":"SessionStart"`, `"source":"startup"`, `"cwd":"` + root + `"`, `"transcript_path":"/logs/`},
		},
		{tool.Point{Moment: tool.SessionStart, Why: "resumed", Mode: "plan"}, "plan", []string{`"source":"resume"`}},
		{tool.Point{Moment: tool.SessionEnd, Mode: "edit"}, "acceptEdits", []string{`"hook_event_name":"SessionEnd"`, `"reason":"other"`}},
		{tool.Point{Moment: tool.PromptSaid, Text: "a <b>", Mode: "auto"}, "auto", []string{`"prompt":"a <b>"`}},
		{
			tool.Point{Moment: tool.BeforeCompact, Why: "asked", Text: "names"},
			"default",
			[]string{`"trigger":"manual"`, `"custom_instructions":"names"`},
		},
		{
			tool.Point{Moment: tool.AfterCompact, Why: "overflow", Text: "sum"},
			"default",
			[]string{`"hook_event_name":"PostCompact"`, `"trigger":"auto"`, `"compact_summary":"sum"`},
		},
		{
			tool.Point{Moment: tool.RunStop, Text: "bye", Rounds: 1},
			"default",
			[]string{`"stop_hook_active":true`, `"last_assistant_message":"bye"`},
		},
		{
			tool.Point{Moment: tool.AgentStart, Session: "s1.a", Who: tool.Actor{Kind: "Plan", Parent: "s1", Lead: "s1"}},
			"default",
			[]string{`"hook_event_name":"SubagentStart"`, `"agent_type":"Plan"`, `"agent_id":"s1.a"`, `"session_id":"s1"`},
		},
		{
			tool.Point{Moment: tool.AgentStop, Session: "s1.a.b", Who: tool.Actor{Kind: "Plan", Parent: "s1.a", Lead: "s1"}, Why: "done", Text: "found"},
			"default",
			[]string{
				`"stop_hook_active":false`, `"agent_type":"Plan"`, `"agent_id":"s1.a.b"`, `"session_id":"s1"`, `"last_assistant_message":"found"`,
				`"transcript_path":"/logs/s1"`, `"agent_transcript_path":"/logs/s1.a.b"`,
			},
		},
	} {
		tc.point.Root = root
		must(t, s, tc.point)
		told := read(t, root, "told")
		has(t, string(tc.point.Moment), told, append(tc.want, `"permission_mode":"`+tc.mode+`"`)...)
		if !json.Valid([]byte(told)) {
			t.Errorf("%s is not JSON", told)
		}
	}
	after := call(tool.AfterCall, s.Env, "read_file", `{"path":"/a"}`)
	must(t, s, after)
	has(t, "read", read(t, root, "told"), `"tool_response":{"file":{"content":"brought","filePath":"/a"},"type":"text"}`)
	after.Call.Name = "write_file"
	must(t, s, after)
	has(t, "write", read(t, root, "told"), `"tool_response":{"filePath":"/a","success":true}`)
	after.Call.Name = "mcp__a__b"
	must(t, s, after)
	has(t, "mcp", read(t, root, "told"), `"tool_response":[{"text":"brought","type":"text"}]`)
	after.Call.Name = "list_files"
	must(t, s, after)
	has(t, "list", read(t, root, "told"), `"tool_response":"brought"`)
}

// TestWhoActs checks which hooks run for which agents, and what the hooks learn about them.
func TestWhoActs(t *testing.T) {
	agents := map[string]tool.Actor{
		"s1": {Lead: "s1"}, "s1.a": {Kind: "worker", Parent: "s1", Lead: "s1"}, "s1.a.b": {Kind: "explore", Parent: "s1.a", Lead: "s1"},
	}
	for _, tc := range []struct {
		moment tool.Moment
		config hook.Config
		runs   string // for these sessions
	}{
		{tool.SessionStart, hook.Config{Claude: true}, "s1"},
		{tool.PromptSaid, hook.Config{Claude: true}, "s1"},
		{tool.RunStop, hook.Config{Claude: true}, "s1"},
		{tool.SessionEnd, hook.Config{Claude: true}, "s1"},
		{tool.AfterCompact, hook.Config{Claude: true, Event: "SessionStart"}, "s1"},
		{tool.AfterCompact, hook.Config{Claude: true}, "s1 s1.a s1.a.b"},
		{tool.BeforeCall, hook.Config{Claude: true}, "s1 s1.a s1.a.b"},
		{tool.AgentStart, hook.Config{Claude: true, Match: "worker"}, "s1.a"},
		{tool.AgentStop, hook.Config{Claude: true, Match: "explore|Plan"}, "s1.a.b"},
		{tool.AgentStop, hook.Config{Claude: true, Match: "general-purpose|Explore"}, "s1.a s1.a.b"},
		{tool.AgentStop, hook.Config{Claude: true, Match: "done"}, ""},
		{tool.RunStop, hook.Config{Claude: true, Event: "Stop", Kind: "worker"}, "s1 s1.a s1.a.b"}, // it is in its agent only
		{tool.RunStop, hook.Config{}, "s1 s1.a s1.a.b"},
		{tool.AgentStart, hook.Config{Match: "worker"}, "s1.a"},
		{tool.AgentStop, hook.Config{Match: "/^exp/"}, "s1.a.b"},
		{tool.AgentStop, hook.Config{Match: "done"}, "s1 s1.a s1.a.b"},
	} {
		tc.config.On, tc.config.Command = tc.moment, "cat > told"
		s, _ := set(t, tc.config)
		var ran []string
		for _, session := range slices.Sorted(maps.Keys(agents)) {
			p, who := at(tc.moment, s.Env), agents[session]
			p.Session, p.Who, p.Why = session, who, "done"
			must(t, s, p)
			data, err := os.ReadFile(filepath.Join(s.Env.Root, "told"))
			if err != nil {
				continue
			}
			ran = append(ran, session)
			_ = os.Remove(filepath.Join(s.Env.Root, "told"))
			is, isNot := `"session":"`+session+`"`, `"agent"`
			if who.Parent != "" {
				is, isNot = is+`,"agent":"`+who.Kind+`","parent":"`+who.Parent+`","lead":"s1"`, "none"
			}
			if tc.config.Claude {
				is, isNot = `"session_id":"s1"`, `"agent_id"`
				if who.Parent != "" {
					has(t, string(tc.moment), string(data), `"agent_id":"`+session+`"`, `"agent_type":"`+who.Kind+`"`)
					isNot = "none"
				}
			}
			if has(t, string(tc.moment), string(data), is); strings.Contains(string(data), isNot) {
				t.Errorf("%s of %s is told %s", tc.moment, session, data)
			}
		}
		if got := strings.Join(ran, " "); got != tc.runs {
			t.Errorf("%s %+v runs for %q, not %q", tc.moment, tc.config, got, tc.runs)
		}
	}
}

// TestClaudeOutput checks that a hook gets the output of a command, and no text that was added to it.
func TestClaudeOutput(t *testing.T) {
	zero, five := 0, 5
	for _, tc := range []struct {
		result string
		exit   *int
		want   string
	}{
		{"a\nb\n[exit code 0]", &zero, `"tool_response":{"interrupted":false,"isImage":false,"stderr":"","stdout":"a\nb\n"}`},
		{"[no output]\n[exit code 0]\n[now in /tmp]", &zero, `"stdout":""`},
		{"[exit code 0]\n[exit code 0]", &zero, `"stdout":"[exit code 0]\n"`},
		{"x\n[the sandbox hid /y]\n[blocked: z; the network argument of a call asks for it]\n[exit code 0]", &zero, `"stdout":"x\n"`},
		{"no\n[exit code 5]\nA hint.", &five, `"error":"Exit code 5\nno\n"`},
		{"a\n[still running as job 1]", nil, `"stdout":"a\n[still running as job 1]"`},
	} {
		s, _ := set(t, hook.Config{On: tool.AfterCall, Claude: true, Command: "cat > told"})
		p := call(tool.AfterCall, s.Env, "bash", `{"command":"ls"}`)
		p.Result = &tool.Result{Parts: llm.Say(tc.result), Exit: tc.exit}
		must(t, s, p)
		has(t, tc.result, read(t, s.Env.Root, "told"), tc.want)
	}
}

// TestRepeatedHooks checks that a hook in two files of Claude Code runs once, and that a hook in the person's own
// settings runs as often as it is there.
func TestRepeatedHooks(t *testing.T) {
	for claude, want := range map[bool]string{true: "x", false: "xx"} {
		c := hook.Config{On: tool.BeforeCall, Command: "printf x >> ran", Claude: claude}
		s, _ := set(t, c, hook.Config{On: tool.BeforeCall, Command: "true", Claude: claude}, c)
		must(t, s, at(tool.BeforeCall, s.Env))
		if got := read(t, s.Env.Root, "ran"); got != want {
			t.Errorf("Claude %v: ran %q", claude, got)
		}
	}
	// The same command for another tool is not the same.
	s, _ := set(t, hook.Config{On: tool.BeforeCall, Match: "Read", Command: "touch ran", Claude: true},
		hook.Config{On: tool.BeforeCall, Match: "Bash", Command: "touch ran", Claude: true})
	must(t, s, at(tool.BeforeCall, s.Env))
	read(t, s.Env.Root, "ran")
}

func TestArgs(t *testing.T) {
	s, w := set(
		t,
		hook.Config{On: tool.PromptSaid, Command: "printf", Args: []string{"[%s]", "a b", "$HOME", "it's", "${CLAUDE_PROJECT_DIR}"}},
		hook.Config{On: tool.PromptSaid, Command: "pwd", Args: []string{}},
		hook.Config{On: tool.PromptSaid, Command: "no such", Args: []string{}},
	)
	if got := must(t, s, tool.Point{Moment: tool.PromptSaid}).Text; got != "[a b][$HOME][it's][${CLAUDE_PROJECT_DIR}]\n\n"+s.Env.Root {
		t.Errorf("got %q", got)
	}
	has(t, "told", w.take(), "exit code 127")
}

// TestInlineGuard runs scripts as they stand in files of Claude Code: in bash, and nothing passes
// where a guard could not look.
func TestInlineGuard(t *testing.T) {
	t.Parallel()
	const broken = "it failed, and nothing passes without it"
	for _, tc := range []struct{ script, more, before, after string }{
		{"# a comment\nnames=(a ls)\nif [[ \"${names[1]}\" =~ ^l ]]; then echo 'not now' >&2; exit 2; fi", "", "deny reason=not now", ""},
		{"[[ x == y ]] || true", `"shell":"bash",`, "", ""},
		{"if [[ ; then exit 2; fi", "", broken + ": bash: -c: line 1: unexpected token `;' in conditional comma…", ""},
		{"if no-such-judge; then exit 2; fi", "", broken + ": bash: line 1: no-such-judge: command not found", ""},
		{"what=$(no-such-judge)\n[[ -z $what ]] || exit 2", "", broken, ""},
		{"if no-such-judge 2>/dev/null; then exit 2; fi", "", "", ""},
		{"[ 1 -gt x ] && exit 2; true", "", broken, ""},
		{"[[ a == b ]] && exit 2", "", "", ""},
		{"exit 3", "", broken + ": exit code 3", "exit code 3"},
		{"if true; then", "", "deny reason=bash: -c: line", ""},
		{"./not-there.sh", "", broken + ": exit code 127", "exit code 127"},
		{"echo lost >&2; exit 1", "", broken + ": exit code 1: lost", "exit code 1: lost"},
		{"echo lost >&2; exit 1", `"onFailure":"allow",`, "", "exit code 1: lost"},
		{"echo 'app.txt: line 3: is long' >&2", "", "", ""},
	} {
		command, err := json.Marshal(tc.script)
		if err != nil {
			t.Fatal(err)
		}
		one := `[{"hooks":[{"type":"command",` + tc.more + `"command":` + string(command) + `}]}]`
		hooks, notes, err := hook.ReadClaude([]byte(`{"hooks":{"PreToolUse":`+one+`,"PostToolUse":`+one+`}}`), "x.json")
		if err != nil || len(hooks) != 2 || len(notes) != 0 {
			t.Fatal(hooks, notes, err)
		}
		var w warnings
		s := &hook.Set{Env: local(t), Hooks: hooks, Warn: w.add}
		got := brief(must(t, s, at(tool.BeforeCall, s.Env)))
		if tc.before == "" && got != "" || !strings.Contains(got, tc.before) || tc.before != "" && !strings.HasPrefix(got, "deny") {
			t.Errorf("%q before a call: %q", tc.script, got)
		}
		w.take()
		must(t, s, at(tool.AfterCall, s.Env))
		if told := w.take(); !strings.Contains(told, tc.after) {
			t.Errorf("%q after a call: told %q", tc.script, told)
		}
	}
}

func TestReadClaude(t *testing.T) {
	hooks, notes, err := hook.ReadClaude([]byte("\ufeff"+`{"hooks":{
		"UserPromptSubmit":[{"matcher":"ignored","hooks":[{"type":"command","command":"a"},{"type":"command","command":"b","timeout":0.5}]}],
		"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"http","url":"https://example.com/h","headers":{"A":"$B"},"allowedEnvVars":["B"],"timeout":99999,"onFailure":"block"},{"type":"command","command":"c","asyncRewake":true,"onFailure":"block"}]}],
		"Stop":[{"hooks":[{"type":"command","command":"d","args":[],"onFailure":"block"}]}]}}`), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []hook.Config{
		{On: tool.PromptSaid, Event: "UserPromptSubmit", Command: "a", Timeout: 30 * time.Second, OnFailure: hook.Deny},
		{On: tool.PromptSaid, Event: "UserPromptSubmit", Command: "b", Timeout: 500 * time.Millisecond, OnFailure: hook.Deny},
		{
			On: tool.BeforeCall, Event: "PreToolUse", Match: "Bash", URL: "https://example.com/h", Headers: map[string]string{"A": "$B"},
			HeaderEnv: []string{"B"}, Timeout: time.Hour, OnFailure: hook.Deny,
		},
		{On: tool.BeforeCall, Event: "PreToolUse", Match: "Bash", Command: "c", Background: true, Timeout: 10 * time.Minute},
		{On: tool.RunStop, Event: "Stop", Command: "d", Args: []string{}, Timeout: 10 * time.Minute},
	}
	for i := range want {
		want[i].Claude, want[i].Source = true, "x.json"
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Error(diff)
	}
	has(t, "notes", strings.Join(notes, "\n"), "hooks[1]: onFailure applies only", "asyncRewake", "Stop[0].hooks[0]: onFailure applies only")
	for _, tc := range []struct{ file, note, err string }{
		{`{}`, "", ""},
		{`{"hooks":{}}`, "", ""},
		{`{"hooks":null}`, "", ""},
		{`{"hooks":{"PreToolUse":[]}}`, "", ""},
		{`{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}`, "disableAllHooks", ""},
		{``, "", "read hooks of x.json"},
		{`[]`, "", "read hooks of x.json"},
		{`{"hooks":[]}`, "", "read hooks of x.json"},
		{`{"hooks":{"PostToolUse":{"command":"a"}}}`, "hooks.PostToolUse: it does not run: it is not a list", ""},
		{`{"hooks":{"PostToolUse":["a"]}}`, "PostToolUse[0]: it does not run", ""},
		{`{"hooks":{"PostToolUse":[{"matcher":7,"hooks":[]}]}}`, "PostToolUse[0]: it does not run", ""},
		{`{"hooks":{"PreToolUse":[{"command":"a"}]}}`, "has no hooks in it", ""},
		{`{"hooks":{"PostToolUse":[{"hooks":[{"command":"a"}]}]}}`, `type ""`, ""},
		{`{"hooks":{"PostToolUse":[{"hooks":[{"type":"command"}]}]}}`, "it has no command", ""},
		{`{"hooks":{"PreToolUse":[{"hooks":[{"type":"http"}]}]}}`, "it has no url", ""},
		{`{"hooks":{"PreToolUse":[{"hooks":[{"type":"http","url":"http://example.com"}]}]}}`, "is not https, or http", ""},
		{`{"hooks":{"PostToolUse":[{"hooks":[{"type":"command","command":"a","timeout":"5"}]}]}}`, "it does not run", ""},
		{`{"hooks":{"New\u001b[1mEvent":[]}}`, "hooks.NewEvent: inspan has no such moment", ""},
	} {
		hooks, notes, err := hook.ReadClaude([]byte(tc.file), "x.json")
		all := strings.Join(notes, "\n")
		if len(hooks) > 0 || (tc.note == "") != (all == "") || !strings.Contains(all, tc.note) {
			t.Errorf("%s: hooks %v, notes %q", tc.file, hooks, all)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v", tc.file, err)
		}
	}
}
