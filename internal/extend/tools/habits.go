package tools

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/tool"
)

// Usual returns tools that stand for ours under the names of other agents, so that a model's habit costs no
// turn. They are not in the model's list. One is omitted if a tool of its name exists, or if its target does
// not.
func Usual(list []tool.Tool) []tool.Tool {
	have := map[string]bool{}
	for _, t := range list {
		have[t.Name] = true
	}
	var out []tool.Tool
	if !have[severalName] {
		out = append(out, several())
	}
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
	means  meaning // if the name alone does not determine the intended call
}

// meaning returns the call that a call with arguments stands for.
type meaning func(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error)

func habits() []habit {
	return []habit{
		{target: "bash", names: []string{
			"Bash", "Shell", "shell", "exec_command", "shell_command", "run_command", "run_terminal_cmd", "run_shell_command", "run_in_terminal",
			"execute_command", "local_shell", "terminal", "execute_bash", "developer__shell", "exec", "bash_tool",
		}},
		{target: "read_file", names: []string{"Read", "ReadFile", "view", "cat", "read", "open_file", "View", "NotebookRead"}},
		{target: "write_file", names: []string{"Write", "WriteFile", "create_file", "write", "write_to_file", "save_file"}},
		{target: "edit_file", names: []string{
			"Edit", "MultiEdit", "multiedit", "str_replace", "edit", "replace", "replace_string_in_file", "StrReplaceFile",
		}},
		{target: "edit_file", names: []string{"replace_in_file", "search_replace", "search_and_replace", "apply_diff"}, means: searched},
		{target: "search_files", names: []string{
			"Grep", "grep", "grep_search", "grep_files", "search_file_content", "SearchText", "codebase_search", "semantic_search", "ripgrep",
		}},
		{target: "find_files", names: []string{"Glob", "glob", "file_search", "glob_file_search"}},
		{target: "list_files", names: []string{"LS", "ls", "list", "list_dir", "list_directory", "ListDir"}},
		{target: "todo", names: []string{
			"TodoWrite", "todowrite", "update_plan", "write_todos", "manage_todo_list", "SetTodoList", "update_todo_list",
		}},
		{target: "todo", names: []string{"todo_write"}, means: mergeTodo},
		{target: "web_fetch", names: []string{"WebFetch", "webfetch", "fetch", "fetch_url", "FetchURL", "fetch_webpage"}},
		{target: "web_search", names: []string{"WebSearch", "websearch", "google_web_search", "SearchWeb"}},
		{target: "spawn_agent", names: []string{"Task", "task", "Agent", "runSubagent"}},
		{target: "skill", names: []string{"Skill", "activate_skill"}},
		{target: "ask_user", names: []string{"AskUserQuestion", "ask_followup_question"}},
		{target: "jobs", names: []string{"BashOutput", "TaskOutput", "get_terminal_output", "job_output"}, means: jobsBy("read")},
		{target: "jobs", names: []string{"KillShell", "KillBash", "TaskStop", "job_kill"}, means: jobsBy("kill")},
		{target: "jobs", names: []string{"write_stdin"}, means: jobsBy("feed")},
		{names: []string{"Monitor"}, means: runInBackground},
		{target: "todo", names: []string{"TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "todoread", "TodoRead"}, means: changeTodoItem},
		{target: "tool_search", names: []string{"ToolSearch"}, means: selected},
		{target: "notebook_edit", names: []string{"NotebookEdit", "edit_notebook"}, means: cellEdited},
		{target: "read_file", names: []string{"read_many_files", "ReadManyFiles"}, means: readTogether},
		{names: []string{"multi_tool_use.parallel", "multi_tool_use_parallel", "parallel"}, means: together},
		{names: []string{"str_replace_editor", "str_replace_based_edit_tool", "text_editor", "developer__text_editor"}, means: editorCommand},
		{target: "edit_file", names: []string{"apply_patch", "ApplyPatch", "patch"}, means: patchGiven},
		{target: "edit_file", names: []string{"insert_content"}, means: inserted},
		{target: "edit_file", names: []string{"multi_replace_string_in_file"}, means: editedTogether},
		{target: "bash", names: []string{"create_directory", "mkdir"}, means: makeFolder},
	}
}

// runsCommands reports whether a tool of that name is bash, or stands for it.
func runsCommands(name string) bool {
	return name == "bash" || slices.ContainsFunc(habits(), func(u habit) bool {
		return u.target == "bash" && slices.Contains(u.names, name)
	})
}

func stand(name string, u habit) tool.Tool {
	t := tool.Tool{Name: name, Doc: "Stands for " + u.target + ".", Schema: json.RawMessage(`{"type":"object"}`)}
	t.Resolve = func(_ context.Context, c *tool.Call) (string, json.RawMessage, error) { return u.target, c.Args, nil }
	if u.means != nil {
		t.Resolve = resolvedBy(u.means)
	}
	return t
}

// resolvedBy makes a tool stand for the call that means returns for its arguments.
func resolvedBy(means meaning) func(context.Context, *tool.Call) (string, json.RawMessage, error) {
	return func(ctx context.Context, c *tool.Call) (string, json.RawMessage, error) {
		var args map[string]any
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return "", nil, err
		}
		target, out, err := means(ctx, c, args)
		if err != nil {
			return "", nil, err
		}
		raw, err := json.Marshal(out)
		return target, raw, err
	}
}
