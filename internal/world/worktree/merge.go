package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Hunk is a place of a text that both sides changed differently.
type Hunk struct {
	Line   int    // of ours, from 1, where it begins
	Ours   string // the lines there
	Theirs string
}

// markers is the length of conflict markers, longer than any that a text is likely to contain.
const markers = 37

// Merge merges the changes from base to theirs into ours. With hunks there is no merged text. Line ends are
// those of ours, if they are uniform. The error says that git could not merge, for example binary files.
func (s *Store) Merge(ctx context.Context, ours, base, theirs []byte) (merged []byte, hunks []Hunk, err error) {
	base, theirs = Adapt(ours, base), Adapt(ours, theirs)
	switch {
	case bytes.Equal(ours, theirs), bytes.Equal(base, theirs):
		return ours, nil, nil
	case bytes.Equal(ours, base):
		return theirs, nil, nil
	}
	top, err := s.folder()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(top, ".merge-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	for name, data := range map[string][]byte{"ours": ours, "base": base, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, nil, err
		}
	}
	out, code, err := s.Git(ctx, dir, nil, "-c", "merge.conflictStyle=merge", "merge-file", "-p", "--quiet",
		fmt.Sprintf("--marker-size=%d", markers), "ours", "base", "theirs")
	switch {
	case code == 0 && err == nil:
		return out, nil, nil
	case code > 0 && code < 128: // the number of conflicts
		hunks, err = cut(string(out))
		return nil, hunks, err
	}
	return nil, nil, errors.Join(errors.New("git merge-file failed"), err)
}

// Adapt converts the line ends of a text to \r\n if all of ours are.
func Adapt(ours, text []byte) []byte {
	lines := bytes.Count(ours, []byte("\n"))
	if lines == 0 || bytes.Count(ours, []byte("\r\n")) != lines || bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}

// cut extracts the conflicts from the output of git merge-file.
func cut(text string) ([]Hunk, error) {
	var hunks []Hunk
	var at *Hunk
	theirs, line := false, 1
	for l := range strings.Lines(text) {
		switch {
		case marks(l, '<'):
			at, theirs = &Hunk{Line: line}, false
		case at != nil && marks(l, '='):
			theirs = true
		case at != nil && marks(l, '>'):
			hunks, at = append(hunks, *at), nil
		case at != nil && theirs:
			at.Theirs += l
		case at != nil:
			at.Ours += l
			line++
		default:
			line++
		}
	}
	if len(hunks) == 0 || at != nil {
		return nil, errors.New("what git merge-file wrote is not understood")
	}
	return hunks, nil
}

func marks(line string, with byte) bool {
	return strings.HasPrefix(line, strings.Repeat(string(with), markers))
}
