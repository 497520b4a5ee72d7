package compact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Kind is a kind of fault in a summary.
type Kind string

// Kinds.
const (
	Shape        Kind = "shape"        // it lacks the headings
	File         Kind = "file"         // it does not mention a changed file
	Invented     Kind = "invented"     // it mentions a file that occurs nowhere
	Tests        Kind = "tests"        // it does not state the outcome of the last tests
	Contradicted Kind = "contradicted" // it states the wrong outcome
	Empty        Kind = "empty"        // a section is empty although there is something to say
	Thin         Kind = "thin"         // it keeps hardly anything of the answers
	Long         Kind = "long"         // it is too long
)

// Missing is one thing that a summary lacks or states wrongly.
type Missing struct {
	Kind Kind
	What string // its subject: a file, a section
}

const (
	maxNamed    = 100 // changed files that a record must mention
	maxLiterals = 24  // names and numbers of the last answers; a record must have half of them
	minLiterals = 8   // with fewer, the record is not checked for them
)

// Read parses a model's answer and checks it. If nothing is missing, the summary can be used.
func (p Plan) Read(answer string) (Summary, []Missing) {
	s, err := Parse(answer)
	if err != nil {
		return s, []Missing{{Kind: Shape}}
	}
	return s, p.Check(s)
}

// Check compares a summary with the facts of the log. It accepts claims that the log can neither prove nor disprove,
// so wrong reasons and forgotten details can get through.
func (p Plan) Check(s Summary) []Missing {
	out := p.checkFiles(s)
	out = append(out, p.checkTests(s)...)
	out = append(out, p.checkEmpty(s)...)
	if p.isThin(s) {
		out = append(out, Missing{Thin, strings.Join(p.literals, ", ")})
	}
	if n := p.src.tokens(s.Text()); n > p.Room {
		out = append(out, Missing{Long, fmt.Sprintf("%d tokens of at most %d", n, p.Room)})
	}
	return out
}

// requiredFiles returns the changed files that a record must mention: the last ones, as many as fit. The list of facts
// above the record counts the others.
func (p Plan) requiredFiles() []string {
	all := p.src.Facts.Changed
	return lastFitting(all[max(0, len(all)-maxNamed):], p.Room/4, p.src.tokens)
}

func (p Plan) checkFiles(s Summary) (out []Missing) {
	text, tail := s.Text(), ""
	for _, f := range p.requiredFiles() {
		if namesFile(text, f, p.src.Facts.Changed) {
			continue
		}
		if tail == "" {
			tail = allText(p.src.Messages[p.From:]) + " "
		}
		if !namesFile(tail, f, p.src.Facts.Changed) {
			out = append(out, Missing{File, f})
		}
	}
	known := ""
	for _, f := range p.patterns.listedPaths(s.Files) {
		if known == "" {
			known = p.knownText()
		}
		if !occurs(known, f) {
			out = append(out, Missing{Invented, f})
		}
	}
	return out
}

// occurs reports whether a path can come from a text: the text contains its last two names together, or all of its
// names somewhere, for example because a command entered the folder first.
func occurs(known, path string) bool {
	all := strings.Split(path, "/")
	if n := len(all); n > 2 && strings.Contains(known, all[n-2]+"/"+all[n-1]) {
		return true
	}
	return !slices.ContainsFunc(all, func(name string) bool { return !strings.Contains(known, name) })
}

// listedPaths returns the paths in a list of files: a file name at the beginning of a line, or one with a folder.
func (x *patterns) listedPaths(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		l = strings.TrimLeft(l, " \t-*`\"'0123456789.")
		for _, at := range x.named.FindAllStringIndex(l, -1) {
			f := withSlashes(l[at[0]:at[1]])
			if address := strings.Contains(l[:at[0]], "://") || strings.HasPrefix(f, "//"); !address && (at[0] == 0 || strings.Contains(f, "/")) {
				out = append(out, strings.Trim(f, "./"))
			}
		}
	}
	return distinct(out)
}

// knownText returns all text that a summary can take names from.
func (p Plan) knownText() string {
	f, c := p.src.Facts, p.src.Carry
	parts := slices.Concat(f.Changed, []string{c.Goal, allText(p.src.Messages)})
	for _, r := range f.Failed {
		parts = append(parts, r.Command, r.Detail)
	}
	for _, item := range c.Todo {
		parts = append(parts, item.Text)
	}
	for _, l := range c.Lasting {
		parts = append(parts, l.Name, l.Text)
	}
	return withSlashes(strings.Join(parts, "\n"))
}

// allText returns the text of messages, calls and results.
func allText(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		writeParts(&b, m.Parts)
	}
	return b.String()
}

func writeParts(b *strings.Builder, parts llm.Parts) {
	for _, part := range parts {
		switch v := part.(type) {
		case llm.Text:
			b.WriteString(v.Text + "\n")
		case llm.Call:
			b.WriteString(v.Name + " " + string(v.Args) + "\n")
		case llm.Result:
			writeParts(b, v.Parts)
		}
	}
}

func (p Plan) checkEmpty(s Summary) (out []Missing) {
	f := p.src.Facts
	has := map[string]bool{
		"Files":         len(p.requiredFiles()) > 0,
		"State of work": f.Test != nil || len(f.Failed) > 0 || len(f.Changed) > 0,
	}
	for _, sec := range s.sections() {
		if *sec.text == "" && has[sec.name] {
			out = append(out, Missing{Empty, sec.name})
		}
	}
	return out
}

// isThin reports whether a summary has fewer than half of the numbers, names and addresses in the last answers.
func (p Plan) isThin(s Summary) bool {
	text, n := s.Text(), 0
	for _, l := range p.literals {
		if strings.Contains(text, l) {
			n++
		}
	}
	return len(p.literals) >= minLiterals && 2*n < len(p.literals)
}

// testOutcome finds out whether a text says that tests passed or failed. The first such word decides. Said is false
// if there is none; mixed means that the opposite follows.
func (x *patterns) testOutcome(text string) (passed, said, mixed bool) {
	text = x.noPass.ReplaceAllString(x.noFail.ReplaceAllString(text, " passed "), " failed ")
	good, bad := x.pass.FindStringIndex(text), x.fail.FindStringIndex(text)
	switch {
	case good == nil && bad == nil:
		return false, false, false
	case good == nil || bad == nil:
		return bad == nil, true, false
	}
	return good[0] < bad[0], true, true
}

// checkTests compares the stated outcome of the last tests with the log. The requested line counts; without it, the
// last unambiguous sentence about tests.
func (p Plan) checkTests(s Summary) []Missing {
	t := p.src.Facts.Test
	if t == nil {
		return nil
	}
	what := t.describe()
	if m := p.patterns.testLine.FindStringSubmatch(s.State); m != nil {
		if passed, said, _ := p.patterns.testOutcome(m[1]); said && passed != t.Passed {
			return []Missing{{Contradicted, what}}
		} else if said {
			return nil
		}
	}
	found := false
	for _, sentence := range slices.Backward(splitSentences(s.State)) {
		passed, said, mixed := p.patterns.testOutcome(sentence)
		found = found || said && p.patterns.testWord.MatchString(sentence)
		if said && !mixed && p.patterns.testWord.MatchString(sentence) {
			if passed != t.Passed {
				return []Missing{{Contradicted, what}}
			}
			return nil
		}
	}
	if !found {
		return []Missing{{Tests, what}}
	}
	return nil
}

// describe returns the line about a test run that the model is asked to write.
func (t *Test) describe() string {
	how := "failed"
	if t.Passed {
		how = "passed"
	}
	return "Tests: " + how + ": " + t.Run.describe()
}

// describe returns a run in one line.
func (r Run) describe() string {
	text := oneLine(r.Command, 200)
	if r.Detail != "" {
		text += ": " + oneLine(strings.ReplaceAll(r.Detail, "\n", " | "), mostDetail)
	}
	return text
}

const mostDetail = 1200 // bytes of a run's output
