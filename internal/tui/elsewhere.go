package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
)

// cutOff reports whether the run of the session goes on nowhere, unless somebody else
// goes on with it.
func (t *talk) cutOff() bool { return t.view.CutOff() && !t.running }

// driver names the process that drives a session, and how to join it; empty: none does.
func driver(ctx context.Context, a *app.App, id string) (string, error) {
	who, err := a.Running.Elsewhere(ctx, id)
	if who == nil || err != nil {
		return "", err
	}
	return who.Error(), nil
}

// findDriver asks who goes on with the run that goes on nowhere here; then follows the
// rest.
func (t *talk) findDriver(rest later) tea.Cmd {
	a, id := t.tui.App, t.runner.id()
	if a == nil || id == "" {
		return rest()
	}
	return t.work(func(ctx context.Context) (string, error) { return driver(ctx, a, id) }, func(who string) tea.Cmd {
		if id != t.runner.id() {
			return nil // another session is open by now
		}
		t.driver = who
		return rest()
	})
}

// unlessDriven does what begins a run, unless somebody else goes on with the one there
// is.
func (t *talk) unlessDriven(do later) tea.Cmd {
	return t.findDriver(func() tea.Cmd {
		if t.driven() {
			t.hints.say(t.driver)
			return nil
		}
		return do()
	})
}

// toDriver sends an input to the process that drives the session. Text is shown until
// the session knows it.
func (t *talk) toDriver(body event.Body, text string) tea.Cmd {
	in, session, ctx := t.next(body, text), t.runner.session(), t.ctx
	return func() tea.Msg { return sent{in, session.Send(ctx, body)} }
}

// driven reports whether another process runs the session, as far as was asked.
func (t *talk) driven() bool { return t.driver != "" && t.cutOff() }

// goOnHere goes on with a run that was cut off, unless somebody else does.
func (t *talk) goOnHere() tea.Cmd {
	return t.unlessDriven(func() tea.Cmd {
		if !t.cutOff() {
			return nil // it is over
		}
		return t.start()
	})
}

// unheld reports whether the session asks and is not held here.
func (t *talk) unheld() bool {
	return t.view.asks() && t.view.Run.Busy && !t.running && !t.opening && t.runner.session() != nil
}

// takeUp holds a session that asks, once no other process holds it.
func (t *talk) takeUp() tea.Cmd {
	if !t.unheld() {
		return nil
	}
	return t.findDriver(func() tea.Cmd {
		if t.driver != "" || !t.unheld() {
			return nil
		}
		return t.start(t.decided...)
	})
}
