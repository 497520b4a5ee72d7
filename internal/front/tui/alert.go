package tui

import (
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/app"
)

// alert makes the terminal call a person who is away when a run has ended or a question waits. A person is away
// while another window has the focus or, if the terminal doesn't report focus, after some time without a key
// press.
type alert struct {
	notifier *app.Notifier // decides what is worth a call; nil if nothing is
	clock    func() time.Time

	mu    sync.Mutex // guards the three fields below
	typed time.Time  // time of the last key press
	knows bool       // the terminal reports focus
	away  bool

	worked bool   // a run was in progress at the last refresh
	asked  string // the question that the person was called for, or could see
}

// awayAfter is how long after the last key press a person counts as away.
const awayAfter = 10 * time.Second

// newAlert returns the alert of a front end that starts. From then on it calls through the terminal, and the
// app's notifier only through other channels.
func newAlert(t *TUI) *alert {
	a := &alert{clock: t.clock, typed: t.clock()}
	if t.App != nil {
		a.notifier = t.App.Notify
		a.notifier.At(app.Front{Terminal: io.Discard, Here: a.isWatching, Clock: t.clock})
	}
	return a
}

// reports says whether the terminal should report focus.
func (a *alert) reports() bool { return a.notifier != nil && a.notifier.Calls() }

func (a *alert) focus(here bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.knows, a.away = true, !here
}

func (a *alert) key() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.typed = a.clock()
}

// isWatching reports whether the person is looking, as far as known.
func (a *alert) isWatching() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.knows && !a.away || !a.knows && a.clock().Sub(a.typed) < awayAfter
}

// refresh calls the person if there is something new for them.
func (a *alert) refresh(t *talk) tea.Cmd {
	worked := a.worked
	a.worked = t.isWorking()
	if open := t.view.Now.Questions; len(open) > 0 {
		q := open[0]
		if a.asked == q.ID || a.notifier == nil {
			return nil
		}
		a.asked = q.ID
		return a.notify(a.notifier.Asks(toolOf(q)))
	}
	a.asked = ""
	if end := t.view.Run.Stopped; worked && !a.worked && end != nil && a.notifier != nil {
		return a.notify(a.notifier.Ended(*end))
	}
	return nil
}

// notify makes the terminal call, if there is something to say and the person is away.
func (a *alert) notify(what string) tea.Cmd {
	if what == "" || !a.notifier.Calls() || a.isWatching() {
		return nil
	}
	return tea.Raw(a.notifier.Ring(what))
}
