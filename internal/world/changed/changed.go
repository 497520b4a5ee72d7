// Package changed finds the files of a workspace that changed while something ran, by their times and sizes. It
// can't tell who changed them.
package changed

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/tool"
)

const (
	mostLooked = 20_000  // files of a workspace that are compared to find a program's changes
	mostNamed  = 200     // files that are listed
	mostRead   = 8 << 20 // bytes of a listed file
)

// Files records the state of the files of a workspace; nil if there were too many.
type Files map[string]stamp

// stamp is the state of a file, without its content.
type stamp struct {
	at   time.Time
	size int64
	mode fs.FileMode
}

// Look records the files below a folder, without those of git and package managers.
func Look(ctx context.Context, files tool.Files, root string) Files {
	out := Files{}
	dirs := []string{root}
	for len(dirs) > 0 {
		dir := dirs[0]
		dirs = dirs[1:]
		for _, e := range entries(ctx, files, dir) {
			path := filepath.Join(dir, e.Name())
			switch info, err := e.Info(); {
			case err != nil:
			case e.IsDir() && !slices.Contains([]string{".git", "node_modules", ".venv", "__pycache__"}, e.Name()):
				dirs = append(dirs, path)
			case info.Mode().IsRegular():
				out[path] = stamp{info.ModTime(), info.Size(), info.Mode()}
			}
		}
		if len(out)+len(dirs) > mostLooked || ctx.Err() != nil {
			return nil
		}
	}
	return out
}

func entries(ctx context.Context, files tool.Files, dir string) []fs.DirEntry {
	f, err := files.Open(ctx, dir)
	if err != nil {
		return nil // unreadable files are not reported
	}
	defer f.Close()
	d, is := f.(fs.ReadDirFile)
	if !is {
		return nil
	}
	list, _ := d.ReadDir(-1) // likewise
	return list
}

// Since returns the files below the folder that changed since. It returns nothing if there are too many files or
// too many changes.
func (before Files) Since(ctx context.Context, files tool.Files, root string) []tool.File {
	if before == nil {
		return nil
	}
	after := Look(ctx, files, root)
	if after == nil {
		return nil
	}
	var out []tool.File
	for path, s := range after {
		if was, there := before[path]; there && was == s {
			continue
		}
		if f, err := files.Open(ctx, path); err == nil {
			data, err := io.ReadAll(io.LimitReader(f, mostRead+1))
			if f.Close(); err == nil && len(data) <= mostRead {
				out = append(out, tool.File{Path: path, Digest: tool.Digest(data), Written: true, Partial: true})
			}
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			out = append(out, tool.File{Path: path, Written: true})
		}
	}
	if len(out) > mostNamed {
		return nil
	}
	slices.SortFunc(out, func(a, b tool.File) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
