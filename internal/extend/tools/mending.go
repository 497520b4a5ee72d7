package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/tool"
)

// mending returns, by the name of a tool, the function that converts foreign forms of its arguments, beyond the
// names in tool/aliases.go.
func mending(name string) func(args map[string]any) {
	return map[string]func(map[string]any){
		"bash": mendBash, "read_file": mendRead, "search_files": mendSearch, "todo": mendTodo,
		"list_files": func(args map[string]any) {
			first(args, "path", "relative_workspace_path", "target_directory", "DirectoryPath")
		},
		"find_files":  func(args map[string]any) { first(args, "path", "target_directory") },
		"jobs":        func(args map[string]any) { drop(args, "filter", "block") },
		"tool_search": func(args map[string]any) { drop(args, "max_results", "limit") },
		"edit_file":   mendEdit, "write_file": mendWrite, "delete_file": mendEdit, "web_fetch": mendFetch, "spawn_agent": mendSpawn,
		"web_search": func(args map[string]any) { first(args, "query", "search_term", "q") },
		"git":        func(args map[string]any) { first(args, "action", "subcommand") },
	}[name]
}

// Mended makes the tools accept the argument forms that models are used to.
func Mended(list []tool.Tool) []tool.Tool {
	out := slices.Clone(list)
	for i := range out {
		if mend := mending(out[i].Name); mend != nil {
			out[i].Normalize = mend
		}
		switch out[i].Name {
		case "bash":
			out[i].Resolve = patchedInBash
		case "edit_file":
			out[i].Resolve = createdByEdit
		case "read_file", "search_files", "find_files", "list_files":
			out[i].Lenient = true
		}
	}
	return out
}

// mostSeconds is the least number that counts as milliseconds where seconds are expected: no command may be
// waited for that long.
const mostSeconds = 1000

func mendBash(args map[string]any) {
	first(args, "command", "cmd", "script", "shell_command", "cmds", "CommandLine")
	first(args, "background", "isBackground")
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
	for _, name := range []string{"cwd", "workdir", "working_directory", "workingDir", "dir", "directory", "dir_path", "Cwd"} {
		dir, ok := args[name].(string)
		command, _ := args["command"].(string)
		if !ok {
			continue
		}
		delete(args, name)
		if quoted, err := syntax.Quote(dir, syntax.LangBash); err == nil && dir != "" && dir != "." {
			args["command"] = "(cd " + quoted + " && {\n" + command + "\n})" // only for this call
		}
	}
	drop(args, "max_output_tokens", "login", "shell", "is_dangerous", "requires_approval", "sandbox_permissions", "restart",
		"with_escalated_permissions", "dangerouslyDisableSandbox", "prefix_rule") // access beyond the sandbox is requested in our own way
	if args["is_input"] == false || args["is_input"] == "false" {
		delete(args, "is_input")
	}
}

// commandLine returns a command line for a list of words, as one vendor's models write it: a shell with the
// script as its last word, or a program.
func commandLine(list []any) string {
	var words []string
	for _, v := range list {
		words = append(words, fmt.Sprint(v))
	}
	if len(words) == 2 && words[0] == "apply_patch" {
		return "apply_patch <<'END_OF_PATCH'\n" + strings.TrimRight(words[1], "\n") + "\nEND_OF_PATCH"
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
	first(args, "path", "notebook_path")
	first(args, "offset", "line_offset", "start_line", "startLine", "start_line_one_indexed", "line_start", "from")
	first(args, "limit", "n_lines")
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
}

func mendSearch(args map[string]any) {
	first(args, "glob", "include_pattern", "includePattern", "includes")
	first(args, "max", "total_max_matches")
	drop(args, "-n", "recursive", "exclude_pattern", "excludePattern")
	if list, ok := args["target_directories"].([]any); ok && len(list) == 1 {
		first(args, "path", "target_directories")
		args["path"] = list[0]
	}
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
			args["glob"] = "*." + cmp.Or(map[string]string{ // by ripgrep's names of types
				"python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "ruby": "rb", "markdown": "md", "golang": "go",
			}[kind], kind)
		}
	}
}

// mendEdit drops arguments about the edit that are not part of it.
func mendEdit(args map[string]any) {
	drop(args, "instruction", "instructions", "expected_replacements", "description", "explanation")
	first(args, "edits", "edit")
	if _, replaces := args["old_string"]; replaces {
		first(args, "new_string", "content") // the replacement
	}
}

// mendWrite drops arguments that ask to write a whole file, which always happens.
func mendWrite(args map[string]any) {
	drop(args, "instruction", "instructions", "description", "explanation", "line_count")
	for name, whole := range map[string]any{"mode": "overwrite", "overwrite": true} {
		if args[name] == whole {
			delete(args, name)
		}
	}
}

// anAddress matches a URL in a text.
var anAddress = regexp.MustCompile(`https?://[^\s"'<>]+`)

// mendFetch takes the URL from the prompt for the page, if it is only there.
func mendFetch(args map[string]any) {
	if list, ok := args["urls"].([]any); ok && len(list) == 1 {
		args["url"] = list[0]
		delete(args, "urls")
	}
	prompt, _ := args["prompt"].(string)
	if found := anAddress.FindAllString(prompt, 2); len(found) == 1 && args["url"] == nil {
		args["url"] = strings.TrimRight(found[0], ".,;:)!?")
	}
	drop(args, "prompt", "format", "query")
}

func mendSpawn(args map[string]any) {
	first(args, "task", "prompt", "instructions", "message")
	first(args, "agent", "subagent_type", "agent_type", "subagent", "agentName", "subagent_name")
	first(args, "background", "run_in_background")
	switch args["agent"] {
	case "general-purpose", "general", "default", "worker", "coder":
		delete(args, "agent")
	case "explorer", "Explore":
		args["agent"] = "explore"
	}
}

// mendTodo converts the lists of other agents, whose items have other names and states.
func mendTodo(args map[string]any) {
	first(args, "items", "todos", "plan", "list", "tasks", "todoList")
	drop(args, "merge", "operation")
	if args["action"] == "write" {
		delete(args, "action")
	}
	list, _ := args["items"].([]any)
	if text, ok := args["items"].(string); ok {
		if list = checklist(text); len(list) > 0 {
			args["items"] = list
		}
	}
	if list != nil { // cancelled items are left out
		args["items"] = slices.DeleteFunc(slices.Clone(list), func(v any) bool {
			item, _ := v.(map[string]any)
			state := fmt.Sprint(cmp.Or(item["state"], item["status"]))
			return state == "cancelled" || state == "canceled" || state == "deleted"
		})
	}
	for _, v := range list {
		item, ok := v.(map[string]any)
		if !ok {
			continue
		}
		first(item, "text", "content", "step", "task", "title", "description")
		first(item, "state", "status")
		if to, ok := map[any]string{
			"pending": "open", "not_started": "open", "not-started": "open", "todo": "open", "in_progress": "doing", "in-progress": "doing", "active": "doing",
			"completed": "done", "complete": "done",
		}[item["state"]]; ok {
			item["state"] = to
		}
		drop(item, "activeForm", "id", "priority")
	}
}

// aCheck matches a line such as "[x] done", "- [-] being done" and "3. [ ] open".
var aCheck = regexp.MustCompile(`^\s*(?:[-*]|\d+[.)])?\s*\[([ xX-])\]\s+(.+?)\s*$`)

// checklist parses such lines.
func checklist(text string) (items []any) {
	states := map[string]string{"x": "done", "X": "done", "-": "doing", " ": "open"}
	for line := range strings.SplitSeq(text, "\n") {
		if m := aCheck.FindStringSubmatch(line); m != nil {
			items = append(items, map[string]any{"text": m[2], "state": states[m[1]]})
		}
	}
	return items
}

// first sets a missing field to the value of the first of its other names that is present, and removes that
// one.
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

// whole returns a number in the form of arguments, without its fraction.
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
