package frontmatter

import (
	"fmt"
	"strings"
)

// Line is a value as one line of text, empty for none. White space of any kind
// becomes one space.
func Line(v any) string {
	if v == nil {
		return ""
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
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
// "Bash(git diff:*), Read".
func List(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return names(Line(v))
	}
	var out []string
	for _, item := range list {
		if name := Line(item); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func names(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}
