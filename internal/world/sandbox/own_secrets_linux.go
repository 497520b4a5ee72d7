package sandbox

import (
	"io/fs"
	"os"
	"time"

	"github.com/inspan/inspan/internal/safety/places"
)

// A box can create files with names of secrets: a key, the settings of a new project. They are the session's own,
// so the next command can use them. The creator of a file can't be determined, so a file counts as made by a
// command if it appeared, or was the session's own and changed, while the command ran, for at most maxOwnTime. A
// file that appears during a server that runs for hours may come from anywhere.

// maxOwnTime bounds the run time of commands whose new files count as their own.
const maxOwnTime = 10 * time.Minute

// secretsBefore is the state of such files at the start of a box.
type secretsBefore struct {
	began  time.Time
	before map[string]fs.FileInfo // by path
	own    map[string]bool        // those that are the session's own
}

func (b *boxes) secrets() secretsBefore {
	m := secretsBefore{began: time.Now(), before: b.secretNames(), own: map[string]bool{}}
	for path := range m.before {
		m.own[path] = b.o.look.Look(path) == places.ContentOwn
	}
	return m
}

// adoptSecrets records the files that an ended box created. A file that existed before under another name was
// only moved.
func (b *boxes) adoptSecrets(m secretsBefore) {
	if time.Since(m.began) > maxOwnTime {
		return
	}
	for path, info := range b.secretNames() {
		made := true
		for old, was := range m.before {
			made = made && (m.own[old] || path != old && !os.SameFile(was, info))
		}
		if made {
			b.o.look.NoteMade(path)
		}
	}
}

// secretNames lists the files of the workspace that are secret only by name.
func (b *boxes) secretNames() map[string]fs.FileInfo {
	found, _ := b.Find(false)
	out := map[string]fs.FileInfo{}
	for _, s := range found {
		if info, err := os.Lstat(s.Path); s.Named && err == nil {
			out[s.Path] = info
		}
	}
	return out
}
