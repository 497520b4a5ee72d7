package tui

import (
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/app"
)

// alert has the terminal call a person who is away when a run has ended or a question waits. A person
// is away while another window has the focus; where the terminal does not tell that, when no key was
// pressed for a while.
type alert struct {
	notifier *app.Notifier // says what is worth a call; nil: nothing is
	clock    func() time.Time

	mu    sync.Mutex // guards the three below
	typed time.Time  // the last key
	knows bool       // the terminal has told who has the focus
	away  bool

	worked bool   // a run went on when it was looked last
	asked  string // the question that the person was called for, or had in sight
}

// alone is how long after the last key a person counts as away.
const alone = 10 * time.Second

// newAlert is one for a front end that begins. From then on it calls, where the terminal is to, and
// the notifier of the app only elsewhere.
func newAlert(t *TUI) *alert {
	a := &alert{clock: t.clock, typed: t.clock()}
	if t.App != nil {
		a.notifier = t.App.Notify
		a.notifier.At(app.Front{Terminal: io.Discard, Here: a.here, Clock: t.clock})
	}
	return a
}

// reports says whether the terminal is to tell who has the focus.
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

// here reports whether the person looks, as far as that is known.
func (a *alert) here() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.knows && !a.away || !a.knows && a.clock().Sub(a.typed) < alone
}

// refresh calls the person if something has come that is theirs to see.
func (a *alert) refresh(t *talk) tea.Cmd {
	worked := a.worked
	a.worked = t.works()
	if open := t.view.Now.Questions; len(open) > 0 {
		q := open[0]
		if a.asked == q.ID || a.notifier == nil {
			return nil
		}
		a.asked = q.ID
		return a.call(a.notifier.Asks(toolOf(q)))
	}
	a.asked = ""
	if end := t.view.Run.Stopped; worked && !a.worked && end != nil && a.notifier != nil {
		return a.call(a.notifier.Ended(*end))
	}
	return nil
}

// call has the terminal call, if there is something to say and the person is away.
func (a *alert) call(what string) tea.Cmd {
	if what == "" || !a.notifier.Calls() || a.here() {
		return nil
	}
	return tea.Raw(a.notifier.Ring(what))
}
