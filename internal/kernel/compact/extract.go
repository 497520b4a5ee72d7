package compact

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Extract makes a summary without a model, from what the log proves and from the messages themselves: answers,
// notes on the way, and failures. The same Plan gives the same summary, and it passes Check.
func (p Plan) Extract() Summary {
	room := min(p.Room, maxAsked)
	for bytes := 4 * room; ; bytes = bytes * 4 / 5 {
		s := p.extract(bytes)
		if bytes < 64 || p.src.tokens(s.Text()) <= room {
			return s
		}
	}
}

// extract makes the summary with about so many bytes.
func (p Plan) extract(bytes int) Summary {
	h := p.gone
	old := p.before.record
	s := Summary{
		Decisions: bullets(distinct(slices.Concat(fit(items(old.Decisions), bytes/5), short(h.notes, bytes/6), short(h.answers, bytes*2/5)))),
		Files:     bullets(distinct(slices.Concat(fit(items(old.Files), bytes/12), p.changed()))),
		State:     bullets(p.progress(bytes)),
		Next:      bullets([]string{"Go on with what was asked last."}),
	}
	if p.thin(s) {
		// With hardly any room, at least the bare names and numbers.
		some := p.names[len(p.names)/2:]
		s.Decisions = bullets(append(items(s.Decisions), "Named in answers: "+strings.Join(some, ", ")))
	}
	for _, sec := range s.sections() {
		*sec.text = clean(*sec.text)
	}
	return s
}

// harvest is the content of the replaced messages, the oldest first.
type harvest struct {
	answers []string // the last text of the agent in each run
	notes   []string // its other texts
	errors  []string // of calls that failed, one line each
	last    string   // the last call
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
		if p.src.person(i) {
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
				h.last = v.Name + " " + string(v.Args)
			case llm.Result:
				if v.Error {
					h.errors = append(h.errors, v.Name+" failed: "+p.words.telling(v.Parts.Text()))
				}
			}
		}
	}
	flush()
	h.notes, h.errors = distinct(h.notes), distinct(h.errors)
	return h
}

// telling returns the most telling line of an output: the last one about an error, or the last one at all.
func (x *lexicon) telling(output string) string {
	last := ""
	for _, l := range slices.Backward(strings.Split(output, "\n")) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if x.trouble.MatchString(l) {
			return line(l, 300)
		}
		if last == "" {
			last = l
		}
	}
	return line(last, 300)
}

// progress says how far the work has come.
func (p Plan) progress(bytes int) []string {
	var out []string
	if t := p.src.Facts.Test; t != nil {
		out = append(out, line(t.say(), max(p.Room*4/5, 64)))
	}
	earlier := slices.DeleteFunc(items(p.before.record.State), func(l string) bool {
		return p.words.testWord.MatchString(l) || strings.HasPrefix(l, "Earlier: ")
	})
	for _, l := range fit(earlier, bytes/15) {
		out = append(out, "Earlier: "+l)
	}
	out = append(out, short(p.gone.errors, bytes/8)...)
	if last := p.gone.last; last != "" {
		out = append(out, "Last call before the part that stays: "+line(last, bytes/20))
	}
	if len(out) == 0 {
		out = append(out, "What is proven stands above, in what is known from the log.")
	}
	return out
}

// short returns one line of each text, with about so many bytes together. If that leaves too little of each,
// the oldest are left out.
func short(texts []string, bytes int) []string {
	sizes := make([]int, len(texts))
	for i, t := range texts {
		sizes[i] = len(t)
	}
	each := max(share(sizes, bytes), min(bytes, 240))
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = line(t, each)
	}
	return fit(out, bytes)
}

// fit returns the last lines that have at most so many bytes.
func fit(lines []string, bytes int) []string {
	return newest(lines, bytes, func(l string) int { return len(l) })
}

// items returns the lines of a list without their marks.
func items(text string) []string {
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
