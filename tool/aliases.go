package tool

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// rename gives unknown fields the name of a known one that is not given. If two aliases mean the same field,
// neither is renamed, and both are reported as unknown.
func rename(s *jsonschema.Schema, m map[string]any) {
	sources := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, known := s.Properties[name]; known {
			continue
		}
		for _, target := range aliases(name) {
			_, known := s.Properties[target]
			_, given := m[target]
			if known && !given {
				sources[target] = append(sources[target], name)
				break
			}
		}
	}
	for target, names := range sources {
		if len(names) == 1 {
			m[target] = m[names[0]]
			delete(m, names[0])
		}
	}
}

// aliases returns the fields that a model may mean by name, most likely first. They are the names that other
// tool sets use for the same thing.
func aliases(name string) []string {
	switch name {
	case "file_path", "filepath", "filePath", "file_name", "filename", "fileName", "file", "target_file", "absolute_path":
		return []string{"path"}
	case "dir", "directory", "dir_path", "folder", "cwd", "root":
		return []string{"path"}
	case "cmd", "script", "shell_command":
		return []string{"command"}
	case "old_str", "oldString", "old_text", "oldText", "old", "search":
		return []string{"old_string"}
	case "new_str", "newString", "new_text", "newText", "new", "replace", "replacement":
		return []string{"new_string"}
	case "replaceAll", "allow_multiple":
		return []string{"replace_all"}
	case "contents", "file_text", "new_content", "data":
		return []string{"content", "json"}
	case "text":
		return []string{"content", "input"}
	case "regex", "regexp", "query", "glob_pattern", "search_pattern":
		return []string{"pattern"}
	case "include", "file_pattern", "glob":
		return []string{"glob", "pattern"}
	case "ignoreCase", "case_insensitive", "caseInsensitive":
		return []string{"ignore_case"}
	case "max_results", "maxResults", "max_matches", "head_limit":
		return []string{"max", "limit", "count"}
	case "uri", "link", "address":
		return []string{"url"}
	case "allowed_domains", "include_domains":
		return []string{"domains"}
	case "blocked_domains", "exclude_domains":
		return []string{"exclude"}
	case "limit", "max":
		return []string{"max", "limit"}
	case "start_line", "startLine", "line", "start":
		return []string{"offset"}
	case "max_lines", "lines", "num_lines":
		return []string{"limit"}
	case "timeout_seconds", "timeout_secs", "timeout_s":
		return []string{"timeout"}
	case "run_in_background", "is_background", "runInBackground":
		return []string{"background"}
	case "job_id", "jobId", "job", "task_id", "shell_id", "bash_id":
		return []string{"id"}
	case "skill", "skill_name", "skillName":
		return []string{"name"}
	case "stdin":
		return []string{"input"}
	case "max_depth", "maxDepth":
		return []string{"depth"}
	}
	return nil
}
