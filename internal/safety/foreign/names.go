package foreign

import "slices"

// ClaudeNames lists Claude Code's names of a tool, the present one first. A tool that it does not have has its
// own name, as those of MCP servers do.
func ClaudeNames(own string) []string {
	switch own {
	case "bash":
		return []string{"Bash"}
	case "read_file":
		return []string{"Read"}
	case "write_file":
		return []string{"Write"}
	case "edit_file", "edit_lines":
		return []string{"Edit", "MultiEdit"}
	case "find_files":
		return []string{"Glob"}
	case "search_files":
		return []string{"Grep"}
	case "list_files":
		return []string{"LS"}
	case "web_fetch":
		return []string{"WebFetch"}
	case "web_search":
		return []string{"WebSearch"}
	case "todo":
		return []string{"TodoWrite"}
	case "spawn_agent":
		return []string{"Agent", "Task"}
	}
	return []string{own}
}

// ClaudeKinds lists Claude Code's names of an agent role, ours first.
func ClaudeKinds(own string) []string {
	switch own {
	case "explore":
		return []string{own, "Explore"}
	case "plan":
		return []string{own, "Plan"}
	case "worker":
		return []string{own, "general-purpose"}
	}
	return []string{own}
}

// renamedTools lists our tools that have other names in Claude Code.
func renamedTools() []string {
	return []string{
		"bash", "read_file", "write_file", "edit_file", "edit_lines", "find_files",
		"search_files", "list_files", "web_fetch", "web_search", "todo", "spawn_agent",
	}
}

// Names lists Claude Code's names for our tools.
func Names() []string {
	var out []string
	for _, own := range renamedTools() {
		out = append(out, ClaudeNames(own)...)
	}
	return out
}

// OwnTools lists our tools for a name in Claude Code; an unknown name is returned unchanged.
func OwnTools(name string) []string {
	var out []string
	for _, own := range renamedTools() {
		if slices.Contains(ClaudeNames(own), name) {
			out = append(out, own)
		}
	}
	switch name {
	case "Bash":
		return append(out, "git", "jobs") // which are parts of it there
	case "NotebookEdit":
		return []string{"notebook_edit"}
	case "Skill":
		return []string{"skill"}
	case "AskUserQuestion":
		return []string{"ask_user"}
	}
	if out == nil {
		return []string{name}
	}
	return out
}
