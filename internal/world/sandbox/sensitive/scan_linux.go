package sensitive

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// mostFolders bounds the folders of a workspace that are scanned. Each is checked before every start in a box.
const mostFolders = 50000

var errTooBig = errors.New("the workspace has too many folders to look for secrets in all of them")

// scanner finds the sensitive places in a folder by their names. It caches the names in each folder as long as
// the folder is unchanged. It is safe for concurrent use.
type scanner struct {
	root string
	m    places.Map // doesn't read files
	sees places.Map // reads files

	names   places.Map      // without known places
	rules   places.Map      // only places closed by rules
	ruled   bool            // there are such rules, so every path is checked
	known   map[string]bool // paths inside that the map knows
	mu      sync.Mutex
	folders map[string]*folder
	verdict map[string]places.Guard // by name only
	tooBig  time.Time               // when it last exceeded the bound
}

// folder is the cached content of a folder.
type folder struct {
	stamp paths.Stamp
	fresh bool // it changed just before it was read, so a further change might be invisible
	subs  []string
	found []Place
}

// Place is a sensitive place in the workspace.
type Place struct {
	Path  string
	Guard places.Guard
	Via   string // the reason if it is not sensitive by itself: a link to it, or the head of its repository
	Why   string // the reason, if the map doesn't know it
	Named bool   // only by the file's name
	Bare  bool   // the head of a repository that is not in a folder .git
	Blind bool   // an unreadable folder
}

func newScanner(root string, m places.Map) *scanner {
	sees := m
	m.Look = nil // a file's content can change without its folder
	s := &scanner{
		root: root, m: m, sees: sees, names: places.Map{}.Indexed(),
		known: make(map[string]bool), folders: make(map[string]*folder), verdict: make(map[string]places.Guard),
	}
	s.rules, s.ruled = places.Map{Hidden: m.Hidden, Closed: m.Closed, Kept: m.Kept, Open: []string{"/**"}}.Indexed(), len(m.Hidden)+
		len(m.Closed)+len(m.Kept) > 0
	for _, k := range m.Known() {
		s.known[k.Path] = text.Inside(root, k.Path)
	}
	return s
}

// Scan lists the sensitive places. The inside of a sensitive folder is not scanned: it counts as part of it.
func (s *scanner) Scan() ([]Place, error) {
	list, err := s.all(true)
	return s.told(list), err
}

// Folders lists the folders that the last scan read.
func (s *scanner) Folders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.folders))
}

// told removes files that are secret only by name and contain no secret, or were made by the session.
func (s *scanner) told(list []Place) []Place {
	var out []Place
	for _, at := range list {
		if at.Named {
			at.Guard = s.sees.Of(at.Path).Guard
		}
		if at.Guard != places.Plain {
			out = append(out, at)
		}
	}
	return out
}

// all lists places that are sensitive or have such a name. Only if bounded is set, too many folders are an
// error.
func (s *scanner) all(bounded bool) ([]Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bounded && !s.tooBig.IsZero() && time.Since(s.tooBig) < bigFor {
		return nil, errTooBig
	}
	s.tooBig = time.Time{}
	seen := make(map[string]*folder, len(s.folders))
	var out []Place
	todo := []string{s.root}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		f := s.look(dir)
		if f == nil {
			continue
		}
		if len(seen) < mostFolders {
			seen[dir] = f
		} else if bounded {
			s.tooBig = time.Now()
			return nil, errTooBig
		}
		out = append(out, f.found...)
		todo = append(todo, f.subs...)
	}
	s.folders = seen
	return out, nil
}

// bigFor is how long a folder that exceeds the bound is not scanned again.
const bigFor = 30 * time.Second

// Racy is how recent a folder's change must be for its change time to be unreliable: clocks of file systems
// tick slowly.
const Racy = 50 * time.Millisecond

// deepest bounds the path length of scanned folders. The kernel accepts no longer paths, though longer ones can
// exist.
const deepest = 3000

// look returns the content of a folder, nil if it can't be read: then our processes can't read it either. But a
// process could make our own folder readable, so such a folder is sensitive as a whole.
func (s *scanner) look(dir string) *folder {
	st, ok := paths.StampOf(dir)
	if !ok || !st.Dir {
		return nil
	}
	if old := s.folders[dir]; old != nil && !old.fresh && old.stamp == st {
		return old
	}
	entries, err := paths.ReadFolder(dir)
	if dir != s.root && (err != nil && !errors.Is(err, os.ErrNotExist) && st.Own || len(dir) > deepest || err == nil && st.Own && !st.Open) {
		return &folder{fresh: true, found: []Place{{Path: dir, Guard: places.Secret, Blind: true, Why: "can't be looked into"}}}
	}
	if err != nil {
		return nil
	}
	f := &folder{stamp: st, fresh: time.Since(st.Changed()) < Racy}
	for _, e := range entries {
		s.place(f, filepath.Join(dir, e.Name()), e)
	}
	if IsRepository(entries) {
		f.found = append(f.found, Place{
			Path:  filepath.Join(dir, "HEAD"),
			Guard: places.Frozen, Bare: true, Why: "makes a repository of its folder",
		})
	}
	return f
}

// IsRepository reports whether git would recognize a folder as a repository, whose settings name programs.
func IsRepository(entries []os.DirEntry) bool {
	var head, objects, refs, common bool
	for _, e := range entries {
		switch e.Name() {
		case "HEAD":
			head = true
		case "objects":
			objects = true
		case "refs":
			refs = true
		case "commondir":
			common = true
		}
	}
	return head && (objects && refs || common)
}

func (s *scanner) place(f *folder, path string, e os.DirEntry) {
	at := s.judge(path, e)
	if e.Type()&os.ModeSocket != 0 {
		at = places.Place{Guard: places.Secret} // its listener is outside of the box
	}
	guard := at.Guard
	if guard == places.Plain {
		if e.IsDir() {
			f.subs = append(f.subs, path)
		}
		return
	}
	f.found = append(f.found, Place{Path: path, Guard: guard, Named: at.Named})
	if e.Type()&os.ModeSymlink == 0 {
		return
	}
	// The target of a sensitive name is also sensitive.
	if to, err := paths.Resolve(path); err == nil && to != s.root && text.Inside(s.root, to) {
		f.found = append(f.found, Place{Path: to, Guard: guard, Via: path, Why: "is what " + path + " leads to"})
	}
}

// judge consults the map, which is slow, only for names that are sensitive by themselves.
func (s *scanner) judge(path string, e os.DirEntry) places.Place {
	if s.ruled {
		if at := s.rules.Of(path); at.Guard != places.Plain {
			return at
		}
	}
	if s.known[path] {
		return s.m.Of(path)
	}
	key := places.Named(path)
	if e.IsDir() {
		key += "/x" // files can be secret by names that are harmless for folders
	}
	guard, ok := s.verdict[key]
	if !ok {
		guard = s.names.Of("/x/" + key).Guard
		s.verdict[key] = guard
	}
	if guard == places.Plain {
		return places.Place{}
	}
	at := s.m.Of(path)
	if e.IsDir() {
		if at = s.m.Of(path + "/x"); at.Named {
			return places.Place{} // each file in it is judged, as in any other folder
		}
	}
	// Packages contain their authors' editor settings, which nothing runs; package managers must be able to
	// replace them.
	if at.Guard == places.Guarded && strings.Contains(path, "/node_modules/") {
		return places.Place{}
	}
	return at
}
