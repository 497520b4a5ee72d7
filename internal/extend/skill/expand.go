package skill

import (
	"fmt"
	"strings"
)

// MaxExpanded bounds the length in bytes of a text with its placeholders replaced. Placeholders beyond stay as
// they are.
const MaxExpanded = 1 << 20

const maxVariable = 64 // bytes of a variable's name

// Expand replaces the placeholders of a text: $ARGUMENTS by everything typed, $1 to $9 by its words, and
// ${NAME} by the value in vars. Anything else that begins with $ stays, and replaced text is not expanded
// again. If the text has no placeholder for arguments, they follow it.
func Expand(text, args string, vars map[string]string) string {
	args = strings.TrimSpace(args)
	words, used := Words(args), false
	var out strings.Builder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			break
		}
		if out.Len()+len(args) > max(MaxExpanded, len(text)+len(args)) {
			out.WriteString("$" + after)
			break
		}
		switch tail, all := strings.CutPrefix(after, "ARGUMENTS"); {
		case all:
			out.WriteString(args)
			rest, used = tail, true
		case after != "" && after[0] >= '1' && after[0] <= '9' && (len(after) == 1 || after[1] < '0' || after[1] > '9'):
			if n := int(after[0] - '1'); n < len(words) {
				out.WriteString(words[n])
			}
			rest, used = after[1:], true
		default:
			value, size := variable(after, vars)
			out.WriteString(value)
			rest = after[size:]
		}
	}
	if !used && args != "" {
		fmt.Fprintf(&out, "\n\n%s", args)
	}
	return out.String()
}

// variable returns the replacement for $ and the first size bytes of text.
func variable(text string, vars map[string]string) (value string, size int) {
	if name, braced := strings.CutPrefix(text, "{"); braced {
		if name, _, closed := strings.Cut(name[:min(len(name), maxVariable+1)], "}"); closed {
			if value, known := vars[name]; known {
				return value, len(name) + 2
			}
		}
	}
	return "$", 0
}

// Words splits what was typed at blanks, except in quotes. An unclosed quote is an ordinary character.
func Words(args string) []string {
	var out []string
	for {
		args = strings.TrimLeft(args, " \t\n")
		if args == "" {
			return out
		}
		if q := args[:1]; q == `"` || q == "'" {
			if word, rest, closed := strings.Cut(args[1:], q); closed && (rest == "" || strings.ContainsAny(rest[:1], " \t\n")) {
				out, args = append(out, word), rest
				continue
			}
		}
		end := strings.IndexAny(args, " \t\n")
		if end < 0 {
			end = len(args)
		}
		out, args = append(out, args[:end]), args[end:]
	}
}
