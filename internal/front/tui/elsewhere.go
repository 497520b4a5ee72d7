package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
)

// cutOff reports whether a run is open that is not driven here: it was cut off, or another process drives it.
func (t *talk) cutOff() bool { return t.view.CutOff() && !t.running }

// findDriver finds out which process continues a run that is not in progress here, and then does rest.
func (t *talk) findDriver(rest later) tea.Cmd {
	backend, id := t.backend, t.runner.id()
	if id == "" {
		return rest()
	}
	return t.work(func(ctx context.Context) (string, error) { return backend.driver(ctx, id) }, func(who string) tea.Cmd {
		if id != t.runner.id() {
			return nil // another session is open by now
		}
		t.driver = who
		return rest()
	})
}

// refreshDriver sends an input to the process that continues the run, which may have ended meanwhile.
func (t *talk) refreshDriver(say later) tea.Cmd {
	if t.drivenElsewhere() {
		return t.findDriver(say)
	}
	return say()
}

// sendToDriver sends an input to the process that drives the session. Text is shown until the session has it.
func (t *talk) sendToDriver(body event.Body, text string) {
	in := t.next(body, text)
	in.away = true
	t.runner.post(in)
}

// drivenElsewhere reports whether another process runs the session, as far as known.
func (t *talk) drivenElsewhere() bool { return t.driver != "" && t.cutOff() }

// continueCutOff continues a run that was cut off, unless another process does.
func (t *talk) continueCutOff() tea.Cmd {
	return t.findDriver(func() tea.Cmd {
		switch {
		case t.drivenElsewhere():
			t.hints.say(t.driver)
			return nil
		case !t.cutOff():
			return nil // it is over
		}
		return t.start()
	})
}

// asksUnheld reports whether the session asks something and is not held here.
func (t *talk) asksUnheld() bool {
	return t.view.onlyAsks() && t.view.Run.Busy && !t.running && !t.opening && t.runner.session() != nil
}

// holdQuestion holds a session that asks something, when no other process holds it.
func (t *talk) holdQuestion() tea.Cmd {
	if !t.asksUnheld() {
		return nil
	}
	return t.findDriver(func() tea.Cmd {
		if t.driver != "" || !t.asksUnheld() {
			return nil
		}
		return t.start(t.decided...)
	})
}
