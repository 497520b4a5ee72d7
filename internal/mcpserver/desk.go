package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// maxSeats bounds the sessions of one connection, which are as many as calls that ask.
const maxSeats = maxParked + 2

// desk is where the calls of one connection are made.
type desk struct {
	room   *room
	ctx    context.Context // of what goes on on the connection
	cancel context.CancelFunc
	turn   chan struct{} // holds one: the call that is being made, unless it asks

	mu     sync.Mutex
	free   []*seat // not in use, the oldest first
	made   int
	closed bool
}

// seat is a session that calls are made in.
type seat struct {
	session *inspan.Session
	model   *caller
	blobs   tool.Blobs
	number  int
	calls   int
}

// call makes one call and returns what came of it.
func (d *desk) call(w *work, name string, args json.RawMessage) *sdk.CallToolResult {
	if !d.begin(w) {
		return failed(errors.New("it was called off before it began"))
	}
	defer func() { <-d.turn }()
	s, err := d.take(d.room.ctx)
	if err != nil {
		return failed(err)
	}
	end, err := d.make(w, s, name, args)
	if err != nil {
		d.drop(s)
		return failed(err)
	}
	defer d.give(s)
	return s.content(w.ctx, end)
}

// begin waits for the turn of a call, and reports whether it is still wanted.
func (d *desk) begin(w *work) bool {
	select {
	case d.turn <- struct{}{}:
	case <-w.ctx.Done():
		return false
	}
	if w.ctx.Err() == nil {
		return true
	}
	<-d.turn
	return false
}

// make makes a call in a session. While it asks it is another's turn.
func (d *desk) make(w *work, s *seat, name string, args json.RawMessage) (event.Ended, error) {
	s.calls++
	call := callOf(fmt.Sprintf("mcp%d", s.calls), name, args)
	s.model.put(&call)
	id := "" // that the call has in the log
	var end *event.Ended
	run := run{
		work: w, session: s.session,
		see: func(e event.Event) {
			switch b := e.Body.(type) {
			case event.Replied:
				for _, c := range b.Parts.Calls() {
					id = c.ID
				}
			case event.Ended:
				if b.Call == id {
					end = &b
				}
			case event.Progress:
				if b.Call == id {
					w.tell(short(b.Text))
				}
			}
		},
		ask: func(p inspan.Pending) event.Body {
			<-d.turn
			defer func() { d.turn <- struct{}{} }()
			return w.ask(p)
		},
	}
	said := event.Said{Parts: llm.Say(fmt.Sprintf("%s, called by %s", name, w.client)), By: sender(d.room.principal)}
	if err := run.drive(said); err != nil {
		return event.Ended{}, err
	}
	s.model.put(nil) // if it was never asked for
	if end == nil {
		return event.Ended{}, errors.New(s.why())
	}
	if end.Again {
		return s.before(w.ctx, d.room.server.Tools, call, *end)
	}
	return *end, nil
}

// callOf is a call with the arguments that a client has sent.
func callOf(id, name string, args json.RawMessage) llm.Call {
	c := llm.Call{ID: id, Name: name, Args: args}
	var object map[string]json.RawMessage
	if err := unmarshal(args, &object); err != nil {
		c.Invalid = string(args)
	}
	if object == nil { // also of null
		c.Args = json.RawMessage("{}")
	}
	return c
}

// why says why a call was not even made.
func (s *seat) why() string {
	if st := s.session.Status().Stopped; st != nil && st.Detail != "" {
		return "the call was not made: " + st.Detail
	}
	return "the call was not made"
}

// before is the result that a call has brought before: what is not put before a model
// twice is nothing that a client could look up.
func (s *seat) before(ctx context.Context, host *inspan.Host, call llm.Call, end event.Ended) (event.Ended, error) {
	same := map[string]bool{}
	for e, err := range host.Events(context.WithoutCancel(ctx), s.session.ID()) {
		if err != nil {
			return end, err
		}
		switch b := e.Body.(type) {
		case event.Replied:
			for _, c := range b.Parts.Calls() {
				same[c.ID] = c.Name == call.Name && string(c.Args) == string(call.Args)
			}
		case event.Ended:
			if same[b.Call] && b.Outcome == event.OutcomeOK && !b.Again {
				end.Parts = b.Parts
			}
		}
	}
	return end, nil
}

// take is the oldest session that is free, or a new one.
func (d *desk) take(ctx context.Context) (*seat, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.free) > 0 {
		s := d.free[0]
		d.free = d.free[1:]
		return s, nil
	}
	if d.made >= maxSeats {
		return nil, errors.New("too many calls wait for an answer")
	}
	s := &seat{model: &caller{}, number: d.made}
	from := d.room.server.Tools
	host := &inspan.Host{Dir: from.Dir, Agent: func(ctx context.Context, at inspan.Place) (*inspan.Agent, error) {
		a, err := from.Agent(ctx, at)
		if err != nil {
			return nil, err
		}
		s.blobs = at.Blobs
		list, err := chosen(a.Tools, d.room.server.Names)
		return s.model.lead(a, list), err
	}}
	var err error
	if s.session, err = host.New(ctx, d.room.server.Root); err != nil {
		return nil, err
	}
	d.made++
	return s, nil
}

// give puts a session back.
func (d *desk) give(s *seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = s.session.Close() // all that was acknowledged is stored
		return
	}
	d.free = append(d.free, s)
	slices.SortFunc(d.free, func(a, b *seat) int { return a.number - b.number })
}

// drop closes a session that can't be used any more.
func (d *desk) drop(s *seat) {
	_ = s.session.Close() // it has failed already
	d.mu.Lock()
	d.made--
	d.mu.Unlock()
}

// close calls off what goes on, and closes what no call uses; the rest follows.
func (d *desk) close() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.free {
		_ = s.session.Close() // all that was acknowledged is stored
	}
	d.free, d.closed = nil, true
}
