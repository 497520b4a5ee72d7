package subagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

// conflictedFile is a file that can't be merged, because both sides have changed it.
type conflictedFile struct {
	name  string
	why   string
	hunks []worktree.Hunk
}

// merge runs the action merge: all of it, or nothing if one file is in conflict.
func (t *Team) merge(ctx context.Context, c *tool.Call, child inspan.Child, k *child, in manageArgs) (tool.Result, error) {
	if k != nil {
		return tool.Result{}, fmt.Errorf("agent %s still works; stop it, or wait until it has come back", k.label())
	}
	m, err := t.plan(ctx, c, child, in.Paths)
	if err != nil {
		return tool.Result{}, err
	}
	if len(m.clashes) > 0 {
		return tool.Text(m.conflict(short(child.Child)) + "\n"), errors.New("nothing was merged")
	}
	files, err := m.write(ctx, c.Env.Files)
	if err != nil {
		return tool.Result{Files: files}, err
	}
	text := m.report("Merged into your workspace; read a file before you write it anew")
	res := tool.Result{Parts: tool.Text(text).Parts, Files: files}
	if m.whole {
		err = t.Trees.Rebase(ctx, m.tree, m.now)
	}
	if err == nil && in.Discard {
		err = t.removeCopy(ctx, child)
	}
	return res, err
}

// discard runs the action discard.
func (t *Team) discard(ctx context.Context, child inspan.Child, k *child) (tool.Result, error) {
	if k != nil {
		return tool.Result{}, fmt.Errorf("agent %s still works; stop it first", k.label())
	}
	if _, err := t.tree(ctx, child); err != nil {
		return tool.Result{}, err
	}
	return tool.Text("Its copy is removed, with all it had changed there."), t.removeCopy(ctx, child)
}

func (t *Team) removeCopy(ctx context.Context, child inspan.Child) error {
	st := t.session.Status()
	return t.Trees.Remove(ctx, st.Root, copyName(st.Session, child.Call))
}

// write makes the steps, each only if its file is as the plan has seen it. If one fails, those before it are
// undone; it returns the files whose undoing failed.
func (m mergePlan) write(ctx context.Context, to tool.Files) ([]tool.File, error) {
	var files []tool.File
	for i, s := range m.steps {
		if err := s.apply(ctx, to); err != nil {
			left, undone := m.undo(context.WithoutCancel(ctx), to, files[:i])
			return left, errors.Join(fmt.Errorf("%s: %w", s.name, err), undone)
		}
		file := tool.File{Path: s.path, Written: true, Diff: s.diff()}
		if s.after != nil {
			file.Digest = tool.Digest(s.after.Data)
		}
		files = append(files, file)
	}
	return files, nil
}

// undo undoes writes.
func (m mergePlan) undo(ctx context.Context, to tool.Files, files []tool.File) (left []tool.File, err error) {
	var errs []error
	for i, f := range slices.Backward(files) {
		s := m.steps[i]
		s.before, s.after = s.after, s.before
		if err := s.apply(ctx, to); err != nil {
			left, errs = append(left, f), append(errs, fmt.Errorf("%s was written and could not be taken back: %w", s.name, err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("nothing was merged"))
	}
	return left, errors.Join(errs...)
}

// apply makes one step.
func (s step) apply(ctx context.Context, files tool.Files) error {
	change := tool.Change{Path: s.path, IfDigest: tool.NoFile, Exact: true, Remove: s.after == nil}
	if s.before != nil {
		change.IfDigest = tool.Digest(s.before.Data)
	}
	if s.after != nil {
		change.Data = s.after.Data
		if s.after.Exec {
			change.Mode = 0o755
		}
		if s.before != nil && s.before.Exec != s.after.Exec {
			change.Exec = &s.after.Exec
		}
	}
	err := files.Change(ctx, change)
	if errors.Is(err, tool.ErrChanged) {
		return errors.New("it has changed just now; merge again")
	}
	return err
}

// diff shows the step; empty if it is not text or too long to compare.
func (s step) diff() string {
	var from, to string
	names := [2]string{"/dev/null", "/dev/null"}
	if s.before != nil {
		names[0], from = s.name, string(s.before.Data)
	}
	if s.after != nil {
		names[1], to = s.name, string(s.after.Data)
	}
	if len(from)+len(to) > maxDiffed || strings.ContainsRune(from+to, 0) {
		return ""
	}
	unix := func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
	return withoutMiddle(udiff.Unified(names[0], names[1], unix(from), unix(to)), maxDiff)
}

// withoutMiddle omits the middle of a long text, and says so.
func withoutMiddle(diff string, limit int) string {
	head, tail, dropped := text.CutMiddle(diff, limit)
	if dropped == 0 {
		return diff
	}
	return fmt.Sprintf("%s… %d bytes left out …\n%s", head, dropped, tail)
}

// report describes the merge.
func (m mergePlan) report(head string) string {
	var b strings.Builder
	if len(m.steps) == 0 {
		b.WriteString("There was nothing to merge.\n")
	} else {
		b.WriteString(head + " (A new, M changed, D removed):\n")
	}
	for i, s := range m.steps {
		if i == maxListed {
			fmt.Fprintf(&b, "and %d more\n", len(m.steps)-i)
			break
		}
		b.WriteString(s.describe() + "\n")
	}
	if m.same > 0 {
		fmt.Fprintf(&b, "[files that were the same here already: %d]\n", m.same)
	}
	m.notMerged(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

const maxListed = 200

// notMerged lists changes that a merge does not include.
func (m mergePlan) notMerged(b *strings.Builder) {
	for i, l := range m.left {
		if i == mostNamed {
			fmt.Fprintf(b, "[and %d more not merged]\n", len(m.left)-i)
			break
		}
		fmt.Fprintf(b, "[not merged: %s, which is %s]\n", fileName(l.Path), l.Why)
	}
}

// conflict tells the model about the conflicts of a merge.
func (m mergePlan) conflict(agent string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing was merged: %d of the %d changed files are in conflict.\n", len(m.clashes), len(m.clashes)+len(m.steps)+m.same)
	for _, c := range m.clashes {
		fmt.Fprintf(&b, "\n%s: %s\n", fileName(c.name), c.why)
		for i, h := range c.hunks {
			if b.Len() > maxReport {
				fmt.Fprintf(&b, "(%d more places)\n", len(c.hunks)-i)
				break
			}
			fmt.Fprintf(&b, "line %d\n<<<<<<< here\n%s=======\n%s>>>>>>> agent %s\n", h.Line, conflictSide(h.Ours), conflictSide(h.Theirs), agent)
		}
	}
	fmt.Fprintf(&b, "\nIts files are in %s. Bring yours to what they shall be, and merge the others with paths; or have the agent bring its "+
		"own in line (message).\n", m.tree.Root)
	m.notMerged(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

// conflictSide returns one side of a conflict, shortened.
func conflictSide(text string) string {
	if text = withoutMiddle(text, maxHunk); text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// fileName returns the name of a file in one line.
func fileName(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}
