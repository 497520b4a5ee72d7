package sandbox

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
)

// knownSecrets finds which of the secret places with known paths exist. There are hundreds of them, and a
// command must not wait for all lookups. A result is valid as long as no folder on the way to such a place and
// no mount has changed: so only these folders are checked again. The zero value is ready. It is safe for
// concurrent use.
type knownSecrets struct {
	mu     sync.Mutex
	list   []string               // paths to look for; nil means not yet set
	way    map[string]paths.Stamp // folders on the way to these paths; nil means look again
	mounts int                    // at the time of the lookup
	there  []string               // existing ones, with no link on the way
	linked []string               // a link or an inaccessible folder is on the way
}

// knownSecrets lists the existing secret places, resolved.
func (b *boxes) knownSecrets() []string {
	k := &b.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		for _, p := range b.o.Map.Known() {
			// The kernel protects the secrets of processes and devices.
			if p.Guard == places.Secret && !text.Inside("/proc", p.Path) && !text.Inside("/dev", p.Path) {
				k.list = append(k.list, p.Path)
			}
		}
	}
	if mounts := b.mounts.changes(); !k.holds() || mounts != k.mounts {
		k.mounts = mounts
		k.look()
	}
	var out []string
	for _, path := range k.there {
		if b.o.Map.Of(path).Guard == places.Secret {
			out = append(out, path)
		}
	}
	for _, path := range k.linked {
		if real, err := filepath.EvalSymlinks(path); err == nil && b.o.Map.Of(path).Guard == places.Secret {
			out = append(out, real)
		}
	}
	return out
}

// holds reports whether the result is still valid.
func (k *knownSecrets) holds() bool {
	for dir, was := range k.way {
		if is, ok := paths.StampOf(dir); !ok || is != was {
			return false
		}
	}
	return k.way != nil
}

// look looks for all places.
func (k *knownSecrets) look() {
	way := map[string]paths.Stamp{}
	k.there, k.linked = nil, nil
	for _, path := range k.list {
		switch there, linked := follow(path, way); {
		case linked:
			k.linked = append(k.linked, path)
		case there:
			k.there = append(k.there, path)
		}
	}
	k.way = way
	for _, st := range way {
		if time.Since(st.Changed()) < sensitive.Racy {
			k.way = nil
			break
		}
	}
}

// follow reports whether a path exists, or whether a link or an inaccessible folder is on the way. It records
// the folders that it passes.
func follow(path string, way map[string]paths.Stamp) (there, linked bool) {
	at, rest := "/", strings.TrimPrefix(filepath.Clean(path), "/")
	for {
		st, known := way[at]
		if !known {
			var err error
			if st, err = paths.StampAt(at); err != nil {
				return false, !errors.Is(err, unix.ENOENT)
			}
		}
		switch {
		case st.Link:
			return false, true
		case rest == "":
			return true, false
		case !st.Dir:
			return false, true
		}
		way[at] = st
		name, more, _ := strings.Cut(rest, "/")
		at, rest = filepath.Join(at, name), more
	}
}
