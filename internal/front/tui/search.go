package tui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// messageHistory is the messages of a session up to a time, the oldest first.
type messageHistory struct {
	until time.Time
	said  []string
}

// messageSearch is a search for an earlier message in this folder. It reads the logs of earlier sessions, the newest
// first, while its list is open.
type messageSearch struct {
	composer *composer
	list     *picker
	rest     []past // sessions that were not added yet
	left     int    // sessions that may still be read
	bytes    int64  // bytes that may still be read
}

// past is a session that may be searched.
type past struct {
	id, preview string
	until       time.Time
	size        int64
}

// Limits on reading for a search. Sessions beyond are found by their first message. A step is how long to read
// before the list is updated.
const (
	mostRecalled  = 200
	mostSearched  = 64 << 20
	recallingStep = 50 * time.Millisecond
)

// search lets the person choose an earlier message in this folder. Messages from earlier sessions are added as
// they are read, while the list already takes keys.
func (c *composer) search() tea.Cmd {
	r := &messageSearch{composer: c, left: mostRecalled, bytes: mostSearched}
	r.list = c.over.pick("history", nil, func(i int) tea.Cmd {
		c.prompt.set(r.list.items[i].text)
		c.touched()
		return nil
	})
	r.addMessages(c.history.lines)
	a, ctx, backend := c.talk.tui.App, c.talk.ctx, c.talk.backend
	if a == nil {
		return nil
	}
	return func() tea.Msg {
		list, err := a.Running.Sessions.List(ctx)
		return later(func() tea.Cmd {
			c.talk.fail(err)
			for _, s := range list {
				if backend.has(s.Root) && s.Parent == "" && s.Preview != "" {
					r.rest = append(r.rest, past{s.ID, s.Preview, s.Modified, s.Size})
				}
			}
			return r.step()
		})
	}
}

// cached returns the known facts about a session, and whether they are complete.
func (r *messageSearch) cached(s past) (said []string, all bool) {
	known, read := r.composer.earlier[s.id]
	return known.said, read && !known.until.Before(s.until)
}

// step adds what is already known, and continues to read.
func (r *messageSearch) step() tea.Cmd {
	for ; len(r.rest) > 0; r.rest = r.rest[1:] {
		s := r.rest[0]
		said, all := r.cached(s)
		if !all && r.left > 0 && s.size <= r.bytes {
			return r.readMore()
		}
		if len(said) == 0 {
			said = []string{s.preview}
		}
		r.addMessages(said)
	}
	return nil
}

// readMore reads some of the sessions, unless the list is closed.
func (r *messageSearch) readMore() tea.Cmd {
	c := r.composer
	some := r.rest[:min(len(r.rest), r.left)]
	if i := slices.IndexFunc(some, func(s past) bool { _, all := r.cached(s); return all }); i >= 0 {
		some = some[:i]
	}
	if c.over.box != r.list {
		return nil
	}
	backend, ctx, bytes := c.talk.backend, c.talk.ctx, r.bytes
	return func() tea.Msg {
		read := readSome(ctx, backend, some, bytes)
		return later(func() tea.Cmd {
			if c.earlier == nil {
				c.earlier = map[string]messageHistory{}
			}
			for i, one := range read {
				c.earlier[some[i].id] = one
				r.left--
				r.bytes -= some[i].size
			}
			return r.step()
		})
	}
}

// readSome reads the first of the sessions for a moment. Unreadable ones have no messages.
func readSome(ctx context.Context, backend backend, some []past, bytes int64) (read []messageHistory) {
	began := time.Now()
	for _, s := range some {
		if bytes -= s.size; len(read) > 0 && (bytes < 0 || time.Since(began) > recallingStep) {
			break
		}
		said, _ := backend.personMessages(ctx, s.id)
		read = append(read, messageHistory{s.until, said})
	}
	return read
}

// addMessages adds the messages of a session, the last one first.
func (r *messageSearch) addMessages(said []string) {
	var items []string
	for _, s := range slices.Backward(said) {
		items = append(items, s)
	}
	r.list.add(items...)
}
