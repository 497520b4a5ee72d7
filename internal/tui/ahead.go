package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// Whoever is typing when a question comes up has not seen it yet. So what is
// pressed before the question has been on the screen for a while is no answer:
// text goes on into the prompt, for which the question steps back until there is
// a pause, and keys that choose or send do nothing. Keys that leave and interrupt
// always work: they allow nothing.

const (
	seeing  = 500 * time.Millisecond // until a question that is shown counts as seen
	pausing = time.Second            // without a key, until a question comes up
)

// hesitates reports whether a question has to wait a moment: whoever is in the
// middle of a word must not answer it with the rest.
func (m *model) hesitates() bool {
	if m.ask != nil || m.prompt.empty() || m.clock().Sub(m.typed) >= pausing {
		return false
	}
	what, _, _ := m.question()
	return what != ""
}

// unseen reports whether a question takes the keys that the person can't have seen
// yet.
func (m *model) unseen() bool {
	a, ok := m.box().(*ask)
	return ok && a.unseen(m.clock())
}

func (a *ask) unseen(now time.Time) bool { return a.drawn.IsZero() || now.Sub(a.drawn) < seeing }

// ahead takes a key that was pressed before the question was seen, and reports
// false if it is one that always works.
func (m *model) ahead(k tea.KeyPressMsg, action string) bool {
	switch action {
	case "escape", "interrupt", "quit", "page-up", "page-down":
		return false
	case "send", "up", "down", "queue":
		return true
	}
	if m.prompt.key(k, action, m.look.width-2) {
		m.stepBack()
	}
	return true
}

// stepBack lets the person go on with what is being written. An enter that follows
// at once is for neither: it may have been meant for the question.
func (m *model) stepBack() {
	m.history.left()
	m.typed = m.clock()
	m.early = m.typed.Add(seeing)
	m.ask = nil
}
