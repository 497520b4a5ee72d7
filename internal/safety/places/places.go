// Package places classifies paths: workspace, system, or other; and whether a path is so sensitive that rules
// can't open it. Judges, file tools and the sandbox share one list. The package is pure: it reads no file.
package places

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Guard is the protection of a path beyond modes and rules.
type Guard string

// Guards, in order of strictness.
const (
	Plain   Guard = ""        // none
	Guarded Guard = "guarded" // changes ask in every mode: it names programs that others will run
	Frozen  Guard = "frozen"  // never changed: it decides what runs at the next login, commit or start of inspan
	Secret  Guard = "secret"  // neither read nor changed
)

// Zone is the owner of a path.
type Zone string

// Zones.
const (
	Workspace Zone = "workspace" // at or below the root, or a folder of Also
	System    Zone = "system"    // readable for everyone on the machine: programs, libraries, documentation, caches of packages
	Elsewhere Zone = "elsewhere" // everything else, such as the user's other files
)

// Map is a machine as one session sees it. All paths are absolute, clean and without symbolic links; empty ones
// are ignored. It is safe for concurrent use while it is not changed.
type Map struct {
	Root     string   // the workspace
	Also     []string // further folders with the access of the workspace
	Home     string   // the user's home folder
	Settings string   // inspan's own settings: never changed
	State    []string // inspan's own files: never read or changed
	Shared   []string // readable parts of them, such as plugins; never changed
	// Apart are folders where others work too: nothing in them is read or changed, except below Root and Also.
	Apart    []string
	Programs []string // folders where the person's shell looks for programs
	Git      []string // files that git runs or reads as settings, according to settings of the person or the repository
	// Moved maps the usual names of folders in Home, such as .config, to their locations elsewhere.
	Moved map[string]string
	Open  []string // globs over absolute paths that the person declares as not sensitive
	// Hidden and Closed are globs over absolute paths that rules deny to read, which closes them completely,
	// and to change. They override Open.
	Hidden, Closed []string
	// Kept are globs over absolute paths of trusted content that must not change.
	Kept []string
	// Look returns the kind of content of a file that is secret only by name. Nil means the name decides.
	Look func(path string) Content `json:"-"`

	bare  bool   // only inspan's own places, and those closed by rules
	index *index // nil means slower lookup
}

// Unguarded returns the map of a mode without guards: only inspan's own places, and those that rules of people
// close, remain closed.
func (m Map) Unguarded() Map {
	m.bare = true
	return m
}

// index contains the known places by their folded paths, and the guarded names. It is built on first use.
type index struct {
	once           sync.Once
	of             Map
	own, elsewhere map[string]Known
	shared, apart  []string
	guarded        map[string]bool
}

// Indexed returns an equivalent, faster map.
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

// Place is the classification of one path.
type Place struct {
	Zone  Zone
	Guard Guard
	Why   string // the reason why it is sensitive, after "it ", such as "holds keys"; empty for Plain
	// Named says that it is a secret only by the file's name, and that its content has not shown otherwise. A
	// person can allow access to single files, unless they are also frozen.
	Named bool
}

// Of classifies a path. The path is absolute, clean and resolved; letters are compared without regard to case,
// as some file systems do.
//
// Secrets are determined by content if there is any: a name counts for a file that contains a secret or can't
// be examined. It does not count for a new file, or one that the session created itself.
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
		case ContentNone, ContentPlain, ContentOwn:
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

// Over reports whether a folder contains a sensitive place with a known path, so that reading the whole folder
// would read it.
func (m Map) Over(folder string) bool {
	for _, k := range m.Known() {
		if k.Guard == Secret && k.Path != folder && text.Inside(folder, k.Path) {
			return true
		}
	}
	return false
}

func (m Map) zone(path string) Zone {
	if slices.ContainsFunc(m.mine(), func(dir string) bool { return text.Inside(dir, path) }) {
		return Workspace
	}
	for _, dir := range system() {
		if inside(dir, path) {
			return System
		}
	}
	if !text.Inside(m.Home, path) {
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

// mine returns the workspace and its further folders.
func (m Map) mine() []string { return append([]string{m.Root}, m.Also...) }

// within reports whether a path is in the session's own part of a folder where others also work.
func (m Map) within(apart, path string) bool {
	return slices.ContainsFunc(m.mine(), func(dir string) bool { return dir != apart && text.Inside(apart, dir) && text.Inside(dir, path) })
}

// othersWork is the reason why paths in a folder of Apart are closed.
const othersWork = "lies where others work"

// guard determines the protection of a path, except for the name of the file.
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
		best = Place{Guard: Frozen, Why: "holds settings, or what sessions share"}
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

// Opens reports whether a path is open although it is in a closed place: a readable part of inspan's files, or
// the workspace where others also work.
func (m Map) Opens(place, path string) bool {
	return m.indexed().shares(fold(path)) || slices.Contains(m.Apart, place) && m.within(place, path)
}

// shares reports whether a folded path is in a readable part of inspan's files.
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

// stricter reports whether a is stricter than b.
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

// inside is text.Inside for clean paths of one kind.
func inside(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == filepath.Separator)
}

// Named is the kind of a file by its name, in a folder of another kind: the part of its path that its guard can
// depend on, wherever it is.
func Named(path string) string {
	name, dir := filepath.Base(path), filepath.Base(filepath.Dir(path))
	if folder, file := fold(dir), fold(name); secretFolder(folder) || guardedPair(folder, file) || dockerLogins(folder, file) {
		return filepath.Join(dir, name)
	}
	return name
}

// Beyond reports whether an effect concerns a file outside of a workspace; false if that is unknown.
func Beyond(root string, e tool.Effect) bool {
	return (e.Kind == tool.Write || e.Kind == tool.Read) && !e.Temporary && root != "" && !text.Inside(root, e.Path)
}

// Worst reports whether a person must see an effect in a workspace first: it is sensitive, or leaves the
// workspace or the sandbox.
func Worst(root string, effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Sensitive != "" || e.Kind == tool.Network || e.Kind == tool.External || Beyond(root, e)
	})
}

// Content is what is known about the content of a file.
type Content string

// Contents.
const (
	ContentUnknown Content = ""       // it can't be told: it is not a regular file, too big, or can't be read
	ContentNone    Content = "none"   // there is no such file
	ContentPlain   Content = "plain"  // there is no secret in it
	ContentSecret  Content = "secret" // there may be one
	ContentOwn     Content = "own"    // the session has made it
)

// Looker is an optional interface of tool.Files that tells whether a file with the name of a secret holds one.
type Looker interface {
	// Look returns what is at a resolved path. It follows no link and never blocks.
	Look(path string) Content
}
