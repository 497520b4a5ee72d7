package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/repair"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// Replied returns the event for a model's reply to a request. Its calls have unique ids and a JSON object as
// arguments, so the stored reply can always be sent again.
func Replied(st *loop.State, req llm.Request, r *llm.Reply, by llm.Info) event.Replied {
	body := event.Replied{
		Stop: r.Stop, Usage: r.Used(req), Route: r.Route, RequestID: r.RequestID, ReplyID: r.ID, Server: r.Server,
		Parts: make(llm.Parts, 0, len(r.Parts)),
	}
	inReply := map[string]bool{} // ids of earlier calls of the reply
	used := func(id string) bool { return inReply[id] || st.HasCall(id) }
	for _, part := range r.Parts {
		switch p := part.(type) {
		case llm.Call:
			p = Sound(withID(st, p, used))
			inReply[p.ID], part = true, p
		case llm.Reasoning:
			if !json.Valid(p.Opaque) {
				p.Opaque = nil
			}
			part = p
		}
		body.Parts = append(body.Parts, part)
	}
	return Priced(body, by)
}

// withID gives a call an id that no other call in the log has, whatever the server sends. It keeps the server's id if
// the conversation still holds all calls and none has that id. Otherwise it adds the number of the reply, which is
// unique in the log. It does so too for ids that already have this form, so that a server can't cause a collision.
func withID(st *loop.State, c llm.Call, used func(id string) bool) llm.Call {
	if c.ID == "" {
		c.ID = "call"
	}
	wire := c.ID
	if st.CallsDropped || used(c.ID) || numbered(c.ID) {
		c.ID = fmt.Sprintf("%s_r%d", wire, st.Total.Turns+1)
		for n, first := 2, c.ID; used(c.ID); n++ {
			c.ID = fmt.Sprintf("%s_%d", first, n)
		}
		c.Wire = wire
	}
	return c
}

// numbered reports whether an id ends like the ids that withID makes.
func numbered(id string) bool {
	i := strings.LastIndex(id, "_r")
	return i >= 0 && len(id) > i+2 && strings.Trim(id[i+2:], "0123456789_") == ""
}

// Sound returns the call with a JSON object as arguments. Arguments that can't be repaired move to Invalid.
func Sound(c llm.Call) llm.Call {
	if c.Invalid != "" {
		return c
	}
	args, ok := repair.Args(string(c.Args))
	if !ok {
		c.Invalid, args = string(c.Args), json.RawMessage("{}")
	}
	c.Args = args
	return c
}

// Priced adds the cost of a reply at today's prices.
func Priced(r event.Replied, by llm.Info) event.Replied {
	dollars, known := by.Prices.Bill(time.Now(), r.Usage)
	r.Cost, r.Unpriced = dollars, !known
	return r
}

// Routed returns the event for a choice of model that replaced the route from.
func Routed(r *llm.Routed, from string) event.Routed {
	body := event.Routed{Route: r.Info.Route(), Rule: r.Rule, Reason: r.Reason, Window: r.Window, Private: r.Private, Judged: r.Judged}
	if s := r.Judge; s != nil {
		body.Judge, body.Usage = s.Info.Route(), s.Usage
		body.Cost, body.Took = Dollars(s), s.Millis
	}
	if r.Cause != nil {
		body.From, body.Cause, body.Error = from, r.Cause.Kind, r.Cause.Error()
	}
	return body
}

// Failed returns the event for a failed request that will be sent again after retry seconds; 0 means never.
func Failed(e *llm.Error, retry float64) event.Failed {
	body := event.Failed{Cause: e.Kind, Message: e.Error(), Retry: retry, Status: e.Status, Limit: e.Limit}
	if e.Spent != nil {
		body.Route, body.Usage, body.Cost = e.Spent.Info.Route(), e.Spent.Usage, Dollars(e.Spent)
	}
	return body
}

// Dollars returns the cost at today's prices.
func Dollars(s *llm.Spent) float64 {
	dollars, _ := s.Info.Prices.Bill(time.Now(), s.Usage)
	return dollars
}
