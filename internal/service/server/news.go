package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// The events for webhooks are a fold over the book, like all state of the server. A webhook has a position in the
// book, its cursor: everything before it is settled, so there is no other queue, and a killed server continues at
// the cursor, with the same ids.

// Kinds of objects in the book.
const (
	ofWebhook = "webhook"
	ofCursor  = "webhook_cursor"      // position of a webhook, by its id
	ofLetter  = "webhook_dead_letter" // undelivered event, by its id
)

// Change is a change of the book, for doors that define events for webhooks.
type Change struct {
	Of, ID        string          // "task", or a kind of objects; id of the task or object
	Before, After json.RawMessage // of an object; empty means it did not exist, or is removed
	From, To      event.Stage     // of a task
	Was, Why      string          // reasons of these

	tenant string
}

// notice is an event that webhooks may get.
type notice struct {
	seq     uint64 // of the event in the book
	n       int    // position among the notices of that event
	at      time.Time
	tenant  string
	kind    string
	subject string
}

// hook is a webhook and its position.
type hook struct {
	Webhook
	seq     uint64       // of the event that last defined it
	cursor  uint64       // events of the book up to here are settled
	failing time.Time    // start of the failures; zero means none
	letters []deadLetter // oldest first
}

// cursor is a webhook's position in the form that the book stores.
type cursor struct {
	Seq     uint64    `json:"seq"`
	Failing time.Time `json:"failing,omitzero"`
}

// deadLetter is an event that could not be delivered.
type deadLetter struct {
	ID       string    `json:"id" jsonschema:"id of the event, as deliveries have it"`
	Webhook  string    `json:"webhook"`
	Type     string    `json:"type"`
	Subject  string    `json:"subject" jsonschema:"id of what the event is about"`
	At       time.Time `json:"at" jsonschema:"when it happened"`
	Tenant   string    `json:"tenant,omitempty"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error" jsonschema:"why the last attempt failed"`
}

const mostLetters = 1000 // of a webhook; then the oldest is removed

// eventID returns the id of a notice for a webhook. It is the same after a restart.
func eventID(webhook string, n notice) string {
	return "whe_" + tool.Digest(fmt.Appendf(nil, "%s/%d/%d", webhook, n.seq, n.n))
}

// wants reports whether a webhook gets events of a kind of a tenant.
func (w *Webhook) wants(kind, tenant string) bool {
	return w.State == enabled && (w.All || w.Tenant == tenant) && (slices.Contains(w.Events, kind) || slices.Contains(w.Events, "*"))
}

// changing returns the change that an event makes, before it is folded.
func (b *book) changing(e event.Event) (c Change) {
	switch body := e.Body.(type) {
	case event.Recorded:
		c = Change{Of: body.Of, ID: body.ID}
		if o := b.object(body.Of, body.ID); o != nil {
			c.Before, c.tenant = o.Value, o.Tenant
		}
	case event.Staged:
		c = Change{Of: ofTask, ID: body.Task}
		if t := b.tasks[body.Task]; t != nil {
			c.From, c.Was, c.tenant = t.Stage, t.Why, t.Tenant
		}
	}
	return c
}

// object returns an object of a door; nil means there is none.
func (b *book) object(of, id string) *Object {
	if s := b.shelves[of]; s != nil {
		return s.all[id]
	}
	return nil
}

// note adds the notices for an event that was folded.
func (b *book) note(e event.Event, c Change) {
	if len(b.hooks) == 0 {
		return
	}
	switch e.Body.(type) {
	case event.Staged:
		t := b.tasks[c.ID]
		if t == nil || t.Stage == c.From {
			return
		}
		c.To, c.Why = t.Stage, t.Why
	case event.Recorded:
		if o := b.object(c.Of, c.ID); o != nil {
			c.After, c.tenant = o.Value, o.Tenant
		}
	}
	var kinds []string
	if c.To != "" {
		kinds = []string{"task." + string(c.To)}
	}
	if b.tells != nil && (c.To != "" || c.Before != nil || c.After != nil) {
		kinds = append(kinds, b.tells(c)...)
	}
	for i, kind := range kinds {
		for _, h := range b.hooks {
			if h.wants(kind, c.tenant) {
				b.notices = append(b.notices, notice{e.Seq, i, e.Time, c.tenant, kind, c.ID})
				break
			}
		}
	}
}

// hooked folds an event about webhooks.
func (b *book) hooked(seq uint64, r event.Recorded) {
	switch r.Of {
	case ofWebhook:
		if len(r.Value) == 0 {
			if h := b.hooks[r.ID]; h != nil {
				b.removed[r.ID] = Webhook{ID: h.ID, Tenant: h.Tenant, All: h.All, Created: h.Created}
			}
			delete(b.hooks, r.ID)
			break
		}
		now := &hook{seq: seq}
		if json.Unmarshal(r.Value, &now.Webhook) != nil {
			return
		}
		before := b.hooks[r.ID]
		switch {
		case before == nil || before.State != enabled: // events from here on count
			now.cursor = seq
		default:
			now.cursor, now.failing = before.cursor, before.failing
		}
		if before != nil {
			now.letters = before.letters
		}
		if b.hooks == nil {
			b.hooks, b.removed = map[string]*hook{}, map[string]Webhook{}
		}
		b.hooks[r.ID] = now
	case ofCursor:
		var c cursor
		if h := b.hooks[r.ID]; h != nil && json.Unmarshal(r.Value, &c) == nil && c.Seq >= h.cursor {
			h.cursor, h.failing = c.Seq, c.Failing
		}
	case ofLetter:
		b.lettered(r)
	default:
		return
	}
	b.prune()
}

// lettered folds an event about a dead letter.
func (b *book) lettered(r event.Recorded) {
	if len(r.Value) == 0 {
		for _, h := range b.hooks {
			h.letters = slices.DeleteFunc(h.letters, func(l deadLetter) bool { return l.ID == r.ID })
		}
		return
	}
	var l deadLetter
	if json.Unmarshal(r.Value, &l) != nil {
		return
	}
	h := b.hooks[l.Webhook]
	if h == nil {
		return
	}
	if i := slices.IndexFunc(h.letters, func(o deadLetter) bool { return o.ID == l.ID }); i >= 0 {
		h.letters[i] = l
		return
	}
	h.letters = append(h.letters, l)
	h.letters = h.letters[max(0, len(h.letters)-mostLetters):]
}

// prune removes the oldest notices, up to the first that a webhook has not settled.
func (b *book) prune() {
	needed := func(n notice) bool {
		for _, h := range b.hooks {
			if h.cursor < n.seq && h.wants(n.kind, n.tenant) {
				return true
			}
		}
		return false
	}
	i := slices.IndexFunc(b.notices, needed)
	if i < 0 {
		i = len(b.notices)
	}
	b.notices = slices.Delete(b.notices, 0, i)
}

// hook returns the current state of a webhook.
func (b *book) hook(id string) (hook, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hooks[id]
	if h == nil {
		return hook{}, false
	}
	c := *h
	c.letters = slices.Clone(h.letters)
	return c, true
}

// enabledHooks returns the ids of the enabled webhooks.
func (b *book) enabledHooks() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, h := range b.hooks {
		if h.State == enabled {
			ids = append(ids, id)
		}
	}
	return ids
}

// next returns the next notice for a webhook after a position in the book, and the number of the event that last
// defined the webhook; 0 means it gets no more notices.
func (b *book) next(id string, behind uint64, n int) (found *notice, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hooks[id]
	if h == nil || h.State != enabled {
		return nil, 0
	}
	return b.behind(h, behind, n), h.seq
}

// after returns the next notice for a webhook; nil means none. The caller holds the lock.
func (b *book) behind(h *hook, seq uint64, n int) *notice {
	i, _ := slices.BinarySearchFunc(b.notices, seq, func(n notice, seq uint64) int { return cmp.Compare(n.seq, seq) })
	for _, c := range b.notices[i:] {
		if (c.seq > seq || c.n > n) && c.seq > h.cursor && h.wants(c.kind, c.tenant) {
			return &c
		}
	}
	return nil
}
