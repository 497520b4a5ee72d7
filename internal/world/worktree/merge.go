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

// Hunk is a place of a text that both sides have changed in different ways.
type Hunk struct {
	Line   int    // of ours, from 1, where it begins
	Ours   string // the lines there
	Theirs string
}

// markers are longer than any that a text is likely to hold.
const markers = 37

// Merge brings what theirs has changed of base into ours. With hunks there is no
// merged text. Line ends are ours, if all of them are alike. The error says that git
// could not do it, as it can't with what is no text.
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

// Adapt gives a text the line ends of ours, where those are all \r\n.
func Adapt(ours, text []byte) []byte {
	lines := bytes.Count(ours, []byte("\n"))
	if lines == 0 || bytes.Count(ours, []byte("\r\n")) != lines || bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}

// cut finds the conflicts in what git merge-file wrote.
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
