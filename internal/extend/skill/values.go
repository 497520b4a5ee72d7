package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line returns a value as one line of text, empty for none. White space of any kind becomes one space.
func Line(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok && tidy(text) {
		return text
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}

// tidy reports whether a text is one line already.
func tidy(text string) bool {
	last := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c >= utf8.RuneSelf || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return text == "" || last != ' '
}

// Bool returns a value that says yes or no, in any of YAML's forms. Ok is false for other values.
func Bool(v any) (yes, ok bool) {
	switch strings.ToLower(Line(v)) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// List returns a value that names things: a list, or a text with commas or blanks between the names.
// Parentheses belong to a name, as in "Bash(git diff:*), Read". Brackets around a text that is not a list are
// removed.
func List(v any) []string {
	list, ok := v.([]any)
	if !ok {
		depth := 0
		return strings.FieldsFunc(Line(v), func(r rune) bool {
			switch r {
			case '(':
				depth++
			case ')':
				depth = max(depth-1, 0)
			}
			return depth == 0 && strings.ContainsRune(", []", r)
		})
	}
	var out []string
	for _, item := range list {
		if name := Line(item); name != "" {
			out = append(out, name)
		}
	}
	return out
}
