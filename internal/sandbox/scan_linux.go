package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/tool"
)

// mostFolders is how many folders a workspace may have for boxes to know what
// is in them. Each costs a look before every start in a box.
const mostFolders = 50000

var errTooBig = errors.New("the workspace has too many folders to look for secrets in all of them")

// scanner finds the sensitive places in a folder by their names. It remembers
// what each folder holds for as long as the folder has not changed. Safe for
// concurrent use.
type scanner struct {
	root string
	m    places.Map

	names   places.Map      // knows no places
	known   map[string]bool // paths inside that the map knows
	mu      sync.Mutex
	folders map[string]*folder
	verdict map[string]places.Guard // of names alone
}

// folder is what was in a folder.
type folder struct {
	stamp stamp
	fresh bool // it changed just before it was read, so it can change again unnoticed
	subs  []string
	found []spot
}

// spot is a sensitive place in the workspace.
type spot struct {
	Path  string
	Guard places.Guard
}

func newScanner(root string, m places.Map) *scanner {
	s := &scanner{root: root, m: m, names: places.Map{}.Indexed(), known: make(map[string]bool), folders: make(map[string]*folder), verdict: make(map[string]places.Guard)}
	for _, k := range m.Known() {
		s.known[k.Path] = tool.Inside(root, k.Path)
	}
	return s
}

// scan lists the sensitive places. A folder that is one is not looked into, so
// what is below it counts as part of it.
func (s *scanner) scan() ([]spot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]*folder, len(s.folders))
	var out []spot
	todo := []string{s.root}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		f := s.look(dir)
		if f == nil {
			continue
		}
		if len(seen) >= mostFolders {
			return nil, errTooBig
		}
		seen[dir] = f
		out = append(out, f.found...)
		todo = append(todo, f.subs...)
	}
	s.folders = seen
	return out, nil
}

// racy is how close to its reading a folder must have changed for the change
// time to be no proof: clocks of file systems tick slowly.
const racy = 50 * time.Millisecond

// look returns what is in a folder, nil if it can't be read: then no process
// of ours can read it either.
func (s *scanner) look(dir string) *folder {
	st, ok := stampOf(dir)
	if !ok || !st.dir {
		return nil
	}
	if old := s.folders[dir]; old != nil && !old.fresh && old.stamp == st {
		return old
	}
	entries, err := readDir(dir)
	if err != nil {
		return nil
	}
	f := &folder{stamp: st, fresh: time.Since(st.changed()) < racy}
	for _, e := range entries {
		s.place(f, filepath.Join(dir, e.Name()), e)
	}
	return f
}

// readDir lists a folder without sorting.
func readDir(dir string) ([]os.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (s *scanner) place(f *folder, path string, e os.DirEntry) {
	guard := s.judge(path, e)
	if guard == places.Plain {
		if e.IsDir() {
			f.subs = append(f.subs, path)
		}
		return
	}
	f.found = append(f.found, spot{path, guard})
	if guard == places.Secret && e.Type()&os.ModeSymlink != 0 {
		// What a secret name leads to is as secret.
		if to, err := resolve(path); err == nil && to != s.root && tool.Inside(s.root, to) {
			f.found = append(f.found, spot{to, guard})
		}
	}
}

// judge asks the map only about names that are sensitive by themselves, as it
// takes its time.
func (s *scanner) judge(path string, e os.DirEntry) places.Guard {
	if s.known[path] {
		return s.m.Of(path).Guard
	}
	key := e.Name()
	if e.IsDir() {
		key += "/x" // files can be secret by names that are harmless for folders
	}
	guard, ok := s.verdict[key]
	if !ok {
		guard = s.names.Of("/x/" + key).Guard
		s.verdict[key] = guard
	}
	if guard == places.Plain {
		return guard
	}
	if e.IsDir() {
		guard = s.m.Of(path + "/x").Guard
	} else {
		guard = s.m.Of(path).Guard
	}
	// Packages bring settings of their authors' editors with them, which
	// nobody starts; package managers must be able to replace them.
	if guard == places.Guarded && strings.Contains(path, "/node_modules/") {
		return places.Plain
	}
	return guard
}
