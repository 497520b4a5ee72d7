package compact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/llm"
)

// Text that people paste into their messages, such as logs, files and long code, is not their own words. It is known
// by its form alone, in every language:
//
//   - a fenced block,
//   - a long text in which no sentence ends,
//   - a run of lines or sentences that do not read like a message: they have few letters, or neither ends of sentences
//     nor list marks, or they differ only in numbers.
//
// Short or doubtful text counts as the person's words.
const (
	leastPaste  = 600 // bytes
	leastBreath = 800 // characters
	leastRun    = 12  // lines or sentences
	mostAlike   = 3   // units of one form that still count as typed
	minPaste    = 120 // tokens; if a paste may keep fewer, only a note remains
)

// shortenPastes cuts each paste in a text to its head and tail. Each is the most tokens for one; if it is below minPaste,
// only a note about the size remains.
func (s Source) shortenPastes(said string, each int) string {
	var b strings.Builder
	at := 0
	for _, p := range findPastes(said) {
		paste := said[p.from:p.to]
		if each < minPaste {
			paste = s.gapNote(missingBytes(paste))
		}
		b.WriteString(said[at:p.from] + s.clip(paste, max(each, minPaste)))
		at = p.to
	}
	return b.String() + said[at:]
}

// withoutPastes returns a message with each paste cut; most is the most tokens for one.
func (s Source) withoutPastes(m llm.Message, most int) llm.Message {
	m.Parts = mapParts(m.Parts, func(part llm.Part) llm.Part {
		if t, ok := part.(llm.Text); ok {
			part = llm.Text{Text: s.shortenPastes(t.Text, most)}
		}
		return part
	})
	return m
}

// span is a part of a text.
type span struct{ from, to int }

// findPastes returns the pasted parts of a text, in order.
func findPastes(text string) []span {
	var out []span
	run, n := span{}, 0
	ended := func() {
		if n >= leastRun && run.to-run.from >= leastPaste {
			out = append(out, run)
		}
		n = 0
	}
	units := splitUnits(text)
	for i, u := range units {
		switch {
		case u.fenced || utf8.RuneCountInString(u.text) >= leastBreath:
			ended()
			if len(u.text) >= leastPaste {
				out = append(out, u.span)
			}
		case u.isProse(i == 0 || i == len(units)-1 || u.paragraph && units[i-1].paragraph):
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
	sameForm  int  // how many units of the text have the same form, itself included
	paragraph bool // it ends a paragraph
}

// splitUnits splits a text into units.
func splitUnits(text string) []unit {
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
			for _, s := range splitSentences(l) {
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
		out[i].sameForm = forms[u.form()]
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

// isProse reports whether the unit reads like a message. Apart means that it is a paragraph, or that the text begins or
// ends with it.
func (u unit) isProse(apart bool) bool {
	letters, all := 0, 0
	for _, r := range u.text {
		all++
		if unicode.IsLetter(r) || unicode.IsMark(r) || r == ' ' {
			letters++
		}
	}
	return 10*letters >= 6*all && u.sameForm <= mostAlike && (apart || endsSentence(u.text) || isListItem(u.text))
}

func endsSentence(line string) bool {
	for _, mark := range []string{".", "!", "?", "。", "！", "？", "؟", "।", "…"} {
		if strings.HasSuffix(line, mark) {
			return true
		}
	}
	return false
}

func isListItem(line string) bool {
	mark, rest, _ := strings.Cut(line, " ")
	number := strings.TrimRight(mark, ".)")
	return rest != "" && (mark == "-" || mark == "*" || mark == "•" || number != mark && strings.Trim(number, "0123456789") == "")
}
