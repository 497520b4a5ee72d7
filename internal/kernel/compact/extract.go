package compact

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Extract makes a summary without a model: from the facts of the log, and from the answers, intermediate remarks and
// failures in the messages. The same Plan gives the same summary, and the summary passes Check.
func (p Plan) Extract() Summary {
	room := min(p.Room, maxAsked)
	for bytes := 4 * room; ; bytes = bytes * 4 / 5 {
		s := p.extractWithin(bytes)
		if bytes < 64 || p.src.tokens(s.Text()) <= room {
			return s
		}
	}
}

// extractWithin makes the summary in about so many bytes.
func (p Plan) extractWithin(bytes int) Summary {
	h := p.harvested
	old := p.previous.record
	s := Summary{
		Decisions: bullets(distinct(slices.Concat(fitLines(listItems(old.Decisions), bytes/5), shorten(h.notes, bytes/6), shorten(h.answers, bytes*2/5)))),
		Files:     bullets(distinct(slices.Concat(fitLines(listItems(old.Files), bytes/12), p.requiredFiles()))),
		State:     bullets(p.progressLines(bytes)),
		Next:      bullets([]string{"Continue with the last request."}),
	}
	if p.isThin(s) {
		// If there is hardly any room, keep at least the bare names and numbers.
		some := p.literals[len(p.literals)/2:]
		s.Decisions = bullets(append(listItems(s.Decisions), "Named in answers: "+strings.Join(some, ", ")))
	}
	for _, sec := range s.sections() {
		*sec.text = cleanSection(*sec.text)
	}
	return s
}

// harvest is the content of the replaced messages, the oldest first.
type harvest struct {
	answers  []string // the last text of the agent in each run
	notes    []string // its other texts
	errors   []string // of calls that failed, one line each
	lastCall string   // the last call
}

func (p Plan) harvest() harvest {
	var h harvest
	answer := ""
	flush := func() {
		if answer != "" {
			h.answers = append(h.answers, answer)
		}
		answer = ""
	}
	for i, m := range p.src.Messages[:p.From] {
		if p.src.isPerson(i) {
			flush()
		}
		if text := m.Parts.Text(); m.Role == llm.Assistant && strings.TrimSpace(text) != "" {
			if answer != "" {
				h.notes = append(h.notes, answer)
			}
			answer = text
		}
		for _, part := range m.Parts {
			switch v := part.(type) {
			case llm.Call:
				h.lastCall = v.Name + " " + string(v.Args)
			case llm.Result:
				if v.Error {
					h.errors = append(h.errors, v.Name+" failed: "+p.patterns.errorLine(v.Parts.Text()))
				}
			}
		}
	}
	flush()
	h.notes, h.errors = distinct(h.notes), distinct(h.errors)
	return h
}

// errorLine returns the last line of an output that is about an error, or else its last line.
func (x *patterns) errorLine(output string) string {
	last := ""
	for _, l := range slices.Backward(strings.Split(output, "\n")) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if x.errorWord.MatchString(l) {
			return oneLine(l, 300)
		}
		if last == "" {
			last = l
		}
	}
	return oneLine(last, 300)
}

// progressLines returns lines about the progress of the work.
func (p Plan) progressLines(bytes int) []string {
	var out []string
	if t := p.src.Facts.Test; t != nil {
		out = append(out, oneLine(t.describe(), max(p.Room*4/5, 64)))
	}
	earlier := slices.DeleteFunc(listItems(p.previous.record.State), func(l string) bool {
		return p.patterns.testWord.MatchString(l) || strings.HasPrefix(l, "Earlier: ")
	})
	for _, l := range fitLines(earlier, bytes/15) {
		out = append(out, "Earlier: "+l)
	}
	out = append(out, shorten(p.harvested.errors, bytes/8)...)
	if last := p.harvested.lastCall; last != "" {
		out = append(out, "Last call before the part that stays: "+oneLine(last, bytes/20))
	}
	if len(out) == 0 {
		out = append(out, "See the facts from the log above.")
	}
	return out
}

// shorten returns each text as one line, in about so many bytes together. If that leaves too little of each, it leaves
// out the oldest.
func shorten(texts []string, bytes int) []string {
	sizes := make([]int, len(texts))
	for i, t := range texts {
		sizes[i] = len(t)
	}
	each := max(fairShare(sizes, bytes), min(bytes, 240))
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = oneLine(t, each)
	}
	return fitLines(out, bytes)
}

// fitLines returns as many of the last lines as fit into so many bytes.
func fitLines(lines []string, bytes int) []string {
	return lastFitting(lines, bytes, func(l string) int { return len(l) })
}

// listItems returns the items of a list without their marks.
func listItems(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "- ")); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func bullets(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("- " + l + "\n")
	}
	return b.String()
}
