package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// A member of a team is a child with a chosen name. It outlives its runs: when one is done the member is idle, and
// a message or a task for it begins the next, even after a restart. Everything about it is in logs:
//
//   - spawned has its name and how it works, so any program can continue it; returned says that it is idle.
//   - Its mailbox is its own log. A message that came after its last request to the model is unread.
//   - The sender of a message to an idle member then wakes it. A program that ends in between finds the unread message when
//     the session is opened the next time.

// maxName is the largest number of bytes of a member's name.
const maxName = 32

// checkName returns an error if no member can have the name.
func checkName(name string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	switch strings.ToLower(name) {
	case "all", "parent", "lead", "person":
		return fmt.Errorf("name %q stands for others", name)
	}
	if len(name) > maxName || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("name is %q; it has letters, digits, - and _, at most %d", name, maxName)
	}
	return nil
}

// nameOfMany returns the name of one of several agents of a call.
func nameOfMany(name string, i int) string {
	if name == "" {
		return ""
	}
	return fmt.Sprint(name, "-", i+1)
}

// resting is a member of the team that does not work.
type resting struct {
	event.Spawned
	woken bool // it is about to work
}

// isTaken returns an error if another child has the name. The caller holds t.mu.
func (t *Team) isTaken(name, id string) error {
	for _, c := range t.session.Status().Children {
		if name != "" && c.Child != id && strings.EqualFold(c.Name, name) {
			return fmt.Errorf("there is a %s already; send it a message, or choose another name", c.Name)
		}
	}
	for _, k := range t.children {
		if name != "" && k.id != id && strings.EqualFold(k.order.Name, name) {
			return fmt.Errorf("there is a %s already; send it a message, or choose another name", k.order.Name)
		}
	}
	return nil
}

// isIdle reports whether a member idles and is not about to work.
func (t *Team) isIdle(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.idle[id]
	return r != nil && !r.woken
}

// watchMailbox waits until an idle member has an unread message, no matter who sent it, and wakes it.
func (t *Team) watchMailbox(id string) {
	if t.waitForMail(t.life, id, func() bool { return t.isIdle(id) }) {
		_ = t.wake(t.life, id) // it fails with the session's log, so that nothing can be told anyway
	}
}

// wake lets an idle member work again. If it works, or is about to, nothing happens.
func (t *Team) wake(ctx context.Context, id string) error {
	t.mu.Lock()
	r := t.idle[id]
	if r == nil || r.woken || t.closed {
		t.mu.Unlock()
		return nil
	}
	r.woken = true
	t.mu.Unlock()
	s := r.Spawned
	s.Background = true
	if err := t.session.Send(ctx, s); err != nil {
		t.mu.Lock()
		r.woken = false
		t.mu.Unlock()
		return err
	}
	t.goUnlessClosed(func() { t.continueChild(t.life, inspan.Child{Spawned: s, Open: true}) })
	return nil
}

// post puts a message into the mailbox of a member, and wakes it.
func (t *Team) post(ctx context.Context, id string, m event.Steered) error {
	t.mu.Lock()
	k, idle := t.children[id], t.idle[id] != nil
	t.mu.Unlock()
	switch {
	case id == t.session.ID():
		return t.session.Send(ctx, m)
	case k != nil:
		err := k.session.Send(ctx, m)
		select {
		case <-k.gone: // its session may have been closed meanwhile
			if err != nil {
				return t.post(ctx, id, m)
			}
		default:
		}
		return err
	case !idle:
		return errors.New("it has ended")
	}
	w, err := (&inspan.Host{Store: t.Sessions}).Watch(ctx, id)
	if err != nil {
		return err
	}
	w.Redact = t.Redact
	if err := errors.Join(w.Send(ctx, m), w.Close()); err != nil {
		return err
	}
	return t.wake(ctx, id)
}

// mailbox is the unread part of a log.
type mailbox struct {
	end    uint64 // of what was read
	orders bool   // words of a person or the lead, which begin a run
	news   bool   // words of other members, which begin none
	keys   map[string]bool
}

// openMailbox reads the mailbox of a session.
func openMailbox(ctx context.Context, log store.Log) (*mailbox, error) {
	start, err := log.Start(ctx)
	m := &mailbox{end: start, keys: map[string]bool{}}
	if err == nil {
		err = m.read(ctx, log)
	}
	return m, err
}

// read continues at the end of the last read.
func (m *mailbox) read(ctx context.Context, log event.Log) error {
	for e, err := range log.Read(ctx, m.end) {
		if err != nil {
			return err
		}
		m.apply(e)
	}
	return nil
}

// apply reads an event of the session's log.
func (m *mailbox) apply(e event.Event) {
	m.end = e.Seq
	if key := loop.Key(e.Body); key != "" {
		if m.keys[key] {
			return
		}
		m.keys[key] = true
	}
	switch b := e.Body.(type) {
	case event.Asked:
		m.orders, m.news = false, false
	case event.Said:
		m.orders = m.orders || b.Leads() && len(b.Parts) > 0
		m.news = m.news || b.Origin == event.OriginAgent
	case event.Steered:
		m.orders = m.orders || b.Origin.Leads()
		m.news = m.news || b.Origin == event.OriginAgent
	case event.Returned: // of a member in the background
		m.news = m.news || len(b.Parts) > 0
	}
}

func (m *mailbox) unread() bool { return m.orders || m.news }

// unread returns the inputs that begin the next run of a member with unread messages, and whether it has any.
func (t *Team) unread(ctx context.Context, k *child) (inputs []event.Body, yes bool) {
	if k.order.Name == "" {
		return nil, false
	}
	log, err := t.Sessions.Open(ctx, k.id)
	if err != nil {
		return nil, false
	}
	defer log.Close()
	box, err := openMailbox(ctx, log)
	switch {
	case err != nil || !box.unread():
		return nil, false
	case box.orders:
		return nil, true
	}
	return []event.Body{said("Go on: there are messages for you.", event.Taint{})}, true
}

// tellAssigned tells members of the tasks that are for them, once each can be claimed.
func (t *Team) tellAssigned(ctx context.Context) {
	list, now := t.taskList(), time.Now()
	var next time.Time
	for _, task := range list.List {
		switch {
		case task.For == "" || task.Done || task.Holder != "" || len(list.WaitsFor(&task)) > 0:
		case task.At.After(now):
			if next.IsZero() || task.At.Before(next) {
				next = task.At
			}
		default:
			t.tellTask(ctx, task.For, fmt.Sprintf("Task %s is for you: claim it.", task.ID), fmt.Sprintf("task %s at %d", task.ID, task.Assigned), task.Taint)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alarm != nil {
		t.alarm.Stop()
	}
	if t.alarm = nil; !next.IsZero() && !t.closed {
		t.alarm = time.AfterFunc(next.Sub(now), func() {
			t.goUnlessClosed(func() { t.tellAssigned(t.life) })
		})
	}
}

// tellTask tells a member of a task that is for it, at most once.
func (t *Team) tellTask(ctx context.Context, member, words, key string, taint event.Taint) {
	t.mu.Lock()
	known := t.told[key] || t.children[member] == nil && t.idle[member] == nil
	t.told[key] = t.told[key] || !known
	t.mu.Unlock()
	if known {
		return
	}
	m := event.Steered{By: "the agent it works for", Origin: event.OriginLead, Message: key, Parts: llm.Say(words), Taint: taint}
	if err := t.post(ctx, member, m); err != nil {
		t.mu.Lock()
		delete(t.told, key)
		t.mu.Unlock()
	}
}

// labelOf returns the name of a child for people and models.
func labelOf(s event.Spawned) string { return cmp.Or(s.Name, label(s.Agent, s.Child)) }
