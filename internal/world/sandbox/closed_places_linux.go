package sandbox

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// A mount over a file is taken off when somebody outside of the box puts
// another file in its place, as editors do when they save, or removes it. So
// those folders are watched, and the box ends when that happens: what it would
// see or change from then on was never judged. The box itself can't do it, as
// what is mounted over can be neither renamed nor removed by it, as long as the
// folder is the very same.

// mostWatched is how many folders are watched; each costs a descriptor. What
// is not in them is swept as what a box may have changed.
const mostWatched = 256

// closedPlace is what hides or closes the places of one folder.
type closedPlace struct {
	folder int // open
	places []paths.Identity
}

// closedPlaces are the folders that are watched.
type closedPlaces struct {
	list []closedPlace
	at   map[string]int // by the paths of folders
}

// newClosedPlaces opens the folders of places that are mounted over.
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

// covered returns a place that is mounted over, and its folder.
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

// changed reports whether a place was mounted over and was changed from
// outside.
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

// watchable are the changes of a folder that can take a mount off.
const watchable = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_MASK_ADD

// watch has the folders watched. Without watches left the last look must do.
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
