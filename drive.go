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

// driver performs what the loop asks for, one thing at a time, and appends
// what came of it. All it knows of the session is in the log: when it dies,
// another driver goes on.
type driver struct {
	*Session
	yield func(event.Event, error) bool
	told  chan struct{} // rings when the log has something of a child, or a question; holds one
}

var (
	errBroken      = errors.New("the consumer broke off")
	errInterrupted = errors.New("interrupted")
)

// claim makes this driver the session's only one while f runs, with the body to
// append first.
func (d *driver) claim(ctx context.Context, f func(event.Claimed) error) (err error) {
	release, err := d.lease(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	return f(event.Claimed{Epoch: d.state.Epoch + 1, By: whoami()})
}

// run appends the inputs and drives.
func (d *driver) run(ctx context.Context, claimed event.Claimed, inputs []event.Body) error {
	bodies := []event.Body{claimed}
	if !d.joined && d.agent.Joined != nil {
		d.agent.Joined(d.Session)
	}
	if !d.joined {
		if sw, some := d.agent.changes(d.state, d.specs); some {
			bodies = append(bodies, sw)
		}
		bodies = append(append(bodies, d.clashes()...), d.started(ctx)...)
	} else {
		bodies = append(bodies, d.renewed(ctx)...)
	}
	d.joined = true
	if err := d.append(ctx, append(bodies, inputs...)...); err != nil {
		return err
	}
	return d.drive(ctx)
}

// drive does what the loop says until there is nothing to do. Every step ends
// with an append, which also brings in what others have sent meanwhile.
func (d *driver) drive(ctx context.Context) error {
	for {
		var err error
		switch n := d.state.Next().(type) {
		case loop.Wait:
			late := overdue(n.Calls)
			if len(late) == 0 {
				return nil
			}
			err = d.append(ctx, late...)
		case loop.Ask:
			if wait := time.Until(n.NotBefore); wait > 0 {
				err = d.pause(ctx, wait)
				break
			}
			if d.state.Run.Heard != "" && len(d.agent.Hooks) > 0 {
				err = d.heard(ctx)
				break
			}
			err = d.ask(ctx, n.Turn)
		case loop.Heal:
			err = d.append(ctx, n.Healed)
		case loop.Prune:
			err = d.append(ctx, n.Pruned)
		case loop.Compact:
			err = d.compact(ctx, n)
		case loop.Judge:
			err = d.judgeCalls(ctx, n.Calls)
		case loop.RunCalls:
			err = d.runCalls(ctx, n.Calls)
		case loop.Await:
			err = d.await(ctx)
		case loop.End:
			err = d.append(ctx, bodies(n.Ended)...)
		case loop.Steer:
			err = d.append(ctx, n.Steered)
		case loop.Stop:
			err = d.stop(ctx, n.Stopped)
		}
		if err != nil {
			return err
		}
	}
}

// overdue denies calls that have waited for a decision long enough.
func overdue(waiting []loop.Call) []event.Body {
	var out []event.Body
	for _, c := range waiting {
		if !c.Until.IsZero() && time.Now().After(c.Until) {
			out = append(out, event.Decided{Call: c.ID, By: loop.By, Reason: "nobody answered in time"})
		}
	}
	return out
}

// append stores bodies, then folds and yields them together with whatever
// others have appended before them.
func (d *driver) append(ctx context.Context, bodies ...event.Body) error {
	if _, err := d.log.Append(ctx, d.clear(bodies)...); err != nil {
		return err
	}
	return d.catchUp(ctx)
}

// catchUp folds and yields what the log holds beyond the state.
func (d *driver) catchUp(ctx context.Context) error {
	for e, err := range d.log.Read(ctx, d.state.Seq) {
		if err != nil {
			return err
		}
		d.cache.saw(e.Body)
		switch e.Body.(type) {
		case event.Compacted, event.Rewound:
			clear(d.looked) // what was added is no longer seen
		}
		d.mu.Lock()
		err = d.state.Apply(e)
		d.mu.Unlock()
		if err != nil {
			return err
		}
		if !d.yield(e, nil) {
			return errBroken
		}
	}
	return nil
}

// show yields a transient event.
func (d *driver) show(body event.Body) error {
	if !d.yield(event.Event{Time: time.Now(), Session: d.state.Session, Body: d.redacted(body)}, nil) {
		return errBroken
	}
	return nil
}

// await lets children work until somebody appends to the log.
func (d *driver) await(ctx context.Context) error {
	w, ok := d.log.(event.Waiter)
	if !ok {
		return errors.New("the log can't be waited for, which children in the background need")
	}
	if err := w.Wait(ctx, d.state.Seq); err != nil {
		return err
	}
	return d.catchUp(ctx)
}

// pause lets the rest of a wait pass that an earlier driver began, unless
// somebody interrupts.
func (d *driver) pause(ctx context.Context, wait time.Duration) error {
	if err := d.show(event.Progress{Text: "the model can't be asked yet", Wait: wait.Seconds()}); err != nil {
		return err
	}
	watched, done := d.interruptible(ctx)
	sleep(watched, wait)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.catchUp(ctx)
}

// ask sends the next request and stores what comes back.
func (d *driver) ask(ctx context.Context, turn int) error {
	d.learn()
	req, err := d.loaded(ctx, d.state.Request())
	if err != nil {
		return err
	}
	asking := d.state.Request()
	err = d.append(ctx, event.Asked{Turn: turn, Route: d.state.Route})
	if err != nil || d.state.Run.Cancelled { // somebody was faster
		return err
	}
	began := time.Now()
	x := exchange{by: d.model.Info(), sent: began}
	body, err := d.stream(ctx, req, &x)
	if err != nil {
		return err
	}
	r, ok := body.(event.Replied)
	if !ok {
		return d.append(ctx, body)
	}
	r.Millis = time.Since(began).Milliseconds()
	if note, lost := d.cache.look(asking, r, x.sent); lost {
		return d.append(ctx, r, note)
	}
	return d.append(ctx, r)
}

// exchange is a request under way.
type exchange struct {
	by   llm.Info        // who answers
	sent time.Time       // when it went out, or will
	said strings.Builder // the answer so far
}

// stream shows the reply as it comes and returns the body to store: Replied,
// or Failed. An interrupt from the log ends it early with the text so far.
func (d *driver) stream(ctx context.Context, req llm.Request, x *exchange) (event.Body, error) {
	watched, done := d.interruptible(ctx)
	defer done()
	for chunk, err := range d.model.Stream(watched, req) {
		switch {
		case err != nil && errors.Is(context.Cause(watched), errInterrupted):
			return x.interrupted(req), nil
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return failed(llm.AsError(err), 0), nil
		case chunk.Reply != nil:
			return d.replied(req, chunk.Reply, x.by), nil
		case chunk.Retry != nil:
			x.said.Reset()
			x.sent = time.Now().Add(time.Duration(chunk.Retry.Wait * float64(time.Second)))
			err = d.void(ctx, failed(chunk.Retry.Cause, max(chunk.Retry.Wait, 0.001)))
		case chunk.Routed != nil:
			x.said.Reset()
			err = d.void(ctx, routed(chunk.Routed, x.by.Route()))
			x.by, x.sent = chunk.Routed.Info, time.Now()
		default:
			x.said.WriteString(chunk.Text)
			err = d.show(event.Delta{Text: chunk.Text, Reasoning: chunk.Reasoning, Call: chunk.Call})
		}
		if err != nil {
			return nil, err
		}
	}
	return failed(&llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended without a reply"}, 0), nil
}

// void takes back what was shown of the reply, and stores why.
func (d *driver) void(ctx context.Context, why event.Body) error {
	if err := d.show(event.Delta{Void: true}); err != nil {
		return err
	}
	return d.append(ctx, why)
}

// interruptible returns a context that ends with errInterrupted when somebody
// appends Cancelled to the log. What is told of children meanwhile rings d.told.
// done must be called, and waits.
func (d *driver) interruptible(ctx context.Context) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if d.state.Run.Cancelled { // before what it is to interrupt has begun
		cancel(errInterrupted)
	}
	w, ok := d.log.(event.Waiter)
	if !ok {
		return watched, func() { cancel(nil) }
	}
	finished := make(chan struct{})
	after := d.state.Seq
	go func() {
		defer close(finished)
		for w.Wait(watched, after) == nil {
			for e, err := range d.log.Read(watched, after) {
				if err != nil {
					return
				}
				switch e.Body.(type) {
				case event.Cancelled:
					cancel(errInterrupted)
					return
				case event.Spawned, event.Raised, event.Returned, event.Tasked:
					select {
					case d.told <- struct{}{}:
					default:
					}
				}
				after = e.Seq
			}
		}
	}()
	return watched, func() { cancel(nil); <-finished }
}

func bodies(ended []event.Ended) []event.Body {
	out := make([]event.Body, len(ended))
	for i, e := range ended {
		out[i] = e
	}
	return out
}
