package compact

import (
	"errors"
	"regexp"
	"strings"
)

// Summary is the record of a conversation, one text for each heading, empty if there is nothing to say.
type Summary struct {
	Decisions string
	Files     string
	State     string
	Questions string
	Next      string

	wishes string // what the person wants according to the model, which was not asked for it
}

// section is a heading and the text below it.
type section struct {
	name string
	text *string
}

func (s *Summary) sections() []section {
	return []section{
		{"Decisions", &s.Decisions},
		{"Files", &s.Files},
		{"State of work", &s.State},
		{"Open questions", &s.Questions},
		{"Next", &s.Next},
	}
}

// Text writes the summary in the form that [Parse] reads.
func (s Summary) Text() string {
	var b strings.Builder
	for i, sec := range s.sections() {
		if i > 0 {
			b.WriteString("\n")
		}
		text := *sec.text
		if text == "" {
			text = "none"
		}
		b.WriteString("## " + sec.name + "\n" + text + "\n")
	}
	return b.String()
}

var errShape = errors.New("the answer lacks the headings of a record")

// A line that may be a heading: marks, up to four words, and text after a colon.
const headingPattern = `^ {0,3}(#{1,6}[ \t]*)?(\d{1,2}[.)][ \t]*)?(\*{2}|__)?[ \t]*([A-Za-z]+(?: [A-Za-z]+){0,3})[ \t]*([:：]?)(\*{2}|__)?[ ` +
	`\t]*([:：]?)[ \t]*#*(.*)$`

// minSections is how many headings make a record.
const minSections = 3

// Patterns for a text that means "nothing", and for the end of a section or of the record.
const (
	nothingPattern = `(?i)^[\s*_(\[-]*(none|nothing|n/?a|keine?|nichts|无|没有)?[\s*_)\].。-]*$`
	markPattern    = `(?mi)^([ \t]*)#|<(/?[ \t]*record)`
)

// Parse reads the record in a model's answer. The headings may have any order, letter case and depth. They may be
// bold or end in a colon, text may precede them, and a code fence may enclose it all. A missing heading leaves its
// text empty; fewer than three headings are an error. Parse drops sections about goals and constraints, because the
// person's own words are kept.
func Parse(text string) (Summary, error) {
	lines := strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r", ""), "\n")
	headings := make([]heading, len(lines))
	form := regexp.MustCompile(headingPattern)
	for i, l := range lines {
		headings[i] = readHeading(form, l)
	}
	for _, style := range []func(heading) bool{heading.hashed, heading.bold, heading.plain} {
		if s, ok := readStyled(lines, headings, style); ok {
			return s, nil
		}
	}
	return Summary{}, errShape
}

// readStyled treats only lines of one style as headings, and all others as text.
func readStyled(lines []string, headings []heading, style func(heading) bool) (Summary, bool) {
	var s Summary
	var at *strings.Builder
	texts, fenced := map[*string]*strings.Builder{}, false
	for i, l := range lines {
		h := headings[i]
		to := s.sectionText(h.name)
		switch {
		case to != nil && style(h):
			if at = texts[to]; at == nil {
				at = new(strings.Builder)
				texts[to] = at
			}
			at.WriteString("\n" + h.rest + "\n")
		case at == nil:
			fenced = fenced || strings.HasPrefix(strings.TrimSpace(l), "```")
		case fenced && strings.TrimSpace(l) == "```":
			fenced = false
		default:
			at.WriteString(l + "\n")
		}
	}
	full := 0
	for to, b := range texts {
		if *to = cleanSection(b.String()); *to != "" && to != &s.wishes {
			full++
		}
	}
	s.wishes = ""
	return s, len(texts) >= minSections && full >= 2
}

// heading is a line that may be a heading.
type heading struct {
	name          string
	hashes, stars bool
	colon         bool
	rest          string // after the colon
}

func (h heading) hashed() bool { return h.hashes && (h.rest == "" || h.colon) }
func (h heading) bold() bool   { return h.stars && (h.rest == "" || h.colon) }
func (h heading) plain() bool  { return h.colon || h.rest == "" }

func readHeading(form *regexp.Regexp, l string) heading {
	m := form.FindStringSubmatch(l)
	if m == nil {
		return heading{}
	}
	return heading{
		name: strings.ToLower(m[4]), hashes: m[1] != "", stars: m[3] != "" && m[6] != "",
		colon: m[5] != "" || m[7] != "", rest: strings.TrimSpace(m[8]),
	}
}

// sectionText returns the text that a heading of this name introduces; nil if it is not one of ours.
func (s *Summary) sectionText(name string) *string {
	switch name {
	case "goal", "goals", "constraints", "constraint":
		return &s.wishes
	case "decisions", "key decisions":
		return &s.Decisions
	case "files", "files changed", "changed files":
		return &s.Files
	case "state of work", "state", "current state":
		return &s.State
	case "open questions", "questions":
		return &s.Questions
	case "next", "next steps":
		return &s.Next
	}
	return nil
}

// cleanSection returns the text of a section, in which it escapes whatever looks like a heading or the end of the record.
// A text that means "nothing" becomes empty.
func cleanSection(text string) string {
	text = strings.Trim(strings.ReplaceAll(text, "\r", ""), "\n")
	if strings.ContainsAny(text, "#<") { // otherwise the pattern need not be compiled
		text = regexp.MustCompile(markPattern).ReplaceAllStringFunc(text, func(m string) string {
			if i := strings.IndexByte(m, '<'); i >= 0 {
				return "‹" + m[1:]
			}
			return m[:len(m)-1] + `\#`
		})
	}
	text = strings.TrimRight(text, " \t\n")
	if regexp.MustCompile(nothingPattern).MatchString(text) {
		return ""
	}
	return text
}
