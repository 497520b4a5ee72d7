package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// connection makes the calls of a client's connection, each in a session that no other call uses meanwhile. So
// there are as many sessions as concurrent calls; they share what they learn (shared.go).
type connection struct {
	tenant *tenant
	ctx    context.Context // of the work on the connection
	cancel context.CancelFunc

	mu     sync.Mutex
	slots  []*slot // the oldest first
	shared shared
	closed bool
}

// slot is a session that calls are made in.
type slot struct {
	session *inspan.Session
	model   *caller
	blobs   tool.Blobs
	calls   int
	busy    chan struct{}     // holds one value while it is in use
	cwd     string            // directory that its calls start from
	seen    map[string]string // the knowledge of its calls about files; not changed
}

// call makes one call and returns its result.
func (d *connection) call(w *clientCall, name string, args json.RawMessage) *sdk.CallToolResult {
	s, err := d.take(w.ctx, name, args)
	if err != nil {
		return failed(err)
	}
	end, err := d.syncDirectory(w, s)
	if err == nil && end.Outcome == event.OutcomeOK {
		end, err = d.makeCall(w, s, name, args)
	}
	if err != nil {
		d.drop(s)
		return failed(err)
	}
	defer d.returnSlot(s)
	return s.content(w.ctx, end)
}

// makeCall makes a call in a session.
func (d *connection) makeCall(w *clientCall, s *slot, name string, args json.RawMessage) (event.Ended, error) {
	s.calls++
	call := callOf(fmt.Sprintf("mcp%d", s.calls), name, args)
	s.model.setCall(&call)
	var fold transcript.Fold
	var made *transcript.Call // nil until it is in the log
	see := func(e event.Event) {
		for _, item := range fold.Apply(e) {
			c, is := item.(*transcript.Call)
			switch {
			case !is:
			case c.State == transcript.Made:
				made = c
			case c.State == transcript.Over:
				d.recordEnd(s, c.Ended)
			case c == made && c.Latest != "":
				w.reportProgress(shorten(c.Latest))
			}
		}
	}
	said := event.Said{Parts: llm.Say(fmt.Sprintf("%s, called by %s", name, w.client)), By: sender(d.tenant.principal), Taint: d.shareKnowledge(s)}
	if err := w.drive(s.session, see, said); err != nil {
		return event.Ended{}, err
	}
	d.recordSeen(s)
	s.model.setCall(nil) // if it was never requested
	if made == nil || made.State != transcript.Over {
		why := "the call was not made"
		if st := s.session.Status().Stopped; st != nil && st.Detail != "" {
			why += ": " + st.Detail
		}
		return event.Ended{}, errors.New(why)
	}
	if made.Ended.Again {
		return s.originalResult(w.ctx, d.tenant.server.Tools, call, made.Ended)
	}
	return made.Ended, nil
}

// callOf returns a call with the client's arguments.
func callOf(id, name string, args json.RawMessage) llm.Call {
	c := llm.Call{ID: id, Name: name, Args: args}
	var object map[string]json.RawMessage
	if err := unmarshal(args, &object); err != nil {
		c.Invalid = string(args)
	}
	if object == nil { // also for null
		c.Args = json.RawMessage("{}")
	}
	return c
}

// originalResult returns the original result for a reference to an earlier one, which a client can't look up.
func (s *slot) originalResult(ctx context.Context, host *inspan.Host, call llm.Call, end event.Ended) (event.Ended, error) {
	var fold transcript.Fold
	same := map[*transcript.Call]bool{}
	for e, err := range host.Events(context.WithoutCancel(ctx), s.session.ID()) {
		if err != nil {
			return end, err
		}
		for _, item := range fold.Apply(e) {
			c, is := item.(*transcript.Call)
			switch {
			case !is:
			case c.State == transcript.Made:
				same[c] = c.Call.Name == call.Name && string(c.Call.Args) == string(call.Args)
			case c.State == transcript.Over && same[c] && c.Ended.Outcome == event.OutcomeOK && !c.Ended.Again:
				end.Parts = c.Ended.Parts
			}
		}
	}
	return end, nil
}

// take returns a session for a call, the oldest free one or a new one. A call about jobs waits for the session
// of the jobs.
func (d *connection) take(ctx context.Context, name string, args json.RawMessage) (*slot, error) {
	if s := d.slotOfJob(name, args); s != nil {
		select {
		case s.busy <- struct{}{}:
			return s, nil
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || ctx.Err() != nil {
		return nil, errors.New("it was cancelled before it began")
	}
	for _, s := range d.slots {
		select {
		case s.busy <- struct{}{}:
			return s, nil
		default:
		}
	}
	s, err := d.open()
	if err != nil {
		return nil, err
	}
	d.slots = append(d.slots, s)
	return s, nil
}

// open opens a session and marks it as in use.
func (d *connection) open() (*slot, error) {
	root := d.tenant.server.Root
	s := &slot{model: &caller{}, busy: make(chan struct{}, 1), cwd: root}
	s.busy <- struct{}{}
	from := d.tenant.server.Tools
	host := &inspan.Host{Store: from.Sessions(), Agent: func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		a, err := from.Agent(ctx, at)
		if err != nil {
			return nil, err
		}
		s.blobs = at.Blobs
		list, err := selectTools(a.Tools, d.tenant.server.Names)
		if skills := d.tenant.server.Skills; skills != nil {
			list = append(list, skills.Typed(promptTool))
		}
		for i, t := range list {
			list[i] = s.withKnownFiles(t)
		}
		return s.model.replaceModel(a, list), err
	}}
	var err error
	s.session, err = host.New(d.tenant.ctx, root)
	if err == nil {
		s.cwd = s.session.Status().Root
	}
	return s, err
}

// returnSlot returns a session.
func (d *connection) returnSlot(s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = s.session.Close() // everything that was acknowledged is stored
		return
	}
	<-s.busy
}

// drop closes a session that can't be used any more.
func (d *connection) drop(s *slot) {
	_ = s.session.Close() // it has failed already
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slots = slices.DeleteFunc(d.slots, func(other *slot) bool { return other == s })
	maps.DeleteFunc(d.shared.jobs, func(_ string, other *slot) bool { return other == s })
	if d.shared.last == s {
		d.shared.last = nil
	}
	<-s.busy
}

// close cancels the work in progress and closes idle sessions; the others close when their calls end.
func (d *connection) close() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.slots {
		select {
		case s.busy <- struct{}{}:
			_ = s.session.Close() // everything that was acknowledged is stored
		default:
		}
	}
	d.slots, d.closed = nil, true
}
