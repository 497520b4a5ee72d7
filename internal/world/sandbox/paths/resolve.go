// Package paths resolves paths, and reaches files without following links: resolving, stamps of files, and open
// folders.
package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
)

// maxLinks bounds the symbolic links in one path, more than the Linux kernel allows.
const maxLinks = 255

// Resolve follows every symbolic link of an absolute path, as the kernel does: ".." leaves the directory that
// was reached, not the written one. Missing parts are preserved, so a dangling link resolves to its target.
func Resolve(path string) (string, error) { return ResolveBy(path, ReadLink) }

// ResolveBy is Resolve with another function to read links.
func ResolveBy(path string, link func(string) (string, error)) (string, error) {
	fail := func(err error) (string, error) {
		return "", &fs.PathError{Op: "resolve", Path: path, Err: err}
	}
	if !filepath.IsAbs(path) {
		return fail(errors.New("path is not absolute"))
	}
	if strings.IndexByte(path, 0) >= 0 {
		return fail(fs.ErrInvalid)
	}
	at, rest := top(path)
	todo := names(rest)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == "." {
			continue
		}
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := link(next)
		if err != nil {
			return fail(err)
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return fail(syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			at, target = top(target)
		}
		todo = append(names(target), todo...)
	}
	return at, nil
}

// ReadLink returns the target of a symbolic link, "" for anything else.
func ReadLink(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", keep.Bare(err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", nil
	}
	target, err := os.Readlink(path)
	return target, keep.Bare(err)
}

// top splits off the volume and the first separator of an absolute path.
func top(path string) (root, rest string) {
	vol := filepath.VolumeName(path)
	return vol + string(filepath.Separator), path[len(vol):]
}

// names splits a path at its separators.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 128 && os.IsPathSeparator(uint8(r)) })
}
