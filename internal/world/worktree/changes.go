package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// Bounds on changes that are transferred at once.
const (
	maxChanges = 5000      // files
	maxTotal   = 256 << 20 // bytes, before and after
)

// Change is a file that was added, removed or changed in a copy since its base. A moved file is one removed and
// one added.
type Change struct {
	Path   string // relative to the workspace, with slashes
	Base   *Blob  // in the base; nil means missing
	Theirs *Blob  // in the copy; nil means removed
	// Why is the reason why it can't be merged; then Base and Theirs are nil, and Path may lead out of the
	// workspace. Empty means it can be merged.
	Why string
}

// Blob is the content of a file.
type Blob struct {
	Data []byte // as in the workspace, with its line ends
	Exec bool   // executable
}

// Changes lists the differences of a copy from its base, including committed ones, and returns the commit of
// its current state, for [Store.Rebase]. Ignored files are left out.
func (s *Store) Changes(ctx context.Context, t Tree) (changes []Change, now string, err error) {
	if err := t.repo.inert(); err != nil {
		return nil, "", err
	}
	list, err := s.paths(ctx, t.admin, t.dir)
	if err != nil {
		return nil, "", err
	}
	if now, err = s.record(ctx, t.repo, t.admin, t.dir, list); err != nil {
		return nil, "", fmt.Errorf("record a worktree: %w", err)
	}
	out, _, err := s.git(ctx, t.repo.dir, t.dir, nil, "diff-tree", "-r",
		"--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", t.Base, now)
	if err != nil {
		return nil, "", err
	}
	pairs, err := parse(out)
	if err == nil && len(pairs) > maxChanges {
		err = fmt.Errorf("%d files were changed, more than %d", len(pairs), maxChanges)
	}
	if err != nil {
		return nil, "", err
	}
	sizes, err := s.sizes(ctx, t, pairs)
	if err != nil {
		return nil, "", err
	}
	var before, after []string
	total := int64(0)
	for _, p := range pairs {
		c := Change{Path: t.repo.below(p.path), Why: p.why(sizes)}
		if !filepath.IsLocal(filepath.FromSlash(c.Path)) {
			c.Why = "outside of the workspace"
		}
		if c.Why == "" {
			before, after = p.old.add(before, p.path), p.new.add(after, p.path)
			total += sizes[p.old.id] + sizes[p.new.id]
		}
		changes = append(changes, c)
	}
	if total > maxTotal {
		return nil, "", fmt.Errorf("what was changed has %d MiB, more than %d", total>>20, maxTotal>>20)
	}
	if err := s.fill(ctx, t, changes, pairs, now, before, after); err != nil {
		return nil, "", err
	}
	for _, path := range list.left {
		changes = append(changes, Change{Path: t.repo.below(path), Why: whyLeft(path)})
	}
	return changes, now, nil
}

func whyLeft(path string) string {
	if strings.HasSuffix(path, "/") {
		return "a repository of its own"
	}
	return tooLarge
}

const tooLarge = "larger than 20 MiB" // MaxFile

// below converts a path of the repository to one of the workspace.
func (r repository) below(path string) string {
	rel, err := filepath.Rel(r.prefix, filepath.FromSlash(path))
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// pair is a file before and after.
type pair struct {
	path string
	old  side
	new  side
}

// side is git's mode and id of a file.
type side struct{ mode, id string }

func (s side) missing() bool { return s.mode == "000000" }
func (s side) regular() bool { return strings.HasPrefix(s.mode, "100") }

// parse parses the output of git diff-tree --raw -z.
func parse(out []byte) ([]pair, error) {
	fields := split(out)
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("git wrote %d fields", len(fields))
	}
	var pairs []pair
	for i := 0; i < len(fields); i += 2 {
		words := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(words) != 5 {
			return nil, fmt.Errorf("git wrote %q", fields[i])
		}
		pairs = append(pairs, pair{path: fields[i+1], old: side{words[0], words[2]}, new: side{words[1], words[3]}})
	}
	return pairs, nil
}

// sizes returns the sizes of the files of pairs, by id, in bytes.
func (s *Store) sizes(ctx context.Context, t Tree, pairs []pair) (map[string]int64, error) {
	var ids strings.Builder
	for _, p := range pairs {
		for _, one := range []side{p.old, p.new} {
			if one.regular() {
				fmt.Fprintln(&ids, one.id)
			}
		}
	}
	sizes := map[string]int64{}
	if ids.Len() == 0 {
		return sizes, nil
	}
	out, _, err := s.git(ctx, t.repo.dir, t.dir, []byte(ids.String()), "cat-file", "--batch-check")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("git wrote %q", line)
		}
		if sizes[words[0]], err = strconv.ParseInt(words[2], 10, 64); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// why returns the reason why a pair can't be merged; empty if it can.
func (p pair) why(sizes map[string]int64) string {
	for _, one := range []side{p.old, p.new} {
		switch {
		case one.mode == "120000":
			return "a symbolic link"
		case one.mode == "160000":
			return "a submodule"
		case sizes[one.id] > MaxFile:
			return tooLarge
		}
	}
	return ""
}

// add appends a path if the file exists.
func (s side) add(paths []string, path string) []string {
	if s.missing() {
		return paths
	}
	return append(paths, path)
}

// blob returns the file with its content.
func (s side) blob(data []byte) *Blob {
	if s.missing() {
		return nil
	}
	return &Blob{Data: data, Exec: s.mode == "100755"}
}

// fill sets the contents of changes: before and after are the paths to read, in the base and now.
func (s *Store) fill(ctx context.Context, t Tree, changes []Change, pairs []pair, now string, before, after []string) error {
	old, err := s.contents(ctx, t, t.Base, before)
	if err != nil {
		return err
	}
	current, err := s.contents(ctx, t, now, after)
	if err != nil {
		return err
	}
	for i, p := range pairs {
		if changes[i].Why == "" {
			changes[i].Base, changes[i].Theirs = p.old.blob(old[p.path]), p.new.blob(current[p.path])
		}
	}
	return nil
}

// contents reads files of a commit as they would be checked out, with a single run of git.
func (s *Store) contents(ctx context.Context, t Tree, commit string, paths []string) (out map[string][]byte, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	own, err := s.scratch(t.repo, t.admin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	if _, _, err := s.git(ctx, own, t.dir, nil, "read-tree", commit); err != nil {
		return nil, err
	}
	files := filepath.Join(own, "files")
	stdin := []byte(strings.Join(paths, "\x00") + "\x00")
	if _, _, err := s.git(ctx, own, t.dir, stdin, "checkout-index", "-z", "--stdin", "--prefix="+files+"/"); err != nil {
		return nil, err
	}
	out = map[string][]byte{}
	for _, path := range paths {
		if out[path], err = keep.Read(filepath.Join(files, filepath.FromSlash(path))); err != nil {
			return nil, err
		}
	}
	return out, nil
}
