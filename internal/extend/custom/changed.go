package custom

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

// stamp is the state of a file, without its content.
type stamp struct {
	at   time.Time
	size int64
	mode fs.FileMode
}

// stamps returns the stamps of the files below a folder, without files of git and package managers; nil if
// there are too many.
func stamps(ctx context.Context, files tool.Files, root string) map[string]stamp {
	out := map[string]stamp{}
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

// changed lists the files below a folder that have changed. It returns none if there were too many files or
// changes.
func changed(ctx context.Context, files tool.Files, root string, before map[string]stamp) []tool.File {
	if before == nil {
		return nil
	}
	after := stamps(ctx, files, root)
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
				out = append(out, tool.File{Path: path, Digest: tool.Digest(data), Written: true, Partly: true})
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
