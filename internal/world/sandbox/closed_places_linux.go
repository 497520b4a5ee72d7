package sandbox

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// A mount over a file is removed when a process outside of the box replaces the file, as editors do when they
// save, or removes it. So the folders are watched, and the box ends when that happens: later content was never
// judged. A process in the box can't do that: it can neither rename nor remove a mount point, as long as the
// folder is the same.

// mostWatched bounds the watched folders; each costs a descriptor. Others are only swept like changes of the
// box.
const mostWatched = 256

// closedPlace is the closed or hidden places of one folder.
type closedPlace struct {
	folder int // open
	places []paths.Identity
}

// closedPlaces is the watched folders.
type closedPlaces struct {
	list []closedPlace
	at   map[string]int // by folder path
}

// newClosedPlaces opens the folders of mount points.
func newClosedPlaces(list []paths.Identity) *closedPlaces {
	c := &closedPlaces{at: make(map[string]int)}
	for _, s := range list {
		if s.Link {
			continue
		}
		dir := filepath.Dir(s.Path)
		i, ok := c.at[dir]
		if !ok {
			if len(c.list) == mostWatched {
				continue
			}
			fd, err := paths.Open(dir)
			if err != nil {
				continue
			}
			i = len(c.list)
			c.at[dir], c.list = i, append(c.list, closedPlace{folder: fd})
		}
		c.list[i].places = append(c.list[i].places, s)
	}
	return c
}

// covered returns a mounted place, and its folder.
func (c *closedPlaces) covered(path string) (paths.Identity, int, bool) {
	i, ok := c.at[filepath.Dir(path)]
	if !ok {
		return paths.Identity{}, -1, false
	}
	for _, s := range c.list[i].places {
		if s.Path == path {
			return s, c.list[i].folder, true
		}
	}
	return paths.Identity{}, -1, false
}

// changed reports whether a place was mounted over and then changed from outside.
func (c *closedPlaces) changed(path string) bool {
	s, folder, ok := c.covered(path)
	if !ok {
		return false
	}
	is, there := paths.IdentifyIn(folder, path)
	return !there || is != s
}

// first returns a place that was changed from outside.
func (c *closedPlaces) first() (string, bool) {
	for _, cover := range c.list {
		for _, s := range cover.places {
			if is, ok := paths.IdentifyIn(cover.folder, s.Path); !ok || is != s {
				return s.Path, true
			}
		}
	}
	return "", false
}

// watchable are the changes of a folder that can remove a mount.
const watchable = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_MASK_ADD

// watch adds the folders to the watch. If the kernel has no watches left, only the final check remains.
func (c *closedPlaces) watch(w *watch) {
	for _, cover := range c.list {
		_ = w.add("/proc/self/fd/"+strconv.Itoa(cover.folder), watchable)
	}
}

func (c *closedPlaces) release() {
	for _, cover := range c.list {
		_ = unix.Close(cover.folder)
	}
}
