package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/tool"
)

// Binding is an action with the keys that do it.
type Binding struct {
	Action string
	Keys   []string // as tea.Key names them: "ctrl+o", "alt+enter"
	Doc    string
}

// Bindings lists all actions with their keys unless the settings name others.
func Bindings() []Binding {
	return []Binding{
		{"send", []string{"enter"}, "send what is written; while a run goes on, say it into the run"},
		{"queue", []string{"tab"}, "while a run goes on, keep what is written for after it; complete a name"},
		{"newline", []string{"shift+enter", "alt+enter", "ctrl+j"}, "a new line; so does enter behind a backslash"},
		{"escape", []string{"esc"}, "interrupt the run; close what is open; twice when nothing goes on: go back to an earlier place"},
		{"interrupt", []string{"ctrl+c"}, "interrupt the run, or clear what is written; twice: leave"},
		{"quit", []string{"ctrl+d"}, "leave, if nothing is written"},
		{"mode", []string{"shift+tab"}, "the next permission mode: plan, ask, edit, auto"},
		{"unfold", []string{"ctrl+o"}, "show the last result whole"},
		{"edit", []string{"ctrl+g"}, "write in the editor of $EDITOR"},
		{"paste-image", []string{"ctrl+v"}, "attach the image in the clipboard"},
		{"suspend", []string{"ctrl+z"}, "suspend the program"},
		{"redraw", []string{"ctrl+l"}, "draw the screen anew"},
		{"up", []string{"up", "ctrl+p"}, "a line up; at the top, what was said before"},
		{"down", []string{"down", "ctrl+n"}, "a line down; at the bottom, what was said after"},
		{"left", []string{"left", "ctrl+b"}, "a character back"},
		{"right", []string{"right", "ctrl+f"}, "a character on"},
		{"word-left", []string{"ctrl+left", "alt+left", "alt+b"}, "a word back"},
		{"word-right", []string{"ctrl+right", "alt+right", "alt+f"}, "a word on"},
		{"home", []string{"home", "ctrl+a"}, "to the start of the line"},
		{"end", []string{"end", "ctrl+e"}, "to the end of the line"},
		{"backspace", []string{"backspace", "ctrl+h", "shift+backspace"}, "delete the character before"},
		{"delete", []string{"delete"}, "delete the character after"},
		{"delete-word", []string{"ctrl+w", "alt+backspace", "ctrl+backspace"}, "delete the word before"},
		{"delete-start", []string{"ctrl+u"}, "delete to the start of the line"},
		{"delete-end", []string{"ctrl+k"}, "delete to the end of the line"},
		{"page-up", []string{"pgup"}, "a page up in what is long"},
		{"page-down", []string{"pgdown"}, "a page down in what is long"},
	}
}

// keymap finds the action of a key.
type keymap map[string]string

// keysOf makes the key map: the defaults, and for the actions named by over its
// keys in their place. No key may do two things, and there must be one to send, to
// interrupt and to leave.
func keysOf(over map[string][]string) (keymap, error) {
	m := keymap{}
	var names []string
	for _, b := range Bindings() {
		names = append(names, b.Action)
		keys, changed := over[b.Action]
		if !changed {
			keys = b.Keys
		}
		if len(keys) == 0 && slices.Contains([]string{"send", "interrupt", "quit"}, b.Action) {
			return nil, fmt.Errorf("keys: %s needs a key", b.Action)
		}
		if err := m.bind(b.Action, keys, changed); err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(over)) {
		if !slices.Contains(names, action) {
			return nil, fmt.Errorf("keys: there is no action %q%s", action, didYouMean(tool.Nearest(action, names)))
		}
	}
	return m, nil
}

// bind makes keys do an action; those of a person may be anything.
func (m keymap) bind(action string, keys []string, person bool) error {
	for _, key := range keys {
		if person {
			stroke, err := keystroke(key)
			if err != nil {
				return fmt.Errorf("%s: %w", action, err)
			}
			key = stroke
		}
		if other, taken := m[key]; taken && other != action {
			return fmt.Errorf("%q is a key of %s and of %s; give one of them others", key, other, action)
		}
		m[key] = action
	}
	return nil
}

// keyNames are the keys that write no character.
func keyNames() []string {
	names := strings.Fields("enter tab backspace esc space up down left right begin find insert delete select pgup pgdown home end")
	for n := 1; n <= 63; n++ {
		names = append(names, fmt.Sprintf("f%d", n))
	}
	return names
}

// keystroke is a key as tea.Key names it, whatever the order of what is held down with
// it. One that writes a character is none: nobody could write that any more.
func keystroke(key string) (string, error) {
	const order = "ctrl alt shift meta hyper super"
	rest, held := strings.ToLower(key), map[string]bool{}
	for {
		mod, more, ok := strings.Cut(rest, "+")
		if !ok || more == "" || !slices.Contains(strings.Fields(order), mod) {
			break
		}
		rest, held[mod] = more, true
	}
	names := keyNames()
	character := utf8.RuneCountInString(rest) == 1 && unicode.IsGraphic([]rune(rest)[0])
	switch plain := len(held) == 0 || len(held) == 1 && held["shift"]; {
	case !character && !slices.Contains(names, rest):
		return "", fmt.Errorf("there is no key %q%s", key, didYouMean(tool.Nearest(rest, names)))
	case plain && (character || rest == "space"):
		return "", fmt.Errorf("%q is for writing; hold ctrl or alt with it", key)
	}
	var b strings.Builder
	for _, mod := range strings.Fields(order) {
		if held[mod] {
			b.WriteString(mod + "+")
		}
	}
	return b.String() + rest, nil
}

func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// named are the keys that do something, for people.
func (m keymap) named(action string) string {
	var keys []string
	for _, b := range Bindings() { // in the order of the list
		for _, key := range b.Keys {
			if b.Action == action && m[key] == action {
				keys = append(keys, key)
			}
		}
	}
	for key, a := range m {
		if a == action && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, ", ")
}
