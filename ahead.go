package inspan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// A tool with Ahead goes on behind a call that waits for a person, and asks for others that will have
// to be asked about too. What the fold makes of those stands in internal/loop/ahead.go: they wait until
// the tool is run again and comes to them. It comes to one where none before it in the same run is held.
// Then what it was judged by before must still hold; if it does not, it is dropped, and made anew.

// aheadFor is how long a tool may go on behind the first of its calls that is held.
const aheadFor = 20 * time.Second

var errAhead = errors.New("it has gone on for too long behind a call that waits for a decision")

// ahead is what a call that makes others does ahead.
type ahead struct {
	may  bool        // its tool does that
	held bool        // in this run it was told that a call waits
	gave bool        // it has ended because of that; for the driver once it has
	late *time.Timer // stops it; nil: none is held
}

// hold tells the maker of a call that waits so, if it need not wait for it.
func (cs *calls) hold(w wanted) {
	if _, waits := cs.waiters[w.call.ID]; waits && w.by.may && cs.state.Early(w.call.ID) {
		cs.withheld(w)
	}
}

func (cs *calls) withheld(w wanted) {
	delete(cs.waiters, w.call.ID)
	if w.by.held = true; w.by.late == nil {
		w.by.late = time.AfterFunc(aheadFor, func() { w.by.end(errAhead) })
	}
	close(w.held)
}

// withhold tells the makers of all calls that can't go on now, which need not wait for them: one that
// runs still makes others. It reports whether there are any makers who still run and whose end is near.
func (cs *calls) withhold() (some bool) {
	for id, w := range cs.waiters {
		if _, runs := cs.running[id]; !runs && w.by.may && cs.makers[w.by.id] == w.by {
			cs.withheld(w)
		}
	}
	for _, m := range cs.makers {
		_, runs := cs.running[m.id]
		some = some || runs && m.held
	}
	return some
}

// rests reports whether the end of a call is none: its tool has gone on as far as it could without the
// calls that are held, and is run again.
func (cs *calls) rests(end event.Ended) bool {
	m := cs.makers[end.Call]
	if m == nil || m.late == nil {
		return false
	}
	m.late.Stop()
	if cs.state.Run.Cancelled || !m.gave && !errors.Is(context.Cause(m.ctx), errAhead) {
		return false
	}
	delete(cs.makers, end.Call)
	return true
}

// come takes up a call that was asked for ahead, now that its parent has come to it.
func (cs *calls) come(ctx context.Context, w wanted, made loop.Call) error {
	bodies := []event.Body{event.Wanted{Call: made.ID, Parent: made.Parent}}
	if made.Ended == nil && !made.Begun {
		again, err := cs.tried(ctx, w, made.Asked > 0 && !made.Waits())
		if err != nil {
			return err
		}
		more, holds := stands(made, cs.redacted(again[0]), again[len(again)-1])
		if !holds {
			return cs.anew(ctx, w, made)
		}
		bodies = append(bodies, more...)
	}
	if made.Ended == nil {
		cs.waiters[made.ID] = w
	}
	if err := cs.record(ctx, bodies...); err != nil {
		return err
	}
	if made.Ended == nil {
		cs.hold(w)
		return nil
	}
	parent, _ := cs.state.Call(w.by.id)
	w.by.past = append(w.by.past, made.ID)
	w.by.giveBack(parent, w)
	return nil
}

// stands reports whether a call may do now what was decided on before, by the verdict on it now, and
// returns what is to be stored of that. Asks would put it to a person, if that is the verdict.
func stands(made loop.Call, again, asks event.Body) (more []event.Body, holds bool) {
	now, ok := again.(event.Judged)
	if !ok || !sameJSON(now.Args, made.Args) || !sameEffects(now.Effects, made.Effects) {
		return nil, false
	}
	if now.Cost > 0 {
		more = append(more, now)
	}
	switch {
	case now.Action == tool.Allow && made.Waits():
		return append(more, event.Decided{Call: made.ID, Question: made.Asked, Allow: true, By: "the user", Rule: now.By}), true
	case now.Action == tool.Allow:
		return more, true
	}
	w, _ := asks.(event.Waiting)
	return more, now.Action == tool.Ask && made.Asked > 0 && slices.Equal(w.Shown, made.Shown)
}

// anew drops a call that was asked for ahead, as it would do something else now or may not do it, and
// makes another in its place.
func (cs *calls) anew(ctx context.Context, w wanted, made loop.Call) error {
	end := event.Ended{
		Call: made.ID, Parent: made.Parent, Outcome: event.OutcomeCancelled,
		Parts: llm.Say("Not run: it was judged before the calls that come before it had run, and that verdict holds no longer."),
	}
	if err := cs.record(ctx, end); err != nil {
		return err
	}
	return cs.make(ctx, w)
}

// dropped reports whether another call was made in the place of one.
func dropped(made loop.Call) bool {
	return made.Ahead && made.Ended != nil && made.Ended.Outcome == event.OutcomeCancelled
}

// sameEffects reports whether effects are the same, as far as they are stored.
func sameEffects(a, b []tool.Effect) bool {
	was, err := json.Marshal(a)
	is, failed := json.Marshal(b)
	return err == nil && failed == nil && len(a) == len(b) && (len(a) == 0 || bytes.Equal(was, is))
}
