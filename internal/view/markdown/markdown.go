// Package markdown shows markdown, code and diffs on a terminal, and draws charts, tables and small images for
// terminals and pages.
//
// It only computes. All input is first made harmless, as by Plain: the only escape sequences in the output are
// its own colours (SGR), and each line ends with a reset, so that lines can be printed one by one.
//
// Text is settled block by block: Render is a Stream that gets everything at once, so both show the same.
package markdown

import "strings"

// Style is how text is painted. The zero value is for a dark background.
type Style struct {
	Light   bool    // the background is light
	NoColor bool    // no escape sequences; marks are kept if they would be lost
	Named   bool    // pictures are named, not drawn
	Lexers  *Lexers // shared caches; nil means each Render, Stream and Code loads its own

	classes bool // colours are names of roles, for HTML
}

// Render shows markdown in lines of at most width cells, without a newline at
// the end and without blanks at the ends of lines. A width of zero or less
// means 80; below 10 lines still fit, if two cells are left.
func Render(text string, width int, s Style) string {
	st := &Stream{Width: width, Style: s}
	st.ready()
	st.learn(text)
	out, rest := st.Write(text), st.Close()
	if out != "" && rest != "" { // an empty text stands for no line
		out += "\n"
	}
	return out + rest
}

// Code highlights code, line by line; nothing is wrapped or indented. Code in an unknown language stays as it
// is. language is the word after the fence, such as "go" or "c++".
func Code(text, language string, s Style) string {
	lines := strings.Split(Plain(text), "\n")
	h := highlighter(s, language)
	for i, l := range lines {
		lines[i] = s.paint(h.line(l), false)
	}
	return strings.Join(lines, "\n")
}
