// Package knowledge provides the facts that a session knows at its start or can look up: instruction files, facts
// about the machine, memory, and past sessions.
package knowledge

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Memory returns the memory of a workspace for the person. The team's memory is untrusted unless the person
// trusts the file in its current content. The person's own changes are trusted.
func (k *Base) Memory(root string) *memory.Store {
	s := k.memoryAt(root)
	s.Vouched = k.trustCheck(root, root)
	s.Vouch = func(ctx context.Context, scope memory.Scope, path string, content []byte) error {
		if scope != memory.Team {
			return nil
		}
		return k.Consent.Trust(ctx, root, []consent.Item{teamFile(root, path, content)})
	}
	return s
}

// Entry returns a new entry of the memory.
func (k *Base) Entry(kind, text string) memory.Entry {
	return memory.Entry{Kind: memory.Kind(kind), Text: text}
}

// Remember adds an entry to the memory of a workspace, with a text for its topic, and returns its id. Errors
// are as for [memory.Store.Add].
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

// redact returns a text without this user's secrets.
func (k *Base) redact(text string) string {
	if k.Redact == nil {
		return text
	}
	return k.Redact(event.Note{Text: text}).(event.Note).Text
}

// SessionMemory returns the memory of a session, whose own changes are not trusted automatically. An agent that
// works in a copy of the workspace also uses the trust of the original workspace.
func (k *Base) SessionMemory(ctx context.Context, id, root string) *memory.Store {
	s, roots := k.memoryAt(root), []string{root}
	for id = kin.Parent(id); id != ""; id = kin.Parent(id) {
		if above := k.rootOf(ctx, id); above != "" && !slices.Contains(roots, above) {
			roots = append(roots, above)
		}
	}
	s.Vouched = k.trustCheck(root, roots...)
	if k.TeamOnly {
		s.Dirs = map[memory.Scope]string{memory.Team: s.Dirs[memory.Team]}
	}
	return s
}

// trustCheck returns a function that reports whether the person trusts a file of the team's memory in root, with
// this content, at its place in one of the workspaces.
func (k *Base) trustCheck(root string, in ...string) func(memory.Scope, string, []byte) bool {
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
		return consent.Item{} // never trusted
	}
	return consent.Remembered(filepath.ToSlash(rel), content)
}

// rootOf returns the workspace of a session; empty if its log doesn't contain it.
func (k *Base) rootOf(ctx context.Context, id string) string {
	opened, _ := store.Opening(ctx, k.Sessions, id)
	if opened == nil {
		return ""
	}
	return opened.Root
}

// memoryText returns the prompt's text of the memory, and whether some of it comes from unverified content.
func (k *Base) memoryText(s *memory.Store, warn func(string)) (text string, claimed bool) {
	if k.Config.Memory.Off && !k.TeamOnly {
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
		warn(fmt.Sprintf("team memory: %d entries count as unverified, because you have not trusted the current %s; see 'inspan trust'",
			n, s.Path(memory.Team, "")))
	}
	return index.Text(), slices.ContainsFunc(index.Entries, func(e memory.Listed) bool { return e.Untrusted })
}

// Remembering adds the memory tool to the list.
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

// allowedByPerson reports whether a person was asked about exactly this call and approved it, in a session that
// is not a subagent's. A rule does not count: no person has seen the text.
func (k *Base) allowedByPerson(ctx context.Context, c *tool.Call) bool {
	if kin.Parent(c.Session) != "" {
		return false
	}
	var fold transcript.Fold
	for e, err := range store.Events(ctx, k.Sessions, c.Session) {
		if err != nil {
			return false
		}
		fold.Apply(e)
	}
	i := slices.IndexFunc(fold.Now.Running, func(r *transcript.Call) bool { return r.Call.ID == c.ID })
	return i >= 0 && fold.Now.Running[i].Approved()
}
