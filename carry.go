package inspan

import (
	"context"

	"github.com/inspan/inspan/event"
)

// carried is what to append for a workspace that travels, as it is now.
func carried(ctx context.Context, s *Session) (bodies []event.Body, err error) {
	defer caught("Agent.Carry", nil, &err)
	if s.agent.Carry == nil {
		return nil, nil
	}
	return s.agent.Carry(ctx, s.state.Workspace)
}

// carried is what to append with results, if the calls may have changed the workspace, or what goes on
// beside them may have, whose work they tell of.
func (cs *calls) carried(ctx context.Context) ([]event.Body, error) {
	if !cs.changed && !cs.goesOn() {
		return nil, nil
	}
	cs.changed = false
	return carried(ctx, cs.Session)
}

// left is what to append for what calls have left behind that goes on without them.
func (cs *calls) left(ctx context.Context) ([]event.Body, error) {
	if !cs.touched {
		return nil, nil
	}
	return carried(ctx, cs.Session)
}

// asking is what to append with a request, which can tell of what went on beside calls.
func (cs *calls) asking(ctx context.Context) ([]event.Body, error) {
	if !cs.goesOn() {
		return nil, nil
	}
	return carried(ctx, cs.Session)
}

// goesOn reports whether jobs, or what commands have left, may be at work beside calls.
func (cs *calls) goesOn() bool { return cs.leaves || cs.working() }

// record stores what has happened. A step that has ended may have changed the workspace.
func (st *Steps) record(ctx context.Context, body event.Body) error {
	st.open.Lock()
	defer st.open.Unlock()
	bodies := []event.Body{body}
	if _, ends := body.(event.StepEnded); ends {
		carried, err := carried(ctx, st.driver.Session)
		if err != nil {
			return err
		}
		bodies = append(bodies, carried...)
	}
	return st.store(ctx, bodies...)
}
