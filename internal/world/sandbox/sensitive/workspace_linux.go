package sensitive

import (
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Workspace knows the sensitive places in a workspace and its further folders. It is safe for concurrent use.
type Workspace struct {
	Root   string
	Places places.Map
	State  string      // where removed places are stored; empty means they are renamed in place
	Copies func() bool // reports whether boxes change copies of git directories; nil means they don't

	mu           sync.Mutex
	scanners     map[string]*scanner
	makers       int             // open boxes that may create repositories
	repositories map[string]bool // created by such boxes
}

// copied reports whether boxes change copies of git directories.
func (w *Workspace) copied() bool { return w.Copies != nil && w.Copies() }

// Folders returns the workspace and its further folders, except those inside of another.
func (w *Workspace) Folders() []string {
	out := []string{w.Root}
	for _, dir := range Mountable(tool.BoxWorkspace, w.Places.Also) {
		if at := w.Places.Of(dir).Guard; !paths.InsideAny(out, dir) && at != places.Secret && at != places.Frozen {
			out = append(out, dir)
		}
	}
	return out
}

// Find lists the sensitive places in them. Only with told it leaves out files that a check of their content
// found harmless, and reports too many folders as an error.
func (w *Workspace) Find(told bool) (found []Place, err error) {
	for _, top := range w.Folders() {
		var more []Place
		if told {
			more, err = w.Scanner(top).Scan()
		} else {
			more, _ = w.Scanner(top).all(false)
		}
		if err != nil {
			return nil, err
		}
		for _, s := range more {
			if top == w.Root || !text.Inside(w.Root, s.Path) { // the workspace can be inside of another folder
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// Mountable removes sockets, and folders where sockets of other processes appear at any time: a workspace box
// could connect to them.
func Mountable(level tool.Level, paths []string) []string {
	if level != tool.BoxWorkspace {
		return paths
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode()&fs.ModeSocket != 0 || slices.Contains([]string{"/", "/tmp", "/var/tmp", "/run", "/var/run", "/dev"},
			path)
	})
}

// Scanner returns the scanner of a folder.
func (w *Workspace) Scanner(root string) *scanner {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scanners == nil {
		w.scanners = make(map[string]*scanner)
	}
	s := w.scanners[root]
	if s == nil {
		s = newScanner(root, w.Places)
		w.scanners[root] = s
	}
	return s
}
