package words

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Together sums up in one line what several calls would do in a workspace. It begins with the riskiest by name:
// sensitive places, paths beyond the sandbox or the workspace, and hosts. Then come how many files they would
// write and below which folder, and how many commands they would run. It has no hidden characters.
func Together(root string, list []event.Raised) string {
	s := sum{root: root}
	for _, w := range list {
		s.add(w)
	}
	named := slices.Concat(s.sensitive, few(s.leaving, "; ", "more"), few(s.beyond, ", ", "more outside the workspace"))
	for _, part := range []string{
		reached(s.hosts), files("write", s.written), files("read", s.read), counted("run", "command", s.commands),
		counted("keep", "command", s.kept),
	} {
		if part != "" {
			named = append(named, part)
		}
	}
	for _, name := range s.tools {
		n := s.calls[name]
		part := "call " + OneLine(name, 60)
		if n > 1 {
			part += fmt.Sprintf(" %d times", n)
		}
		named = append(named, part)
	}
	return strings.Join(named, ", ")
}

// mostNamed is how many things of one kind a sum names.
const mostNamed = 3

// few returns the first entries of a list and how many there are besides, as one text; empty for an empty list.
func few(list []string, between, more string) []string {
	if len(list) > mostNamed {
		list = append(slices.Clone(list[:mostNamed]), fmt.Sprintf("%d %s", len(list)-mostNamed, more))
	}
	if len(list) == 0 {
		return nil
	}
	return []string{strings.Join(list, between)}
}

// sum is the sum of the effects of several calls.
type sum struct {
	root                                                    string
	sensitive, leaving, beyond, hosts, written, read, tools []string
	commands, kept                                          int
	calls                                                   map[string]int // by tool, of calls that say nothing more
}

func (s *sum) add(w event.Raised) {
	plain := true // no other part says what it does
	runs := slices.ContainsFunc(w.Effects, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	for _, e := range w.Effects {
		known := true
		switch {
		case e.Sensitive != "":
			s.sensitive = once(s.sensitive, string(e.Kind)+" "+text.Visible(e.Path)+" (it "+text.Line(e.Sensitive)+")")
		case places.Beyond(s.root, e):
			s.beyond = once(s.beyond, string(e.Kind)+" "+text.Visible(e.Path)+" (outside the workspace)")
		case e.Kind == tool.Write:
			s.written = once(s.written, e.Path)
		case e.Kind == tool.Read:
			s.read = once(s.read, e.Path)
		case e.Kind == tool.Execute:
			s.commands++
		case e.Kind == tool.Network:
			s.hosts = once(s.hosts, host(e))
		case e.Kind == tool.Keep:
			s.kept++
		case e.Kind == tool.External && runs && e.Text != "":
			s.leaving = once(s.leaving, OneLine(e.Text, 100))
		default:
			known = false
		}
		plain = plain && !known
	}
	if plain {
		if s.calls == nil {
			s.calls = map[string]int{}
		}
		s.tools = once(s.tools, w.Tool)
		s.calls[w.Tool]++
	}
}

// host describes the host of an effect.
func host(e tool.Effect) string {
	if e.Text == "" || e.Text == "*" {
		return "any host"
	}
	return text.Visible(e.Text)
}

func once(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// files describes the changes of files.
func files(verb string, paths []string) string {
	switch len(paths) {
	case 0:
		return ""
	case 1:
		return verb + " " + text.Visible(paths[0])
	}
	common := filepath.Dir(paths[0])
	for _, path := range paths {
		for !text.Inside(common, path) && common != filepath.Dir(common) {
			common = filepath.Dir(common)
		}
	}
	return counted(verb, "file", len(paths)) + " below " + text.Visible(common)
}

func counted(verb, what string, n int) string {
	if n == 0 {
		return ""
	}
	return verb + " " + text.Count(n, what)
}

func reached(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	if i := slices.Index(hosts, "any host"); i > 0 {
		hosts[0], hosts[i] = hosts[i], hosts[0]
	}
	return counted("reach", "host", len(hosts)) + " (" + strings.Join(few(hosts, ", ", "more"), "") + ")"
}

// Asking returns the reason and the content of a question, for front ends that show it as one text: its own reason
// and preview or, for a set of calls in a workspace, those of all of them.
func Asking(root, reason, preview string, set []event.Raised) (why, shown string) {
	if len(set) == 0 {
		return reason, preview
	}
	return Together(root, set), Whole(set)
}

// Within begins the lines of a call's own text among several calls, so that none can imitate the heading of
// another call.
const Within = "  | "

// Whole shows each of several calls with everything it would do, like a question about one call. The last line
// is a heading for what all would do, if there is any. Only previews may contain hidden characters.
func Whole(list []event.Raised) string {
	var b strings.Builder
	more := false
	for i, w := range list {
		fmt.Fprintf(&b, "Call %d of %d", i+1, len(list))
		if w.ID != "" { // it can be answered alone
			b.WriteString(", " + text.Visible(w.ID))
		}
		b.WriteString(": " + text.Visible(w.Tool))
		if w.Reason != "" {
			b.WriteString(" (" + text.Line(w.Reason) + ")")
		}
		b.WriteByte('\n')
		for _, part := range whole(w) {
			for line := range strings.SplitSeq(strings.TrimRight(part, "\n"), "\n") {
				b.WriteString(Within + line + "\n")
			}
		}
		more = more || len(Effects(w.Effects, true)) > 0
	}
	if more {
		b.WriteString("All of them together:\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func whole(w event.Raised) (out []string) {
	if w.Preview != "" {
		out = append(out, w.Preview)
	} else {
		out = AskedLines(llm.Call{Name: w.Tool, Args: w.Args})
	}
	return append(out, Effects(w.Effects, w.Preview != "")...)
}
