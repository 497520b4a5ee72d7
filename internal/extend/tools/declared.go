package tools

import (
	"strconv"
	"strings"
)

// declared parses the output of `declare -px` in bash: the environment that it would give a program. Values are
// in quotes, "..." or $'...' as in ANSI C. It omits what an environment can't hold: an array or a variable
// without a value. It reports false if the text is not from bash.
func declared(text string) (env []string, ok bool) {
	for text != "" {
		line, found := strings.CutPrefix(text, "declare -")
		if !found {
			return nil, false
		}
		end := strings.IndexAny(line, "=\n")
		_, name, spaced := strings.Cut(line[:max(end, 0)], " ")
		if end < 0 || !spaced {
			return nil, false
		}
		if line[end] == '\n' {
			text = line[end+1:]
			continue
		}
		value, rest, read := quoted(line[end+1:])
		if strings.HasPrefix(line[end+1:], "(") {
			rest, read = pastArray(line[end+2:])
		} else if read {
			env = append(env, name+"="+value)
		}
		if text, found = strings.CutPrefix(rest, "\n"); !read || !found {
			return nil, false
		}
	}
	return env, true
}

// quoted reads a value, and returns the text after it.
func quoted(text string) (value, rest string, ok bool) {
	if body, is := strings.CutPrefix(text, `"`); is {
		return unquoted(body, '"', func(c byte, rest string) (string, string) { return string([]byte{c}), rest })
	}
	if body, is := strings.CutPrefix(text, `$'`); is {
		return unquoted(body, '\'', control)
	}
	return "", text, false
}

// unquoted reads up to a quote. Escaped reads the text after a backslash.
func unquoted(text string, quote byte, escaped func(c byte, rest string) (value, after string)) (value, rest string, ok bool) {
	var out strings.Builder
	for text != "" {
		c := text[0]
		text = text[1:]
		switch {
		case c == quote:
			return out.String(), text, true
		case c == '\\' && text != "":
			value, text = escaped(text[0], text[1:])
			out.WriteString(value)
		default:
			out.WriteByte(c)
		}
	}
	return "", "", false
}

// control reads the text after a backslash between $' and '. Bash writes no other escapes.
func control(c byte, rest string) (value, after string) {
	if i := strings.IndexByte("abefnrtvE", c); i >= 0 {
		return "\a\b\x1b\f\n\r\t\v\x1b"[i : i+1], rest
	}
	if c < '0' || c > '7' {
		return string([]byte{c}), rest
	}
	digits := string([]byte{c})
	for len(digits) < 3 && rest != "" && rest[0] >= '0' && rest[0] <= '7' {
		digits, rest = digits+rest[:1], rest[1:]
	}
	n, _ := strconv.ParseUint(digits, 8, 16) // as many digits as fit
	return string([]byte{byte(n)}), rest
}

// pastArray returns the text after the elements of an array.
func pastArray(text string) (rest string, ok bool) {
	for text != "" {
		if text[0] == ')' {
			return text[1:], true
		}
		if _, after, is := quoted(text); is {
			text = after
			continue
		}
		text = text[1:]
	}
	return "", false
}
