package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/view/words"
)

// Binding is an action with its keys.
type Binding struct {
	Action string
	Keys   []string // in the form of tea.Key: "ctrl+o", "alt+enter"
	Doc    string
}

// Bindings lists all actions with their default keys.
func Bindings() []Binding {
	return []Binding{
		{"send", []string{"enter"}, "send the text; during a run, steer the run with it"},
		{"queue", []string{"tab"}, "during a run, queue the text for the next run; otherwise complete a name"},
		{"newline", []string{"shift+enter", "alt+enter", "ctrl+j"}, "insert a new line; a backslash before enter works too"},
		{"escape", []string{"esc"}, "take queued text back, interrupt the run, close a list, or end a loop; press twice at rest to rewind"},
		{"interrupt", []string{"ctrl+c"}, "interrupt the run, or clear the text; press twice to quit"},
		{"quit", []string{"ctrl+d"}, "quit, if the input is empty"},
		{"mode", []string{"shift+tab"}, "next permission mode: plan, ask, edit, auto"},
		{"unfold", []string{"ctrl+o"}, "show results in full, beginning with the last one; press again to fold them"},
		{"background", []string{"ctrl+b"}, "send the running command to the background; if none runs, move back one character"},
		{"reasoning", []string{"ctrl+t"}, "show the model's last reasoning in full"},
		{"search", []string{"ctrl+r"}, "search your earlier messages in this folder"},
		{"edit", []string{"ctrl+g"}, "edit the message in $VISUAL or $EDITOR"},
		{"paste-image", []string{"ctrl+v"}, "attach the image in the clipboard"},
		{"suspend", []string{"ctrl+z"}, "suspend inspan"},
		{"redraw", []string{"ctrl+l"}, "redraw the screen"},
		{"up", []string{"up", "ctrl+p"}, "up one line; on the first line, the previous message"},
		{"down", []string{"down", "ctrl+n"}, "down one line; on the last line, the next message"},
		{"left", []string{"left"}, "back one character"},
		{"right", []string{"right", "ctrl+f"}, "forward one character"},
		{"word-left", []string{"ctrl+left", "alt+left", "alt+b"}, "back one word"},
		{"word-right", []string{"ctrl+right", "alt+right", "alt+f"}, "forward one word"},
		{"home", []string{"home", "ctrl+a"}, "go to the start of the line"},
		{"end", []string{"end", "ctrl+e"}, "go to the end of the line"},
		{"backspace", []string{"backspace", "ctrl+h", "shift+backspace"}, "delete the previous character"},
		{"delete", []string{"delete"}, "delete the next character"},
		{"delete-word", []string{"ctrl+w", "alt+backspace", "ctrl+backspace"}, "delete the previous word"},
		{"delete-start", []string{"ctrl+u"}, "delete to the start of the line"},
		{"delete-end", []string{"ctrl+k"}, "delete to the end of the line"},
		{"page-up", []string{"pgup"}, "page up"},
		{"page-down", []string{"pgdown"}, "page down"},
	}
}

// keymap finds the action of a key.
type keymap map[string]string

// keysOf returns the key map: the defaults, except for the actions that over names. No key may have
// two actions, and there must be keys to send, to interrupt and to leave.
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
			return nil, fmt.Errorf("keys: unknown action %q%s", action, words.DidYouMean(action, names))
		}
	}
	return m, nil
}

// bind assigns keys to an action. A person's keys come from the settings and are checked.
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
			return fmt.Errorf("%q is bound to both %s and %s; give one of them another key", key, other, action)
		}
		m[key] = action
	}
	return nil
}

// keystroke returns the canonical name of a key, with modifiers in any order. A key that writes a character is
// an error, since it could no longer be typed.
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
	names := strings.Fields("enter tab backspace esc space up down left right begin find insert delete select pgup pgdown home end")
	for n := 1; n <= 63; n++ {
		names = append(names, fmt.Sprintf("f%d", n))
	}
	character := utf8.RuneCountInString(rest) == 1 && unicode.IsGraphic([]rune(rest)[0])
	switch plain := len(held) == 0 || len(held) == 1 && held["shift"]; {
	case !character && !slices.Contains(names, rest):
		return "", fmt.Errorf("unknown key %q%s", key, words.DidYouMean(rest, names))
	case plain && (character || rest == "space"):
		return "", fmt.Errorf("%q types a character; combine it with ctrl or alt", key)
	}
	var b strings.Builder
	for _, mod := range strings.Fields(order) {
		if held[mod] {
			b.WriteString(mod + "+")
		}
	}
	return b.String() + rest, nil
}

// named returns an action's keys as people read them.
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
