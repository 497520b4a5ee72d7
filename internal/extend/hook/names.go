package hook

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// claudeFields lists the arguments with another name in Claude Code, ours first.
func claudeFields(own string) [][2]string {
	switch own {
	case "bash":
		return [][2]string{{"background", "run_in_background"}}
	case "read_file", "write_file", "edit_file":
		return [][2]string{{"path", "file_path"}}
	case "edit_lines":
		return [][2]string{{"path", "file_path"}, {"expect", "old_string"}, {"text", "new_string"}}
	case "search_files":
		return [][2]string{{"ignore_case", "-i"}, {"context", "-C"}, {"max", "head_limit"}}
	case "web_fetch":
		return [][2]string{{"find", "prompt"}}
	case "web_search":
		return [][2]string{{"domains", "allowed_domains"}, {"exclude", "blocked_domains"}}
	case "todo":
		return [][2]string{{"items", "todos"}}
	case "spawn_agent":
		return [][2]string{{"task", "prompt"}, {"agent", "subagent_type"}, {"background", "run_in_background"}}
	}
	return nil
}

// input returns the arguments of a call in the form of Claude Code.
func input(c *tool.Call) (name string, in map[string]any, err error) {
	in, err = decode[map[string]any](c.Args)
	if err != nil {
		return "", nil, err
	}
	name = foreign.ClaudeNames(c.Name)[0]
	renamed(in, claudeFields(c.Name), 0, 1)
	switch c.Name {
	case "bash":
		scaled(in, 1000)
	case "edit_file":
		if !flattened(in) {
			name = "MultiEdit"
		}
	case "todo":
		todos(in["todos"], 0, 1)
	case "spawn_agent":
		spawned(in)
	}
	if path, ok := in["file_path"].(string); ok && !filepath.IsAbs(path) && !strings.HasPrefix(path, "blob:") {
		in["file_path"] = filepath.Join(c.Cwd, path)
	}
	return name, in, nil
}

// arguments is the inverse of input, for a call that a hook has changed; nil if nothing has changed.
func arguments(c *tool.Call, changed json.RawMessage) (json.RawMessage, error) {
	_, before, err := input(c)
	if err != nil {
		return nil, err
	}
	if was, err := json.Marshal(before); err != nil || sameJSON(was, changed) {
		return nil, err
	}
	in, err := decode[map[string]any](changed)
	if err != nil {
		return nil, err
	}
	if in["file_path"] == before["file_path"] && in["file_path"] != nil { // as the model wrote it
		old, _ := decode[map[string]any](c.Args)
		in["file_path"] = old["path"]
	}
	switch c.Name {
	case "bash":
		scaled(in, 0.001)
		delete(in, "description")
	case "edit_file":
		folded(in)
	case "todo":
		todos(in["todos"], 1, 0)
	case "spawn_agent":
		delete(in, "description")
		if in["subagent_type"] == "general-purpose" {
			in["subagent_type"] = "worker"
		}
	}
	renamed(in, claudeFields(c.Name), 1, 0)
	return json.Marshal(in)
}

func renamed(m map[string]any, fields [][2]string, from, to int) {
	for _, f := range fields {
		if v, ok := m[f[from]]; ok {
			delete(m, f[from])
			m[f[to]] = v
		}
	}
}

// spawned adds the fields that a call that begins an agent always has there: its kind, and a few words about its task.
func spawned(m map[string]any) {
	if kind, _ := m["subagent_type"].(string); kind == "" {
		m["subagent_type"] = "worker"
	}
	prompt, _ := m["prompt"].(string)
	m["description"] = text.Short(prompt, 60)
}

// scaled converts the seconds of a timeout to milliseconds, or back.
func scaled(m map[string]any, by float64) {
	n, ok := m["timeout"].(json.Number)
	if !ok {
		return
	}
	if f, err := n.Float64(); err == nil {
		m["timeout"] = json.Number(strconv.FormatFloat(float64(int64(f*by)), 'f', -1, 64))
	}
}

// flattened moves a single edit to the top level, as in Claude Code.
func flattened(m map[string]any) bool {
	edits, _ := m["edits"].([]any)
	if len(edits) != 1 {
		return false
	}
	one, ok := edits[0].(map[string]any)
	if !ok {
		return false
	}
	delete(m, "edits")
	for k, v := range one {
		m[k] = v
	}
	return true
}

func folded(m map[string]any) {
	if _, has := m["edits"]; has {
		return
	}
	one := map[string]any{}
	for _, k := range []string{"old_string", "new_string", "replace_all"} {
		if v, ok := m[k]; ok {
			one[k] = v
			delete(m, k)
		}
	}
	m["edits"] = []any{one}
}

func todos(list any, from, to int) {
	items, _ := list.([]any)
	fields := [][2]string{{"text", "content"}, {"state", "status"}}
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		renamed(m, fields, from, to)
		delete(m, "activeForm")
		key := fields[1][to]
		for _, w := range [][2]string{{"open", "pending"}, {"doing", "in_progress"}, {"done", "completed"}} {
			if m[key] == w[from] {
				m[key] = w[to]
				break
			}
		}
	}
}

// response returns the result of a call in the form of Claude Code.
func response(c *tool.Call, in map[string]any, text string) any {
	switch {
	case c.Name == "bash":
		return map[string]any{"stdout": text, "stderr": "", "interrupted": false, "isImage": false}
	case c.Name == "spawn_agent":
		return map[string]any{"status": "completed", "prompt": in["prompt"], "content": []any{map[string]any{"type": "text", "text": text}}}
	case c.Name == "write_file" || c.Name == "edit_file" || c.Name == "edit_lines":
		return map[string]any{"filePath": in["file_path"], "success": true}
	case c.Name == "read_file":
		return map[string]any{"type": "text", "file": map[string]any{"filePath": in["file_path"], "content": text}}
	case strings.HasPrefix(c.Name, "mcp__"):
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return text
}

// responded returns the text of a response that a hook has changed.
func responded(raw json.RawMessage) string {
	v, err := decode[any](raw)
	if err != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if out, ok := v["stdout"].(string); ok {
			errs, _ := v["stderr"].(string)
			return strings.TrimSpace(out + "\n" + errs)
		}
		if file, ok := v["file"].(map[string]any); ok {
			v = file
		}
		switch content := v["content"].(type) {
		case string:
			return content
		case []any:
			return blocks(content, string(raw))
		}
	case []any:
		return blocks(v, string(raw))
	}
	return string(raw)
}

// blocks joins the texts of content blocks, and returns any other value unchanged.
func blocks(list []any, instead string) string {
	var texts []string
	for _, item := range list {
		block, _ := item.(map[string]any)
		text, ok := block["text"].(string)
		if !ok {
			return instead
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}
