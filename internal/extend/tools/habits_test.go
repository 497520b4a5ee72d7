package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/tool"
)

// meant is the result of a model's call: the tool, and its arguments as they run.
func meant(t *testing.T, name, args string) string {
	t.Helper()
	list := Mended(slices.Concat(WithLSP(&lsp.Manager{}, Core(&Shell{}, "")), Web{}.Tools(), Deferred(nil, nil, nil)))
	list = append(list, Usual(list)...)
	find := func(name string) tool.Tool {
		i := slices.IndexFunc(list, func(t tool.Tool) bool { return t.Name == name })
		if i < 0 {
			t.Fatalf("there is no tool %s", name)
		}
		return list[i]
	}
	tl, raw := find(name), json.RawMessage(args)
	if tl.Resolve != nil {
		checked, err := tl.Check(raw)
		if err != nil {
			return err.Error()
		}
		to, args, err := tl.Resolve(context.Background(), &tool.Call{Name: name, Args: checked, Todo: []tool.Todo{{Text: "a", State: tool.TodoOpen}}})
		if err != nil {
			return err.Error()
		}
		if to != "" {
			tl, raw = find(to), args
		}
	}
	checked, err := tl.Check(raw)
	if err != nil {
		return err.Error()
	}
	if again, err := tl.Check(checked); err != nil || string(again) != string(checked) {
		t.Errorf("checked again, %s becomes %s, %v", checked, again, err)
	}
	return tl.Name + " " + string(checked)
}

// TestHabitsCostNoTurn checks that calls in the form of other tool sets become ours.
func TestHabitsCostNoTurn(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"Bash", `{"command":"ls","description":"List files"}`, `bash {"command":"ls"}`},
		{"Bash", `{"command":"ls","timeout":120000}`, `bash {"command":"ls","timeout":120}`},
		{"bash", `{"command":"ls","timeout_ms":1500}`, `bash {"command":"ls","timeout":2}`},
		{"bash", `{"cmd":"ls","cwd":"a b"}`, "bash {\"command\":\"(cd 'a b' && {\\nls\\n})\"}"},
		{"bash", `{"command":"ls","workdir":"."}`, `bash {"command":"ls"}`},
		{"Bash", `{"command":"npm start","run_in_background":true}`, `bash {"background":true,"command":"npm start"}`},
		{"shell", `{"command":["bash","-lc","cat x | wc"],"workdir":"src"}`, "bash {\"command\":\"(cd src && {\\ncat x | wc\\n})\"}"},
		{"shell", `{"command":["git","commit","-m","a b"]}`, `bash {"command":"git commit -m 'a b'"}`},
		{"exec_command", `{"cmd":"make","yield_time_ms":30000,"max_output_tokens":2000}`, `bash {"command":"make","timeout":30}`},
		{"run_terminal_cmd", `{"command":"ls","is_background":false,"explanation":"look"}`, `bash {"background":false,"command":"ls"}`},
		{"run_command", `{"command":"ls"}`, `bash {"command":"ls"}`},
		{"Read", `{"file_path":"a.go","offset":5,"limit":10}`, `read_file {"limit":10,"offset":5,"path":"a.go"}`},
		{"view", `{"path":"a.go","view_range":[10,20]}`, `read_file {"limit":11,"offset":10,"path":"a.go"}`},
		{"view", `{"path":"a.go","view_range":[10,-1]}`, `read_file {"offset":10,"path":"a.go"}`},
		{"read_file", `{"filename":"a.go","start_line":3,"end_line":3}`, `read_file {"limit":1,"offset":3,"path":"a.go"}`},
		{"read_file", `{"target_file":"a.go","should_read_entire_file":true}`, `read_file {"path":"a.go"}`},
		{"cat", `{"path":"a.go"}`, `read_file {"path":"a.go"}`},
		{"ReadFile", `{"path":"a.go","offset":0}`, `read_file {"path":"a.go"}`},
		{"Write", `{"file_path":"a.go","content":"x"}`, `write_file {"content":"x","path":"a.go"}`},
		{"create_file", `{"filePath":"a.go","contents":"x"}`, `write_file {"content":"x","path":"a.go"}`},
		{"edit_file", `{"path":"a","old_string":"x","content":"y"}`, `edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`},
		{
			"Edit", `{"file_path":"a","old_string":"x","new_string":"y","replace_all":true}`,
			`edit_file {"edits":[{"new_string":"y","old_string":"x","replace_all":true}],"path":"a"}`,
		},
		{"str_replace", `{"path":"a","old_str":"x","new_str":"y"}`, `edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`},
		{
			"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}`,
			`edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`,
		},
		{"str_replace_editor", `{"command":"view","path":"/w/a","view_range":[1,5]}`, `read_file {"limit":5,"offset":1,"path":"/w/a"}`},
		{"str_replace_based_edit_tool", `{"command":"create","path":"a","file_text":"x"}`, `write_file {"content":"x","path":"a"}`},
		{
			"str_replace_based_edit_tool", `{"command":"str_replace","path":"a","old_str":"x"}`,
			`edit_file {"edits":[{"new_string":"","old_string":"x"}],"path":"a"}`,
		},
		{"str_replace_editor", `{"command":"undo_edit","path":"a"}`, `there is no history here`},
		{
			"TodoWrite", `{"todos":[{"content":"a","status":"cancelled"},{"content":"b","status":"completed"}]}`,
			`todo {"items":[{"state":"done","text":"b"}]}`,
		},
		{"TodoWrite", `{"todos":[{"content":"a","status":"canceled"}]}`, `todo {"items":[]}`},
		{"str_replace_editor", `{"command":"remove","path":"a"}`, `command "remove" is not one of view, create, str_replace, insert, undo_edit`},
		{
			"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@ func\n one\n-two\n+2\n three\n*** End Patch"}`,
			`edit_file {"edits":[{"new_string":"one\n2\nthree","old_string":"one\ntwo\nthree"}],"path":"a.go"}`,
		},
		{
			"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: a.go\n+one\n+two\n*** End Patch"}`,
			`write_file {"content":"one\ntwo\n","path":"a.go"}`,
		},
		{
			"apply_patch", `{"input":"*** Begin Patch\n*** Delete File: a\n*** Add File: b\n+x\n*** End Patch"}`,
			`several_calls {"calls":[{"args":{"path":"a"},"tool":"delete_file"},{"args":{"content":"x\n","path":"b"},"tool":"write_file"}]}`,
		},
		{"apply_patch", `{"input":"--- a\n+++ b\n"}`, `the patch names no file`},
		{
			"bash", `{"command":"cd src && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\nEOF\n"}`,
			`edit_file {"edits":[{"new_string":"x = 2","old_string":"x = 1"}],"path":"src/a.py"}`,
		},
		{"bash", `{"command":"cat <<'EOF' >a\n*** Begin Patch\nEOF"}`, "bash {\"command\":\"cat <<'EOF' >a\\n*** Begin Patch\\nEOF\"}"},
		{"bash", `{"command":"apply_patch <<EOF\nx\nEOF\nls"}`, "bash {\"command\":\"apply_patch"},
		{"run_shell_command", `{"command":"ls","description":"d","dir_path":"."}`, `bash {"command":"ls"}`},
		{"replace", `{"file_path":"a","instruction":"i","old_string":"x","new_string":"y","expected_replacements":1}`, `edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`},
		{"read_many_files", `{"paths":["a","b"]}`, `several_calls {"calls":[{"args":{"path":"a"},"tool":"read_file"},{"args":{"path":"b"},"tool":"read_file"}]}`},
		{"read_many_files", `{"include":["a"]}`, `read_file {"path":"a"}`},
		{"read_many_files", `{"paths":["**/*.go"]}`, `is a pattern`},
		{
			"multi_tool_use.parallel", `{"tool_uses":[{"recipient_name":"functions.bash","parameters":{"command":"ls"}},{"recipient_name":"read_file","parameters":{"path":"a"}}]}`,
			`several_calls {"calls":[{"args":{"command":"ls"},"tool":"bash"},{"args":{"path":"a"},"tool":"read_file"}]}`,
		},
		{"Monitor", `{"command":"tail -f log","description":"d","timeout_ms":1000,"persistent":false}`, `bash {"background":true,"command":"tail -f log"}`},
		{"Monitor", `{"bash_id":"2"}`, `jobs {"action":"wait","id":"2"}`},
		{"TaskStop", `{"task_id":"2"}`, `jobs {"action":"kill","id":"2"}`},
		{"ToolSearch", `{"query":"select:git,lsp","max_results":5}`, `tool_search {"query":"git lsp"}`},
		{
			"TaskCreate", `{"subject":"b","description":"all of b","activeForm":"doing b"}`,
			`todo {"items":[{"state":"open","text":"a"},{"state":"open","text":"b"}]}`,
		},
		{"TaskUpdate", `{"taskId":"1","status":"in_progress"}`, `todo {"items":[{"state":"doing","text":"a"}]}`},
		{"TaskUpdate", `{"taskId":"1","status":"deleted"}`, `todo {"items":[]}`},
		{"TaskUpdate", `{"taskId":"7","status":"completed"}`, `there is no item 7; the list has 1`},
		{"TaskList", `{}`, `todo {"items":[{"state":"open","text":"a"}]}`},
		{
			"NotebookEdit", `{"notebook_path":"n.ipynb","cell_number":0,"new_source":"1","cell_type":"code","edit_mode":"replace"}`,
			`notebook_edit {"action":"replace","cell":1,"path":"n.ipynb","source":"1","type":"code"}`,
		},
		{
			"Grep", `{"pattern":"x","path":"src","output_mode":"content","-i":true,"-n":true,"-A":2,"-B":3}`,
			`search_files {"context":3,"ignore_case":true,"path":"src","pattern":"x"}`,
		},
		{"Grep", `{"pattern":"x","type":"python","head_limit":20}`, `search_files {"glob":"*.py","max":20,"pattern":"x"}`},
		{"grep_search", `{"query":"x","include_pattern":"*.ts","includes_all":1}`, `search_files {"glob":"*.ts","pattern":"x"}`},
		{"grep_search", `{"query":"x","contexts":1}`, `unknown field "contexts"; did you mean "context"?`},
		{"Bash", `{"command":"ls","sudo":true}`, `unknown field "sudo"`},
		{"WriteFile", `{"path":"a","content":"x","mode":"overwrite"}`, `write_file {"content":"x","path":"a"}`},
		{"WriteFile", `{"path":"a","content":"x","mode":"append"}`, `unknown field "mode"`},
		{
			"replace_in_file", `{"path":"a","diff":"------- SEARCH\nx\n=======\ny\nz\n+++++++ REPLACE\n\n------- SEARCH\nv\n=======\n+++++++ REPLACE"}`,
			`edit_file {"edits":[{"new_string":"y\nz","old_string":"x"},{"new_string":"","old_string":"v"}],"path":"a"}`,
		},
		{
			"apply_diff", `{"path":"a","diff":"<<<<<<< SEARCH\n:start_line:7\n-------\nx\n=======\ny\n>>>>>>> REPLACE"}`,
			`edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`,
		},
		{"StrReplaceFile", `{"path":"a","edit":{"old":"x","new":"y"}}`, `edit_file {"edits":[{"new_string":"y","old_string":"x"}],"path":"a"}`},
		{
			"multi_replace_string_in_file", `{"replacements":[{"filePath":"a","oldString":"x","newString":"y"},{"filePath":"b","oldString":"x","newString":"y"}]}`,
			`several_calls {"calls":[{"args":{"filePath":"a","newString":"y","oldString":"x"},"tool":"edit_file"},`,
		},
		{
			"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n*** Move to: d e/b\n@@\n-x\n+y\n*** End Patch"}`,
			`{"args":{"command":"mkdir -p -- 'd e' && test ! -e 'd e/b' && mv -- a 'd e/b'"},"tool":"bash"}`,
		},
		{"replace_in_file", `{"path":"a","diff":"<<<<<<< SEARCH\nx\n=======\ny\n"}`, `block 1 has no end`},
		{"replace_in_file", `{"path":"a","diff":"<<<<<<< SEARCH\nx\n>>>>>>> REPLACE"}`, `block 1 has no end, or no line of "=======" in it`},
		{
			"replace_in_file", `{"path":"a","diff":"<<<<<<< SEARCH\nTitle\n=====\nold\n=======\nTitle\n=====\nnew\n>>>>>>> REPLACE"}`,
			`edit_file {"edits":[{"new_string":"Title\n=====\nnew","old_string":"Title\n=====\nold"}],"path":"a"}`,
		},
		{"multi_tool_use.parallel", `{"tool_uses":["x"]}`, `want an object with recipient_name`},
		{"multi_tool_use.parallel", `{"tool_uses":[{"parameters":{}}]}`, `a call has no recipient_name`},
		{"shell", `{"command":["apply_patch","*** Begin Patch\n*** End Patch\n"]}`, "bash {\"command\":\"apply_patch \u003c\u003c'END_OF_PATCH'"},
		{
			"todo_write", `{"merge":true,"todos":[{"id":"9","content":"a","status":"completed"},{"id":"2","content":"b","status":"pending"}]}`,
			`todo {"items":[{"state":"done","text":"a"},{"state":"open","text":"b"}]}`,
		},
		{"create_directory", `{"dirPath":"a b"}`, `bash {"command":"mkdir -p -- 'a b'"}`},
		{"update_todo_list", `{"todos":"[x] a\n- [-] b\n[ ] c"}`, `todo {"items":[{"state":"done","text":"a"},{"state":"doing","text":"b"},{"state":"open","text":"c"}]}`},
		{"fetch_webpage", `{"urls":["https://a.test"],"query":"what"}`, `web_fetch {"url":"https://a.test"}`},
		{"web_fetch", `{"prompt":"sum up https://a.test/x."}`, `web_fetch {"url":"https://a.test/x"}`},
		{"grep_search", `{"query":"x","include":"*.ts","case_sensitive":false}`, `search_files {"glob":"*.ts","ignore_case":true,"pattern":"x"}`},
		{"Glob", `{"pattern":"**/*.go","path":"src"}`, `find_files {"path":"src","pattern":"**/*.go"}`},
		{"LS", `{"path":"/w","ignore":["x"]}`, `list_files {"path":"/w"}`},
		{"list_dir", `{"dir_path":"src"}`, `list_files {"path":"src"}`},
		{
			"TodoWrite", `{"todos":[{"content":"a","status":"in_progress","activeForm":"doing ` +
				`a"},{"content":"b","status":"pending","id":"2","priority":"high"}]}`,
			`todo {"items":[{"state":"doing","text":"a"},{"state":"open","text":"b"}]}`,
		},
		{"update_plan", `{"explanation":"so","plan":[{"step":"a","status":"completed"}]}`, `todo {"items":[{"state":"done","text":"a"}]}`},
		{"todo", `{"items":[{"text":"a","state":"Done"}]}`, `todo {"items":[{"state":"done","text":"a"}]}`},
		{"WebFetch", `{"url":"https://a.test","prompt":"what is it"}`, `web_fetch {"url":"https://a.test"}`},
		{"BashOutput", `{"bash_id":"1"}`, `jobs {"action":"read","id":"1"}`},
		{"KillShell", `{"shell_id":"1"}`, `jobs {"action":"kill","id":"1"}`},
		{"write_stdin", `{"session_id":1,"chars":"y\n","yield_time_ms":100}`, `jobs {"action":"feed","id":"1","input":"y\n"}`},
	} {
		if got := meant(t, tt.name, tt.args); got != tt.want && !strings.Contains(got, tt.want) ||
			strings.HasPrefix(tt.want, got) && got != tt.want {
			t.Errorf("%s %s\n got %s\nwant %s", tt.name, tt.args, got, tt.want)
		}
	}
}

// TestUsualGivesWay checks that a tool of someone else keeps its name, and that no name stands for a missing tool.
func TestUsualGivesWay(t *testing.T) {
	theirs := tool.Tool{Name: "Read"}
	for _, u := range Usual([]tool.Tool{theirs, {Name: "read_file"}}) {
		if u.Name == "Read" || u.Name == "Bash" {
			t.Errorf("%s is taken or stands for nothing", u.Name)
		}
	}
}
