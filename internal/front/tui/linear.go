package tui

import "strings"

// spokenMarks are the marks at the beginning of lines, and the words that replace them for a screen reader.
func spokenMarks() [][2]string {
	return [][2]string{
		{"› ", "You said: "},
		{"▸ ", "Call: "},
		{"✓ ", "Result: "},
		{"✗ ", "Failed: "},
		{"■ ", "End: "},
		{"· ", "Note: "},
		{"! ", "Warning: "},
		{"? ", "Question: "},
		{"∙ ", "Reasoning: "},
		{"◦ ", "Agent: "},
		{"↳ ", "Waiting: "},
		{"☐ ", "To do: "},
		{"▣ ", "Doing: "},
		{"☑ ", "Done: "},
		{"… ", ""},
	}
}

// linear returns a line for a screen reader: marks become words, and boxes and bars become plain. It returns
// false for a line that only draws.
func linear(line string) (string, bool) {
	rest := strings.TrimLeft(line, " ")
	for _, m := range spokenMarks() {
		if after, ok := strings.CutPrefix(rest, m[0]); ok {
			line = line[:len(line)-len(rest)] + m[1] + after
			break
		}
	}
	drawn := false
	line = strings.Map(func(r rune) rune {
		if r < 0x2500 || r > 0x259F {
			return r
		}
		drawn = true
		switch {
		case r >= 0x2580:
			return '#'
		case r == '─' || r == '━':
			return '-'
		case r == '│' || r == '┃':
			return '|'
		}
		return '+'
	}, line)
	return line, !drawn || strings.Trim(line, "-|+ ") != ""
}

// spoken returns lines in the form for a screen reader, if there is one.
func (l look) spoken(lines []string) []string {
	if !l.reader {
		return lines
	}
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		if line, says := linear(line); says {
			out = append(out, line)
		}
	}
	return out
}
