// Package knowledge holds what a session knows when it begins, and what it can look up: instruction
// files, facts about the machine, memory, and past sessions.
package knowledge

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Memory is what is remembered for a workspace. What the team keeps there counts as
// untrusted unless the person trusts the file as it is; what they change themselves they
// trust.
func (k *Base) Memory(root string) *memory.Store {
	s := k.memoryAt(root)
	s.Vouched = k.vouched(root, root)
	s.Vouch = func(ctx context.Context, scope memory.Scope, path string, content []byte) error {
		if scope != memory.Team {
			return nil
		}
		return k.Consent.Trust(ctx, root, []consent.Item{teamFile(root, path, content)})
	}
	return s
}

// Entry is a new entry of the memory.
func (k *Base) Entry(kind, text string) memory.Entry {
	return memory.Entry{Kind: memory.Kind(kind), Text: text}
}

// Remember adds an entry to the memory of a workspace, with what goes to its topic, and returns its
// id. Errors are as those of [memory.Store.Add].
func (k *Base) Remember(ctx context.Context, root, scope string, e memory.Entry, topic string) (id string, err error) {
	added, err := k.Memory(root).Add(ctx, memory.Scope(scope), e, topic)
	return added.ID, err
}

func (k *Base) memoryAt(root string) *memory.Store {
	dir := filepath.Join(k.StateDir, "memory")
	return &memory.Store{Root: root, Redact: k.redact, Dirs: map[memory.Scope]string{
		memory.User:    filepath.Join(dir, "user"),
		memory.Project: filepath.Join(dir, "projects", tool.Digest([]byte(root))),
		memory.Team:    filepath.Join(root, ".inspan", "memory"),
	}}
}

// redact returns a text without the secrets of this user.
func (k *Base) redact(text string) string {
	if k.Redact == nil {
		return text
	}
	return k.Redact(event.Note{Text: text}).(event.Note).Text
}

// SessionMemory is that of a session, whose own changes nobody stands by. An agent that
// works in a copy of the workspace goes by what is trusted in the workspace, too.
func (k *Base) SessionMemory(ctx context.Context, id, root string) *memory.Store {
	s, roots := k.memoryAt(root), []string{root}
	for id = store.Parent(id); id != ""; id = store.Parent(id) {
		if above := k.rootOf(ctx, id); above != "" && !slices.Contains(roots, above) {
			roots = append(roots, above)
		}
	}
	s.Vouched = k.vouched(root, roots...)
	return s
}

// vouched returns what reports whether the person trusts a file of the team's memory in
// root, as it is, at its place in one of the workspaces.
func (k *Base) vouched(root string, in ...string) func(memory.Scope, string, []byte) bool {
	return func(scope memory.Scope, path string, content []byte) bool {
		item := teamFile(root, path, content)
		return scope != memory.Team || slices.ContainsFunc(in, func(at string) bool {
			r, err := k.Consent.Review(at, []consent.Item{item})
			return err == nil && len(r.Trusted) == 1
		})
	}
}

func teamFile(root, path string, content []byte) consent.Item {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return consent.Item{} // nobody trusts it
	}
	return consent.Remembered(filepath.ToSlash(rel), content)
}

// rootOf is the workspace of a session; empty if its log does not tell.
func (k *Base) rootOf(ctx context.Context, id string) string {
	for e, err := range store.Events(ctx, k.Sessions, id) {
		if err != nil {
			return ""
		}
		if b, ok := e.Body.(event.Opened); ok {
			return b.Root
		}
	}
	return ""
}

// remembered is what the prompt says of it, and whether some of it comes from
// content that nobody vouches for.
func (k *Base) remembered(s *memory.Store, warn func(string)) (text string, claimed bool) {
	if k.Config.Memory.Off {
		return "", false
	}
	index, err := s.Index()
	if err != nil {
		warn(err.Error())
	}
	for _, p := range index.Problems {
		warn(p.String())
	}
	if n := index.Unvouched; n > 0 {
		warn(fmt.Sprintf("team memory: %d of its entries count as unverified, as you have not trusted %s as it is now; see 'inspan trust'",
			n, s.Path(memory.Team, "")))
	}
	return index.Text(), slices.ContainsFunc(index.Entries, func(e memory.Listed) bool { return e.Untrusted })
}

// Remembering adds the tool that remembers.
func (k *Base) Remembering(s *memory.Store, list []tool.Tool) []tool.Tool {
	if k.Config.Memory.Off {
		return list
	}
	return append(list[:len(list):len(list)], MemoryTool{
		Store: s,
		Team: func(ctx context.Context, c *tool.Call) *memory.Store {
			if k.allowedByPerson(ctx, c) {
				return k.Memory(c.Env.Root)
			}
			return s
		},
		Search: func(ctx context.Context, q recall.Query) ([]recall.Hit, error) {
			hits, _, err := k.Recall(ctx, q)
			return hits, err
		},
	}.Tool())
}

// allowedByPerson reports whether somebody was asked about just this call and allowed it,
// in a session that works for no other. A rule does not count: nobody has seen the text.
func (k *Base) allowedByPerson(ctx context.Context, c *tool.Call) bool {
	if store.Parent(c.Session) != "" {
		return false
	}
	var asked uint64
	allowed := false
	for e, err := range store.Events(ctx, k.Sessions, c.Session) {
		if err != nil {
			return false
		}
		switch b := e.Body.(type) {
		case event.Waiting:
			if b.Call == c.ID {
				asked, allowed = e.Seq, false
			}
		case event.Decided:
			if asked > 0 && b.OnCall(c.ID, c.Parent, asked) {
				asked, allowed = 0, b.Allow && b.Rule == ""
			}
		case event.Ended:
			if b.Call == c.ID {
				asked, allowed = 0, false
			}
		}
	}
	return allowed
}
