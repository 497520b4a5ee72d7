package setup

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// looks imports a setting of the terminal's appearance and behaviour, or of reasoning effort, which several
// agents have under various keys. It reports whether the key is one of these.
func (i *Import) looks(path, key string, raw json.RawMessage) bool {
	var word string
	var on bool
	_ = json.Unmarshal(raw, &word) // a value that is not a string is unknown
	_ = json.Unmarshal(raw, &on)
	what := strings.TrimSpace(key + " " + words.OneLine(word, 60))
	switch key {
	case "theme", "ui.theme":
		if theme := lightness(word); theme != "" {
			i.becomes(path, what, "tui.theme", theme)
		} else {
			i.ignored(path, what, "inspan can't tell if it is light or dark; set tui.theme to one of these")
		}
	case "statusLine":
		i.statusLine(path, raw)
	case "effortLevel", "model_reasoning_effort":
		if slices.Contains(llm.Efforts(), word) {
			i.becomes(path, what, "effort", word)
		} else {
			i.ignored(path, what, "there are "+strings.Join(llm.Efforts(), ", "))
		}
	case "outputStyle":
		i.becomes(path, what, "output_style", strings.ToLower(word))
	case "editorMode", "vimMode", "general.vimMode":
		if on || word == "vim" {
			i.becomes(path, what, "tui.vim", "true")
		} else {
			i.add(Used, path, what, "tui.vim is off unless you set it")
		}
	default:
		return false
	}
	return true
}

// lightness returns the most similar theme of inspan; empty means unknown.
func lightness(theme string) string {
	name := strings.ToLower(theme)
	dark := []string{"default", "dracula", "github", "ansi", "atom one", "ayu", "shades of purple"} // of Gemini CLI
	switch {
	case name == "auto" || name == "system":
		return "auto"
	case strings.Contains(name, "light") || slices.Contains([]string{"google code", "xcode"}, name):
		return "light"
	case strings.Contains(name, "dark") || slices.Contains(dark, name):
		return "dark"
	}
	return ""
}

// statusLine imports a status line command. It gets the same JSON in inspan.
func (i *Import) statusLine(path string, raw json.RawMessage) {
	var line struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(raw, &line) // without a command nothing is imported
	if line.Command == "" || strings.ContainsAny(line.Command, "\x00\n") {
		i.ignored(path, "statusLine", "tui.status_line takes a command of one line")
		return
	}
	i.runs = append(i.runs, line.Command)
	i.becomes(path, "statusLine", "tui.status_line", line.Command)
}
