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

	wishes string // what an answer says about the person's wishes, which was not requested
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

var errShape = errors.New("the answer has not the headings of a record")

// A line that may be a heading: marks, up to four words, and text behind a colon.
const headed = `^ {0,3}(#{1,6}[ \t]*)?(\d{1,2}[.)][ \t]*)?(\*{2}|__)?[ \t]*([A-Za-z]+(?: [A-Za-z]+){0,3})[ \t]*([:：]?)(\*{2}|__)?[ ` +
	`\t]*([:：]?)[ \t]*#*(.*)$`

// minSections is how many headings make a record.
const minSections = 3

// Patterns for a line that says that there is nothing, and for the end of a section or of the record.
const (
	nothing = `(?i)^[\s*_(\[-]*(none|nothing|n/?a|keine?|nichts|无|没有)?[\s*_)\].。-]*$`
	marks   = `(?mi)^([ \t]*)#|<(/?[ \t]*record)`
)

// Parse reads the record in a model's answer. The headings may come in any order, letter case and depth, bold
// or with only a colon, with text before them or a fence around everything; missing ones have no text. An
// answer with fewer than three of them is an error. What it says about goals and constraints is dropped, since
// the person's own words are kept.
func Parse(text string) (Summary, error) {
	lines := strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r", ""), "\n")
	headings := make([]heading, len(lines))
	form := regexp.MustCompile(headed)
	for i, l := range lines {
		headings[i] = readHeading(form, l)
	}
	for _, style := range []func(heading) bool{heading.hashed, heading.bold, heading.plain} {
		if s, ok := read(lines, headings, style); ok {
			return s, nil
		}
	}
	return Summary{}, errShape
}

// read takes headings of one style for headings, and everything else for text, which may contain other styles.
func read(lines []string, headings []heading, style func(heading) bool) (Summary, bool) {
	var s Summary
	var at *strings.Builder
	texts, fenced := map[*string]*strings.Builder{}, false
	for i, l := range lines {
		h := headings[i]
		to := s.find(h.name)
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
		if *to = clean(b.String()); *to != "" && to != &s.wishes {
			full++
		}
	}
	s.wishes = ""
	return s, len(texts) >= minSections && full >= 2
}

// heading is a parsed line.
type heading struct {
	name        string
	hash, thick bool
	colon       bool
	rest        string // behind the colon
}

func (h heading) hashed() bool { return h.hash && (h.rest == "" || h.colon) }
func (h heading) bold() bool   { return h.thick && (h.rest == "" || h.colon) }
func (h heading) plain() bool  { return h.colon || h.rest == "" }

func readHeading(form *regexp.Regexp, l string) heading {
	m := form.FindStringSubmatch(l)
	if m == nil {
		return heading{}
	}
	return heading{
		name: strings.ToLower(m[4]), hash: m[1] != "", thick: m[3] != "" && m[6] != "",
		colon: m[5] != "" || m[7] != "", rest: strings.TrimSpace(m[8]),
	}
}

// find returns the section of a name; nil if there is none.
func (s *Summary) find(name string) *string {
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

// clean returns the text of a section without anything that looks like a heading; empty if it says that there
// is nothing.
func clean(text string) string {
	text = strings.Trim(strings.ReplaceAll(text, "\r", ""), "\n")
	if strings.ContainsAny(text, "#<") { // otherwise the pattern need not be compiled
		text = regexp.MustCompile(marks).ReplaceAllStringFunc(text, func(m string) string {
			if i := strings.IndexByte(m, '<'); i >= 0 {
				return "‹" + m[1:]
			}
			return m[:len(m)-1] + `\#`
		})
	}
	text = strings.TrimRight(text, " \t\n")
	if regexp.MustCompile(nothing).MatchString(text) {
		return ""
	}
	return text
}
