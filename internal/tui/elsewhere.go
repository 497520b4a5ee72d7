package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/app"
)

// cutOff reports whether the run of the session goes on nowhere, unless somebody else
// goes on with it.
func (m *model) cutOff() bool { return m.view.CutOff() && !m.running }

// driver is the process that drives a session, in words; empty: none does.
func driver(ctx context.Context, a *app.App, id string) (string, error) {
	h, err := a.Running.Driver(ctx, id)
	if h == nil || err != nil {
		return "", err
	}
	who := fmt.Sprintf("process %d", h.PID)
	if !h.Here() {
		who += " on " + h.Host
	}
	return who, nil
}

// driven says who goes on with the run, and how to join in.
func (m *model) driven() string {
	return m.driver + " goes on with it: inspan attach " + m.seat.id()
}

// findDriver asks who goes on with the run that goes on nowhere here; then follows the
// rest.
func (m *model) findDriver(rest func(*model) tea.Cmd) tea.Cmd {
	a, id := m.App, m.seat.id()
	if a == nil || id == "" {
		return rest(m)
	}
	return m.work(func(ctx context.Context) (string, error) { return driver(ctx, a, id) }, func(m *model, who string) tea.Cmd {
		if id != m.seat.id() {
			return nil // another session is open by now
		}
		m.driver = who
		return rest(m)
	})
}

// unlessDriven does what begins a run, unless somebody else goes on with the one there
// is.
func (m *model) unlessDriven(do func(*model) tea.Cmd) tea.Cmd {
	return m.findDriver(func(m *model) tea.Cmd {
		if m.driver != "" && m.cutOff() {
			m.hint = m.driven()
			return nil
		}
		return do(m)
	})
}

// goOnHere goes on with a run that was cut off, unless somebody else does.
func (m *model) goOnHere() tea.Cmd {
	return m.unlessDriven(func(m *model) tea.Cmd {
		if !m.cutOff() {
			return nil // it is over
		}
		return m.start()
	})
}
