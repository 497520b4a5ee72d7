package knowledge

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
)

// Bounds on listing files.
const (
	mostNames  = 20_000
	filesTime  = 3 * time.Second
	mostIgnore = 1 << 20 // bytes of an ignore file
)

// Files lists the files below root that git does not ignore, slash-separated and relative. It stops at a time
// limit, and doesn't follow links.
func Files(ctx context.Context, root string) []string {
	ctx, cancel := context.WithTimeout(ctx, filesTime)
	defer cancel()
	type folder struct {
		rel   string
		rules *places.Ignores
	}
	var out []string
	queue := []folder{{"", (*places.Ignores)(nil).Add("", ignoreFile(root, ".git/info/exclude"))}}
	for len(queue) > 0 && len(out) < mostNames && ctx.Err() == nil {
		f := queue[0]
		queue = queue[1:]
		entries, err := os.ReadDir(filepath.Join(root, f.rel))
		if err != nil {
			continue // skip unreadable entries
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
			f.rules = f.rules.Add(f.rel, ignoreFile(root, path.Join(f.rel, ".gitignore")))
		}
		for _, e := range entries {
			rel := path.Join(f.rel, e.Name())
			switch {
			case e.Name() == ".git" || f.rules.Ignored(rel, e.IsDir()):
			case e.IsDir():
				queue = append(queue, folder{rel, f.rules})
			default:
				out = append(out, rel)
			}
		}
	}
	return out[:min(len(out), mostNames)]
}

// ignoreFile reads an ignore file. An unreadable one ignores nothing.
func ignoreFile(root, name string) []byte {
	dir, err := keep.OpenFolder(root)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	data, err := keep.ReadFile(dir, name, mostIgnore)
	if err != nil {
		return nil
	}
	return data
}
