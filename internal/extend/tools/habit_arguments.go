package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/tool"
)

func jobsBy(action string) func(context.Context, *tool.Call, map[string]any) (string, map[string]any, error) {
	return func(_ context.Context, _ *tool.Call, args map[string]any) (string, map[string]any, error) {
		args["action"] = action
		first(args, "id", "session_id", "job_id", "shell_id", "bash_id", "task_id")
		move(args, "chars", "input")
		drop(args, "yield_time_ms", "max_output_tokens", "block", "timeout", "filter")
		return "jobs", args, nil
	}
}

// editorCommand handles a call of the editor that one vendor's models are trained with.
func editorCommand(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	command, _ := args["command"].(string)
	delete(args, "command")
	switch command {
	case "view":
		path, _ := args["path"].(string)
		if isFolder(ctx, c, cmp.Or(path, ".")) {
			return "list_files", map[string]any{"path": path}, nil
		}
		return "read_file", args, nil
	case "create":
		drop(args, "old_str", "new_str", "insert_line", "view_range")
		return "write_file", args, nil
	case "str_replace":
		drop(args, "file_text", "insert_line", "view_range")
		if _, given := args["new_str"]; !given {
			args["new_str"] = "" // without it, the text is deleted
		}
		return "edit_file", args, nil
	case "insert":
		return inserted(ctx, c, args)
	case "undo_edit":
		return undoLastEdit(ctx, c, args)
	}
	return "", nil, fmt.Errorf("command %q is not one of view, create, str_replace, insert, undo_edit; change the file with edit_file", command)
}

// isFolder reports whether a path is a folder.
func isFolder(ctx context.Context, c *tool.Call, path string) bool {
	if c.Env.Files == nil {
		return false
	}
	path, err := Resolve(ctx, c, path)
	if err != nil {
		return false
	}
	f, err := c.Env.Files.Open(ctx, path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

// undoLastEdit undoes the last change of a file that was not undone yet, using the diff in its result.
func undoLastEdit(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "path", "file_path")
	path, _ := args["path"].(string)
	if c.Env.History == nil {
		return "", nil, errors.New("there is no history here; edit_file puts back what was there")
	}
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return "", nil, err
	}
	name := Shown(c, resolved)
	head := "\n--- " + name + "\n+++ " + name + "\n"
	found, err := c.Env.History.Find(ctx, mostUndone, func(p tool.Passage) bool {
		edited := strings.HasPrefix(p.Text, name+": ") && strings.Contains(p.Text, head)
		return p.Call != "" && !runsCommands(p.Who) && (edited || strings.HasPrefix(p.Text, "created "+name+": ") || strings.HasPrefix(p.Text, "replaced "+name+": "))
	})
	if err != nil {
		return "", nil, err
	}
	taken := 0 // number of earlier changes that were undone
	for _, p := range slices.Backward(found) {
		first, _, _ := strings.Cut(p.Text, "\n")
		switch {
		case strings.HasPrefix(first, name+": ") && strings.HasSuffix(first, takenBack):
			taken++
		case taken > 0:
			taken--
		case strings.HasPrefix(first, "created "):
			return "delete_file", map[string]any{"path": path}, nil
		case strings.HasPrefix(first, "replaced "):
			return "", nil, fmt.Errorf("the last change of %s replaced all of it; write_file writes again what was there", name)
		default:
			return reverseEdit(ctx, c, path, strings.TrimPrefix(p.Text, first+head))
		}
	}
	return "", nil, fmt.Errorf("there is no more to undo: no other change of %s by edit_file or write_file is known in this session", name)
}

// mostUndone is the number of changes of a file that are checked.
const mostUndone = 1000

// reverseEdit returns the edit that undoes a change with a known diff.
func reverseEdit(ctx context.Context, c *tool.Call, path, diff string) (target string, out map[string]any, err error) {
	if strings.Contains(diff, diffLeftOut) {
		return "", nil, fmt.Errorf("the last edit of %s was too long to be shown whole; put back with edit_file what was there", path)
	}
	parts := hunksOf(strings.Split(strings.TrimSuffix(diff, "\n"), "\n"))
	for i, h := range parts {
		parts[i].before, parts[i].after = h.after, h.before
	}
	back, err := located(ctx, c, path, parts)
	return "edit_file", map[string]any{"path": path, "edits": back, "undo": true}, err
}

// makeFolder handles a call that makes a folder.
func makeFolder(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "path", "dirPath", "dir_path", "directory", "directory_path")
	path, _ := args["path"].(string)
	quoted, err := syntax.Quote(path, syntax.LangBash)
	if path == "" || err != nil {
		return "", nil, errors.Join(errors.New("path is missing, want the folder to make"), err)
	}
	return "bash", map[string]any{"command": "mkdir -p -- " + quoted}, nil
}

// runInBackground handles a background command, or a wait for one.
func runInBackground(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	drop(args, "description", "persistent")
	if _, command := args["command"]; command {
		drop(args, "timeout_ms", "timeout")
		args["background"] = true
		return "bash", args, nil
	}
	return jobsBy("wait")(ctx, c, args)
}

// changeTodoItem handles a call that adds or changes one item of the to-do list. Items are numbered from 1.
func changeTodoItem(_ context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
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
	}
	all := map[string]any{"items": items}
	mendTodo(all)
	return "todo", all, nil
}

// mergeTodo handles a call with new or changed items of the to-do list, if the call says that the others stay.
func mergeTodo(_ context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	if args["merge"] != true {
		return "todo", args, nil
	}
	mendTodo(args)
	list, _ := args["items"].([]any)
	items := []any{}
	for _, t := range c.Todo {
		items = append(items, map[string]any{"text": t.Text, "state": string(t.State)})
	}
	for _, v := range list {
		i := slices.IndexFunc(items, func(old any) bool {
			one, _ := v.(map[string]any)
			return one != nil && old.(map[string]any)["text"] == one["text"]
		})
		if i < 0 {
			items = append(items, v)
		} else {
			items[i] = v
		}
	}
	return "todo", map[string]any{"items": items}, nil
}

// selected handles a search for tools whose query may name them.
func selected(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	if query, ok := args["query"].(string); ok {
		args["query"] = strings.NewReplacer(",", " ", "+", " ").Replace(strings.TrimPrefix(query, "select:"))
	}
	return "tool_search", args, nil
}

// cellEdited handles a change of one cell of a notebook, which is named by its id or by its number from 0.
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
			n++ // after the cell
		}
		args["cell"] = n
	} else if _, given := args["cell"]; !given && args["action"] == "insert" {
		args["cell"] = 1
	}
	return "notebook_edit", args, nil
}

// readTogether handles a call that reads several files.
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

// together handles several calls that a model makes as one.
func together(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "tool_uses", "calls", "tools")
	list, _ := args["tool_uses"].([]any)
	var calls []oneOfSeveral
	for _, v := range list {
		one, _ := v.(map[string]any)
		if one == nil {
			return "", nil, fmt.Errorf("a call is %v, want an object with recipient_name and parameters", v)
		}
		first(one, "recipient_name", "name", "tool", "tool_name", "function")
		first(one, "parameters", "arguments", "args", "input")
		name, _ := one["recipient_name"].(string)
		given, _ := one["parameters"].(map[string]any)
		if name == "" {
			return "", nil, errors.New("a call has no recipient_name, which names its tool")
		}
		calls = append(calls, oneOfSeveral{strings.TrimPrefix(name, "functions."), given})
	}
	if len(calls) == 0 {
		return "", nil, errors.New("tool_uses is missing, want a list of calls with recipient_name and parameters")
	}
	return asOne(calls)
}

// editedTogether handles edits of several files.
func editedTogether(_ context.Context, _ *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	list, _ := args["replacements"].([]any)
	var calls []oneOfSeveral
	for _, v := range list {
		one, _ := v.(map[string]any)
		if one == nil {
			return "", nil, fmt.Errorf("a replacement is %v, want an object with filePath, oldString and newString", v)
		}
		calls = append(calls, oneOfSeveral{"edit_file", one})
	}
	if len(calls) == 0 {
		return "", nil, errors.New("replacements is missing, want a list of edits with filePath, oldString and newString")
	}
	return asOne(calls)
}

// createdByEdit turns an edit with empty old text, in a missing or empty file, into a call that writes the
// file.
func createdByEdit(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	in, err := tool.Args[editArgs](c)
	if err != nil || len(in.Edits) != 1 || in.Edits[0].Old != "" {
		return "", nil, err
	}
	if d, err := open(ctx, c, in.Path); !errors.Is(err, fs.ErrNotExist) && (err != nil || len(d.before) > 0) {
		return "", nil, nil //nolint:nilerr // the edit gives the reason why it can't be made
	}
	raw, err := json.Marshal(writeArgs{Path: in.Path, Content: &in.Edits[0].New})
	return "write_file", raw, err
}

// inserted inserts lines after a line of a file; after line 0 they come first. A tool that names the line
// "line" inserts before it, or at the end if it is 0.
func inserted(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "text", "insert_text", "new_str", "new_text", "content")
	first(args, "path", "file_path")
	path, _ := args["path"].(string)
	added, _ := args["text"].(string)
	n, ok := number(args["insert_line"])
	before, isBefore := number(args["line"])
	if !ok && isBefore {
		n, ok = before-1, true
	}
	if !ok {
		return "", nil, errors.New("insert_line is missing, want the number of the line to insert behind")
	}
	text, err := textOf(ctx, c, path)
	if err != nil {
		return "", nil, err
	}
	if text == "" {
		return "write_file", map[string]any{"path": path, "content": added}, nil
	}
	lines := strings.Split(strings.TrimSuffix(unix(text), "\n"), "\n")
	if isBefore && before == 0 {
		n = float64(len(lines))
	}
	if n < 0 || int(n) > len(lines) {
		return "", nil, fmt.Errorf("there is no line %d; the file has %d", int(n), len(lines))
	}
	edit := unique(lines, int(n), int(n), []string{strings.TrimSuffix(added, "\n")})
	return "edit_file", map[string]any{"path": path, "edits": []any{edit}}, nil
}

// asOne returns one call that stands for all of them.
func asOne(calls []oneOfSeveral) (target string, out map[string]any, err error) {
	if len(calls) == 1 {
		return calls[0].Tool, calls[0].Args, nil
	}
	return severalName, map[string]any{"calls": calls}, nil
}
