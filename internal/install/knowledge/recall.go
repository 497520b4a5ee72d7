package knowledge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/store"
)

// syncTime bounds how long a search first indexes new log entries. Later searches index the rest.
const syncTime = 5 * time.Second

// Search is Recall of words with at most most hits. A root limits it to the sessions of that workspace; empty means
// all.
func (k *Base) Search(ctx context.Context, words, root string, most int) (hits []recall.Hit, behind int, err error) {
	return k.Recall(ctx, recall.Query{Text: words, Root: root, Limit: most})
}

// Recall searches all sessions. After is the number of sessions that are not fully indexed yet. A damaged index is
// rebuilt.
func (k *Base) Recall(ctx context.Context, q recall.Query) (hits []recall.Hit, behind int, err error) {
	hits, behind, err = k.recall(ctx, q)
	if errors.Is(err, recall.ErrDamaged) {
		hits, behind, err = k.recall(ctx, q)
	}
	return hits, behind, err
}

func (k *Base) recall(ctx context.Context, q recall.Query) (hits []recall.Hit, behind int, err error) {
	x, err := recall.Open(ctx, filepath.Join(k.StateDir, "recall.db"))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if behind, err = k.takeUp(ctx, x); err != nil {
		return nil, behind, err
	}
	if behind == 0 { // the damaged index that Open moved aside is no longer needed, and may contain text of deleted sessions
		_ = os.Remove(x.Path + ".aside")
	}
	hits, err = x.Search(ctx, q)
	return hits, behind, err
}

// takeUp updates the index from the logs, newest sessions first, and returns the number of sessions that it had
// no time for.
func (k *Base) takeUp(ctx context.Context, x *recall.Index) (behind int, err error) {
	marks, err := x.Marks(ctx)
	if err != nil {
		return 0, err
	}
	sizes, err := k.Sessions.Sizes(ctx)
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
			if err := k.takeUpOne(ctx, x, s.ID, m, s.Size); err != nil {
				return behind, fmt.Errorf("index of session %s: %w", s.ID, err)
			}
		}
	}
	if len(marks) > 0 { // of deleted sessions
		err = x.Forget(ctx, slices.Collect(maps.Keys(marks))...)
	}
	return behind, err
}

// takeUpOne indexes a session. It reads from the beginning, because early events decide whether later ones are
// trusted. A damaged log counts up to the damage.
func (k *Base) takeUpOne(ctx context.Context, x *recall.Index, id string, from recall.Mark, size int64) error {
	var docs []recall.Doc
	to, root, untrusted := from, "", false
	for e, err := range store.Events(ctx, k.Sessions, id) {
		if err != nil {
			break
		}
		if b, ok := e.Body.(event.Opened); ok {
			root = b.Root
		}
		untrusted = untrusted || loop.Outside(e.Body)
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

// byPerson reports whether a body contains only a person's own words.
func byPerson(body event.Body) bool {
	b, ok := body.(event.Said)
	return ok && b.By == "" && !b.Untrusted
}

// documents returns the searchable texts of an event.
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
		return []recall.Doc{{Kind: recall.Result, Text: text.Head(b.Parts.Text(), mostIndexed)}}
	}
	return nil
}

// mostIndexed bounds how much of a result is searchable, in bytes.
const mostIndexed = 2000
