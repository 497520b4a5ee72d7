package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// keyCodes returns the codes of the keys of a terminal, by name.
func keyCodes() map[string]string {
	codes := map[string]string{
		"enter": "\r", "tab": "\t", "shift-tab": "\x1b[Z", "esc": "\x1b", "space": " ", "backspace": "\x7f", "delete": "\x1b[3~",
		"insert": "\x1b[2~",
		"up":     "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
		"pgup": "\x1b[5~", "pgdn": "\x1b[6~",
		"f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
		"f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
	}
	for alias, name := range map[string]string{"return": "enter", "escape": "esc", "del": "delete", "pageup": "pgup", "pagedown": "pgdn"} {
		codes[alias] = codes[name]
	}
	for c := byte('a'); c <= 'z'; c++ {
		codes["ctrl-"+string(c)] = string(c & 0x1f)
	}
	codes["ctrl-space"], codes["ctrl-\\"], codes["ctrl-]"] = "\x00", "\x1c", "\x1d"
	return codes
}

// typed returns the bytes that a terminal sends for text and then keys. Keypad selects the application codes of the
// cursor keys.
func typed(text string, keys []string, keypad bool) (string, error) {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\r"), "\n", "\r"))
	codes := keyCodes()
	for _, key := range keys {
		name := strings.NewReplacer("+", "-", "_", "-", "control", "ctrl").Replace(strings.ToLower(key))
		code, ok := codes[name]
		if utf8.RuneCountInString(key) == 1 {
			code, ok = key, true
		}
		if !ok {
			return "", fmt.Errorf("there is no key %q; there are enter, tab, shift-tab, esc, space, backspace, delete, insert, up, down, left, "+
				"right, home, end, pgup, pgdn, f1 to f12, ctrl-a to ctrl-z, and single characters", key)
		}
		if keypad && len(code) == 3 && strings.ContainsAny(code[2:], "ABCDHF") {
			code = "\x1bO" + code[2:]
		}
		b.WriteString(code)
	}
	return b.String(), nil
}

// typed returns the bytes that the terminal sends for the input of a call. No input means its end.
func (s *screen) typed(in jobsArgs) (string, error) {
	if in.Input == nil && len(in.Keys) == 0 {
		return "\x04", nil
	}
	text := ""
	if in.Input != nil {
		text = *in.Input
	}
	return typed(text, in.Keys, s.keypad.Load())
}
