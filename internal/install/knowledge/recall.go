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
	"github.com/inspan/inspan/store"
)

// syncTime is how long a search first takes up what is new in the logs; the rest
// comes with the next.
const syncTime = 5 * time.Second

// Search is Recall of words, for at most so many hits. A root means the sessions of that workspace;
// empty: all.
func (k *Base) Search(ctx context.Context, words, root string, most int) (hits []recall.Hit, behind int, err error) {
	return k.Recall(ctx, recall.Query{Text: words, Root: root, Limit: most})
}

// Recall searches all sessions. Behind is how many of them have parts that are not
// in the index yet. An index in which damage is met is made anew.
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
	if behind == 0 { // what Open has moved aside is needed no more, and may hold what was said in sessions that are deleted
		_ = os.Remove(x.Path + ".aside")
	}
	hits, err = x.Search(ctx, q)
	return hits, behind, err
}

// takeUp brings the index up to the logs, the newest sessions first, and returns
// for how many there was no time.
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
	if len(marks) > 0 { // of sessions that are gone
		err = x.Forget(ctx, slices.Collect(maps.Keys(marks))...)
	}
	return behind, err
}

// takeUpOne reads a session from its beginning, as what was seen early in it tells
// whether what follows can be trusted. A log that is damaged counts up to there.
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

// byPerson reports whether a body holds a person's own words, and none of others.
func byPerson(body event.Body) bool {
	b, ok := body.(event.Said)
	return ok && b.By == "" && !b.Untrusted
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
		return []recall.Doc{{Kind: recall.Result, Text: text.Head(b.Parts.Text(), mostIndexed)}}
	}
	return nil
}

// mostIndexed is how much of a result can be searched, in bytes.
const mostIndexed = 2000
