package words

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Together sums up in a line what calls would do: how many files they would write and below which
// folder, how many commands they would run, and whom they would reach. What is sensitive is named
// whole. It holds no hidden characters.
func Together(list []event.Raised) string {
	var s sum
	for _, w := range list {
		s.add(w)
	}
	named := s.sensitive
	for _, part := range []string{
		files("write", s.written), files("read", s.read), counted("run", "command", s.commands), reached(s.hosts),
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

// sum is what several calls would do.
type sum struct {
	sensitive, written, read, hosts, tools []string
	commands, kept                         int
	calls                                  map[string]int // by tool, of those that say nothing more
}

func (s *sum) add(w event.Raised) {
	plain := true // nothing below says what it does
	for _, e := range w.Effects {
		known := true
		switch {
		case e.Sensitive != "":
			s.sensitive = once(s.sensitive, string(e.Kind)+" "+text.Visible(e.Path)+" (it "+text.Line(e.Sensitive)+")")
		case e.Kind == tool.Write:
			s.written = once(s.written, e.Path)
		case e.Kind == tool.Read:
			s.read = once(s.read, e.Path)
		case e.Kind == tool.Execute:
			s.commands++
		case e.Kind == tool.Network:
			s.hosts = once(s.hosts, cmp.Or(e.Text, "any host"))
		case e.Kind == tool.Keep:
			s.kept++
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

func once(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// files says what happens to files.
func files(verb string, paths []string) string {
	switch len(paths) {
	case 0:
		return ""
	case 1:
		return verb + " " + text.Visible(paths[0])
	}
	common := filepath.Dir(paths[0])
	for _, path := range paths {
		for !tool.Inside(common, path) && common != filepath.Dir(common) {
			common = filepath.Dir(common)
		}
	}
	return fmt.Sprintf("%s %d files below %s", verb, len(paths), text.Visible(common))
}

func counted(verb, what string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d %s", verb, n, text.Plural(n, what, what+"s"))
}

// mostHosts is how many hosts a sum names.
const mostHosts = 3

func reached(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	out := counted("reach", "host", len(hosts))
	if len(hosts) <= mostHosts {
		out += " (" + text.Visible(strings.Join(hosts, ", ")) + ")"
	}
	return out
}

// Whole shows each of several calls, with all that it would do, as a person sees it who is asked about
// one alone. It has no hidden characters but those of the previews.
func Whole(list []event.Raised) string {
	var b strings.Builder
	for i, w := range list {
		fmt.Fprintf(&b, "Call %d of %d: %s", i+1, len(list), text.Visible(w.Tool))
		if w.Reason != "" {
			b.WriteString(" (" + text.Line(w.Reason) + ")")
		}
		b.WriteByte('\n')
		for _, line := range whole(w) {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func whole(w event.Raised) (out []string) {
	if w.Preview != "" {
		out = append(out, w.Preview)
	} else {
		command, others := Asked(llm.Call{Name: w.Tool, Args: w.Args})
		if command != "" {
			out = append(out, "$ "+command)
		}
		if others != "" {
			out = append(out, others)
		}
	}
	return append(out, Effects(w.Effects, w.Preview != "")...)
}
