package shell

import (
	"slices"
	"strings"
)

// awk judges the program text. If a slash could be either a division or the start of an expression, it is not proven.
func (c *call) awk(p parsed) {
	c.prefix, c.v.noRule = nil, true
	if len(p.operands) == 0 || !p.operands[0].known {
		c.v.full("the program of awk can't be known")
		return
	}
	text := p.operands[0].text
	for a := (awkReader{text: text, last: ";"}); a.at < len(text); {
		if why := a.token(); why != "" {
			c.v.full(why)
			break
		}
	}
	if strings.Contains(text, "ARGV") {
		c.v.full("awk can read any file through ARGV")
	}
	for _, w := range p.operands[1:] {
		if strings.HasPrefix(w.text, "/inet") {
			c.v.full("gawk opens a connection for names under /inet")
		}
	}
}

type awkReader struct {
	text     string
	at       int
	last     string // the previous token, ignoring spaces
	printing bool   // within print or printf, where > is a redirect
	branches bool   // it has if, while or for: an expression may follow their )
}

const awkOdd = "the program of awk is not understood"

func (a *awkReader) token() string {
	c := a.text[a.at]
	switch {
	case c == ' ' || c == '\t':
		a.at++
	case c == '#':
		for a.at < len(a.text) && a.text[a.at] != '\n' {
			a.at++
		}
	case c == '"':
		return a.literal('"')
	case c == '/':
		return a.slash()
	case inAwkName(c):
		return a.name()
	default:
		return a.operator(c)
	}
	return ""
}

// slash distinguishes a regular expression from a division by the previous token.
func (a *awkReader) slash() string {
	switch {
	case a.last == ")" && a.branches:
		return awkOdd
	case a.last == `"` || a.last == ")" || a.last == "]" || operandName(a.last):
		a.last = "/"
		a.at++
		return ""
	case !slices.Contains([]string{";", "\n", "{", "}", "(", ",", "~", "!", "&&", "||", "print", "printf", "return", "in", "do", "else"},
		a.last):
		return awkOdd
	}
	return a.literal('/')
}

// literal skips a string or a regular expression to its end.
func (a *awkReader) literal(end byte) string {
	for a.at++; a.at < len(a.text); a.at++ {
		switch c := a.text[a.at]; {
		case c == '\\':
			a.at++
		case c == '\n', c == '[' && end == '/' && !a.bracket():
			return awkOdd
		case c == end:
			a.at++
			a.last = `"`
			return ""
		}
	}
	return awkOdd
}

// bracket skips [...] of a regular expression. Implementations disagree about a slash in it, and about its end
// after a bracket or a backslash.
func (a *awkReader) bracket() bool {
	for a.at++; a.at < len(a.text); a.at++ {
		switch a.text[a.at] {
		case ']':
			before := a.text[a.at-1]
			return before != '[' && before != '^'
		case '/', '[', '\n', '"':
			return false
		case '\\':
			a.at++
		}
	}
	return false
}

func inAwkName(c byte) bool {
	return c == '_' || c == '.' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

func operandName(last string) bool {
	return inAwkName(last[0]) && !slices.Contains([]string{
		"print", "printf", "return", "in", "do", "else", "while", "if", "for", "case", "BEGIN", "END", "BEGINFILE", "ENDFILE",
		"length", "delete", "next", "nextfile", "exit", "continue", "break", "switch", "default",
	}, last)
}

func (a *awkReader) name() string {
	from := a.at
	for a.at < len(a.text) && inAwkName(a.text[a.at]) {
		a.at++
	}
	a.last = a.text[from:a.at]
	switch a.last {
	case "system":
		return "system runs a command"
	case "getline":
		return "getline can run a command or read any file"
	case "close", "fflush", "extension", "load", "include", "func", "function":
		return a.last + " is not judged"
	case "print", "printf":
		a.printing = true
	case "if", "while", "for", "switch":
		a.branches = true
	}
	return ""
}

func (a *awkReader) operator(c byte) string {
	if two := a.text[a.at:min(len(a.text), a.at+2)]; two == "||" || two == "&&" {
		a.at += 2
		a.last = two
		return ""
	}
	switch {
	case c == '|':
		return "| runs a command"
	case c == '@' || c == '&' || c == '\\' || c == '\'' || c == '`' || c >= 0x80 || c < ' ' && c != '\n':
		return awkOdd
	case c == '>' && a.printing:
		return "> writes a file"
	case c == ';' || c == '}':
		a.printing = false
	}
	a.at++
	a.last = a.text[a.at-1 : a.at]
	return ""
}
