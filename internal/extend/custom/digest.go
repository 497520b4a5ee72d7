package custom

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/inspan/inspan/internal/base/keep"
)

// Bounds of one entry.
const (
	maxFiles = 1000
	maxBytes = 64 << 20
	maxDepth = 20 // nested folders
)

// digest returns the digest of an entry's content: of a file, of a link's target, or of everything in a folder.
// Trust is given for it. Errors continue the name of the entry.
func digest(root *os.Root, entry string) (string, error) {
	t := tree{root: root, sum: keep.Digest{Top: entry}, bytes: maxBytes, files: maxFiles}
	folder, err := t.add(entry, 0)
	if err != nil {
		return "", err
	}
	if folder {
		return t.sum.Folder(), nil
	}
	return t.sum.Single(), nil
}

// tree reads an entry.
type tree struct {
	root  *os.Root
	sum   keep.Digest
	bytes int64 // that may still be read
	files int   // that may still be read
}

func (t *tree) add(at string, depth int) (folder bool, err error) {
	if t.files--; t.files < 0 {
		return false, fmt.Errorf("has more than %d files and folders: make it smaller", maxFiles)
	}
	info, err := t.root.Lstat(at)
	switch {
	case err != nil:
		return false, fmt.Errorf("can't be read: %w", err)
	case info.IsDir():
		return true, t.addFolder(at, depth)
	case info.Mode().IsRegular():
		return false, t.addFile(at, t.sum.File(at))
	case info.Mode()&fs.ModeSymlink != 0:
		return false, t.addLink(at)
	}
	return false, fmt.Errorf("contains %s, which is not a file, a folder or a link", at)
}

func (t *tree) addFolder(at string, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("has folders nested more than %d deep", maxDepth)
	}
	names, err := list(t.root, at, maxFiles)
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	for _, name := range names {
		if _, err := t.add(path.Join(at, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) addLink(at string) error {
	target, err := t.root.Readlink(at)
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	info, err := t.root.Stat(at)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("has the link %s, which does not lead to a file of the same folder", at)
	}
	return t.addFile(at, t.sum.Link(at, target))
}

func (t *tree) addFile(at string, into *keep.Leaf) error {
	f, err := keep.OpenFile(t.root, at)
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.New("changed while inspan read it")
	}
	n, err := io.Copy(into, io.LimitReader(f, t.bytes+1))
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	if t.bytes -= n; t.bytes < 0 {
		return fmt.Errorf("has more than %d MiB: make it smaller", maxBytes>>20)
	}
	return into.Close()
}

// current returns the present digest of the program.
func (p program) current() (string, error) {
	root, err := os.OpenRoot(p.folder.Dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	return digest(root, p.entry)
}
