// Package places classifies paths: workspace, system, or other; and whether a path
// is so sensitive that rules can't open it. Judges, file tools and the sandbox
// share one list. The package is pure: it looks at no file.
package places

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/tool"
)

// Guard is how a path is held back beyond what modes and rules say.
type Guard string

// Guards, from none to the strictest.
const (
	Plain   Guard = ""        // not at all
	Guarded Guard = "guarded" // a change asks in every mode: it names programs that others will run
	Frozen  Guard = "frozen"  // never changed: it decides what runs at the next login, commit or start of inspan
	Secret  Guard = "secret"  // neither read nor changed
)

// Zone says whose a path is.
type Zone string

// Zones.
const (
	Workspace Zone = "workspace" // at or below the root, or a folder of Also
	System    Zone = "system"    // anybody on the machine may read it: programs, libraries, documentation, caches of packages
	Elsewhere Zone = "elsewhere" // all else, such as the user's other files
)

// Map is a machine as one session sees it. All paths are absolute, clean and
// without symbolic links; empty ones stand for nothing. Safe for concurrent
// use while nobody changes it.
type Map struct {
	Root     string   // the workspace
	Also     []string // further folders that are as the workspace is
	Home     string   // the user's home folder
	Settings string   // inspan's own settings: never changed
	State    []string // what inspan keeps: never read or changed
	Shared   []string // what of it is read, such as plugins; never changed
	// Apart are folders where others work too: what lies in one is neither read nor changed,
	// but for what of Root and Also lies in it.
	Apart    []string
	Programs []string // folders where the person's shell looks for programs
	Git      []string // what git runs or reads as settings, as settings of the person or the repository say
	// Moved are folders that lie elsewhere than in Home, by their usual names there, such
	// as .config.
	Moved map[string]string
	Open  []string // globs over absolute paths: what a person says is not sensitive
	// Hidden and Closed are globs over absolute paths of what rules deny to read,
	// which closes it altogether, and to change. They beat Open.
	Hidden, Closed []string
	// Kept are globs over absolute paths of what must stay as it was trusted.
	Kept []string
	// Look tells what is in a file that only its name makes a secret. Nil: nobody
	// can look, so the name decides.
	Look func(path string) tool.Content `json:"-"`

	bare  bool   // only what is ours, and what rules close
	index *index // nil: looked up the slow way
}

// Unguarded is the map of a mode that guards nothing by itself: closed stays what
// belongs to inspan, and what rules of people close.
func (m Map) Unguarded() Map {
	m.bare = true
	return m
}

// index holds the known places by their folded paths, and the guarded names. It is made
// when it is first asked.
type index struct {
	once           sync.Once
	of             Map
	own, elsewhere map[string]Known
	shared, apart  []string
	guarded        map[string]bool
}

// Indexed returns a map that answers the same, faster.
func (m Map) Indexed() Map {
	m.index = &index{of: m}
	return m
}

func (m Map) indexed() *index {
	ix := m.index
	if ix == nil {
		ix = &index{of: m}
	}
	ix.once.Do(ix.fill)
	return ix
}

func (ix *index) fill() {
	ix.own, ix.elsewhere = byPath(ix.of.own()), byPath(ix.of.elsewhere())
	for _, dir := range ix.of.Shared {
		ix.shared = append(ix.shared, fold(dir))
	}
	for _, dir := range ix.of.Apart {
		ix.apart = append(ix.apart, fold(dir))
	}
	names := guardedNames()
	ix.guarded = make(map[string]bool, len(names))
	for _, name := range names {
		ix.guarded[name] = true
	}
}

func byPath(list []Known) map[string]Known {
	out := make(map[string]Known, len(list))
	for _, k := range list {
		key := fold(k.Path)
		if old, ok := out[key]; !ok || stricter(k.Guard, old.Guard) {
			out[key] = k
		}
	}
	return out
}

// Place is what is known of one path.
type Place struct {
	Zone  Zone
	Guard Guard
	Why   string // what makes it sensitive, after "it ", such as "holds keys"; empty for Plain
	// Named says that the name of the file alone makes it a secret, and that what is
	// in it has not shown otherwise. A person can let single ones be read or changed,
	// unless they are frozen besides.
	Named bool
}

// Of tells what a path is. The path is absolute, clean and resolved; letters
// are compared without regard to case, as some file systems do.
//
// A secret is told by content where there is content: a name counts for a file
// that holds a secret, that can't be looked into, or that nobody looks into. It
// does not for one that is still to be made, or that the session has made itself.
func (m Map) Of(path string) Place {
	if m.index == nil {
		m = m.Indexed()
	}
	p := m.guard(path)
	p.Zone = m.zone(path)
	if p.Guard == Secret || m.bare || !m.byName(path) {
		return p
	}
	if m.Look != nil {
		switch m.Look(path) {
		case tool.ContentNone, tool.ContentPlain, tool.ContentOwn:
			return p
		}
	}
	return Place{Zone: p.Zone, Guard: Secret, Why: "is named like a file that holds secrets", Named: p.Guard != Frozen}
}

// byName reports whether the name of a file makes it a secret.
func (m Map) byName(path string) bool {
	folded := fold(path)
	name := filepath.Base(folded)
	return (secretName(name) || secretFolder(filepath.Base(filepath.Dir(folded))) && data(name)) &&
		(!matches(m.Open, path) || m.indexed().shares(folded))
}

// Over reports whether a sensitive place that is known by its path lies below
// the folder, so that reading all of the folder would read it.
func (m Map) Over(folder string) bool {
	for _, k := range m.Known() {
		if k.Guard == Secret && k.Path != folder && tool.Inside(folder, k.Path) {
			return true
		}
	}
	return false
}

func (m Map) zone(path string) Zone {
	if slices.ContainsFunc(m.mine(), func(dir string) bool { return tool.Inside(dir, path) }) {
		return Workspace
	}
	for _, dir := range system() {
		if inside(dir, path) {
			return System
		}
	}
	if !tool.Inside(m.Home, path) {
		return Elsewhere
	}
	rest := strings.TrimPrefix(path[len(m.Home):], string(filepath.Separator))
	for _, dir := range Caches() {
		if inside(dir, rest) {
			return System
		}
	}
	return Elsewhere
}

// mine are the workspace and the folders that are as it is.
func (m Map) mine() []string { return append([]string{m.Root}, m.Also...) }

// within reports whether a path lies in what is the session's own of a folder where others work
// too.
func (m Map) within(apart, path string) bool {
	return slices.ContainsFunc(m.mine(), func(dir string) bool { return dir != apart && tool.Inside(apart, dir) && tool.Inside(dir, path) })
}

// othersWork is why what lies in a folder of Apart is closed.
const othersWork = "lies where others work"

// guard tells how a path is held back, but for what the name of a file says.
func (m Map) guard(path string) Place {
	folded := fold(path)
	shared := m.indexed().shares(folded)
	for i, dir := range m.indexed().apart {
		if inside(dir, folded) && !m.within(m.Apart[i], path) {
			return Place{Guard: Secret, Why: othersWork}
		}
	}
	if k, ok := above(m.indexed().own, folded); ok && !shared {
		return Place{Guard: k.Guard, Why: k.Why}
	}
	if matches(m.Hidden, path) {
		return Place{Guard: Secret, Why: "is closed by a rule"}
	}
	if matches(m.Closed, path) {
		return Place{Guard: Frozen, Why: "is closed to changes by a rule"}
	}
	best := Place{}
	if !m.bare && matches(m.Kept, path) {
		best = Place{Guard: Frozen, Why: "may run as you trust it as it is"}
	}
	if (m.bare || matches(m.Open, path)) && !shared {
		return best
	}
	if shared {
		best = Place{Guard: Frozen, Why: "holds what sessions share"}
	}
	if k, ok := above(m.indexed().elsewhere, folded); ok && stricter(k.Guard, best.Guard) &&
		(filepath.Base(k.Path) != ".git" || !GitLock(folded)) {
		best = Place{Guard: k.Guard, Why: k.Why}
	}
	if name := filepath.Base(folded); uncopied(name) != name {
		if k, ok := m.indexed().elsewhere[filepath.Join(filepath.Dir(folded), uncopied(name))]; ok &&
			k.Guard == Secret && stricter(k.Guard, best.Guard) {
			best = Place{Guard: k.Guard, Why: "is a copy of what " + k.Why}
		}
	}
	if g, w := m.indexed().byName(folded); stricter(g, best.Guard) {
		best = Place{Guard: g, Why: w}
	}
	return best
}

// Opens reports whether a path is open although it lies in a place that is closed: it is what
// sessions may read of what inspan keeps, or the workspace where others work too.
func (m Map) Opens(place, path string) bool {
	return m.indexed().shares(fold(path)) || slices.Contains(m.Apart, place) && m.within(place, path)
}

// shares reports whether a folded path lies in what sessions may read of what inspan
// keeps.
func (ix *index) shares(path string) bool {
	return slices.ContainsFunc(ix.shared, func(dir string) bool { return inside(dir, path) })
}

func matches(globs []string, path string) bool {
	for _, pattern := range globs {
		if ok, err := doublestar.PathMatch(pattern, path); ok && err == nil {
			return true
		}
	}
	return false
}

// above returns the strictest of the places at or above a path.
func above(known map[string]Known, path string) (best Known, ok bool) {
	for {
		if k, found := known[path]; found && stricter(k.Guard, best.Guard) {
			best, ok = k, true
		}
		up := filepath.Dir(path)
		if up == path {
			return best, ok
		}
		path = up
	}
}

// stricter reports whether a holds back more than b.
func stricter(a, b Guard) bool { return weight(a) > weight(b) }

func weight(g Guard) int {
	switch g {
	case Plain:
		return 0
	case Guarded:
		return 1
	case Frozen:
		return 2
	}
	return 3
}

// inside is tool.Inside for clean paths of one kind.
func inside(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == filepath.Separator)
}

// Named is what the name of a file says in a folder of another: the part of its path that
// its guard can depend on, wherever it is.
func Named(path string) string {
	name, dir := filepath.Base(path), filepath.Base(filepath.Dir(path))
	if secretFolder(fold(dir)) {
		return filepath.Join(dir, name)
	}
	return name
}
