// Package shell predicts the effects of a bash command line before it runs.
//
// It is a proof and not a filter: only a closed set of grammar, of programs
// and of their options is understood, and everything else counts as able to do
// anything. It looks at no file, no clock and no environment. The code that runs
// the command must therefore guarantee the assumptions of the proof:
//
//   - bash itself, started without start-up files, without functions and
//     aliases from outside, and with CDPATH, BASH_ENV and PS4 unset;
//   - an environment without secrets, as programs may print it;
//   - a PATH of system folders that the user can't write;
//   - no terminal, so that nothing starts a pager or an editor;
//   - where [Plan.Git] is set, what that field says.
//
// Bash evaluates text in many places that don't look like commands. The file
// evaluated.go lists them and states the law for them.
package shell

import (
	"path/filepath"

	"github.com/inspan/inspan/tool"
)

// Class is how much a command may do.
type Class string

// The classes, from the least to the most.
const (
	Read      Class = "read"      // reads files and prints; no write, no network, no process besides proven readers
	Workspace Class = "workspace" // also writes, only to paths inside the root that are known
	Full      Class = "full"      // anything
)

// higher returns the class that allows more.
func higher(a, b Class) Class {
	if a == Full || b == Full {
		return Full
	}
	if a == Workspace || b == Workspace {
		return Workspace
	}
	return Read
}

// Place is where a command would run. All paths are absolute and clean; with
// an empty Root or Cwd nothing is inside the workspace, and with an empty Home
// nobody knows where ~ leads.
type Place struct {
	Root, Cwd, Home string
	Also            []string // folders that are as Root is
	// Held says that walls hold what is proven to read, so that git may meet any repository
	// below Root: whatever it names reads too.
	Held bool
}

// Plan is what is known of a command.
type Plan struct {
	// Class is the highest of the segments. Without any segment, as for an
	// empty text, it is Read.
	Class Class
	// Segments are the simple commands in the order of the text, with
	// wrappers and substitutions unfolded. Text that is not proven appears as
	// a Full segment too, and commands inside of it are listed all the same,
	// so that rules which deny can see them.
	Segments []Segment
	// Effects are those of all segments, each once. Paths are lexical: links
	// are not followed. Reading "/" stands for a path that can't be known.
	Effects []tool.Effect
	// Git says that the proof of some segment holds only if the configuration
	// of the repository at the root names no program, hooks are off, and git
	// runs with GIT_OPTIONAL_LOCKS=0. Otherwise take the plan as Full.
	Git bool
}

// Segment is one simple command with its resolved words.
type Segment struct {
	Text  string   // as written
	Argv  []string // resolved; nil if a word can't be known
	Class Class
	Why   string // for people: what makes it this class; empty for Read
	Depth int    // how deep in wrappers and substitutions
	// Effects of this segment alone, without those of inner ones.
	Effects []tool.Effect
	// Prefix is the narrowest prefix of Argv that a rule may name to allow
	// this segment. Nil means that no such rule is safe and none may match:
	// the program runs whatever it is told, or the redirects or variables of
	// this segment do more than its words say.
	Prefix []string
	// Exact says that Argv is all there is to the segment, so that a rule may
	// name all of it.
	Exact bool
	// Redirected says that redirects which are proven to write in the workspace are the
	// only reason why no rule may name it. Without them Apart would be its Prefix.
	Redirected bool
	Apart      []string
}

// Calls lists the effects in the order of the segments, each segment's
// Execute before what else it does; see [tool.Effect].
func (p Plan) Calls() []tool.Effect {
	classes := map[Class]tool.Class{Read: tool.ProvenRead, Workspace: tool.ProvenInside}
	var out []tool.Effect
	for _, s := range p.Segments {
		words := &tool.Words{Argv: s.Argv, Prefix: s.Prefix, Exact: s.Exact}
		if s.Redirected {
			words.WithoutRedirects = &tool.Words{Argv: s.Argv, Prefix: s.Apart, Exact: s.Argv != nil}
		}
		out = append(out, tool.Effect{Kind: tool.Execute, Text: s.Text, Class: classes[s.Class], Words: words})
		for _, e := range s.Effects {
			if e.Kind != tool.Execute {
				out = append(out, e)
			}
		}
	}
	return out
}

const (
	maxText  = 64 << 10 // bytes of a command line
	maxDepth = 5        // scripts within scripts
	maxNest  = 200      // brackets within brackets
	maxWords = 4096     // that braces may expand to, for the whole text
)

// Explain tells what a command would do. It never fails: what can't be parsed
// is one Full segment that says so. Safe for concurrent use.
func Explain(command string, at Place) Plan {
	p := explain(command, at)
	if p.Class == Full && at.Home != "" && setsHome(command) {
		at.Home = "" // where ~ leads from then on can't be known
		p = explain(command, at)
	}
	return p
}

func explain(command string, at Place) Plan {
	j := &judge{at: at, left: maxWords}
	s := scope{cwds: []string{at.Cwd}}
	if at.Cwd == "" {
		s.cwds = nil
	}
	j.script(command, s, dialects{bash: true})
	p := Plan{Class: Read, Segments: j.segments, Git: j.git}
	seen := map[tool.Effect]bool{}
	for _, seg := range p.Segments {
		p.Class = higher(p.Class, seg.Class)
		for _, e := range seg.Effects {
			if !seen[e] {
				seen[e] = true
				p.Effects = append(p.Effects, e)
			}
		}
	}
	return p
}

// judge collects segments while it walks a text.
type judge struct {
	at       Place
	segments []Segment
	git      bool
	left     int // words that braces may still expand to
	inside   int // how often the inside of unproven commands was looked for
}

// scope is what holds at one place of the text.
type scope struct {
	src   string    // the text that positions point into
	cwds  []string  // where the command may run; nil: anywhere
	depth int       // of wrappers and substitutions
	level int       // of scripts
	vars  *variable // loop variables, innermost first
	bare  bool      // the environment was emptied
	posix bool      // the text is for a shell without braces and ANSI-C quotes
}

func (s scope) deeper() scope {
	s.depth++
	return s
}

// variable is a loop variable and what is known of its value.
type variable struct {
	name  string
	value word
	outer *variable
}

func (s scope) variable(name string) (word, bool) {
	for v := s.vars; v != nil; v = v.outer {
		if v.name == name {
			return v.value, true
		}
	}
	return word{}, false
}

// add appends a segment and returns its place.
func (j *judge) add(seg Segment) int {
	j.segments = append(j.segments, seg)
	return len(j.segments) - 1
}

// unproven adds a segment for text that is not understood.
func (j *judge) unproven(s scope, text, why string) {
	j.add(Segment{
		Text: text, Class: Full, Why: why, Depth: s.depth,
		Effects: []tool.Effect{{Kind: tool.Execute, Text: text}},
	})
}

// resolve makes a path absolute, once for each folder the command may run in.
// It returns nil if that can't be known.
func resolve(cwds []string, path string) []string {
	if filepath.IsAbs(path) {
		return []string{filepath.Clean(path)}
	}
	var out []string
	for _, cwd := range cwds {
		out = append(out, filepath.Join(cwd, path))
	}
	return out
}
