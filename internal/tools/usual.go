package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
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
	out := []tool.Tool{several()}
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
	means func(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error)
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
		{target: "jobs", names: []string{"KillShell", "KillBash", "TaskStop"}, means: jobsBy("kill")},
		{target: "jobs", names: []string{"write_stdin"}, means: jobsBy("feed")},
		{names: []string{"Monitor"}, means: monitored},
		{target: "todo", names: []string{"TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}, means: listed},
		{target: "tool_search", names: []string{"ToolSearch"}, means: selected},
		{target: "notebook_edit", names: []string{"NotebookEdit", "edit_notebook"}, means: cellEdited},
		{target: "read_file", names: []string{"read_many_files", "ReadManyFiles"}, means: readTogether},
		{names: []string{"multi_tool_use.parallel", "multi_tool_use_parallel", "parallel"}, means: together},
		{names: []string{"str_replace_editor", "str_replace_based_edit_tool", "text_editor"}, means: editorCommand},
		{names: []string{"apply_patch", "ApplyPatch"}, means: patched},
	}
}

func stand(name string, u habit) tool.Tool {
	return tool.Tool{
		Name: name, Doc: "Stands for " + u.target + ".", Schema: json.RawMessage(`{"type":"object"}`),
		Stands: func(ctx context.Context, c *tool.Call) (string, json.RawMessage, error) {
			if u.means == nil {
				return u.target, c.Args, nil
			}
			var args map[string]any
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return "", nil, err
			}
			target, out, err := u.means(ctx, c, args)
			if err != nil {
				return "", nil, err
			}
			raw, err := json.Marshal(out)
			return target, raw, err
		},
	}
}

func jobsBy(action string) func(context.Context, *tool.Call, map[string]any) (string, map[string]any, error) {
	return func(_ context.Context, _ *tool.Call, args map[string]any) (string, map[string]any, error) {
		args["action"] = action
		move(args, "session_id", "id")
		move(args, "chars", "input")
		drop(args, "yield_time_ms", "max_output_tokens", "block", "timeout", "filter")
		return "jobs", args, nil
	}
}

// editorCommand is a call of the editor that one vendor's models are trained with.
func editorCommand(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
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
	case "insert":
		return inserted(ctx, c, args)
	}
	return "", nil, fmt.Errorf("command %q is not one of view, create, str_replace, insert; change the file with edit_file", command)
}

// patched is a patch in the form that one vendor's models are trained with: "*** Begin Patch", for each
// file "*** Update File: PATH" and hunks after "@@", "*** End Patch".
func patched(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	text := ""
	for _, name := range []string{"input", "patch", "patch_text", "patchText", "diff"} {
		if s, ok := args[name].(string); ok {
			text = s
		}
	}
	var calls []oneOfSeveral
	for part := range strings.SplitSeq("\n"+text, "\n*** ") {
		head, rest, _ := strings.Cut(strings.ReplaceAll(part, "\r\n", "\n"), "\n")
		action, path, _ := strings.Cut(strings.TrimSpace(head), ": ")
		body := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
		switch action {
		case "", "Begin Patch", "End Patch", "End of File":
		case "Add File":
			for i, line := range body {
				body[i] = strings.TrimPrefix(line, "+")
			}
			calls = append(calls, oneOfSeveral{"write_file", map[string]any{"path": path, "content": strings.Join(body, "\n") + "\n"}})
		case "Delete File":
			calls = append(calls, oneOfSeveral{"delete_file", map[string]any{"path": path}})
		case "Update File":
			calls = append(calls, oneOfSeveral{"edit_file", map[string]any{"path": path, "edits": hunks(body)}})
		default:
			return "", nil, fmt.Errorf("a patch can't do %q; use edit_file", action)
		}
	}
	if len(calls) == 0 {
		return "", nil, errors.New("the patch names no file; it begins with *** Begin Patch and *** Update File: PATH")
	}
	return asOne(calls)
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

// monitored is a command that goes on in the background, or a wait for one that does.
func monitored(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	drop(args, "description", "persistent")
	if _, command := args["command"]; command {
		drop(args, "timeout_ms", "timeout")
		args["background"] = true
		return "bash", args, nil
	}
	return jobsBy("wait")(ctx, c, args)
}

// listed is the to-do list with one item more, or with one that has changed. Items are numbered from 1.
func listed(_ context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	items := []any{}
	for _, t := range c.Todo {
		items = append(items, map[string]any{"text": t.Text, "state": string(t.State)})
	}
	first(args, "text", "subject", "content", "title")
	first(args, "id", "taskId", "task_id")
	id, numbered := args["id"]
	switch text, _ := args["text"].(string); {
	case c.Name == "TaskCreate" || !numbered && text != "":
		state := "open"
		if args["status"] == "in_progress" {
			state = "doing"
		}
		items = append(items, map[string]any{"text": text, "state": state})
	case numbered && c.Name == "TaskUpdate":
		n, err := strconv.Atoi(fmt.Sprint(id))
		if err != nil || n < 1 || n > len(items) {
			return "", nil, fmt.Errorf("there is no item %v; the list has %d, numbered from 1", id, len(items))
		}
		item := items[n-1].(map[string]any)
		if text != "" {
			item["text"] = text
		}
		if status, some := args["status"]; some {
			item["status"] = status
			delete(item, "state")
		}
		if args["status"] == "deleted" {
			items = append(items[:n-1], items[n:]...)
		}
	}
	all := map[string]any{"items": items}
	mendTodo(all)
	return "todo", all, nil
}

// selected is a search for tools whose query may name them.
func selected(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	if query, ok := args["query"].(string); ok {
		args["query"] = strings.NewReplacer(",", " ", "+", " ").Replace(strings.TrimPrefix(query, "select:"))
	}
	return "tool_search", args, nil
}

// cellEdited is a change of one cell of a notebook, which is named by its id or by its number from 0.
func cellEdited(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "path", "notebook_path", "target_notebook")
	first(args, "source", "new_source", "new_string")
	first(args, "type", "cell_type", "cell_language")
	first(args, "action", "edit_mode")
	if _, given := args["action"]; !given {
		args["action"] = "replace"
	}
	for _, name := range []string{"cell_number", "cell_idx"} {
		if n, ok := number(args[name]); ok {
			args["cell"] = whole(n + 1)
		}
		delete(args, name)
	}
	id, named := args["cell_id"].(string)
	if delete(args, "cell_id"); named {
		path, _ := args["path"].(string)
		n, err := cellOf(ctx, c, path, id)
		if err != nil {
			return "", nil, err
		}
		if args["action"] == "insert" {
			n++ // behind the cell
		}
		args["cell"] = n
	} else if _, given := args["cell"]; !given && args["action"] == "insert" {
		args["cell"] = 1
	}
	return "notebook_edit", args, nil
}

// readTogether reads several files.
func readTogether(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "paths", "include", "files", "file_paths")
	list, _ := args["paths"].([]any)
	var calls []oneOfSeveral
	for _, v := range list {
		path, _ := v.(string)
		if strings.ContainsAny(path, "*?[{") {
			return "", nil, fmt.Errorf("%q is a pattern; find_files finds the files, and read_file reads one", path)
		}
		calls = append(calls, oneOfSeveral{"read_file", map[string]any{"path": path}})
	}
	if len(calls) == 0 {
		return "", nil, errors.New("paths is missing, want a list of files")
	}
	return asOne(calls)
}

// together is several calls that a model makes as one.
func together(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "tool_uses", "calls", "tools")
	list, _ := args["tool_uses"].([]any)
	var calls []oneOfSeveral
	for _, v := range list {
		one, _ := v.(map[string]any)
		first(one, "recipient_name", "name", "tool", "tool_name")
		first(one, "parameters", "arguments", "args", "input")
		name, _ := one["recipient_name"].(string)
		given, _ := one["parameters"].(map[string]any)
		calls = append(calls, oneOfSeveral{strings.TrimPrefix(name, "functions."), given})
	}
	if len(calls) == 0 {
		return "", nil, errors.New("tool_uses is missing, want a list of calls with recipient_name and parameters")
	}
	return asOne(calls)
}

// inserted puts lines behind a line of a file; behind line 0 they come first.
func inserted(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "text", "insert_text", "new_str", "new_text")
	path, _ := args["path"].(string)
	added, _ := args["text"].(string)
	n, ok := number(args["insert_line"])
	if !ok {
		return "", nil, errors.New("insert_line is missing, want the number of the line to insert behind")
	}
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return "", nil, err
	}
	data, err := readWhole(ctx, c, resolved)
	if err != nil {
		return "", nil, err
	}
	text, _, ok := decode(data)
	if !ok {
		return "", nil, errBinary(Shown(c, resolved), data)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if n < 0 || int(n) > len(lines) {
		return "", nil, fmt.Errorf("there is no line %d; the file has %d", int(n), len(lines))
	}
	added = strings.TrimSuffix(added, "\n")
	for around := 1; ; around++ { // so much of what is there that it stands in the file once
		before := lines[max(0, int(n)-around):int(n)]
		after := lines[int(n):min(len(lines), int(n)+around)]
		old := strings.Join(slices.Concat(before, after), "\n")
		if strings.Index(text, old) == strings.LastIndex(text, old) || around > len(lines) {
			put := strings.Join(slices.Concat(before, []string{added}, after), "\n")
			return "edit_file", map[string]any{"path": path, "edits": []any{map[string]any{"old_string": old, "new_string": put}}}, nil
		}
	}
}

// patchInBash is a command that only feeds a patch to apply_patch, as one vendor's models write it, perhaps
// in another folder.
var patchInBash = regexp.MustCompile(`(?s)^\s*(?:cd\s+([\w./-]+)\s*&&\s*)?(?:apply_patch|applypatch)\s*<<-?\s*['"]?(\w+)['"]?[ \t]*\n(.*)\n(\w+)\s*$`)

// patchedInBash makes such a command the change of files that it is meant to be. Any other is one of bash.
func patchedInBash(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	in, err := tool.Args[bashArgs](c)
	if err != nil {
		return "", nil, err
	}
	m := patchInBash.FindStringSubmatch(in.Command)
	if m == nil || m[2] != m[4] {
		return "", nil, nil
	}
	target, out, err := patched(ctx, c, map[string]any{"input": m[3]})
	if err != nil {
		return "", nil, err
	}
	if m[1] != "" {
		for _, one := range append([]map[string]any{out}, argsOf(out)...) {
			if path, ok := one["path"].(string); ok && !filepath.IsAbs(path) {
				one["path"] = filepath.Join(m[1], path)
			}
		}
	}
	raw, err := json.Marshal(out)
	return target, raw, err
}

// argsOf are the arguments of the calls that one stands for.
func argsOf(args map[string]any) (out []map[string]any) {
	calls, _ := args["calls"].([]oneOfSeveral)
	for _, one := range calls {
		out = append(out, one.Args)
	}
	return out
}

// asOne is one call that stands for all of them.
func asOne(calls []oneOfSeveral) (target string, out map[string]any, err error) {
	if len(calls) == 1 {
		return calls[0].Tool, calls[0].Args, nil
	}
	return severalName, map[string]any{"calls": calls}, nil
}

// mending are, by the name of a tool, the forms of its arguments that models bring from
// elsewhere beyond the names in tool/aliases.go.
func mending(name string) func(args map[string]any) {
	return map[string]func(map[string]any){
		"bash": mendBash, "read_file": mendRead, "search_files": mendSearch, "list_files": mendList, "find_files": mendFind, "todo": mendTodo,
		"tool_search": func(args map[string]any) { drop(args, "max_results", "limit") },
		"edit_file":   mendEdit, "write_file": mendEdit, "jobs": mendJobs, "web_fetch": func(args map[string]any) { drop(args, "prompt", "format") }, "spawn_agent": mendSpawn,
	}[name]
}

// Mended has the tools take what models are used to write.
func Mended(list []tool.Tool) []tool.Tool {
	out := slices.Clone(list)
	for i := range out {
		if mend := mending(out[i].Name); mend != nil {
			out[i].Mend = mend
		}
		if out[i].Name == "bash" {
			out[i].Stands = patchedInBash
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
	for _, name := range []string{"cwd", "workdir", "working_directory", "workingDir", "dir", "directory", "dir_path"} {
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

// mendEdit drops what a model says about its edit beside it.
func mendEdit(args map[string]any) {
	drop(args, "instruction", "instructions", "expected_replacements", "description", "explanation")
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
