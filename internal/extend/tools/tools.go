// Package tools has the built-in tools. Each has one Go file and one .md file, the description for the model.
// They reach the world only through [tool.Env]. The tools of skills, memory, MCP servers and subagents are in
// their own packages.
//
// Read in this order: tools.go (which tools there are), read_file.go (the plainest one), then by concept:
//
//	edits      change.go (a change that is worked out and not yet made), edit.go (finding the text), edit_file.go,
//	           edit_lines.go, write_file.go, apply_patch.go, notebook_edit.go; mending.go and typed.go read what models
//	           get wrong, nearest.go shows what they may have meant
//	commands   bash.go, shell.go (what outlives a command), walls.go (its sandbox), vars.go and declared.go (its
//	           environment), capture.go, clean.go and legible.go (its output), written.go (what it wrote),
//	           left_processes.go, jobs.go and watcher.go (commands in the background); missing.go, blocked.go and
//	           advice.go explain failures
//	searches   list_files.go, find_files.go, search_files.go, over walk.go and scan.go; window.go bounds what is shown
//	git        git.go, plaingit.go, gitinit.go, githooks.go
//	habits     habits.go (names and forms of other agents' tools), habit_arguments.go, editor.go, several.go
//	describing describe.go (what a session's descriptions say), tool_search.go, call_tool.go
package tools

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

// Core returns the tools of every session at its start, in the model's order. Sh is the session's shell; it must be
// closed when the session is. Edit chooses the tool for partial changes of files: "lines" is edit_lines, "write" is
// only write_file, and anything else is edit_file.
func Core(sh *Shell, edit string) []tool.Tool {
	write, editors, editor := writeFile(), []tool.Tool{editFile()}, "edit_file"
	switch edit {
	case "lines":
		editors, editor = []tool.Tool{editLines()}, "edit_lines"
	case "write":
		write.Doc = withoutLine(write.Doc, "edit_file")
		editors, editor = nil, "write_file"
	}
	list := slices.Concat([]tool.Tool{readFile(), write}, editors, []tool.Tool{
		deleteFile(),
		listFiles(),
		findFiles(),
		searchFiles(),
		bash(sh),
		jobs(sh),
		git(sh.Protected),
		notebookEdit(),
		viewImage(),
		render(),
		todo(),
		askUser(),
		history(),
	})
	for i := range list {
		list[i].Doc = strings.ReplaceAll(list[i].Doc, "edit_file", editor)
	}
	return list
}

// Files returns the tools for files alone, in the model's order. They need no processes.
func Files() []tool.Tool {
	return []tool.Tool{readFile(), writeFile(), editFile(), deleteFile(), listFiles(), findFiles(), searchFiles()}
}

// WithLSP adds the tool that asks language servers, and makes the tools that change files report errors that
// the change caused, if a server runs.
func WithLSP(m *lsp.Manager, list []tool.Tool) []tool.Tool {
	out := make([]tool.Tool, len(list), len(list)+1)
	for i, t := range list {
		if out[i] = t; slices.Contains([]string{"write_file", "edit_file", "edit_lines"}, t.Name) {
			out[i] = diagnosing(m, t)
		}
	}
	return append(out, languages(m))
}

// Web is the configuration of the tools that reach servers. The zero value has no search engine and no secrets.
type Web struct {
	Search  web.Search        // without a provider there is no web_search
	Secrets map[string]Secret // those that http_request may send, by name
}

// Tools returns them. Fetched pages are cached for a while, so each session should have its own tools.
func (w Web) Tools() []tool.Tool {
	list := []tool.Tool{webFetch(&web.Cache{}), httpRequest(w.Secrets)}
	if w.Search.Check() == nil {
		list = append(list, webSearch(w.Search))
	}
	return list
}

// withoutLine returns text without the lines that contain word.
func withoutLine(text, word string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, word) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
