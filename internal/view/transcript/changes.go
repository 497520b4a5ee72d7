package transcript

import (
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
)

// Changes folds the events of a session into its changes of files, without changes that were undone. The zero value has
// none.
type Changes struct {
	All []Change // in order

	root   string
	marked map[string][]Change // the changes as of each checkpoint, by its id
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

// restored resets the changes of the restored files to their state at a checkpoint.
func (c *Changes) restored(b event.Restored) {
	c.mark(b.Before)
	then, known := c.marked[b.To]
	if !known {
		return
	}
	wasRestored := func(change Change) bool {
		path, err := filepath.Rel(c.root, change.Path)
		return err == nil && slices.Contains(b.Files, filepath.ToSlash(path))
	}
	if b.Kept == 0 { // all files were restored, and Files may name only some of them
		wasRestored = func(Change) bool { return true }
	}
	others := slices.DeleteFunc(slices.Clone(c.All), wasRestored)
	restored := slices.DeleteFunc(slices.Clone(then), func(change Change) bool { return !wasRestored(change) })
	c.All = slices.Concat(restored, others)
	c.mark(b.After)
}
