package inspan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
)

// driver performs what the loop asks for, one thing at a time, and appends
// what came of it. All it knows of the session is in the log: when it dies,
// another driver goes on.
type driver struct {
	*journal
	calls *calls
	seen  *seen

	awaits time.Time // until when jobs are waited for, as was said; zero: nothing was
}

var (
	errBroken      = errors.New("the consumer broke off")
	errInterrupted = errors.New("interrupted")
	errLate        = fmt.Errorf("%w: the time of the run is used up", errInterrupted)
)

// claim makes this driver the one that goes on, and returns what to append first. It has the
// lease.
func (d *driver) claim(ctx context.Context) (event.Claimed, error) {
	if err := d.catchUp(ctx); err != nil {
		return event.Claimed{}, err
	}
	d.epoch = d.state.Epoch + 1
	return event.Claimed{
		Epoch: d.epoch, By: whoami(), Writer: rand.Text(), Unattended: d.agent.Unattended, Keeps: d.agent.KeepJobs, NoKeep: d.agent.NoKeep,
	}, nil
}

// begin appends a claim and the inputs, and what is new since the session was driven last.
func (d *driver) begin(ctx context.Context, inputs []event.Body) error {
	claimed, err := d.claim(ctx)
	if err != nil {
		return err
	}
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(b event.Body) bool { return d.state.Took(event.Key(b)) })
	carried, err := carried(ctx, d.Session)
	if err != nil {
		return err
	}
	bodies := append([]event.Body{claimed}, carried...)
	if !d.joined && d.agent.Joined != nil {
		d.agent.Joined(d.Session)
	}
	if !d.joined {
		sw, some := d.agent.changes(d.state)
		tools, told := d.retooled(sw.Route != "")
		if sw.Tools = tools; some || tools != nil {
			bodies = append(bodies, sw)
		}
		bodies = append(bodies, told...)
		bodies = append(append(bodies, d.clashes()...), d.started(ctx)...)
	} else {
		bodies = append(bodies, d.renewed(ctx)...)
	}
	d.joined = true
	bodies = append(bodies, d.lost(d.state.Jobs)...)
	bodies = append(bodies, d.permissions(append(bodies, inputs...))...)
	was := d.state.Mode
	if err := d.record(ctx, append(bodies, inputs...)...); err != nil {
		return err
	}
	if err := d.meet(ctx); err != nil || d.state.Mode == was {
		return err
	}
	return reconsider(ctx, d)
}

// permissions tell the model of a mode that changes while it works: what its system prompt
// says of it stands there for good.
func (d *driver) permissions(bodies []event.Body) []event.Body {
	mode := d.state.Mode
	for _, b := range bodies {
		if sw, ok := b.(event.Switched); ok && sw.Mode != "" {
			mode = sw.Mode
		}
	}
	if mode == d.state.Mode || len(d.state.Messages) == 0 {
		return nil
	}
	now := policy.Session{Mode: mode, Walls: d.agent.Env.Walls, Throwaway: d.agent.Env.Throwaway, Unattended: d.agent.Unattended}
	return []event.Body{event.Added{Where: event.PlaceTail, Source: "mode", Text: "[from now on, " + now.Permissions() + "]"}}
}

// drive does what the loop says until there is nothing to do. Every step ends with an
// append, which also brings in what others have sent meanwhile, or has waited for one or
// for the end of a call. When drive returns, no call runs.
func (d *driver) drive(ctx context.Context) (err error) {
	limit := &deadline{do: func() { d.timeUp(ctx) }}
	defer limit.end()
	defer func() { d.calls.quit(ctx, err) }()
	for {
		d.calls.heed()
		limit.set(afterwards(d.state.Deadline()))
		var err error
		switch next := d.state.Next().(type) {
		case loop.Ask:
			err = d.ask(ctx, next)
		case loop.Wait:
			switch late := overdue(next.Calls); {
			case len(d.calls.running) > 0:
				err = d.calls.rest(ctx)
			case len(late) == 0 && !d.calls.span:
				return nil
			default:
				err = d.step(ctx, next)
			}
		default:
			err = d.step(ctx, next)
		}
		if err != nil {
			return err
		}
	}
}

// step does one thing that the loop says, other than asking the model.
func (d *driver) step(ctx context.Context, next loop.Next) (err error) {
	if d.spanEnds(next) {
		return d.checkpoint(ctx, true)
	}
	switch n := next.(type) {
	case loop.Wait:
		_, err = d.decide(ctx, overdue(n.Calls)...)
	case loop.Heal:
		_, err = d.decide(ctx, n.Healed)
	case loop.Prune:
		_, err = d.decide(ctx, n.Pruned)
	case loop.Compact:
		err = d.compact(ctx, n)
	case loop.Judge:
		err = d.judgeCalls(ctx, n.Calls)
	case loop.RunCalls:
		err = d.calls.start(ctx, n.Calls)
	case loop.Await:
		err = d.calls.await(ctx)
	case loop.End:
		_, err = d.decide(ctx, bodies(n.Ended)...)
	case loop.Steer:
		_, err = d.decide(ctx, n.Steered)
	case loop.Stop:
		err = d.stop(ctx, n.Stopped)
	}
	return err
}

// spanEnds reports whether calls that changed something have ended, and their work is to be
// kept before anything else is done.
func (d *driver) spanEnds(next loop.Next) bool {
	_, more := next.(loop.RunCalls)
	return !more && d.calls.span && !d.calls.changing()
}

// timeUp says in the log that the time of the run is used up, which interrupts it. The
// fold looks whether it is so. A log that takes no more ends the run anyway.
func (d *driver) timeUp(ctx context.Context) {
	_, _ = d.log.Append(ctx, event.Cancelled{By: loop.By, Reason: "the time of the run is used up", Limit: event.ReasonMaxTime})
}

// impatient says in the log that a run whose answer stands has waited long enough for its
// jobs.
func (d *driver) impatient(ctx context.Context) error {
	_, err := d.log.Append(ctx, event.Cancelled{By: loop.By, Reason: "background jobs do not end", Limit: event.ReasonDone})
	return errors.Join(err, d.catchUp(ctx))
}

// afterwards is a little later, so that a time that a log has cut off to milliseconds lies
// behind it too.
func afterwards(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(2 * time.Millisecond)
}

// overdue denies calls that have waited for a decision long enough.
func overdue(waiting []loop.Call) []event.Body {
	var out []event.Body
	for _, c := range waiting {
		if !c.Until.IsZero() && !time.Now().Before(c.Until) {
			out = append(out, event.Decided{Call: c.ID, Question: c.Asked, By: loop.By, Reason: "nobody answered in time"})
		}
	}
	return out
}

// saw forgets what an event makes untrue.
func (d *driver) saw(body event.Body) {
	d.cache.saw(body)
	switch b := body.(type) {
	case event.Compacted, event.Rewound:
		clear(d.looked) // what was added is no longer seen
	case event.Replied:
		d.seen.changes = nil
	case event.Ended:
		d.calls.tell(b)
		d.seen.changing(b.Files)
	}
}

// pause lets the rest of a wait pass that an earlier driver began, unless
// somebody interrupts.
func (d *driver) pause(ctx context.Context, wait time.Duration) error {
	if err := d.show(event.Progress{Text: "the model can't be asked yet", Wait: wait.Seconds()}); err != nil {
		return err
	}
	watched, done := d.interruptible(ctx)
	_ = keep.Sleep(watched, wait) // an interrupt is looked for next
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.catchUp(ctx)
}

// ask sends the next request and stores what comes back: Replied, or Failed. What comes is
// shown as it comes. An interrupt from the log ends it early, with the text so far.
func (d *driver) ask(ctx context.Context, n loop.Ask) error {
	x, err := d.exchange(ctx, n)
	if err != nil || x == nil {
		return err
	}
	ready(d, x.req.Tools)
	watched, done := d.interruptible(ctx)
	for chunk, err := range d.model.Stream(watched, x.req) {
		if err != nil {
			err = x.broke(ctx, watched, err)
		} else {
			err = x.take(ctx, chunk)
		}
		if err != nil {
			done()
			return err
		}
		if x.answer != nil {
			break
		}
	}
	done()
	return x.answered(ctx)
}

// ready has tools make ready what calls of them would wait for, while the model thinks.
func ready(d *driver, specs []llm.ToolSpec) {
	for _, spec := range specs {
		if t := d.tools[spec.Name]; t.Ready != nil {
			t.Ready(d.call(llm.Call{Name: spec.Name}, nil))
		}
	}
}

func bodies(ended []event.Ended) []event.Body {
	out := make([]event.Body, len(ended))
	for i, e := range ended {
		out[i] = e
	}
	return out
}
