package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
)

const suiteFile = "suite.toml"

// Suite is a list of tasks.
type Suite struct {
	Name   string
	Path   string // folder or file from which it was read
	Digest string // of all its content except the pin, sha256 in hex
	Pin    string // the required digest; empty means any
	// Open says that the checkers are not secret, since no model takes part: the tasks may be tried where the
	// agent could see them.
	Open  bool
	Tasks []*Task // sorted by id
}

// suiteSpec is the content of suite.toml.
type suiteSpec struct {
	Name   string              `toml:"name"`
	Digest string              `toml:"digest"`
	Open   bool                `toml:"open"`
	Splits map[string][]string `toml:"splits"` // globs over ids, by the name of the split
}

// ErrChanged says that a suite has changed since it was pinned, or since a run of it began.
var ErrChanged = errors.New("the suite has changed")

// OpenSuite reads the suite at a path: a folder of tasks, one task, a folder of the .txt format, a file of
// rows (.jsonl), or a configuration of promptfoo (.yaml). Repos is the folder with the repositories that rows name; it may be empty. The error names all
// problems; one that wraps [ErrChanged] says that the pin does not match.
func OpenSuite(path, repos string) (*Suite, error) {
	s, err := readSuite(path, repos)
	if err == nil && s.Pin != "" && s.Pin != s.Digest {
		return nil, fmt.Errorf("%w: its digest is %s, and %s pins %s; to pin what it is now, run: inspan eval validate --pin %s",
			ErrChanged, s.Digest, suiteFile, s.Pin, s.Path)
	}
	return s, err
}

// readSuite is [OpenSuite] without the check of the pin.
func readSuite(path, repos string) (*Suite, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, words.Misuse{Err: fmt.Errorf("there is no suite: %w", err)}
	}
	s := &Suite{Name: filepath.Base(path), Path: keep.Real(path)}
	if !info.IsDir() {
		s.Name = strings.TrimSuffix(s.Name, filepath.Ext(s.Name))
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			err = s.readPromptfoo()
		} else {
			err = s.readRows(repos)
		}
	} else {
		err = s.readFolder()
	}
	if len(config.Faults(err)) > 0 { // of files that are not settings, so the remedy for those would mislead
		return nil, words.Misuse{Err: errors.New(err.Error())}
	}
	if err != nil {
		return nil, err
	}
	return s, s.check()
}

// mostSpec is the limit in bytes for the description of a suite or a task: the time to read it grows faster
// than its size.
const mostSpec = 64 << 10

// readSpec reads the description of a suite or a task; a missing file gives the zero value.
func readSpec[T any](path string) (spec T, err error) {
	if _, err := config.ReadAtMost(path, mostSpec); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return spec, err
	}
	return config.Read[T](path)
}

// check checks the tasks together, and sorts them. The name is shown wherever runs are.
func (s *Suite) check() error {
	s.Name = text.Visible(words.OneLine(s.Name, 100))
	if len(s.Tasks) == 0 {
		return words.Misuse{Err: fmt.Errorf("%s holds no tasks: a task is a folder with %s and %s", s.Path, taskFile, askFile)}
	}
	slices.SortStableFunc(s.Tasks, func(a, b *Task) int { return strings.Compare(a.ID, b.ID) })
	for i, t := range s.Tasks[1:] {
		if t.ID == s.Tasks[i].ID {
			return fmt.Errorf("%s: two tasks have the id %s", s.Path, t.ID)
		}
	}
	return nil
}

// readFolder reads a folder of tasks, or one task.
func (s *Suite) readFolder() (err error) {
	if err := enclosed(s.Path); err != nil {
		return err
	}
	if s.Digest, err = folderDigest(s.Path, unpinned); err != nil {
		return err
	}
	var spec suiteSpec
	if spec, err = readSpec[suiteSpec](filepath.Join(s.Path, suiteFile)); err != nil {
		return err
	}
	if spec.Name != "" {
		s.Name = spec.Name
	}
	s.Pin, s.Open = spec.Digest, spec.Open
	dirs, err := os.ReadDir(s.Path)
	if err != nil {
		return err
	}
	var errs []error
	if isTask(s.Path) {
		errs = append(errs, s.add(s.Path))
		dirs = nil
	}
	for _, d := range dirs {
		at := filepath.Join(s.Path, d.Name())
		switch {
		case d.IsDir() && isTask(at):
			errs = append(errs, s.add(at))
		case filepath.Ext(d.Name()) == ".txt":
			errs = append(errs, s.addText(at))
		}
	}
	return errors.Join(append(errs, s.split(spec.Splits))...)
}

// enclosed refuses a link that leaves a folder: content elsewhere is in no digest, and a task may have no right
// to show it.
func enclosed(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if _, err := root.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: it is a link that leaves %s", filepath.Join(dir, path), dir)
		}
		return nil
	})
}

// isTask reports whether a folder has a task.
func isTask(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, taskFile))
	return err == nil
}

// add reads the folder of a task, in our format or in Harbor's.
func (s *Suite) add(dir string) error {
	for _, part := range []string{"", filesFolder, checkFolder, harborEnv, harborTests} { // folders that are copied elsewhere are separate
		if err := enclosed(filepath.Join(dir, part)); err != nil {
			return err
		}
	}
	read := openTask
	if _, err := os.Stat(filepath.Join(dir, harborTests)); err == nil {
		read = openHarbor
	}
	t, err := read(dir)
	if err == nil {
		s.Tasks = append(s.Tasks, t)
	}
	return err
}

// split gives tasks the splits of the suite. A task's own split must agree.
func (s *Suite) split(splits map[string][]string) error {
	at := filepath.Join(s.Path, suiteFile)
	var errs []error
	for name, globs := range splits {
		if !slices.Contains([]Split{Train, Dev, HeldOut}, Split(name)) {
			errs = append(errs, fmt.Errorf("splits.%s: unknown split; use train, dev or held-out", name))
			continue
		}
		for _, glob := range globs {
			errs = append(errs, s.splitOff(Split(name), glob))
		}
	}
	return config.Faulty(at, errs...)
}

func (s *Suite) splitOff(name Split, glob string) error {
	found := false
	for _, t := range s.Tasks {
		ok, err := doublestar.Match(glob, t.ID)
		switch {
		case err != nil:
			return fmt.Errorf("splits.%s: %q is not a glob: %w", name, glob, err)
		case !ok:
			continue
		case t.Split != "" && t.Split != name:
			return fmt.Errorf("splits.%s: task %s is in split %s already", name, t.ID, t.Split)
		}
		t.Split, found = name, true
	}
	if !found {
		return fmt.Errorf("splits.%s: no task has an id like %q", name, glob)
	}
	return nil
}

// Of returns the tasks of a split. Those without one count as [Dev]; empty means all that are not held out.
func (s *Suite) Of(split Split) (tasks []*Task) {
	for _, t := range s.Tasks {
		is := t.Split
		if is == "" {
			is = Dev
		}
		if is == split || split == "" && is != HeldOut {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Pin writes the digest of the suite in a folder into its suite.toml, and returns it.
func Pin(path string) (string, error) {
	s, err := readSuite(path, "")
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.Path, suiteFile)
	data, err := keep.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil: // among others, a suite that is a file: its content is its digest
		return "", words.Misuse{Err: fmt.Errorf("only a folder has a %s to pin it in: %w", suiteFile, err)}
	}
	line := []byte("digest = \"" + s.Digest + "\"\n")
	return s.Digest, keep.Write(file, append(line, unpinned(suiteFile, data)...))
}

// unpinned returns suite.toml without its pin, because a pin can't cover itself.
func unpinned(name string, data []byte) []byte {
	if name != suiteFile {
		return data
	}
	var out []byte
	for line := range bytes.Lines(data) {
		key, _, _ := bytes.Cut(line, []byte("="))
		if string(bytes.TrimSpace(key)) != "digest" {
			out = append(out, line...)
		}
	}
	return out
}

// folderDigest returns the digest of a folder's content. As, if not nil, returns the content that counts instead.
func folderDigest(dir string, as func(name string, data []byte) []byte) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	var sum keep.Digest
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(path)
			if err == nil {
				err = sum.Link(path, target).Close()
			}
			return err
		case !d.Type().IsRegular():
			return fmt.Errorf("%s: %s is neither a file, nor a folder, nor a link", dir, path)
		}
		name := path
		if info, err := d.Info(); err == nil && info.Mode()&0o111 != 0 {
			name += "\x00executable" // no path has that
		}
		return leaf(root, path, sum.File(name), as)
	})
	return sum.Folder(), err
}

// leaf adds a file to a digest.
func leaf(root *os.Root, path string, into *keep.Leaf, as func(string, []byte) []byte) error {
	f, err := keep.OpenFile(root, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if as != nil && path == suiteFile {
		data, err := io.ReadAll(f)
		if err != nil || len(as(path, data)) == 0 { // a file with only a pin counts as missing
			return err
		}
		_, _ = into.Write(as(path, data))
		return into.Close()
	}
	if _, err := io.Copy(into, f); err != nil {
		return err
	}
	return into.Close()
}

// textDigest returns the digest of texts.
func textDigest(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d\n%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
