package transcript

import (
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
)

// Changes folds the events of a session into its changes to files, without undone ones. The zero value has none.
type Changes struct {
	All []Change // in order

	root   string
	marked map[string][]Change // as of each checkpoint
}

// Change is a call's change of a file.
type Change struct{ Path, Diff string }

// Apply folds an event.
func (c *Changes) Apply(e event.Event) {
	switch b := e.Body.(type) {
	case event.Opened:
		c.root = b.Root
	case event.Checkpoint:
		c.mark(b.ID)
	case event.Restored:
		c.restored(b)
	case event.Ended:
		for _, f := range b.Files {
			if f.Diff != "" {
				c.All = append(c.All, Change{f.Path, f.Diff})
			}
		}
	}
}

// mark records the changes as of a checkpoint.
func (c *Changes) mark(id string) {
	if c.marked == nil {
		c.marked = map[string][]Change{}
	}
	c.marked[id] = slices.Clip(c.All)
}

// restored resets the changes to those of a checkpoint, except for files that were left as they were.
func (c *Changes) restored(b event.Restored) {
	c.mark(b.Before)
	then, known := c.marked[b.To]
	if !known {
		return
	}
	put := func(change Change) bool {
		path, err := filepath.Rel(c.root, change.Path)
		return err == nil && slices.Contains(b.Files, filepath.ToSlash(path))
	}
	if b.Kept == 0 { // of many files, only some are named
		put = func(Change) bool { return true }
	}
	stay := slices.DeleteFunc(slices.Clone(c.All), put)
	back := slices.DeleteFunc(slices.Clone(then), func(change Change) bool { return !put(change) })
	c.All = slices.Concat(back, stay)
	c.mark(b.After)
}
