package consent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Written is an instruction file in the state in which a session wrote it unasked.
type Written struct {
	Root    string    `json:"root"`
	Path    string    `json:"path"` // relative to Root, with slashes
	Digest  string    `json:"digest"`
	Session string    `json:"session"`
	At      time.Time `json:"at"`
}

// mostWritten bounds the recorded files; the oldest are removed.
const mostWritten = 5000

// Wrote records files of a workspace root that a session wrote, by their content.
func (s *Store) Wrote(ctx context.Context, root, session string, files map[string][]byte) error {
	root, err := canonical(root)
	if err != nil {
		return fmt.Errorf("remember what was written: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	return change(ctx, s, writtenFile, func(list []Written) ([]Written, bool) {
		for path, content := range files {
			list = slices.DeleteFunc(list, func(w Written) bool { return w.Root == root && w.Path == path })
			list = append(list, Written{root, path, keep.SHA256(content), session, now})
		}
		return list[max(0, len(list)-mostWritten):], len(files) > 0
	})
}

// Author returns the session that wrote exactly this content to a path without links, in any workspace, if no
// person has trusted the content; empty means unknown.
func (s *Store) Author(path string, content []byte) (session string, err error) {
	list, err := s.unconfirmed()
	for _, w := range list {
		if w.file() == path && w.Digest == keep.SHA256(content) {
			session = w.Session
		}
	}
	return session, err
}

func (w Written) file() string { return filepath.Join(w.Root, filepath.FromSlash(w.Path)) }

// unconfirmed lists the files that sessions wrote and no person has trusted.
func (s *Store) unconfirmed() ([]Written, error) {
	list, err := load[Written](s, writtenFile)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	trusted, err := load[pair](s, trustFile)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(w Written) bool {
		return slices.ContainsFunc(trusted, func(p pair) bool { return p.is(w.Root, Item{Path: w.Path, Digest: w.Digest}) })
	}), nil
}

// unconfirmedItems returns the files in a root that are unchanged since a session wrote them.
func (s *Store) unconfirmedItems(root string) ([]Item, error) {
	root, err := former(root)
	if err != nil {
		return nil, err
	}
	list, err := s.unconfirmed()
	var items []Item
	for _, w := range list {
		if w.Root != root {
			continue
		}
		if content, err := keep.Read(w.file()); err == nil && keep.SHA256(content) == w.Digest {
			items = append(items, Item{
				Path: w.Path, Digest: w.Digest, Kind: Instructions,
				Runs: []string{"written by session " + w.Session + "; agents treat it as unconfirmed"},
			})
		}
	}
	return items, err
}
