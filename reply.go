package inspan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
)

// replied makes an event of the reply to a request that the model by gave. What is stored can
// always be sent again: calls have ids of their own and a JSON object as
// arguments.
func replied(st *loop.State, req llm.Request, r *llm.Reply, by llm.Info) event.Replied {
	body := event.Replied{
		Stop: r.Stop, Usage: r.Used(req), Route: r.Route, RequestID: r.RequestID,
		Parts: make(llm.Parts, 0, len(r.Parts)),
	}
	here := map[string]bool{} // ids of the calls before it in the reply
	used := func(id string) bool { return here[id] || st.Called(id) }
	for _, part := range r.Parts {
		switch p := part.(type) {
		case llm.Call:
			p = sound(named(st, p, used))
			here[p.ID], part = true, p
		case llm.Reasoning:
			if !json.Valid(p.Opaque) {
				p.Opaque = nil
			}
			part = p
		}
		body.Parts = append(body.Parts, part)
	}
	return priced(body, by)
}

// named gives a call of a reply an id that no other call of the log has, whatever the
// server sends. The server's own will do as long as no call has
// left the conversation and none in it has that id. Else the number of the reply goes
// behind it, which no other reply of the log has; an id that came in that form gets it
// too, so that none can be foreseen.
func named(st *loop.State, c llm.Call, used func(id string) bool) llm.Call {
	if c.ID == "" {
		c.ID = "call"
	}
	theirs := c.ID
	if st.Lacks || used(c.ID) || numbered(c.ID) {
		c.ID = fmt.Sprintf("%s_r%d", theirs, st.Total.Turns+1)
		for n, first := 2, c.ID; used(c.ID); n++ {
			c.ID = fmt.Sprintf("%s_%d", first, n)
		}
		c.Wire = theirs
	}
	return c
}

// numbered reports whether an id has the form of those that end in the number of a reply.
func numbered(id string) bool {
	i := strings.LastIndex(id, "_r")
	return i >= 0 && len(id) > i+2 && strings.Trim(id[i+2:], "0123456789_") == ""
}

// sound makes the arguments of a call a JSON object.
func sound(c llm.Call) llm.Call {
	if c.Invalid != "" {
		return c
	}
	args, ok := llm.RepairArgs(string(c.Args))
	if !ok {
		c.Invalid, args = string(c.Args), json.RawMessage("{}")
	}
	c.Args = args
	return c
}

// priced adds what a reply cost on the day it came.
func priced(r event.Replied, by llm.Info) event.Replied {
	price, known := by.Prices.At(time.Now())
	r.Cost, r.Unpriced = price.Cost(r.Usage), !known
	return r
}

func routed(r *llm.Routed, from string) event.Routed {
	body := event.Routed{Route: r.Info.Route(), Rule: r.Rule, Reason: r.Reason, Window: r.Window, Private: r.Private, Judged: r.Judged}
	if s := r.Judge; s != nil {
		body.Judge, body.Usage = s.Info.Route(), s.Usage
		body.Cost, body.Took = dollars(s), s.Millis
	}
	if r.Cause != nil {
		body.From, body.Cause, body.Error = from, r.Cause.Kind, r.Cause.Error()
	}
	return body
}

func failed(e *llm.Error, retry float64) event.Failed {
	body := event.Failed{Cause: e.Kind, Message: e.Error(), Retry: retry, Status: e.Status, Limit: e.Limit}
	if e.Spent != nil {
		body.Route, body.Usage, body.Cost = e.Spent.Info.Route(), e.Spent.Usage, dollars(e.Spent)
	}
	return body
}

// dollars is what was spent, at the prices of today.
func dollars(s *llm.Spent) float64 {
	price, _ := s.Info.Prices.At(time.Now())
	return price.Cost(s.Usage)
}
