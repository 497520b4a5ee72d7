package tui

import (
	"cmp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
)

// alert calls a person who is away when a run has ended or a question waits. A person is away while
// another window has the focus; where the terminal does not tell that, when no key was pressed for a
// while.
type alert struct {
	how   string // bell, desktop, both or off; empty: both
	clock func() time.Time

	typed  time.Time // the last key
	knows  bool      // the terminal has told who has the focus
	away   bool
	worked bool   // a run went on when it was looked last
	asked  string // the question that the person was called for, or had in sight
}

// alone is how long after the last key a person counts as away.
const alone = 10 * time.Second

// reports says whether the terminal is to tell who has the focus.
func (a *alert) reports() bool { return a.how != "off" }

func (a *alert) focus(here bool) { a.knows, a.away = true, !here }

func (a *alert) key() { a.typed = a.clock() }

// refresh calls the person if something has come that is theirs to see.
func (a *alert) refresh(t *talk) tea.Cmd {
	worked := a.worked
	a.worked = t.works()
	if open := t.view.Waiting(); len(open) > 0 {
		q := open[0]
		if q.ID == a.asked {
			return nil
		}
		a.asked = q.ID
		return a.call(cmp.Or(q.Call.Call.Name, "a call") + " asks")
	}
	a.asked = ""
	if end := t.view.Run.Stopped; worked && !a.worked && end != nil && end.Reason != event.ReasonCancelled {
		return a.call(strings.ReplaceAll(string(end.Reason), "_", " "))
	}
	return nil
}

// call rings the bell and has the terminal show a notification, as the person wants it. What it
// says is one line of printable text.
func (a *alert) call(what string) tea.Cmd {
	if a.how == "off" || a.knows && !a.away || !a.knows && a.clock().Sub(a.typed) < alone {
		return nil
	}
	out := ""
	if a.how != "bell" {
		out = "\x1b]9;inspan: " + words.OneLine(what, 80) + "\x1b\\" // as iTerm2 began it and others took up
	}
	if a.how != "desktop" {
		out += "\a"
	}
	return tea.Raw(out)
}
