package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/tool"
)

// Usual returns tools that stand for ours under the names that other agents have for them,
// so that the habit of a model costs no turn. The model is not told of them. One is left
// out if there is a tool of its name, or none that it stands for.
func Usual(list []tool.Tool) []tool.Tool {
	have := map[string]bool{}
	for _, t := range list {
		have[t.Name] = true
	}
	var out []tool.Tool
	for _, u := range habits() {
		for _, name := range u.names {
			if !have[name] && (u.target == "" || have[u.target]) {
				out = append(out, stand(name, u))
			}
		}
	}
	return out
}

// habit is a tool of ours, "" if it depends on the arguments, with its names elsewhere.
type habit struct {
	target string
	names  []string
	// means tells the call that is meant, where the name alone does not.
	means func(args map[string]any) (target string, out map[string]any, err error)
}

func habits() []habit {
	return []habit{
		{target: "bash", names: []string{
			"Bash", "Shell", "shell", "exec_command", "run_command", "run_terminal_cmd", "run_shell_command", "execute_command", "local_shell",
			"terminal", "execute_bash",
		}},
		{target: "read_file", names: []string{"Read", "ReadFile", "view", "cat", "read", "open_file", "View"}},
		{target: "write_file", names: []string{"Write", "WriteFile", "create_file", "write", "write_to_file", "save_file"}},
		{target: "edit_file", names: []string{"Edit", "MultiEdit", "str_replace", "edit", "replace", "replace_in_file", "search_replace"}},
		{target: "search_files", names: []string{"Grep", "grep", "grep_search", "search_file_content", "SearchText", "codebase_search"}},
		{target: "find_files", names: []string{"Glob", "glob", "file_search", "glob_file_search"}},
		{target: "list_files", names: []string{"LS", "ls", "list_dir", "list_directory", "ListDir"}},
		{target: "todo", names: []string{"TodoWrite", "todo_write", "todowrite", "update_plan", "write_todos"}},
		{target: "web_fetch", names: []string{"WebFetch", "webfetch", "fetch", "fetch_url"}},
		{target: "web_search", names: []string{"WebSearch", "websearch", "google_web_search"}},
		{target: "spawn_agent", names: []string{"Task", "task", "Agent"}},
		{target: "skill", names: []string{"Skill"}},
		{target: "ask_user", names: []string{"AskUserQuestion", "ask_followup_question"}},
		{target: "jobs", names: []string{"BashOutput", "TaskOutput"}, means: jobsBy("read")},
		{target: "jobs", names: []string{"KillShell", "KillBash"}, means: jobsBy("kill")},
		{target: "jobs", names: []string{"write_stdin"}, means: jobsBy("feed")},
		{names: []string{"str_replace_editor", "str_replace_based_edit_tool", "text_editor"}, means: editorCommand},
		{names: []string{"apply_patch", "ApplyPatch"}, means: patched},
	}
}

func stand(name string, u habit) tool.Tool {
	return tool.Tool{
		Name: name, Doc: "Stands for " + u.target + ".", Schema: json.RawMessage(`{"type":"object"}`),
		Stands: func(_ context.Context, c *tool.Call) (string, json.RawMessage, error) {
			if u.means == nil {
				return u.target, c.Args, nil
			}
			var args map[string]any
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return "", nil, err
			}
			target, out, err := u.means(args)
			if err != nil {
				return "", nil, err
			}
			raw, err := json.Marshal(out)
			return target, raw, err
		},
	}
}

func jobsBy(action string) func(map[string]any) (string, map[string]any, error) {
	return func(args map[string]any) (string, map[string]any, error) {
		args["action"] = action
		move(args, "session_id", "id")
		move(args, "chars", "input")
		drop(args, "yield_time_ms", "max_output_tokens", "block", "timeout", "filter")
		return "jobs", args, nil
	}
}

// editorCommand is a call of the editor that one vendor's models are trained with.
func editorCommand(args map[string]any) (target string, out map[string]any, err error) {
	command, _ := args["command"].(string)
	delete(args, "command")
	switch command {
	case "view":
		return "read_file", args, nil
	case "create":
		drop(args, "old_str", "new_str", "insert_line", "view_range")
		return "write_file", args, nil
	case "str_replace":
		drop(args, "file_text", "insert_line", "view_range")
		if _, given := args["new_str"]; !given {
			args["new_str"] = "" // left out, it deletes
		}
		return "edit_file", args, nil
	}
	return "", nil, fmt.Errorf("command %q is not one of view, create, str_replace; use read_file, write_file and edit_file", command)
}

// patched is a patch of one file, in the form that one vendor's models are trained with:
// "*** Begin Patch", "*** Update File: PATH", hunks after "@@", "*** End Patch".
func patched(args map[string]any) (target string, out map[string]any, err error) {
	text := ""
	for _, name := range []string{"input", "patch", "patch_text", "patchText", "diff"} {
		if s, ok := args[name].(string); ok {
			text = s
		}
	}
	var heads []string
	var body []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "*** Begin Patch"), strings.HasPrefix(line, "*** End Patch"), strings.HasPrefix(line, "*** End of File"):
		case strings.HasPrefix(line, "*** "):
			heads = append(heads, strings.TrimPrefix(line, "*** "))
		default:
			body = append(body, line)
		}
	}
	if len(heads) != 1 {
		return "", nil, errors.New("a patch is taken for one file at a time; change the files with edit_file, write_file and delete_file")
	}
	action, path, _ := strings.Cut(heads[0], ": ")
	switch action {
	case "Add File":
		for i, line := range body {
			body[i] = strings.TrimPrefix(line, "+")
		}
		return "write_file", map[string]any{"path": path, "content": strings.Join(body, "\n") + "\n"}, nil
	case "Delete File":
		return "delete_file", map[string]any{"path": path}, nil
	case "Update File":
		return "edit_file", map[string]any{"path": path, "edits": hunks(body)}, nil
	}
	return "", nil, fmt.Errorf("a patch can't do %q; use edit_file", action)
}

// hunks makes an edit of each hunk: what it takes away, with the lines around it, becomes
// what it puts there.
func hunks(body []string) []any {
	var edits []any
	var before, after []string
	flush := func() {
		if old, with := strings.Join(before, "\n"), strings.Join(after, "\n"); old != with {
			edits = append(edits, map[string]any{"old_string": old, "new_string": with})
		}
		before, after = nil, nil
	}
	for _, line := range body {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
		case strings.HasPrefix(line, "-"):
			before = append(before, line[1:])
		case strings.HasPrefix(line, "+"):
			after = append(after, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			before, after = append(before, line), append(after, line)
		}
	}
	flush()
	return edits
}

// mending are, by the name of a tool, the forms of its arguments that models bring from
// elsewhere beyond the names in tool/aliases.go.
func mending(name string) func(args map[string]any) {
	return map[string]func(map[string]any){
		"bash": mendBash, "read_file": mendRead, "search_files": mendSearch, "list_files": mendList, "find_files": mendFind, "todo": mendTodo,
		"tool_search": func(args map[string]any) { drop(args, "max_results", "limit") },
		"jobs":        mendJobs, "web_fetch": func(args map[string]any) { drop(args, "prompt", "format") }, "spawn_agent": mendSpawn,
	}[name]
}

// Mended has the tools take what models are used to write.
func Mended(list []tool.Tool) []tool.Tool {
	out := slices.Clone(list)
	for i := range out {
		if mend := mending(out[i].Name); mend != nil {
			out[i].Mend = mend
		}
	}
	return out
}

// mostSeconds is the least number that is taken for milliseconds where seconds are wanted:
// no command may be waited for that long.
const mostSeconds = 1000

func mendBash(args map[string]any) {
	first(args, "command", "cmd", "script", "shell_command", "cmds")
	if list, ok := args["command"].([]any); ok {
		args["command"] = commandLine(list)
	}
	for _, name := range []string{"timeout_ms", "timeoutMs", "yield_time_ms"} {
		if n, ok := number(args[name]); ok {
			args["timeout"] = whole((n + 999) / 1000)
			delete(args, name)
		}
	}
	if n, ok := number(args["timeout"]); ok && n >= mostSeconds {
		args["timeout"] = whole((n + 999) / 1000)
	}
	for _, name := range []string{"cwd", "workdir", "working_directory", "workingDir", "dir", "directory"} {
		dir, ok := args[name].(string)
		command, _ := args["command"].(string)
		if !ok {
			continue
		}
		delete(args, name)
		if quoted, err := syntax.Quote(dir, syntax.LangBash); err == nil && dir != "" && dir != "." {
			args["command"] = "(cd " + quoted + " && {\n" + command + "\n})" // for this call alone
		}
	}
	drop(args, "max_output_tokens", "login", "shell", "is_dangerous", "requires_approval", "sandbox_permissions", "restart")
}

// commandLine is a command line of words, as one vendor's models write it: a shell with the
// script as its last word, or a program.
func commandLine(list []any) string {
	var words []string
	for _, v := range list {
		words = append(words, fmt.Sprint(v))
	}
	if len(words) == 3 && slices.Contains([]string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh"}, words[0]) &&
		slices.Contains([]string{"-c", "-lc"}, words[1]) {
		return words[2]
	}
	for i, w := range words {
		if q, err := syntax.Quote(w, syntax.LangBash); err == nil {
			words[i] = q
		}
	}
	return strings.Join(words, " ")
}

func mendRead(args map[string]any) {
	if list, ok := args["view_range"].([]any); ok && len(list) == 2 {
		args["start_line"], args["end_line"] = list[0], list[1]
		delete(args, "view_range")
	}
	first(args, "offset", "start_line", "startLine", "start_line_one_indexed", "line_start", "from")
	start, some := number(args["offset"])
	for _, name := range []string{"end_line", "endLine", "end_line_one_indexed_inclusive", "end_line_one_indexed", "line_end", "to"} {
		if n, ok := number(args[name]); ok {
			delete(args, name)
			if n > 0 && (!some || n >= start) {
				args["limit"] = whole(n - max(start, 1) + 1)
			}
		}
	}
	if some && start == 0 {
		delete(args, "offset")
	}
	drop(args, "should_read_entire_file", "read_entire_file", "encoding", "pages")
}

func mendSearch(args map[string]any) {
	if on, ok := args["-i"].(bool); ok && on {
		args["ignore_case"] = true
	}
	if sensitive, ok := args["case_sensitive"].(bool); ok {
		args["ignore_case"] = !sensitive
	}
	for _, name := range []string{"-A", "-B", "-C", "context_lines"} {
		if n, ok := number(args[name]); ok {
			before, _ := number(args["context"])
			args["context"] = whole(max(n, before))
		}
	}
	if kind, ok := args["type"].(string); ok {
		if _, given := args["glob"]; !given {
			args["glob"] = "*." + suffix(kind)
		}
	}
	drop(args, "-i", "-n", "-A", "-B", "-C", "context_lines", "type",
		"output_mode", "case_sensitive", "multiline", "recursive", "fixed_strings")
}

// suffix is how names of files of a type end, as ripgrep names types.
func suffix(kind string) string {
	ends := map[string]string{
		"python": "py", "javascript": "js",
		"typescript": "ts", "rust": "rs", "ruby": "rb", "markdown": "md", "golang": "go",
	}
	if end, ok := ends[kind]; ok {
		return end
	}
	return kind
}

func mendList(args map[string]any) {
	drop(args, "ignore", "recursive", "show_hidden", "file_filtering_options", "respect_git_ignore")
}

func mendFind(args map[string]any) {
	drop(args, "respect_git_ignore", "case_sensitive")
}

func mendJobs(args map[string]any) {
	drop(args, "filter", "block")
}

func mendSpawn(args map[string]any) {
	first(args, "task", "prompt", "instructions")
	first(args, "agent", "subagent_type", "agent_type", "subagent")
	if first(args, "background", "run_in_background"); args["agent"] == "general-purpose" {
		delete(args, "agent")
	}
}

// mendTodo reads the lists of other agents, whose items have other names and states.
func mendTodo(args map[string]any) {
	first(args, "items", "todos", "plan", "list", "tasks")
	drop(args, "merge")
	list, _ := args["items"].([]any)
	for _, v := range list {
		item, ok := v.(map[string]any)
		if !ok {
			continue
		}
		first(item, "text", "content", "step", "task", "title", "description")
		first(item, "state", "status")
		if to, ok := map[any]string{
			"pending": "open", "not_started": "open", "todo": "open", "in_progress": "doing", "in-progress": "doing", "active": "doing",
			"completed": "done", "complete": "done", "cancelled": "done",
		}[item["state"]]; ok {
			item["state"] = to
		}
		drop(item, "activeForm", "id", "priority")
	}
}

// first gives a field the value of the first of its other names that is there, if it has
// none, and takes that one away.
func first(args map[string]any, name string, others ...string) {
	for _, other := range others {
		move(args, other, name)
	}
}

func move(args map[string]any, from, to string) {
	v, some := args[from]
	if _, taken := args[to]; some && !taken {
		args[to] = v
		delete(args, from)
	}
}

func drop(args map[string]any, names ...string) {
	for _, name := range names {
		delete(args, name)
	}
}

// whole is a number as arguments have it, without its fraction.
func whole(n float64) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case float64:
		return v, true
	}
	return 0, false
}
