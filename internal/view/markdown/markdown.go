// Package markdown shows markdown, code and diffs on a terminal, and draws charts, tables and small
// images for terminals and pages.
//
// It computes and does nothing else. Whatever it is given is first made
// harmless, as Plain does: the only escape sequences in what it returns are
// colours (SGR) of its own, and each line ends with a reset, so that lines can be
// printed one by one.
//
// Text is settled block by block: Render is a Stream that is given everything
// at once, so both show the same.
package markdown

import "strings"

// Style is how text is painted. The zero value is for a dark background.
type Style struct {
	Light   bool    // the background is light
	NoColor bool    // no escape sequence at all; markup is kept where it would be lost
	Named   bool    // pictures are named, not drawn
	Lexers  *Lexers // what is known of languages, to be shared; nil: each Render, Stream and Code reads what it needs
}

// Render shows markdown in lines of at most width cells, without a newline at
// the end and without blanks at the ends of lines. A width of zero or less
// means 80; below 10 lines still fit, if two cells are left.
func Render(text string, width int, s Style) string {
	st := &Stream{Width: width, Style: s}
	st.ready()
	st.learn(text)
	out := st.Write(text)
	return join(out, st.Close())
}

// Code highlights code, line for line; nothing is wrapped or indented. An
// unknown language is left as it is. language is the word after the fence, such
// as "go" or "c++".
func Code(text, language string, s Style) string {
	lines := strings.Split(Plain(text), "\n")
	h := highlighter(s, language)
	for i, l := range lines {
		lines[i] = s.paint(h.line(l), false)
	}
	return strings.Join(lines, "\n")
}

// join puts settled lines together; an empty text stands for no line.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
