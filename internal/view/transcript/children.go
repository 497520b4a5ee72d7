package transcript

import (
	"slices"

	"github.com/inspan/inspan/event"
)

// children folds an event of a child session.
func (f *Fold) children(e event.Event) []Item {
	switch b := e.Body.(type) {
	case event.Spawned:
		_, items := f.leave(b.Child)
		c := &Child{Seq: e.Seq, Spawned: b, Since: e.Time}
		f.Now.Children = append(f.Now.Children, c)
		return append(items, c)
	case event.Raised:
		return f.raised(e, b)
	case event.Returned:
		c, items := f.leave(b.Child)
		if c != nil {
			f.spend(b.Usage, b.Cost)
			f.Spent.Unpriced = f.Spent.Unpriced || b.Unpriced
		} else {
			c = &Child{Seq: e.Seq, Spawned: event.Spawned{Child: b.Child}}
		}
		c.Returned = &b
		return append(items, c)
	}
	return nil
}

// raised adds a question. It replaces an open question with the same id, unless it is the same question.
func (f *Fold) raised(e event.Event, b event.Raised) []Item {
	items := f.closeQuestions(func(q *Question) bool { return q.Raised != nil && q.ID == b.ID && q.Raised.Of != b.Of })
	if slices.ContainsFunc(f.Now.Questions, func(q *Question) bool { return q.Raised != nil && q.ID == b.ID }) {
		return items
	}
	q := &Question{Seq: e.Seq, ID: b.ID, Raised: &b, Preview: b.Preview, Rules: b.Rules, Offers: b.Offers, Until: b.Until}
	f.Now.Questions = append(f.Now.Questions, q)
	return append(items, q)
}

// leave removes a child, and closes its questions.
func (f *Fold) leave(id string) (was *Child, items []Item) {
	items = f.closeQuestions(func(q *Question) bool { return q.Raised != nil && q.Raised.Child == id })
	f.Now.Children = slices.DeleteFunc(f.Now.Children, func(c *Child) bool {
		if c.Spawned.Child == id {
			was = c
		}
		return c.Spawned.Child == id
	})
	return was, items
}
