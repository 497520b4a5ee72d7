package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/app"
)

// cutOff reports whether the run of the session goes on nowhere, unless somebody else
// goes on with it.
func (m *model) cutOff() bool { return m.view.CutOff() && !m.running }

// driver says who drives a session in another process, and how to join in; empty: nobody
// does.
func driver(ctx context.Context, a *app.App, id string) (string, error) {
	who, err := a.Running.Elsewhere(ctx, id)
	if who == nil || err != nil {
		return "", err
	}
	return who.Error(), nil
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
			m.hint = m.driver
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
