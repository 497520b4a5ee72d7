// Package shell predicts the effects of a bash command line before it runs.
//
// It is a proof and not a filter: it understands only a closed set of grammar, programs and options, and everything
// else counts as able to do anything. It reads no file, clock or environment, so the code that runs the command
// must guarantee the assumptions of the proof:
//
//   - bash itself, started without start-up files, without functions and aliases from outside, and with CDPATH, BASH_ENV and PS4 unset;
//   - an environment without secrets, because programs may print it;
//   - a PATH of system folders that the user can't write;
//   - no terminal, so that nothing starts a pager or an editor;
//   - if [Plan.Git] is set, the conditions of that field.
//
// Bash evaluates text in many places that don't look like commands. The file evaluated.go lists them and states
// the rule for them.
package shell

import (
	"path/filepath"

	"github.com/inspan/inspan/tool"
)

// Class is how much a command may do.
type Class string

// The classes, from the least to the most.
const (
	Read      Class = "read"      // reads files and prints; no write, no network, no process except proven readers
	Workspace Class = "workspace" // also writes, only to known paths inside the root
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

// Place is where a command would run. All paths are absolute and clean; with an empty Root or Cwd nothing is
// inside the workspace, and with an empty Home ~ is unknown.
type Place struct {
	Root, Cwd, Home string
	Also            []string // further folders with the access of Root
	// Held says that a sandbox confines commands that are proven to read, so git may read any repository below
	// Root: programs that it names can only read, too.
	Held bool
}

// Plan is the predicted behaviour of a command.
type Plan struct {
	// Class is the highest of the segments. Without any segment, as for an empty text, it is Read.
	Class Class
	// Segments are the simple commands in the order of the text, with wrappers and substitutions unfolded.
	// Unproven text is also a Full segment, and commands inside of it are listed anyway, so that deny rules can
	// see them.
	Segments []Segment
	// Effects are those of all segments, without duplicates. Paths are lexical: links are not followed. Reading
	// "/" means an unknown path.
	Effects []tool.Effect
	// Git says that the proof of some segment holds only if the configuration of the repository at the root
	// names no program, hooks are off, and git runs with GIT_OPTIONAL_LOCKS=0. Otherwise treat the plan as
	// Full.
	Git bool
}

// Segment is one simple command with its resolved words.
type Segment struct {
	Text  string   // as written
	Argv  []string // resolved; nil if a word is unknown
	Class Class
	Why   string // for people: the reason for the class; empty for Read
	Depth int    // nesting in wrappers and substitutions
	// Effects are those of this segment only, without inner ones.
	Effects []tool.Effect
	// Prefix is the narrowest prefix of Argv that a rule may name to allow this segment. Nil means that no such
	// rule is safe and none may match: the program runs arbitrary commands, or the redirects or variables of
	// this segment do more than its words say.
	Prefix []string
	// Exact says that Argv is the complete segment, so that a rule may name all of it.
	Exact bool
	// Redirected says that only redirects proven to write in the workspace keep rules from naming it. Without
	// them Apart would be its Prefix.
	Redirected bool
	Apart      []string
}

// Calls lists the effects in the order of the segments, each segment's Execute before its other effects; see
// [tool.Effect].
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
	maxWords = 4096     // of brace expansion, for the whole text
)

// Explain predicts what a command would do. It never fails: text that can't be parsed is one Full segment that
// says so. It is safe for concurrent use.
func Explain(command string, at Place) Plan {
	p := explain(command, at)
	if p.Class == Full && at.Home != "" && setsHome(command) {
		at.Home = "" // later meanings of ~ are unknown
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
	left     int // words left for brace expansion
	inside   int // how often the inside of unproven commands was examined
}

// scope is the state at one place of the text.
type scope struct {
	src   string    // the text that positions point into
	cwds  []string  // possible working folders; nil means any
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

// variable is a loop variable with its known values.
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

// add appends a segment and returns its index.
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

// resolve makes a path absolute, for each possible working folder. It returns nil if that is unknown.
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
