package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/inspan/inspan/internal/base/keep"
)

// Change is a proposed change: one piece of one file becomes another. It has its origin.
type Change struct {
	Root string `json:"root"` // the workspace
	File string `json:"file"` // below it, with slashes
	// Old is the piece, which occurs in the file once; empty means there is no such file. New replaces it; empty
	// means the file is removed. Both include lines around the change.
	Old  string  `json:"old"`
	New  string  `json:"new"`
	Why  string  `json:"why"`
	By   string  `json:"by"` // a person, or the model that wrote it
	From []Drawn `json:"from,omitempty"`
}

// Drawn is where a change was drawn from.
type Drawn struct {
	Session string   `json:"session"`
	Events  []uint64 `json:"events,omitempty"` // none: the whole session
}

// Limits of a change, so that a person can read all of it.
const (
	mostChanged = 16 << 10 // bytes of each piece
	mostFile    = 1 << 20
	around      = 3 // least number of lines in a piece before and after the change
)

// NewChange returns the change between two contents of a file; an empty content means that there is not a file.
func NewChange(root, file, before, after string) (Change, error) {
	c := Change{Root: root, File: filepath.ToSlash(filepath.Clean(file)), Old: before, New: after}
	for what, text := range map[string]string{
		"the name of the file": file, "the path of the workspace": root, "the file as it is": before, "the new content": after,
	} {
		if !utf8.ValidString(text) {
			return c, fmt.Errorf("change %q: %s is not UTF-8, as all text of a proposal has to be", file, what)
		}
	}
	if before != "" && after != "" {
		c.Old, c.New = pieces(before, after)
	}
	switch {
	case before == after:
		return c, fmt.Errorf("change %s: nothing is different", file)
	case !filepath.IsLocal(file):
		return c, fmt.Errorf("change %s: the file is not below the workspace", file)
	case max(len(c.Old), len(c.New)) > mostChanged:
		return c, fmt.Errorf("change %s: more than %d KiB change; propose smaller changes one by one", file, mostChanged>>10)
	}
	return c, nil
}

// pieces returns the parts of two contents between equal beginnings and ends, with enough lines around them
// that each occurs in its content once.
func pieces(before, after string) (old, changed string) {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for more := around; ; more++ {
		from, behind := max(0, head-more), max(0, tail-more)
		old, changed = strings.Join(a[from:len(a)-behind], ""), strings.Join(b[from:len(b)-behind], "")
		once := old != "" && changed != "" && strings.Count(before, old) == 1 && strings.Count(after, changed) == 1
		if once || from == 0 && behind == 0 {
			return old, changed
		}
	}
}

// ID returns the id of a change, which depends on its content.
func (c Change) ID() string {
	raw, err := json.Marshal(c)
	if err != nil { // strings and numbers always can be encoded
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:12]
}

// Settings reports whether the change is one of a settings file: config.toml, or a .toml file in a folder .inspan.
// Any other one, such as pyproject.toml, is a file of the workspace.
func (c Change) Settings() bool {
	folder, name := path.Split(c.File)
	return name == "config.toml" || path.Ext(name) == ".toml" && slices.Contains(strings.Split(folder, "/"), ".inspan")
}

// Diff returns the change as a diff for people.
func (c Change) Diff() string { return udiff.Unified("a/"+c.File, "b/"+c.File, c.Old, c.New) }

// Back returns the change that undoes this one.
func (c Change) Back() Change {
	c.Old, c.New = c.New, c.Old
	return c
}

// ErrMoved says that a file has changed at the place of a change, so that a person has to look.
var ErrMoved = errors.New("the file has changed there since")

// ErrLink says that a file can't be changed because its name is a link to it: a copy would replace the link.
var ErrLink = errors.New("it is a symbolic link, which nothing is written through; propose a change of the file that it leads to")

// On returns the content of the file after the change. If it has been made already, the content stays.
func (c Change) On(content string) (string, error) {
	made := c.Back()
	switch {
	case made.fits(content) && (!c.fits(content) || strings.Contains(c.New, c.Old)):
		return content, nil
	case !c.fits(content):
		return "", fmt.Errorf("change %s: %w", c.File, ErrMoved)
	case c.Old == "" || c.New == "":
		return c.New, nil
	}
	return strings.Replace(content, c.Old, c.New, 1), nil
}

func (c Change) fits(content string) bool {
	if c.Old == "" || c.New == "" {
		return content == c.Old
	}
	return strings.Count(content, c.Old) == 1
}

// Make makes the change in a workspace: its own, or a copy of that. For a symbolic link the error is [ErrLink].
func (c Change) Make(root string) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Lstat(c.File); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("change %s: %w", c.File, ErrLink)
	}
	content, err := keep.ReadFile(dir, c.File, mostFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed, err := c.On(string(content))
	if err != nil || changed == string(content) {
		return err
	}
	if changed == "" {
		return dir.Remove(c.File)
	}
	return replace(dir, c.File, changed)
}

// replace replaces a file atomically.
func replace(dir *os.Root, name, content string) error {
	mode := fs.FileMode(0o644)
	if info, err := dir.Stat(name); err == nil {
		mode = info.Mode().Perm()
	} else if err := dir.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	beside := name + ".inspan-new"
	if err := dir.WriteFile(beside, []byte(content), mode); err != nil {
		return errors.Join(err, dir.Remove(beside))
	}
	return dir.Rename(beside, name)
}
