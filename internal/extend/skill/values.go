package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line is a value as one line of text, empty for none. White space of any kind
// becomes one space.
func Line(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok && tidy(text) {
		return text
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}

// tidy reports whether a text is one line as it is.
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

// Bool is a value that says yes or no, in any of the ways of YAML. Ok is false if
// it says neither.
func Bool(v any) (yes, ok bool) {
	switch strings.ToLower(Line(v)) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// List is a value that names things: a list, or a text with commas or blanks
// between the names. What stands in parentheses is part of a name, as in
// "Bash(git diff:*), Read". Brackets around a text that is no list are left out.
func List(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return nameList(Line(v))
	}
	var out []string
	for _, item := range list {
		if name := Line(item); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func nameList(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && strings.ContainsRune(", []", r)
	})
}
