package subagent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

const (
	maxDiff    = 100 << 10 // bytes of the diff of a file, for people
	maxPreview = 30 << 10  // bytes of all diffs in a question to a person
	maxDiffed  = 4 << 20   // bytes of text that are compared
	maxReport  = 16 << 10  // bytes of conflicts in a text for the model
	maxHunk    = 1500      // bytes of a side of one
)

// mergePlan is the plan for merging the changes of a child's copy into the workspace.
type mergePlan struct {
	tree    worktree.Tree
	now     string // the state of the copy, see [worktree.Store.Changes]
	steps   []step
	clashes []conflictedFile
	left    []worktree.Change // those that can't be merged
	same    int               // number of files that are equal on both sides
	whole   bool              // it covers all changes of the copy
}

// step is a file to write or to remove.
type step struct {
	name   string // below the workspace
	path   string // resolved
	before *worktree.Blob
	after  *worktree.Blob // nil means to be removed
}

// describe describes a step, with one letter as git does.
func (s step) describe() string {
	switch {
	case s.after == nil:
		return "D " + fileName(s.name)
	case s.before == nil:
		return "A " + fileName(s.name)
	case s.before.Exec && !s.after.Exec:
		return "M " + fileName(s.name) + " (not executable any more)"
	case !s.before.Exec && s.after.Exec:
		return "M " + fileName(s.name) + " (executable now)"
	}
	return "M " + fileName(s.name)
}

// plan plans a merge, and changes nothing. Only names the wanted files; empty means all.
func (t *Team) plan(ctx context.Context, c *tool.Call, child inspan.Child, only []string) (mergePlan, error) {
	tree, err := t.tree(ctx, child)
	if err != nil {
		return mergePlan{}, err
	}
	return plan(ctx, t.Trees, tree, c.Env, only)
}

// plan is [Team.plan] for a copy of the workspace of an environment.
func plan(ctx context.Context, trees *worktree.Store, tree worktree.Tree, env tool.Env, only []string) (mergePlan, error) {
	changes, now, err := trees.Changes(ctx, tree)
	if err != nil {
		return mergePlan{}, err
	}
	m := mergePlan{tree: tree, now: now, whole: len(only) == 0}
	if !m.whole {
		if changes, err = selectChanges(changes, only); err != nil {
			return mergePlan{}, err
		}
	}
	for _, change := range changes {
		if err := m.compare(ctx, trees, env, change); err != nil {
			return mergePlan{}, fmt.Errorf("%s: %w", change.Path, err)
		}
	}
	return m, nil
}

// tree finds the copy in which a child works.
func (t *Team) tree(ctx context.Context, child inspan.Child) (worktree.Tree, error) {
	st := t.session.Status()
	if t.Trees == nil || child.Root == "" {
		return worktree.Tree{}, fmt.Errorf("agent %s works in your workspace; there is nothing to merge", short(child.Child))
	}
	tree, found, err := t.Trees.Find(ctx, st.Root, copyName(st.Session, child.Call))
	if err == nil && !found {
		err = fmt.Errorf("the copy of agent %s was removed", short(child.Child))
	}
	return tree, err
}

// selectChanges selects changes by the names of their files or folders.
func selectChanges(changes []worktree.Change, only []string) ([]worktree.Change, error) {
	var out []worktree.Change
	for _, name := range only {
		found := false
		name = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(name)), "/")
		for _, c := range changes {
			if c.Path != name && !strings.HasPrefix(c.Path, name+"/") {
				continue
			}
			found = true
			if !slices.ContainsFunc(out, func(o worktree.Change) bool { return o.Path == c.Path }) {
				out = append(out, c)
			}
		}
		if !found {
			return nil, fmt.Errorf("the agent has changed no file %q", name)
		}
	}
	return out, nil
}

// compare compares a change of the copy with the file here.
func (m *mergePlan) compare(ctx context.Context, trees *worktree.Store, env tool.Env, change worktree.Change) error {
	if change.Why != "" {
		m.left = append(m.left, change)
		return nil
	}
	path, err := env.Files.Resolve(ctx, filepath.Join(env.Root, filepath.FromSlash(change.Path)))
	if err != nil {
		return err
	}
	ours, problem := read(ctx, env.Files, path)
	if problem != "" {
		m.clashes = append(m.clashes, conflictedFile{name: change.Path, why: problem})
		return nil
	}
	after, why, hunks, err := mergeContent(ctx, trees, ours, change)
	if ours != nil && after != nil { // the side that has changed the executable bit decides
		exec := ours.Exec
		if b := change.Base; b != nil && change.Theirs != nil && b.Exec != change.Theirs.Exec {
			exec = change.Theirs.Exec
		}
		after = &worktree.Blob{Data: after.Data, Exec: exec}
	}
	switch {
	case err != nil:
		return err
	case why != "":
		m.clashes = append(m.clashes, conflictedFile{change.Path, why, hunks})
	case sameContent(ours, after) && (ours == nil || ours.Exec == after.Exec):
		m.same++
	default:
		m.steps = append(m.steps, step{name: change.Path, path: path, before: ours, after: after})
	}
	return nil
}

// mergeContent returns the new content of a file; nil means removed. Why says that it can't be merged.
func mergeContent(ctx context.Context, trees *worktree.Store, ours *worktree.Blob,
	change worktree.Change,
) (after *worktree.Blob, why string, hunks []worktree.Hunk, err error) {
	base, theirs := change.Base, change.Theirs
	if ours != nil {
		base, theirs = adaptLineEnds(ours, base), adaptLineEnds(ours, theirs)
	}
	switch {
	case sameContent(ours, theirs):
		return ours, "", nil, nil
	case sameContent(ours, base):
		return theirs, "", nil, nil
	case ours == nil:
		return nil, "removed here, and changed by the agent", nil, nil
	case theirs == nil:
		return nil, "changed here, and removed by the agent", nil, nil
	case isBinary(ours) || isBinary(theirs) || base != nil && isBinary(base):
		return nil, "binary, and changed on both sides", nil, nil
	}
	var from []byte
	if base != nil {
		from = base.Data
	}
	text, hunks, err := trees.Merge(ctx, ours.Data, from, theirs.Data)
	switch {
	case err != nil || base == nil && hunks != nil:
		return nil, "added on both sides", hunks, err
	case hunks != nil:
		return nil, "changed on both sides", hunks, nil
	}
	return &worktree.Blob{Data: text, Exec: theirs.Exec}, "", nil, nil
}

// adaptLineEnds gives a file the line ends of ours.
func adaptLineEnds(ours, b *worktree.Blob) *worktree.Blob {
	if b == nil {
		return nil
	}
	return &worktree.Blob{Data: worktree.Adapt(ours.Data, b.Data), Exec: b.Exec}
}

// sameContent reports whether two files have the same content. Permissions do not count.
func sameContent(a, b *worktree.Blob) bool {
	return a == nil && b == nil || a != nil && b != nil && bytes.Equal(a.Data, b.Data)
}

func isBinary(b *worktree.Blob) bool { return bytes.IndexByte(b.Data, 0) >= 0 }

// read reads a file of the workspace; nil if there is none. Problem says that something else is there, or that
// it is too large.
func read(ctx context.Context, files tool.Files, path string) (b *worktree.Blob, problem string) {
	f, err := files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, ""
	}
	if err != nil {
		return nil, "it can't be read here: " + err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "it can't be read here: " + err.Error()
	case !info.Mode().IsRegular():
		return nil, "something that is not a file is here"
	case info.Size() > worktree.MaxFile:
		return nil, "what is here is too large"
	}
	data, err := io.ReadAll(io.LimitReader(f, worktree.MaxFile+1))
	if err != nil {
		return nil, "it can't be read here: " + err.Error()
	}
	return &worktree.Blob{Data: data, Exec: info.Mode().Perm()&0o100 != 0}, ""
}

// mergeEffects returns the effects of a call of manage_agents: the files that a merge would write. If it fails here,
// the call fails when it runs, or then needs effects that were not judged.
func (t *Team) mergeEffects(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
	m, ok := t.planOfCall(ctx, c)
	if !ok || len(m.clashes) > 0 {
		return nil, nil
	}
	var out []tool.Effect
	for _, s := range m.steps {
		out = append(out, tool.Effect{Kind: tool.Write, Path: s.path})
	}
	return out, nil
}

// mergePreview shows a person the changes of a merge.
func (t *Team) mergePreview(ctx context.Context, c *tool.Call) (string, error) {
	m, ok := t.planOfCall(ctx, c)
	if !ok {
		return "", errors.New("nothing to show")
	}
	var b strings.Builder
	for _, s := range m.steps {
		b.WriteString(cmp.Or(s.diff(), s.describe()+"\n"))
	}
	return withoutMiddle(b.String(), maxPreview), nil
}

// planOfCall plans the merge of a call, if it asks for one.
func (t *Team) planOfCall(ctx context.Context, c *tool.Call) (mergePlan, bool) {
	in, err := tool.Args[manageArgs](c)
	if err != nil || in.Action != "merge" {
		return mergePlan{}, false
	}
	child, err := t.child(in.Agent)
	if err != nil {
		return mergePlan{}, false
	}
	m, err := t.plan(ctx, c, child, in.Paths)
	return m, err == nil
}
