package running

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
)

// Copy is the copy of a workspace in which an agent works apart.
type Copy struct {
	Agent   string   `json:"agent"` // session of the agent that it was made for
	Task    string   `json:"task,omitempty"`
	Root    string   `json:"root"`              // where the agent works
	Of      string   `json:"of"`                // the workspace that it is a copy of
	Changed []string `json:"changed,omitempty"` // files with unmerged changes
	Problem string   `json:"problem,omitempty"` // why Changed is unknown; empty if it is known
}

// Unmerged reports whether the copy has unmerged changes, or may have some.
func (c Copy) Unmerged() bool { return len(c.Changed) > 0 || c.Problem != "" }

// Copies lists the copies in which agents of a session work, or have worked; empty means of all sessions. It leaves
// out a copy whose workspace is gone, because its changes can't be merged. A copy that can't be read is an error
// for one session; for all, it has a Problem.
func (t *Table) Copies(ctx context.Context, of string) ([]Copy, error) {
	if t.Trees == nil {
		return nil, nil
	}
	if of != "" { // most have none, and that costs little
		ids, err := t.Sessions.IDs(ctx)
		if err != nil || !slices.ContainsFunc(ids, func(id string) bool { return kin.In(of, id) && t.apart(ctx, id) }) {
			return nil, err
		}
	}
	list, err := t.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	return t.copies(ctx, list, of)
}

// copies is Copies for sessions that are listed.
func (t *Table) copies(ctx context.Context, list []store.Info, of string) ([]Copy, error) {
	at := map[string]string{}
	for _, info := range list {
		at[info.ID] = info.Root
	}
	var out []Copy
	for _, info := range list {
		root := original(info, at)
		dir := t.Trees.Copy(info.Root)
		// One whose parent works in the same copy was not given it.
		if of != "" && !kin.In(of, info.ID) || dir == "" || root == "" || t.Trees.Copy(root) == dir {
			continue
		}
		tree, found, err := t.Trees.Open(ctx, root, info.Root)
		if _, gone := os.Stat(root); err == nil && !found || errors.Is(gone, fs.ErrNotExist) {
			continue
		}
		c := Copy{Agent: info.ID, Task: info.Preview, Root: info.Root, Of: root}
		var changes []worktree.Change
		if err == nil {
			changes, _, err = t.Trees.Changes(ctx, tree)
		}
		switch {
		case err != nil && of != "":
			return nil, fmt.Errorf("the copy of agent %s: %w", info.ID, err)
		case err != nil:
			c.Problem = err.Error()
		}
		for _, change := range changes {
			c.Changed = append(c.Changed, change.Path)
		}
		out = append(out, c)
	}
	return out, ctx.Err()
}

// CopyLabel is the label of a session that works in a copy of a workspace, without being a subagent's: the
// workspace.
const CopyLabel = "worktree-of"

// original returns the workspace that the workspace of a session may be a copy of; empty means none. At are the
// workspaces of all sessions.
func original(info store.Info, at map[string]string) string {
	if info.Parent == "" {
		return info.Labels[CopyLabel]
	}
	return at[info.Parent]
}

// Unmerged lists the copies of a session with changes that no one has merged.
func (t *Table) Unmerged(ctx context.Context, of string) (out []Copy, err error) {
	all, err := t.Copies(ctx, of)
	for _, c := range all {
		if c.Unmerged() {
			out = append(out, c)
		}
	}
	return out, err
}

// apart reports whether the session works in a copy.
func (t *Table) apart(ctx context.Context, id string) bool {
	opened, _ := store.Opening(ctx, t.Sessions, id)
	return opened != nil && t.Trees.Copy(opened.Root) != ""
}

// Remove deletes a session forever, with the copies in which its agents have worked. One that someone drives stays,
// and the error says how to join or stop that. So does one with a copy that holds changes which no one has merged,
// unless they are to be discarded.
func (t *Table) Remove(ctx context.Context, id string, discard bool) error {
	copies, err := t.own(ctx, id)
	if err != nil && !discard {
		return err
	}
	for _, c := range copies {
		if len(c.Changed) > 0 && !discard {
			whose := "its agent " + c.Agent
			if c.Agent == id {
				whose = "it"
			}
			return fmt.Errorf("session %s was not removed: %s has unmerged changes of %s in a copy; "+
				"'inspan copies diff %s' shows them, 'inspan copies merge %s' merges them, and --discard deletes them",
				id, whose, text.Count(len(c.Changed), "file"), c.Agent, c.Agent)
		}
	}
	if err := t.Sessions.Remove(ctx, id); errors.Is(err, store.ErrBusy) {
		return fmt.Errorf("%w; join it: inspan attach %s, or stop it first: inspan stop %s", err, id, id)
	} else if err != nil {
		return err
	}
	if err := t.drop(ctx, copies); err != nil {
		return fmt.Errorf("session %s was removed, but not all of its copies: %w", id, err)
	}
	return nil
}

// DropCopies deletes the copies in which agents of a session have worked, with all that was changed in them.
func (t *Table) DropCopies(ctx context.Context, id string) error {
	copies, err := t.own(ctx, id)
	return errors.Join(err, t.drop(ctx, copies))
}

// own lists the copies in which a session and its agents work, and no other session.
func (t *Table) own(ctx context.Context, id string) ([]Copy, error) {
	copies, err := t.Copies(ctx, id)
	if err != nil || copies == nil {
		return nil, err
	}
	list, err := t.Sessions.List(ctx)
	return slices.DeleteFunc(copies, func(c Copy) bool {
		return slices.ContainsFunc(list, func(info store.Info) bool {
			return !kin.In(id, info.ID) && t.Trees.Copy(info.Root) == t.Trees.Copy(c.Root)
		})
	}), err
}

// drop deletes copies, with git's entries of them.
func (t *Table) drop(ctx context.Context, copies []Copy) error {
	var failed []string
	for _, c := range copies {
		if err := t.Trees.Discard(ctx, c.Of, c.Root); err != nil {
			failed = append(failed, err.Error())
		}
	}
	if failed != nil {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}
