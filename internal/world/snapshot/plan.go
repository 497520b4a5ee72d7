package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Reasons why a path is kept as it is.
const (
	whySince    = "others have changed it too"
	whyNotKept  = "its earlier content was not kept"
	whyNotHeld  = "its present content could not be brought back"
	whyMissing  = "its earlier content is missing from the store"
	whyHolds    = "it holds something that is not part of this"
	whyParent   = "the folder it was in is gone"
	whyNoFolder = "what it was in is not a folder"
	whyModOnly  = "only the permissions; the content is not kept"
	whyFolder   = "needed for what is in it"
)

// Merged is the Why of a change that preserves other changes in the file.
const Merged = "changes by others stay in it"

// Plan returns the plan of Restore. It changes nothing and takes no checkpoint.
func (s *Store) Plan(ctx context.Context, to string, spans []Span) (Plan, error) {
	v, unlock, err := s.reading(ctx)
	if err != nil {
		return Plan{}, err
	}
	defer unlock()
	if err := s.idle(); err != nil {
		return Plan{}, err
	}
	now := &dry{trees: map[digest][]byte{}}
	_, root, err := s.scan(ctx, now, s.loadCache())
	if err != nil {
		return Plan{}, fmt.Errorf("read the workspace: %w", err)
	}
	v.fresh = now.trees
	p, err := s.plan(ctx, &view{v: v, root: root}, to, spans, false)
	if err != nil {
		return Plan{}, fmt.Errorf("plan a restore: %w", err)
	}
	return p.public(), nil
}

// change is the old and the new state of a path.
type change struct {
	path     string
	from, to entry
	why      string
}

// plan is the plan of a restore.
type plan struct {
	s         *Store
	ctx       context.Context
	cur, want *view
	force     bool
	todo      map[string]change
	kept      []change
}

func (p *plan) public() Plan {
	var out Plan
	for _, c := range p.todo {
		out.Changes = append(out.Changes, changeOf(c.path, c.from, c.to, c.why))
	}
	for _, c := range p.kept {
		out.Kept = append(out.Kept, changeOf(c.path, c.from, c.to, c.why))
	}
	sortChanges(out.Changes)
	sortChanges(out.Kept)
	return out
}

// plan determines the changes that undo the differences within the spans.
func (s *Store) plan(ctx context.Context, cur *view, to string, spans []Span, force bool) (*plan, error) {
	want, err := s.view(cur.v, to)
	if err != nil {
		return nil, err
	}
	p := &plan{s: s, ctx: ctx, cur: cur, want: want, force: force, todo: map[string]change{}}
	left, err := s.touched(ctx, cur.v, spans)
	if err != nil {
		return nil, err
	}
	for _, path := range sorted(left) {
		if s.skips(path, left[path][len(left[path])-1].after) {
			continue
		}
		if err := p.decide(path, left[path]); err != nil {
			return nil, err
		}
	}
	if err := p.removals(); err != nil {
		return nil, err
	}
	return p, p.creations()
}

// touched returns the paths that differ within spans, with the changes of each span.
func (s *Store) touched(ctx context.Context, v *vault, spans []Span) (map[string][]leg, error) {
	left := map[string][]leg{}
	for _, span := range spans {
		before, err := s.view(v, span.Before)
		if err != nil {
			return nil, err
		}
		after, err := s.view(v, span.After)
		if err != nil {
			return nil, err
		}
		err = before.walk(after, func(d difference) error {
			left[d.path] = append(left[d.path], leg{d.old, d.now})
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

func sorted[T any](m map[string]T) []string {
	paths := make([]string, 0, len(m))
	for path := range m {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// skips reports whether a path, or a folder above it, must not be touched.
func (s *Store) skips(path string, e entry) bool {
	if path == "" {
		return false
	}
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		_, name := split(path[:i])
		if private(name) || s.Skip != nil && s.Skip(path[:i], i < len(path) || e.class() == isDir) {
			return true
		}
	}
	return false
}

// decide plans the change of one path, independent of others.
func (p *plan) decide(path string, legs []leg) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	from, err := p.cur.at(path)
	if err != nil {
		return err
	}
	to, why, err := p.undone(path, from, legs)
	if err == nil && why == whySince {
		to, err = p.want.at(path)
	}
	if err != nil || from.same(to) {
		return err
	}
	c := change{path: path, from: from, to: to}
	if c.why = p.obstacle(c, why); c.why != "" {
		p.kept = append(p.kept, c)
		return nil
	}
	if why == Merged {
		c.why = why
	}
	if c.modeOnly() && (!from.held() || !to.held()) {
		c.why = whyModOnly
	}
	p.todo[path] = c
	return nil
}

// modeOnly reports whether the content is not touched: it is the same, or a file or folder is unreadable and
// may be the same.
func (c change) modeOnly() bool {
	if c.from.sameContent(c.to) {
		return true
	}
	sealed := c.from.kind == isSealed || c.to.kind == isSealed
	return sealed && c.from.class() == isFile && c.to.class() == isFile && c.from.perm != c.to.perm
}

// obstacle returns the reason why a path can't be changed, or "". Why is the result of undone.
func (p *plan) obstacle(c change, why string) string {
	switch {
	case c.from.kind == isUnknown:
		return whyNotHeld
	case c.to.kind == isUnknown:
		return whyNotKept
	case why == whySince && !p.force:
		return whySince
	case c.modeOnly():
		return ""
	case !c.to.held():
		return whyNotKept
	case !c.from.held():
		return whyNotHeld
	case c.to.kind == isFile && p.cur.v.lost(c.to.sum):
		return whyMissing
	}
	return ""
}

func (p *plan) keep(c change, why string) {
	delete(p.todo, c.path)
	c.why = why
	p.kept = append(p.kept, c)
}

// removals keeps folders that can't be removed because a part of their content stays.
func (p *plan) removals() error {
	paths := sorted(p.todo)
	slices.Reverse(paths) // content before its folder
	for _, path := range paths {
		c := p.todo[path]
		if c.from.kind != isDir || c.to.class() == isDir {
			continue
		}
		t, err := p.cur.list(path, c.from)
		if err != nil {
			return err
		}
		stays := func(e entry) bool {
			in, changes := p.todo[join(path, e.name)]
			return !changes || in.to.kind != nothing
		}
		if t.part || slices.ContainsFunc(t.entries, stays) {
			p.keep(c, whyHolds)
		}
	}
	return nil
}

// creations keeps paths whose folder will not exist.
func (p *plan) creations() error {
	for _, path := range sorted(p.todo) { // folders before their content
		c := p.todo[path]
		if path == "" || c.to.kind == nothing {
			continue
		}
		dir, _ := split(path)
		why, err := p.parent(dir)
		if err != nil {
			return err
		}
		if why != "" {
			p.keep(c, why)
		}
	}
	return nil
}

// parent ensures that a folder will exist at a path, or returns the reason why it won't.
func (p *plan) parent(path string) (why string, err error) {
	if c, ok := p.todo[path]; ok {
		switch c.to.class() {
		case isDir:
			return "", nil
		case nothing:
			return whyParent, nil // it is removed together with its folder
		}
		return whyNoFolder, nil
	}
	from, err := p.cur.at(path)
	if err != nil || from.class() == isDir {
		return "", err
	}
	if from.kind != nothing {
		return whyNoFolder, nil
	}
	to, err := p.want.at(path)
	if err != nil {
		return "", err
	}
	if !p.force || to.kind != isDir || p.s.skips(path, to) {
		return whyParent, nil
	}
	dir, _ := split(path)
	if why, err := p.parent(dir); err != nil || why != "" {
		return why, err
	}
	p.todo[path] = change{path: path, to: to, why: whyFolder}
	return "", nil
}

// sound checks that all needed content can be read.
func (p *plan) sound() error {
	for _, c := range p.todo {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if c.modeOnly() {
			continue
		}
		if err := p.want.check(c.path, c.to); err != nil {
			return err
		}
	}
	return nil
}

// idle returns an error if a restore was interrupted.
func (s *Store) idle() error {
	_, err := readJournal(s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(ErrUnfinished, err)
}
