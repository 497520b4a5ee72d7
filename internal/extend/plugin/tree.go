package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Limits of one plugin.
const (
	MaxFiles = 5000     // files and folders
	MaxBytes = 50 << 20 // of all files together

	maxDepth = 20  // nested folders
	maxPath  = 300 // bytes
)

// leaf is a file of a plugin.
type leaf struct {
	path   string // with slashes, from the folder of the plugin
	exec   bool   // it has an executable bit
	script bool   // it begins with #!
	stub   bool   // it stands for a big file stored elsewhere (git LFS)
	sum    string // SHA-256 of its content
}

// runs reports whether the file can be started by itself.
func (l leaf) runs() bool {
	if l.exec || l.script {
		return true
	}
	switch strings.ToLower(path.Ext(l.path)) {
	case ".sh", ".bash", ".zsh", ".fish", ".py", ".rb", ".pl", ".php", ".lua",
		".js", ".mjs", ".cjs", ".ts", ".ps1", ".bat", ".cmd", ".exe", ".jar", ".go":
		return true
	}
	return false
}

// digestOf returns the digest of a plugin's content: paths, executable bits and contents.
func digestOf(leaves []leaf) string {
	d := sha256.New()
	for _, l := range leaves {
		fmt.Fprintf(d, "%s %t %s\n", strconv.Quote(l.path), l.exec, l.sum)
	}
	return hex.EncodeToString(d.Sum(nil))
}

// tree reads a folder, and copies the files that it reads.
type tree struct {
	from   *os.Root
	into   *os.Root // nil means nothing is copied
	pinned bool     // it is a copy, which only has folders and files

	leaves []leaf
	taken  map[string]string // paths by their lower-case form
	left   int64             // bytes that may still be read
	count  int
}

// scan reads a folder, in order of paths, and copies it if into is not nil. Git's own files are omitted. No
// link leads out of the folder; a link to a file becomes a file. Errors continue the name of the folder.
func scan(from, into *os.Root, pinned bool) ([]leaf, error) {
	t := tree{from: from, into: into, pinned: pinned, taken: map[string]string{}, left: MaxBytes}
	if err := t.folder(".", 0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.leaves, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return t.leaves, nil
}

func (t *tree) folder(at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("has folders nested more than %d deep", maxDepth)
	}
	names, err := t.names(at)
	if err != nil {
		return fmt.Errorf("can't be read: %s: %w", text.Visible(at), keep.Bare(err))
	}
	for _, name := range names {
		if strings.EqualFold(name, ".git") && !t.pinned {
			continue
		}
		if err := t.add(path.Join(at, name), depth); err != nil {
			return err
		}
	}
	return nil
}

// names lists a folder, without blocking on something that is not one.
func (t *tree) names(at string) ([]string, error) {
	f, err := keep.OpenFile(t.from, filepath.FromSlash(at))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(MaxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (t *tree) add(at string, depth int) error {
	if t.count++; t.count > MaxFiles {
		return fmt.Errorf("has more than %s files and folders", text.Thousands(MaxFiles))
	}
	if err := t.name(at); err != nil {
		return err
	}
	info, err := t.from.Lstat(filepath.FromSlash(at))
	switch {
	case err != nil:
		return fmt.Errorf("can't be read: %s: %w", at, keep.Bare(err))
	case info.IsDir():
		if t.into != nil {
			if err := t.into.Mkdir(filepath.FromSlash(at), 0o700); err != nil {
				return fmt.Errorf("can't be copied: %w", err)
			}
		}
		return t.folder(at, depth+1)
	case info.Mode()&fs.ModeSymlink != 0:
		return t.link(at)
	case !info.Mode().IsRegular():
		return fmt.Errorf("has %s in it, which is not a file or a folder", at)
	}
	return t.file(at)
}

// name refuses names that a person, or another system, could not distinguish.
func (t *tree) name(at string) error {
	switch {
	case !utf8.ValidString(at) || strings.ContainsFunc(at, text.Hidden.Has) || strings.Contains(at, `\`):
		return fmt.Errorf("has %q in it, a name with characters that are invisible or not portable", at)
	case len(at) > maxPath:
		return fmt.Errorf("has a path of %d bytes in it, more than %d: %.80s…", len(at), maxPath, at)
	}
	key := strings.ToLower(at)
	if other, is := t.taken[key]; is {
		return fmt.Errorf("has both %s and %s in it, which differ only in upper and lower case", other, at)
	}
	t.taken[key] = at
	return nil
}

func (t *tree) link(at string) error {
	if t.pinned {
		return fmt.Errorf("has the new link %s in it", at)
	}
	target, err := t.from.Readlink(filepath.FromSlash(at))
	if err != nil {
		return fmt.Errorf("can't be read: %s: %w", at, keep.Bare(err))
	}
	info, err := t.from.Stat(filepath.FromSlash(at))
	switch {
	case err != nil:
		return fmt.Errorf("has the link %s in it, which leads out of the folder, or nowhere", at)
	case !info.Mode().IsRegular():
		return fmt.Errorf("has the link %s in it, which does not lead to a file", at)
	case slices.ContainsFunc(strings.Split(filepath.ToSlash(target), "/"), func(part string) bool { return strings.EqualFold(part, ".git") }):
		return fmt.Errorf("has the link %s in it, which leads into git's own files", at)
	}
	return t.file(at)
}

// file reads one file, and copies it if requested.
func (t *tree) file(at string) error {
	f, err := keep.OpenFile(t.from, filepath.FromSlash(at))
	if err != nil {
		return fmt.Errorf("can't be read: %s: %w", at, keep.Bare(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("changed while it was read: %s", at)
	}
	l := leaf{path: at, exec: info.Mode()&0o111 != 0 && runtime.GOOS != "windows"}
	head := keep.Head{Limit: 64}
	sum := sha256.New()
	into := io.MultiWriter(sum, &head)
	done := func() error { return nil }
	if t.into != nil {
		mode := fs.FileMode(0o600)
		if l.exec {
			mode = 0o700
		}
		copied, err := t.into.OpenFile(filepath.FromSlash(at), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return fmt.Errorf("can't be copied: %w", err)
		}
		into, done = io.MultiWriter(sum, &head, copied), copied.Close
	}
	n, err := io.Copy(into, io.LimitReader(f, t.left+1))
	if err = errors.Join(err, done()); err != nil {
		return fmt.Errorf("can't be copied: %s: %w", at, err)
	}
	if t.left -= n; t.left < 0 {
		return fmt.Errorf("has more than %d MiB in it", MaxBytes>>20)
	}
	l.sum = hex.EncodeToString(sum.Sum(nil))
	begins, _ := head.Bytes()
	l.script = bytes.HasPrefix(begins, []byte("#!"))
	l.stub = bytes.HasPrefix(begins, []byte("version https://git-lfs.github.com/spec/"))
	t.leaves = append(t.leaves, l)
	return nil
}

// readFile reads a file of at most so many bytes below a root.
func readFile(root *os.Root, at string, most int) ([]byte, error) {
	data, err := keep.ReadFile(root, filepath.FromSlash(at), most)
	return data, keep.Bare(err)
}
