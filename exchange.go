package inspan

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
)

// exchange is a request under way.
type exchange struct {
	*driver
	asked  llm.Request     // as the state has it
	req    llm.Request     // the same with what it takes from blobs
	by     llm.Info        // who answers
	sent   time.Time       // when it went out, or will
	first  time.Time       // when the first of the reply came; zero: nothing has
	said   strings.Builder // the answer so far
	veil   *veil           // what of it is shown
	answer event.Body      // what is to be stored; nil: it has not come yet
}

// exchange begins a request. It is made of the state that Asked stands for: what is said
// from there on waits for the next. It is nil if something else comes first: a wait, hooks
// that are to hear something, or what others have appended.
func (d *driver) exchange(ctx context.Context, n loop.Ask) (*exchange, error) {
	switch wait := d.agent.wait(n); {
	case d.spanEnds(n):
		return nil, d.checkpoint(ctx, true)
	case wait > 0:
		return nil, d.pause(ctx, wait)
	case d.state.Run.Heard != "" && len(d.agent.Hooks) > 0:
		return nil, d.heard(ctx)
	}
	if some, err := d.written(ctx); some || err != nil {
		return nil, err
	}
	d.learn()
	bodies, err := d.calls.asking(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := d.decide(ctx, append(bodies, event.Asked{Turn: n.Turn, Route: d.state.Route})...)
	if err != nil || !stored || d.state.Run.Cancelled { // somebody was faster
		return nil, err
	}
	x := &exchange{driver: d, asked: d.state.Request(), by: d.model.Info(), veil: newVeil(d.vault)}
	x.req, err = d.images.loaded(ctx, d.agent.Env.Blobs, x.asked)
	x.req.Memo = &d.memo
	x.sent = time.Now()
	return x, err
}

// take takes in what has come of the reply.
func (x *exchange) take(ctx context.Context, chunk llm.Chunk) error {
	switch {
	case chunk.Reply != nil:
		x.answer = replied(x.state, x.req, chunk.Reply, x.by)
		return x.show(x.veil.rest())
	case chunk.Retry != nil:
		why := failed(chunk.Retry.Cause, max(chunk.Retry.Wait, 0.001))
		if why.Millis = x.took(); chunk.Retry.Attempt == 1 {
			why.Millis = 0 // it is held back
		}
		x.sent = time.Now().Add(time.Duration(chunk.Retry.Wait * float64(time.Second)))
		return x.void(ctx, why)
	case chunk.Routed != nil:
		why := routed(chunk.Routed, x.by.Route())
		if why.From != "" {
			why.Millis = x.took()
		}
		err := x.void(ctx, why)
		x.by, x.sent = chunk.Routed.Info, time.Now()
		return err
	}
	if x.first.IsZero() {
		x.first = time.Now()
	}
	x.said.WriteString(chunk.Text)
	return x.show(x.veil.pass(event.Delta{Text: chunk.Text, Reasoning: chunk.Reasoning, Call: chunk.Call}))
}

// broke takes in that the stream has broken off.
func (x *exchange) broke(ctx, watched context.Context, err error) error {
	unsent := llm.AsError(err).Kind == llm.KindBudget
	switch {
	case errors.Is(context.Cause(watched), errInterrupted) && !unsent:
		x.answer = x.interrupted()
		return x.show(x.veil.rest())
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		why := failed(llm.AsError(err), 0)
		why.Millis = x.took()
		x.answer = why
	}
	return nil
}

// took is how many milliseconds have passed since the request went out; 0: it has not.
func (x *exchange) took() int64 { return max(0, time.Since(x.sent).Milliseconds()) }

// answered stores what came of a request.
func (x *exchange) answered(ctx context.Context) error {
	r, ok := x.answer.(event.Replied)
	switch {
	case x.answer == nil:
		why := failed(&llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended without a reply"}, 0)
		why.Millis = x.took()
		return x.record(ctx, why)
	case !ok:
		return x.record(ctx, x.answer)
	}
	if r.Millis = x.took(); !x.first.IsZero() {
		r.First = max(0, x.first.Sub(x.sent).Milliseconds())
	}
	if note, lost := x.cache.look(x.asked, r, x.sent); lost {
		return x.record(ctx, r, note)
	}
	return x.record(ctx, r)
}

// void takes back what was said and shown of the reply, and stores why.
func (x *exchange) void(ctx context.Context, why event.Body) error {
	x.said.Reset()
	x.first = time.Time{}
	x.veil = newVeil(x.vault)
	if err := x.driver.show(event.Delta{Void: true}); err != nil {
		return err
	}
	return x.record(ctx, why)
}

// show yields what can be shown of the reply.
func (x *exchange) show(list []event.Delta) error {
	for _, delta := range list {
		if err := x.driver.show(delta); err != nil {
			return err
		}
	}
	return nil
}

// interrupted is what is left of a request that was interrupted: nothing, if it
// was still held back, else the text so far. The vendor charges for that and does
// not say how much.
func (x *exchange) interrupted() event.Body {
	if time.Now().Before(x.sent) {
		return failed(&llm.Error{Kind: llm.KindCancelled, Message: "interrupted before it was sent"}, 0)
	}
	r := event.Replied{Stop: llm.StopCut, Route: x.by.Route(), Parts: llm.Parts{}}
	if text := x.said.String(); text != "" {
		r.Parts = llm.Say(text)
	}
	r.Usage = (&llm.Reply{Parts: r.Parts}).Used(x.req)
	return priced(r, x.by)
}
