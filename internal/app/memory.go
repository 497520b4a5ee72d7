package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/consent"
	"github.com/inspan/inspan/internal/memory"
	"github.com/inspan/inspan/internal/recall"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Memory is what is remembered for a workspace. What the team keeps there counts as
// untrusted unless the person trusts the file as it is; what they change themselves they
// trust.
func (a *App) Memory(root string) *memory.Store {
	s := a.memoryAt(root)
	s.Vouched = a.vouched(root, root)
	s.Vouch = func(ctx context.Context, scope memory.Scope, path string, content []byte) error {
		if scope != memory.Team {
			return nil
		}
		return a.Consent().Trust(ctx, root, []consent.Item{teamFile(root, path, content)})
	}
	return s
}

func (a *App) memoryAt(root string) *memory.Store {
	dir := filepath.Join(a.StateDir, "memory")
	return &memory.Store{Root: root, Dirs: map[memory.Scope]string{
		memory.User:    filepath.Join(dir, "user"),
		memory.Project: filepath.Join(dir, "projects", tool.Digest([]byte(root))),
		memory.Team:    filepath.Join(root, ".inspan", "memory"),
	}}
}

// sessionMemory is that of a session, whose own changes nobody stands by. An agent that
// works in a copy of the workspace goes by what is trusted in the workspace, too.
func (a *App) sessionMemory(ctx context.Context, id, root string) *memory.Store {
	s, roots := a.memoryAt(root), []string{root}
	for id = parentOf(id); id != ""; id = parentOf(id) {
		if above := a.rootOf(ctx, id); above != "" && !slices.Contains(roots, above) {
			roots = append(roots, above)
		}
	}
	s.Vouched = a.vouched(root, roots...)
	return s
}

// vouched returns what reports whether the person trusts a file of the team's memory in
// root, as it is, at its place in one of the workspaces.
func (a *App) vouched(root string, in ...string) func(memory.Scope, string, []byte) bool {
	return func(scope memory.Scope, path string, content []byte) bool {
		item := teamFile(root, path, content)
		return scope != memory.Team || slices.ContainsFunc(in, func(at string) bool {
			r, err := a.Consent().Review(at, []consent.Item{item})
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
func (a *App) rootOf(ctx context.Context, id string) string {
	for e, err := range a.Store().Events(ctx, id) {
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
func (a *App) remembered(s *memory.Store, warn func(string)) (text string, claimed bool) {
	if a.Config.Memory.Off {
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

// remembering adds the tool that remembers.
func (a *App) remembering(s *memory.Store, list []tool.Tool) []tool.Tool {
	if a.Config.Memory.Off {
		return list
	}
	return tools.WithMemory(tools.Memory{
		Store: s,
		Team: func(ctx context.Context, c *tool.Call) *memory.Store {
			if a.allowedByPerson(ctx, c) {
				return a.Memory(c.Env.Root)
			}
			return s
		},
		Search: func(ctx context.Context, q recall.Query) ([]recall.Hit, error) {
			hits, _, err := a.Recall(ctx, q)
			return hits, err
		},
	}, list)
}

// allowedByPerson reports whether somebody was asked about just this call and allowed it,
// in a session that works for no other. A rule does not count: nobody has seen the text.
func (a *App) allowedByPerson(ctx context.Context, c *tool.Call) bool {
	if parentOf(c.Session) != "" {
		return false
	}
	var asked uint64
	allowed := false
	for e, err := range a.Store().Events(ctx, c.Session) {
		if err != nil {
			return false
		}
		switch b := e.Body.(type) {
		case event.Waiting:
			if b.Call == c.ID {
				asked, allowed = e.Seq, false
			}
		case event.Decided:
			if b.Call == c.ID && asked > 0 && (b.Question == asked || b.Question == 0) {
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

// syncTime is how long a search first takes up what is new in the logs; the rest
// comes with the next.
const syncTime = 5 * time.Second

// Recall searches all sessions. Behind is how many of them have parts that are not
// in the index yet.
func (a *App) Recall(ctx context.Context, q recall.Query) (hits []recall.Hit, behind int, err error) {
	x, err := recall.Open(ctx, filepath.Join(a.StateDir, "recall.db"))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if behind, err = a.takeUp(ctx, x); err != nil {
		return nil, behind, err
	}
	hits, err = x.Search(ctx, q)
	return hits, behind, err
}

// takeUp brings the index up to the logs, the newest sessions first, and returns
// for how many there was no time.
func (a *App) takeUp(ctx context.Context, x *recall.Index) (behind int, err error) {
	marks, err := x.Marks(ctx)
	if err != nil {
		return 0, err
	}
	sizes, err := a.Store().Sizes(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for _, s := range sizes {
		m, known := marks[s.ID]
		delete(marks, s.ID)
		switch {
		case known && m.Size == s.Size:
		case time.Since(began) > syncTime:
			behind++
		default:
			if err := a.takeUpOne(ctx, x, s.ID, m, s.Size); err != nil {
				return behind, fmt.Errorf("index of session %s: %w", s.ID, err)
			}
		}
	}
	for gone := range marks {
		if err := x.Forget(ctx, gone); err != nil {
			return behind, err
		}
	}
	return behind, nil
}

// takeUpOne reads a session from its beginning, as what was seen early in it tells
// whether what follows can be trusted. A log that is damaged counts up to there.
func (a *App) takeUpOne(ctx context.Context, x *recall.Index, id string, from recall.Mark, size int64) error {
	var docs []recall.Doc
	to, root, untrusted := from, "", false
	for e, err := range a.Store().Events(ctx, id) {
		if err != nil {
			break
		}
		if b, ok := e.Body.(event.Opened); ok {
			root = b.Root
		}
		untrusted = untrusted || event.Outside(e.Body)
		to.Seq = max(to.Seq, e.Seq)
		if e.Seq > from.Seq {
			for _, d := range documents(e.Body) {
				d.Seq, d.Time, d.Root = e.Seq, e.Time, root
				d.Untrusted = untrusted && !byPerson(e.Body)
				docs = append(docs, d)
			}
		}
	}
	to.Size = size
	if err := ctx.Err(); err != nil {
		return err
	}
	return x.Add(ctx, id, to, docs)
}

// byPerson reports whether a body holds a person's own words.
func byPerson(body event.Body) bool {
	b, ok := body.(event.Said)
	return ok && b.By == ""
}

// documents are what can be searched of an event.
func documents(body event.Body) []recall.Doc {
	switch b := body.(type) {
	case event.Said:
		return []recall.Doc{{Kind: recall.Said, Text: b.Parts.Text()}}
	case event.Steered:
		return []recall.Doc{{Kind: recall.Said, Text: b.Parts.Text()}}
	case event.Titled:
		return []recall.Doc{{Kind: recall.Title, Text: b.Title}}
	case event.Replied:
		out := []recall.Doc{{Kind: recall.Replied, Text: b.Parts.Text()}}
		for _, c := range b.Parts.Calls() {
			out = append(out, recall.Doc{Kind: recall.Call, Text: c.Name + " " + string(c.Args)})
		}
		return out
	case event.Ended:
		if b.Again {
			return nil
		}
		return []recall.Doc{{Kind: recall.Result, Text: resultText(b.Parts)}}
	}
	return nil
}

// mostIndexed is how much of a result can be searched, in bytes.
const mostIndexed = 2000

func resultText(parts llm.Parts) string {
	text := parts.Text()
	return text[:min(len(text), mostIndexed)]
}
