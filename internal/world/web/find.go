package web

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxFound   = 20
	maxPassage = 1200 // bytes shown of a passage
)

// A passage is a part of a text between empty lines.
type passage struct {
	from, to int
	head     string // its heading
	words    int    // number of matching words
}

// Find returns the passages of a text that contain the words, ignoring case: those with all words, or
// otherwise, with a note, those with most of them. Each comes with its offset in the text and its heading. The
// second result is false if there is none.
func Find(s, words string) (string, bool) {
	wanted := strings.Fields(strings.ToLower(words))
	list := passages(s)
	most, total := 0, 0
	for i := range list {
		low := strings.ToLower(list[i].head + "\n" + s[list[i].from:list[i].to])
		for _, w := range wanted {
			if strings.Contains(low, w) {
				list[i].words++
			}
		}
		switch {
		case list[i].words > most:
			most, total = list[i].words, 1
		case list[i].words == most:
			total++
		}
	}
	if most == 0 {
		return "", false
	}
	var b strings.Builder
	if most < len(wanted) {
		fmt.Fprintf(&b, "[no passage has all of the words; these have %d of %d]\n\n", most, len(wanted))
	}
	n := 0
	for _, p := range list {
		if p.words != most {
			continue
		}
		if n++; n > maxFound {
			fmt.Fprintf(&b, "[%d more passages have them; give more words]\n", total-maxFound)
			break
		}
		fmt.Fprintf(&b, "[at %d", p.from)
		if p.head != "" {
			b.WriteString(", under " + text.Short(p.head, 120))
		}
		b.WriteString("]\n" + around(s[p.from:p.to], wanted) + "\n\n")
	}
	return strings.TrimSpace(b.String()), true
}

// passages splits a text at empty lines; code blocks stay whole, and texts without empty lines are split after
// some lines.
func passages(text string) []passage {
	var out []passage
	head, fence := "", ""
	from, at := 0, 0
	flush := func(to int) {
		if body := strings.TrimLeft(text[from:to], " \t\n"); body != "" {
			out = append(out, passage{from: to - len(body), to: to, head: head})
		}
		from = to
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		case trimmed == "":
			flush(at)
		case strings.HasPrefix(line, "#") && strings.Contains(line, "# "):
			flush(at)
			head = strings.TrimLeft(trimmed, "# ")
		case at-from > 2*maxPassage:
			flush(at)
		}
		at += len(line)
	}
	flush(len(text))
	return out
}

// around returns a passage, or the part of a long one around the first word.
func around(text string, words []string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxPassage {
		return text
	}
	at := len(text)
	low := strings.ToLower(text)
	for _, w := range words {
		if i := strings.Index(low, w); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(text) {
		at = 0 // only the heading contains them
	}
	from := max(0, at-maxPassage/3)
	out := strings.ToValidUTF8(text[from:min(len(text), from+maxPassage)], "")
	if from > 0 {
		out = "… " + out
	}
	if from+maxPassage < len(text) {
		out += " …"
	}
	return out
}
