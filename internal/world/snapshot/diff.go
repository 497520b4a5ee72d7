package snapshot

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// view is the tree of a checkpoint, or of the current workspace.
type view struct {
	v    *vault
	id   string // "" is the current workspace
	root entry
}

func (s *Store) view(v *vault, id string) (*view, error) {
	r, err := s.record(id)
	if err != nil {
		return nil, err
	}
	root, err := r.root()
	return &view{v, id, root}, err
}

// blame turns an object's error into one that names the checkpoint.
func (w *view) blame(path string, err error) error {
	if errors.Is(err, errDamaged) || errors.Is(err, errAbsent) {
		return &DamageError{Checkpoint: w.id, Path: path, What: err.Error()}
	}
	return err
}

// list returns the entries of a folder.
func (w *view) list(path string, dir entry) (*tree, error) {
	t, err := w.v.tree(dir.sum)
	if err != nil {
		return nil, w.blame(path, err)
	}
	return t, nil
}

// at returns the entry at a path.
func (w *view) at(path string) (entry, error) {
	e := w.root
	if path == "" {
		return e, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		switch e.kind {
		case isDir:
			t, err := w.list(path, e)
			if err != nil {
				return e, err
			}
			e = t.find(name)
		case isShut, isUnknown:
			e = entry{name: name, kind: isUnknown}
		default:
			return entry{}, nil
		}
	}
	return e, nil
}

// difference is a path where two views differ.
type difference struct {
	path     string
	old, now entry
}

// walk calls f for every path where two views differ, folders before their content. Paths below a folder that is
// unreadable in one view are unknown and left out.
func (w *view) walk(o *view, f func(difference) error) error {
	return w.walkEntry(o, "", w.root, o.root, f)
}

func (w *view) walkEntry(o *view, path string, a, b entry, f func(difference) error) error {
	if !a.same(b) {
		if err := f(difference{path, a, b}); err != nil {
			return err
		}
	}
	if a.kind == isDir && b.kind == isDir && a.sum == b.sum || a.kind == isShut || b.kind == isShut {
		return nil
	}
	var in, on tree
	for _, side := range []struct {
		view *view
		e    entry
		t    *tree
	}{{w, a, &in}, {o, b, &on}} {
		if side.e.kind != isDir {
			continue
		}
		t, err := side.view.list(path, side.e)
		if err != nil {
			return err
		}
		*side.t = *t
	}
	return w.walkLists(o, path, in.entries, on.entries, f)
}

// walkLists compares two sorted lists.
func (w *view) walkLists(o *view, path string, in, on []entry, f func(difference) error) error {
	for len(in) > 0 || len(on) > 0 {
		var a, b entry
		switch {
		case len(on) == 0 || len(in) > 0 && in[0].name < on[0].name:
			a, in = in[0], in[1:]
		case len(in) == 0 || on[0].name < in[0].name:
			b, on = on[0], on[1:]
		default:
			a, b, in, on = in[0], on[0], in[1:], on[1:]
		}
		if err := w.walkEntry(o, join(path, cmp.Or(a.name, b.name)), a, b, f); err != nil {
			return err
		}
	}
	return nil
}

// kindOf returns the kind of change at a path.
func kindOf(old, now entry) Kind {
	switch {
	case old.kind == nothing:
		return Create
	case now.kind == nothing:
		return Delete
	case old.class() != now.class():
		return Retype
	case old.sameContent(now):
		return ChangeMod
	}
	return Edit
}

func changeOf(path string, old, now entry, why string) Change {
	if path == "" {
		path = "."
	}
	return Change{Path: path, Kind: kindOf(old, now), Mode: now.mode(), Why: why}
}

func sortChanges(list []Change) {
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}
