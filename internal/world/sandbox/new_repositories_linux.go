package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
)

// A command can create a repository in the workspace that its keeper does not hide (nests_linux.go): one with
// another name than .git, or one created by plain git. It is checked completely when the command has ended.
// Until then this watch removes files that name programs, as soon as the kernel reports them, and ends boxes
// that put them back repeatedly. The window is less than a millisecond on an idle machine, as docs/SECURITY.md
// says.

// maxWatchedFolders bounds the watched folders of a workspace. Repositories in others are found at the end.
const maxWatchedFolders = 4096

// repositoryWatch watches all folders of a workspace while boxes are open. The zero value is ready.
type repositoryWatch struct {
	mu    sync.Mutex
	file  *os.File
	at    map[int]string // folders, by the kernel's number of the watch
	known map[string]int
	made  map[string]bool // repositories created by boxes
	open  []*outside
}

// watchFor starts watching for a box, before its command starts.
func (n *repositoryWatch) watchFor(o *outside) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = append(n.open, o)
	if n.file == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return // the final check remains
		}
		n.file = os.NewFile(uintptr(fd), "inotify")
		n.at, n.known, n.made = map[int]string{}, map[string]int{}, map[string]bool{}
		go n.follow(n.file)
	}
	for _, top := range o.boxes.Folders() {
		n.add(top)
		go func() { // the command need not wait for the other folders
			for _, dir := range o.boxes.Scanner(top).Folders() {
				n.mu.Lock()
				n.add(dir)
				n.mu.Unlock()
			}
		}()
	}
}

// stopFor stops watching for a box.
func (n *repositoryWatch) stopFor(o *outside) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = slices.DeleteFunc(n.open, func(other *outside) bool { return other == o })
	if len(n.open) == 0 {
		for git := range n.made {
			n.forget(git)
		}
	}
}

func (n *repositoryWatch) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != nil {
		n.file.Close()
	}
}

// add watches a folder, and that of a new repository more closely. The caller holds n.mu.
func (n *repositoryWatch) add(dir string) {
	changes := uint32(unix.IN_CREATE | unix.IN_MOVED_TO)
	for git := range n.made {
		if slices.Contains(nestFolders(git), dir) {
			changes |= unix.IN_MODIFY | unix.IN_CLOSE_WRITE
		}
	}
	if _, ok := n.known[dir]; ok || len(n.known) >= maxWatchedFolders {
		return
	}
	raw, err := n.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if id, err := unix.InotifyAddWatch(int(fd), dir, changes|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW|unix.IN_EXCL_UNLINK); err == nil {
			delete(n.known, n.at[id]) // it was moved
			n.at[id], n.known[dir] = dir, id
		}
	})
}

// forget stops watching a repository. The caller holds n.mu.
func (n *repositoryWatch) forget(git string) {
	delete(n.made, git)
	raw, err := n.file.SyscallConn()
	if err != nil {
		return
	}
	for _, dir := range nestFolders(git) {
		if id, ok := n.known[dir]; ok {
			delete(n.known, dir)
			delete(n.at, id)
			_ = raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(id)) }) // it may be gone
		}
	}
}

// nestFolders lists the folders of a repository that can contain names of programs.
func nestFolders(git string) []string {
	return []string{git, filepath.Join(git, "hooks"), filepath.Join(git, "info")}
}

// follow handles the kernel's events.
func (n *repositoryWatch) follow(file *os.File) {
	buf := make([]byte, 64<<10)
	for {
		got, err := file.Read(buf)
		if err != nil {
			return
		}
		n.mu.Lock()
		for rest := buf[:got]; len(rest) >= unix.SizeofInotifyEvent; {
			id, mask := int(int32(binary.NativeEndian.Uint32(rest))), binary.NativeEndian.Uint32(rest[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:size], "\x00"))
			rest = rest[size:]
			dir, ok := n.at[id]
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0 && len(n.open) > 0:
				clear(n.known)
				for _, top := range n.open[0].boxes.Folders() {
					n.deepen(top)
				}
			case ok && mask&unix.IN_IGNORED != 0:
				delete(n.at, id)
				delete(n.known, dir)
			case ok:
				delete(n.known, filepath.Join(dir, name)) // the previous folder of that name was moved
				n.appeared(dir, name, mask&unix.IN_ISDIR != 0)
			}
		}
		n.mu.Unlock()
	}
}

// appeared checks one name. The caller holds n.mu.
func (n *repositoryWatch) appeared(dir, name string, isDir bool) {
	if len(n.open) == 0 {
		return
	}
	for git := range n.made {
		if slices.Contains(nestFolders(git), dir) {
			for _, dir := range nestFolders(git) {
				n.add(dir)
			}
			n.checkFor(n.open[len(n.open)-1], git)
		}
	}
	switch {
	case name == ".git":
		n.check(filepath.Join(dir, name))
	case isDir && !strings.HasPrefix(name, ".git"):
		n.deepen(filepath.Join(dir, name))
	}
	if name == "HEAD" || name == "objects" || name == "refs" || name == "commondir" {
		n.bare(dir)
	}
}

// deepen watches a new folder and checks its current content. The caller holds n.mu.
func (n *repositoryWatch) deepen(dir string) {
	if len(n.known) >= maxWatchedFolders {
		return
	}
	n.add(dir)
	entries, err := paths.ReadFolder(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		switch {
		case e.Name() == ".git":
			n.check(filepath.Join(dir, e.Name()))
		case e.IsDir():
			n.deepen(filepath.Join(dir, e.Name()))
		}
	}
	n.bare(dir)
}

// bare checks a folder that may be a repository itself. The caller holds n.mu.
func (n *repositoryWatch) bare(dir string) {
	if entries, err := paths.ReadFolder(dir); err == nil && sensitive.IsRepository(entries) && dir != n.open[0].boxes.Root {
		n.check(dir)
	}
}

// check watches a new repository, and removes files in it that name programs. The caller holds n.mu.
func (n *repositoryWatch) check(git string) {
	info, err := os.Lstat(git)
	o := n.open[len(n.open)-1]
	if err != nil || !info.IsDir() || git == filepath.Join(o.boxes.Root, ".git") || slices.ContainsFunc(n.open, func(o *outside) bool { return o.knows(git) }) {
		return // the target of a link is checked at its own place, and the workspace's repository by outside.watchTop
	}
	n.made[git] = true
	for _, dir := range nestFolders(git) {
		delete(n.known, dir) // watch it again for more events
		n.add(dir)
	}
	n.checkFor(o, git)
}

// checkFor removes files that name programs.
func (n *repositoryWatch) checkFor(o *outside, git string) {
	for _, s := range sensitive.NamingPrograms(git) {
		rel, _ := filepath.Rel(git, s.Path)
		if !slices.Contains([]string{"config", "config.worktree", "hooks", "info/attributes", "commondir"}, rel) {
			continue // nothing runs it automatically; it is found at the end
		}
		if is, ok := paths.Identify(o.held, s.Path); ok {
			s.Guard = places.Frozen
			o.refuse(o.boxes.TakeAway(sensitive.Intruder{Place: s, Is: is}, o.held))
			n.tookAway(s.Path)
		}
	}
}

// tookAway counts the removals at a place while boxes were open. It ends boxes that may have put the file back
// repeatedly: each time a process outside could be faster. The git of Init boxes puts nothing there. The caller
// holds n.mu.
func (n *repositoryWatch) tookAway(path string) {
	for _, o := range n.open {
		if o.taken == nil {
			o.taken = map[string]int{}
		}
		if o.taken[path]++; o.taken[path] == mostTaken && !o.box.Init {
			o.refuse("was ended, because " + path + " was put back each time that it was taken away")
			go o.kill()
		}
	}
}

func (n *repositoryWatch) count(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tookAway(path)
}

// mostTaken bounds the removals at one place.
const mostTaken = 3

// knows reports whether a repository existed before the box.
func (o *outside) knows(git string) bool {
	return slices.ContainsFunc(o.before, func(s paths.Identity) bool { return s.Path == git || s.Path == filepath.Join(git, "HEAD") })
}
