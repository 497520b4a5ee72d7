package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Visit is one visitor's request: its methods check what it may see and do. Doors for other protocols are built
// on it. It is for one goroutine.
type Visit struct {
	*Server
	context.Context

	who       visitor
	key       string // with which the visitor can repeat its request; empty means none
	principal string
}

// Visit begins the visit of the sender of a request, if that has at least the role.
func (s *Server) Visit(r *http.Request, role Role) (*Visit, error) {
	principal := netguard.Principal(r.Header)
	if principal == byCode && r.URL.Path != signInPath {
		return nil, Forbidden("this is a code for a browser; it can only sign in")
	}
	who, _ := s.visitor(principal) // an unknown one has no role
	v := &Visit{Server: s, Context: r.Context(), who: who, principal: principal}
	if err := v.Needs(role); err != nil {
		return nil, err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > mostKey {
		return nil, Wrong("Idempotency-Key", fmt.Sprintf("it has %d bytes", len(key)), fmt.Sprintf("at most %d", mostKey))
	}
	v.key = key
	return v, nil
}

// Needs returns an error if the visitor lacks the role.
func (v *Visit) Needs(role Role) error {
	if v.who.role.atLeast(role) {
		return nil
	}
	return Forbidden("this needs role " + string(role) + "; your token has role " + string(v.who.role))
}

// Self returns the visit of the server itself, which sees everything. Ctx is one of [Server.Go].
func (s *Server) Self(ctx context.Context) *Visit {
	return &Visit{Server: s, Context: ctx, who: visitor{name: "inspan serve", role: Admin, root: true}, principal: owner}
}

// For returns a visit in the name of the submitter of a task, for work on their behalf. The key applies to the
// objects that it makes.
func (s *Server) For(ctx context.Context, id, key string) (*Visit, error) {
	t, known := s.book.task(id)
	if !known {
		return nil, Missing("task", id)
	}
	return s.Behalf(ctx, t.By, t.Tenant, key), nil
}

// Behalf returns a visit in the name of an identity of a tenant, for work on its behalf.
func (s *Server) Behalf(ctx context.Context, name, tenant, key string) *Visit {
	return &Visit{Server: s, Context: ctx, who: visitor{name: name, tenant: tenant, role: Operator}, key: key, principal: owner}
}

// Go runs f as long as the server runs. Ctx ends with the server. It reports whether f runs: the server may
// have ended.
func (s *Server) Go(f func(ctx context.Context)) bool {
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Go(func() { f(s.ctx) })
	return true
}

// Name returns the name of the visitor.
func (v *Visit) Name() string { return v.who.name }

// Tenant returns the tenant of everything that the visitor makes.
func (v *Visit) Tenant() string { return v.who.tenant }

// Known reports whether the visitor still has access: its identity may have been removed meanwhile.
func (v *Visit) Known() bool {
	_, known := v.visitor(v.principal)
	return known
}

// Key returns the unique key of the request, including for use in sessions, if the client has sent an
// Idempotency-Key. Empty means it has not.
func (v *Visit) Key() string {
	if v.key == "" {
		return ""
	}
	return v.who.name + "/" + v.key
}

// Find returns a task that the visitor sees. The error does not reveal whether another task exists.
func (v *Visit) Find(id string) (Task, error) {
	t, known := v.book.task(id)
	if !known || !v.who.sees(t.Tenant, t.place) {
		return Task{}, Missing("task", id)
	}
	return t, nil
}

// Wait waits until so is true for a task.
func (v *Visit) Wait(id string, so func(Task) bool) (Task, error) {
	for {
		news := v.book.news()
		t, err := v.Find(id)
		if err != nil || so(t) {
			return t, err
		}
		select {
		case <-news:
		case <-v.Done():
			return t, v.Err()
		case <-v.ctx.Done():
			return t, ending()
		}
	}
}

// News returns a channel that is closed when the server's state changes.
func (v *Visit) News() <-chan struct{} { return v.book.news() }

// Unfinished returns the tasks that the visitor sees, that are not over and that keep accepts, without their
// histories. Keep must not change them.
func (v *Visit) Unfinished(keep func(*Task) bool) []Task {
	return v.book.openIf(func(t *Task) bool { return keep(t) && v.who.sees(t.Tenant, t.place) })
}

// Say sends a message to the agent of a task. A running agent sees it with the results of its calls; an idle
// one begins with it. A message that was sent before under the same key, if there is one, is not sent again;
// another text under it is a conflict. It returns the number of the event in the session.
func (v *Visit) Say(id string, parts llm.Parts, key string) (uint64, error) {
	if err := clean("text", reflect.ValueOf(parts.Text())); err != nil {
		return 0, err
	}
	return v.tell(id, event.Steered{Origin: event.OriginPerson, Parts: parts, By: v.who.name, Message: key})
}

// Inform sends the agent of a task a message of its operator. It begins no run.
func (v *Visit) Inform(id string, parts llm.Parts, key string) (uint64, error) {
	return v.tell(id, event.Steered{Parts: parts, By: v.who.name, Origin: event.OriginHook, Message: key})
}

// Note writes data of a door into the session of a task. It has no effect on the agent.
func (v *Visit) Note(id, of, name string, value any) (uint64, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return v.tell(id, event.Recorded{Of: of, ID: name, Value: raw, By: v.who.name})
}

// Status returns the status of the session of a task; the zero value if there is none yet.
func (v *Visit) Status(id string) (inspan.Status, error) {
	t, err := v.Find(id)
	if err != nil || t.Session == "" {
		return inspan.Status{}, err
	}
	return v.status(t.Session)
}

// Respec changes the spec of an open task, from its next run on. It fails while the task runs.
func (v *Visit) Respec(id string, f func(*Spec)) error {
	t, err := v.Find(id)
	if err != nil {
		return err
	}
	f(&t.Spec)
	if err := v.check(v, v.who.tenant, t.Spec); err != nil {
		return err
	}
	if t.Stage != StageIdle {
		return Conflict("task %s is %s; it can be changed only while it is idle", t.ID, t.Stage)
	}
	raw, err := json.Marshal(t.Spec)
	if err != nil {
		return err
	}
	return v.book.add(v, event.Recorded{Of: ofSpec, ID: t.ID, Value: raw, By: v.who.name})
}

// Interrupt stops the current run of a task. No message that came meanwhile is lost. It cancels the task unless
// that is open. The key is as for [Visit.Say].
func (v *Visit) Interrupt(id, reason, key string) (uint64, error) {
	return v.tell(id, event.Cancelled{By: v.who.name, Reason: reason, All: true, Message: key})
}

// tell appends an input to the session of a task.
func (v *Visit) tell(id string, input event.Body) (uint64, error) {
	t, err := v.Find(id)
	if err == nil && t.Session == "" && !over(t.Stage) {
		t, err = v.Wait(id, func(t Task) bool { return t.Session != "" || over(t.Stage) })
	}
	if err == nil {
		err = t.accepts()
	}
	if err != nil {
		return 0, err
	}
	seq, err := v.write(t.Session, input)
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	v.poked[t.ID] = true // it has work
	v.mu.Unlock()
	v.stir()
	return seq, nil
}

// accepts returns an error if the agents of the task read no more messages.
func (t *Task) accepts() error {
	if t.Session == "" || over(t.Stage) || t.Stage == StageFinalizing || t.closed != "" {
		return Conflict("task %s is %s and accepts no messages", t.ID, t.Stage)
	}
	return nil
}

// put appends an input, unless it was sent before under its key.
func (v *Visit) put(log store.Log, input event.Body) (uint64, error) {
	var err error
	switch b := input.(type) { // images go into blobs of the session
	case event.Said:
		b.Parts, err = spilled(v, log.Blobs(), b.Parts)
		input = b
	case event.Steered:
		b.Parts, err = spilled(v, log.Blobs(), b.Parts)
		input = b
	}
	if err != nil {
		return 0, err
	}
	input = v.book.redact(input)
	if key := loop.Key(input); key != "" {
		before, last, err := v.sent(log, key, 0)
		if err == nil && before.Seq == 0 {
			v.keys.Lock() // the others then read only the newer events
			defer v.keys.Unlock()
			before, _, err = v.sent(log, key, last)
		}
		switch {
		case err != nil:
			return 0, err
		case before.Seq > 0 && !reflect.DeepEqual(before.Body, input):
			return 0, Conflict("this Idempotency-Key was used for another request")
		case before.Seq > 0:
			return before.Seq, nil
		}
	}
	events, err := log.Append(v, input)
	if err != nil {
		return 0, err
	}
	return events[0].Seq, nil
}

// sent returns the event in a log with a key, after a number; its number is 0 if there is none. Last is the
// number up to which it has looked.
func (v *Visit) sent(log store.Log, key string, after uint64) (found event.Event, last uint64, err error) {
	for e, err := range log.Read(v, after) {
		if err != nil || loop.Key(e.Body) == key {
			return e, e.Seq, err
		}
		after = e.Seq
	}
	return event.Event{}, after, nil
}

// Sent returns the events with keys that were sent to the session of a task, by key.
func (v *Visit) Sent(id string) (map[string]event.Event, error) {
	t, err := v.Find(id)
	out := map[string]event.Event{}
	if err != nil || t.Session == "" {
		return out, err
	}
	for e, err := range store.Events(v, v.Sessions, t.Session) {
		if err != nil {
			return nil, err
		}
		if key := loop.Key(e.Body); key != "" && out[key].Seq == 0 {
			out[key] = e
		}
	}
	return out, nil
}

// spilled returns parts whose images are in blobs.
func spilled(ctx context.Context, blobs tool.Blobs, parts llm.Parts) (llm.Parts, error) {
	parts = slices.Clone(parts)
	for i, part := range parts {
		image, is := part.(llm.Image)
		if !is {
			continue
		}
		name, err := blobs.Put(ctx, bytes.NewReader(image.Data))
		if err != nil {
			return nil, err
		}
		parts[i] = llm.Image{MediaType: image.MediaType, Digest: name}
	}
	return parts, nil
}

// Cancel ends a task in stage cancelled, whatever its stage is.
func (v *Visit) Cancel(id string) (Task, error) { return v.wish(id, ofCancel) }

// Finish ends an open task when it is next idle. It accepts no more messages. A task that waits for an answer is
// interrupted, because no answer may come.
func (v *Visit) Finish(id string) (Task, error) {
	t, err := v.Find(id)
	if err == nil && !t.Spec.Open {
		return Task{}, Conflict("task %s ends when its run stops; only one with open: true can be closed", t.ID)
	}
	if err == nil && t.Stage == StageWaiting && t.Why == "" && t.closed == "" {
		_, err = v.Interrupt(id, "closed", "")
	}
	if err != nil {
		return Task{}, err
	}
	return v.wish(id, ofClose)
}

// wish records a request to end a task.
func (v *Visit) wish(id, of string) (Task, error) {
	t, err := v.Find(id)
	if err != nil || over(t.Stage) || t.cancelled != "" || of == ofClose && t.closed != "" {
		return t, err
	}
	err = v.book.add(v, event.Recorded{Of: of, ID: t.ID, By: v.who.name})
	v.stir()
	if err != nil {
		return Task{}, err
	}
	return v.Find(id)
}

// spoken returns the parts for a client's text.
func spoken(field, text string) (llm.Parts, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, Wrong(field, "it is missing", "a text")
	case len(text) > mostPrompt:
		return nil, Wrong(field, fmt.Sprintf("it has %d bytes", len(text)), fmt.Sprintf("at most %d", mostPrompt))
	}
	return llm.Say(text), nil
}
