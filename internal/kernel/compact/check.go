package compact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Kind is what is wrong with a summary.
type Kind string

// Kinds.
const (
	Shape        Kind = "shape"        // it lacks the headings
	File         Kind = "file"         // a changed file is not mentioned
	Invented     Kind = "invented"     // a file is mentioned that occurs nowhere
	Tests        Kind = "tests"        // the outcome of the last tests is not stated
	Contradicted Kind = "contradicted" // the outcome is stated wrongly
	Empty        Kind = "empty"        // a section is empty although there is something to say
	Thin         Kind = "thin"         // hardly anything of the answers is in it
	Long         Kind = "long"         // it is too long
)

// Missing is one thing that a summary lacks or states wrongly.
type Missing struct {
	Kind Kind
	What string // its subject: a file, a section
}

const (
	maxNamed    = 100 // changed files that a record must mention
	maxLiterals = 24  // names and numbers of the last answers, some of which a record must have
	minLiterals = 8   // with fewer, it is unclear what is missing
)

// Read parses a model's answer and checks it. If nothing is missing, the summary can be used.
func (p Plan) Read(answer string) (Summary, []Missing) {
	s, err := Parse(answer)
	if err != nil {
		return s, []Missing{{Kind: Shape}}
	}
	return s, p.Check(s)
}

// Check compares a summary with what the log proves. It accepts what it can't prove, so wrong reasons and
// forgotten details can get through.
func (p Plan) Check(s Summary) []Missing {
	out := p.checkFiles(s)
	out = append(out, p.checkTests(s)...)
	out = append(out, p.checkEmpty(s)...)
	if p.thin(s) {
		out = append(out, Missing{Thin, strings.Join(p.names, ", ")})
	}
	if n := p.src.tokens(s.Text()); n > p.Room {
		out = append(out, Missing{Long, fmt.Sprintf("%d tokens of at most %d", n, p.Room)})
	}
	return out
}

// changed returns the files that a record must mention: the last ones, as many as there is room for. The facts
// of the log count the others.
func (p Plan) changed() []string {
	all := p.src.Facts.Changed
	return newest(all[max(0, len(all)-maxNamed):], p.Room/4, p.src.tokens)
}

func (p Plan) checkFiles(s Summary) (out []Missing) {
	text, tail := s.Text(), ""
	for _, f := range p.changed() {
		if names(text, f, p.src.Facts.Changed) {
			continue
		}
		if tail == "" {
			tail = say(p.src.Messages[p.From:]) + " "
		}
		if !names(tail, f, p.src.Facts.Changed) {
			out = append(out, Missing{File, f})
		}
	}
	known := ""
	for _, f := range p.words.paths(s.Files) {
		if known == "" {
			known = p.known()
		}
		if !occurs(known, f) {
			out = append(out, Missing{Invented, f})
		}
	}
	return out
}

// occurs reports whether a path can come from a text: its last two names are adjacent in it, or all of its
// names occur somewhere, for example because a folder was entered first.
func occurs(known, path string) bool {
	all := strings.Split(path, "/")
	if n := len(all); n > 2 && strings.Contains(known, all[n-2]+"/"+all[n-1]) {
		return true
	}
	return !slices.ContainsFunc(all, func(name string) bool { return !strings.Contains(known, name) })
}

// paths returns what looks like a file in a list of files: the beginning of a line, or something with a folder.
func (x *lexicon) paths(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		l = strings.TrimLeft(l, " \t-*`\"'0123456789.")
		for _, at := range x.named.FindAllStringIndex(l, -1) {
			f := slashed(l[at[0]:at[1]])
			if address := strings.Contains(l[:at[0]], "://") || strings.HasPrefix(f, "//"); !address && (at[0] == 0 || strings.Contains(f, "/")) {
				out = append(out, strings.Trim(f, "./"))
			}
		}
	}
	return distinct(out)
}

// known returns all text that a summary can have names from.
func (p Plan) known() string {
	f, c := p.src.Facts, p.src.Carry
	parts := slices.Concat(f.Changed, c.Pending, []string{c.Goal, say(p.src.Messages)})
	for _, r := range f.Failed {
		parts = append(parts, r.Command, r.Detail)
	}
	for _, item := range c.Todo {
		parts = append(parts, item.Text)
	}
	for _, l := range c.Lasting {
		parts = append(parts, l.Name, l.Text)
	}
	return slashed(strings.Join(parts, "\n"))
}

// say returns everything said, called and returned in messages.
func say(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		sayParts(&b, m.Parts)
	}
	return b.String()
}

func sayParts(b *strings.Builder, parts llm.Parts) {
	for _, part := range parts {
		switch v := part.(type) {
		case llm.Text:
			b.WriteString(v.Text + "\n")
		case llm.Call:
			b.WriteString(v.Name + " " + string(v.Args) + "\n")
		case llm.Result:
			sayParts(b, v.Parts)
		}
	}
}

func (p Plan) checkEmpty(s Summary) (out []Missing) {
	f := p.src.Facts
	has := map[string]bool{
		"Files":         len(p.changed()) > 0,
		"State of work": f.Test != nil || len(f.Failed) > 0 || len(f.Changed) > 0,
	}
	for _, sec := range s.sections() {
		if *sec.text == "" && has[sec.name] {
			out = append(out, Missing{Empty, sec.name})
		}
	}
	return out
}

// thin reports whether a summary has less than half of the numbers, names and addresses in the last answers.
func (p Plan) thin(s Summary) bool {
	text, n := s.Text(), 0
	for _, l := range p.names {
		if strings.Contains(text, l) {
			n++
		}
	}
	return len(p.names) >= minLiterals && 2*n < len(p.names)
}

// outcome returns what a text says about tests: passed, failed, or neither. The first word decides; mixed means
// that the other one follows.
func (x *lexicon) outcome(text string) (passed, said, mixed bool) {
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

// checkTests compares what is said about the last tests. The requested line counts; without it, the last plain
// sentence about tests.
func (p Plan) checkTests(s Summary) []Missing {
	t := p.src.Facts.Test
	if t == nil {
		return nil
	}
	what := t.say()
	if m := p.words.testLine.FindStringSubmatch(s.State); m != nil {
		if passed, said, _ := p.words.outcome(m[1]); said && passed != t.Passed {
			return []Missing{{Contradicted, what}}
		} else if said {
			return nil
		}
	}
	found := false
	for _, sentence := range slices.Backward(sentences(s.State)) {
		passed, said, mixed := p.words.outcome(sentence)
		found = found || said && p.words.testWord.MatchString(sentence)
		if said && !mixed && p.words.testWord.MatchString(sentence) {
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

// say describes the run of tests in the form that is requested from a model.
func (t *Test) say() string {
	how := "failed"
	if t.Passed {
		how = "passed"
	}
	return "Tests: " + how + ": " + t.Run.say()
}

// say describes a run in one line.
func (r Run) say() string {
	text := line(r.Command, 200)
	if r.Detail != "" {
		text += ": " + line(strings.ReplaceAll(r.Detail, "\n", " | "), mostDetail)
	}
	return text
}

const mostDetail = 1200 // bytes of a run's output
