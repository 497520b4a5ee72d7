package compact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/llm"
)

// Text that people paste into their messages, such as logs, files and long code, is not their own words, in
// whatever language. It is recognised by its form alone:
//
//   - a fenced block,
//   - a stretch without the end of a sentence that is too long for one breath,
//   - a run of lines or sentences that don't read like words to somebody: with few letters, or without ends of
//     sentences and list marks, or with the same form again and again except for numbers.
//
// Shorter or doubtful text counts as the person's words.
const (
	leastPaste  = 600 // bytes
	leastBreath = 800 // characters
	leastRun    = 12  // lines or sentences
	mostAlike   = 3   // of one form that people write
	minPaste    = 120 // tokens below which a paste is not cut, but becomes a note
)

// unpasted returns a text with at most so many tokens of the ends of each paste, and a note for the rest; with
// few, only the note.
func (s Source) unpasted(said string, each int) string {
	var b strings.Builder
	at := 0
	for _, p := range pastes(said) {
		paste := said[p.from:p.to]
		if each < minPaste {
			paste = s.note(missing(paste))
		}
		b.WriteString(said[at:p.from] + s.clip(paste, max(each, minPaste)))
		at = p.to
	}
	return b.String() + said[at:]
}

// withoutPastes returns a message with at most so much of each paste in it.
func (s Source) withoutPastes(m llm.Message, most int) llm.Message {
	m.Parts = each(m.Parts, func(part llm.Part) llm.Part {
		if t, ok := part.(llm.Text); ok {
			part = llm.Text{Text: s.unpasted(t.Text, most)}
		}
		return part
	})
	return m
}

// span is a part of a text.
type span struct{ from, to int }

// pastes returns the pasted parts of a text, in order.
func pastes(text string) []span {
	var out []span
	run, n := span{}, 0
	ended := func() {
		if n >= leastRun && run.to-run.from >= leastPaste {
			out = append(out, run)
		}
		n = 0
	}
	units := unitsOf(text)
	for i, u := range units {
		switch {
		case u.fenced || utf8.RuneCountInString(u.text) >= leastBreath:
			ended()
			if len(u.text) >= leastPaste {
				out = append(out, u.span)
			}
		case u.written(i == 0 || i == len(units)-1 || u.paragraph && units[i-1].paragraph):
			ended()
		default:
			if n == 0 {
				run.from = u.from
			}
			run.to = u.to
			n++
		}
	}
	ended()
	return out
}

// unit is a sentence, a line without the end of one, or a fenced block.
type unit struct {
	span
	text      string
	fenced    bool
	alike     int  // how many units have its form
	paragraph bool // it ends a paragraph
}

// unitsOf splits a text into units.
func unitsOf(text string) []unit {
	var out []unit
	at, fence := 0, -1
	for l := range strings.SplitAfterSeq(text, "\n") {
		from, mark := at, strings.HasPrefix(strings.TrimSpace(l), "```")
		at += len(l)
		switch {
		case mark && fence >= 0:
			to := from + len(strings.TrimRight(l, "\r\n"))
			out, fence = append(out, unit{span: span{fence, to}, text: text[fence:to], fenced: true}), -1
		case fence >= 0:
		case mark && strings.Contains(text[at:], "```"):
			fence = from
		case strings.TrimSpace(l) == "" && len(out) > 0:
			out[len(out)-1].paragraph = true
		default:
			for _, s := range sentences(l) {
				from += strings.Index(text[from:], s)
				out = append(out, unit{span: span{from, from + len(s)}, text: s})
				from += len(s)
			}
		}
	}
	if len(out) > 0 {
		out[len(out)-1].paragraph = true
	}
	forms := map[string]int{}
	for _, u := range out {
		forms[u.form()]++
	}
	for i, u := range out {
		out[i].alike = forms[u.form()]
	}
	return out
}

// form is the text without its numbers.
func (u unit) form() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, u.text)
}

// written reports whether the unit reads like words to somebody. Apart means that it is a paragraph, or that
// the text begins or ends with it.
func (u unit) written(apart bool) bool {
	letters, all := 0, 0
	for _, r := range u.text {
		all++
		if unicode.IsLetter(r) || unicode.IsMark(r) || r == ' ' {
			letters++
		}
	}
	return 10*letters >= 6*all && u.alike <= mostAlike && (apart || ends(u.text) || listItem(u.text))
}

func ends(line string) bool {
	for _, mark := range []string{".", "!", "?", "。", "！", "？", "؟", "।", "…"} {
		if strings.HasSuffix(line, mark) {
			return true
		}
	}
	return false
}

func listItem(line string) bool {
	mark, rest, _ := strings.Cut(line, " ")
	number := strings.TrimRight(mark, ".)")
	return rest != "" && (mark == "-" || mark == "*" || mark == "•" || number != mark && strings.Trim(number, "0123456789") == "")
}
