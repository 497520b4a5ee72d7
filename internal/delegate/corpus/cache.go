package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

const (
	mostCached = 20_000   // answers
	mostCache  = 64 << 20 // bytes
)

// cache stores answers by everything on which they depend. It can be deleted; unreadable or unwritable entries
// count as missing. Answers are checked again when they are read from it, so a file that another program has
// written can't add a quote that the text lacks.
type cache struct {
	dir string // empty means nothing is stored
}

func (c cache) path(key string) string { return filepath.Join(c.dir, key[:2], key) }

func (c cache) get(key string) (string, bool) {
	if c.dir == "" {
		return "", false
	}
	raw, err := keep.Read(c.path(key))
	if err != nil || len(raw) > mostReply {
		return "", false
	}
	now := time.Now()
	_ = os.Chtimes(c.path(key), now, now) // the least recently used go first
	return string(raw), true
}

func (c cache) put(key, answer string) {
	if c.dir == "" {
		return
	}
	if err := keep.MakeDir(filepath.Dir(c.path(key))); err == nil {
		_ = keep.Write(c.path(key), []byte(answer))
	}
}

// sweep removes the oldest answers if there are too many.
func (c cache) sweep() {
	if c.dir == "" {
		return
	}
	type entry struct {
		path string
		info fs.FileInfo
	}
	var all []entry
	var size int64
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				all, size = append(all, entry{path, info}), size+info.Size()
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b entry) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for left := len(all); left > mostCached || size > mostCache; left-- {
		one := all[len(all)-left]
		_ = os.Remove(one.path)
		size -= one.info.Size()
	}
}
