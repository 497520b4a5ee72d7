package sandbox

import (
	"io/fs"
	"os"
	"time"

	"github.com/inspan/inspan/tool"
)

// A box can make files whose names make them secret: a key, the settings of a new
// project. They are the session's own, so the next command finds them. Who has
// made a file can't be told; so it counts as made by a command if it appeared, or
// was the session's own and changed, while that ran and for no longer than people
// wait for a command. What appears beside a server that runs for hours may be
// anybody's.

// maxOwnTime is how long a command may run for what appears to be its own.
const maxOwnTime = 10 * time.Minute

// secretsBefore is what a box knows of such files when it begins.
type secretsBefore struct {
	began  time.Time
	before map[string]fs.FileInfo // by path
	own    map[string]bool        // those of them that are the session's own
}

func (b *boxes) secrets() secretsBefore {
	m := secretsBefore{began: time.Now(), before: b.secretNames(), own: map[string]bool{}}
	for path := range m.before {
		m.own[path] = b.o.look.Look(path) == tool.ContentOwn
	}
	return m
}

// adoptSecrets takes down what a box has made, once it has ended. What was there before
// under another name has only been moved.
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

// secretNames lists the files of the workspace that only their names make secret.
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
