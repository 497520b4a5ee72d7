package tui

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/transcript"
)

// warner tells a person something from any goroutine.
func (m *model) warner() func(string) {
	send := m.seat.send
	return func(text string) { send(told{text, true}) }
}

// open makes a new session, and starts it with inputs.
func (m *model) open(inputs ...event.Body) tea.Cmd {
	m.opening = true
	ctx, host, root := m.ctx, m.host(m.opts, m.warner()), m.Root
	return func() tea.Msg {
		s, err := host.New(ctx, root)
		return opened{s: s, err: err, inputs: inputs}
	}
}

// enterSession opens a session, with what has happened in it, and closes the one that
// is open. If it can't be opened, that one stays, and so do the options. It may be the
// same session, for an agent with other options.
func (m *model) enterSession(o app.Options, open func(context.Context, *inspan.Host) (*inspan.Session, error)) tea.Cmd {
	if m.App == nil {
		m.hint = "there are no sessions to open"
		return nil
	}
	m.opening = true
	m.seat.unwatch()
	ctx, seat, warn, a := m.ctx, m.seat, m.warner(), m.App
	host := m.host(o, warn)
	return func() tea.Msg {
		s, err := open(ctx, host)
		if err != nil {
			return opened{err: err}
		}
		past, err := fold(ctx, a, s.ID())
		if err != nil {
			return opened{err: errors.Join(err, s.Close())}
		}
		if err := seat.close(); err != nil {
			warn(err.Error())
		}
		msg := opened{s: s, past: past, opts: o}
		if past.Run.Busy {
			if msg.driver, err = driver(ctx, a, s.ID()); err != nil {
				warn(err.Error())
			}
		}
		return msg
	}
}

// fold is the view of a session that is on disk.
func fold(ctx context.Context, a *app.App, id string) (*view, error) {
	v := newView()
	for e, err := range a.Store().Events(ctx, id) {
		if err != nil {
			return nil, err
		}
		v.Apply(e)
	}
	return v, nil
}

// resume opens an earlier session.
func (m *model) resume(o app.Options, id string) tea.Cmd {
	return m.enterSession(o, func(ctx context.Context, h *inspan.Host) (*inspan.Session, error) { return h.Open(ctx, id) })
}

// shown is how many of the things that happened are shown of a session that is
// gone on with.
const shown = 30

// opened goes on with a session that is open now.
func (m *model) opened(msg opened) tea.Cmd {
	m.opening = false
	if msg.err != nil {
		m.fail(msg.err)
		if lost := slices.Concat(msg.inputs, m.held); slices.ContainsFunc(lost, isSaid) && m.prompt.empty() && len(m.history.lines) > 0 {
			m.prompt.set(m.history.lines[len(m.history.lines)-1])
		}
		m.held = nil
		if m.seat.session() == nil {
			m.view = fresh(m.view)
		}
		m.follow()
		return nil
	}
	m.seat.take(msg.s)
	if msg.past != nil {
		m.opts, m.driver = msg.opts, msg.driver
		m.show(msg.past)
	} else {
		m.view.seed(msg.s)
	}
	held := slices.Concat(msg.inputs, m.release())
	switch {
	case len(held) > 0 || m.driver == "" && rests(msg.s.Status()): // a question is asked by who holds the session
		return m.start(held...)
	case len(m.view.Waiting()) > 0:
		m.hint = m.driver
	}
	m.follow()
	return nil
}

func isSaid(b event.Body) bool {
	_, ok := b.(event.Said)
	return ok
}

// fresh is an empty view with what was not printed yet.
func fresh(old *view) *view {
	v := newView()
	v.blocks = old.blocks
	return v
}

// seed takes in what a new session begins with.
func (v *view) seed(s *inspan.Session) {
	st := s.Status()
	v.Session = transcript.Session{
		ID: st.Session, Root: st.Root, Title: st.Title, Route: st.Route, Mode: st.Mode, Limits: st.Limits, Window: s.Context().Window,
	}
}

// show puts a session in the place of the one before.
func (m *model) show(past *view) {
	blocks := past.blocks
	if n := len(blocks) - shown; n > 0 && m.full == nil {
		blocks = append([]*block{{kind: noteBlock, text: text.Count(n, "earlier thing") + " in the log of the session"}}, blocks[n:]...)
	}
	past.blocks = slices.Concat(m.view.blocks, blocks)
	past.note("session " + past.Session.ID)
	past.Now.Rest()
	m.view = past
	m.history = history{lines: past.said}
	m.refused, m.ask, m.decided, m.mine = nil, nil, nil, nil
	m.opts.Mode = ""
}

func (m *model) newSession(string) tea.Cmd {
	m.view, m.opts.Mode = fresh(m.view), m.mode()
	m.ask, m.decided, m.mine = nil, nil, nil
	m.tell("a new session begins with what you say next")
	m.opening = true
	seat := m.seat
	return func() tea.Msg {
		err := seat.close()
		return later(func(m *model) tea.Cmd {
			m.opening = false
			m.fail(err)
			held := m.release()
			if len(held) == 0 {
				return nil
			}
			return m.start(held...)
		})
	}
}

func (m *model) resumeCommand(id string) tea.Cmd {
	if id == "" {
		return m.pickSession()
	}
	o := m.opts
	o.Mode, o.Model = "", ""
	return m.resume(o, id)
}

func (m *model) fork(string) tea.Cmd {
	id := m.seat.id()
	if id == "" {
		m.hint = "there is no session to copy yet"
		return nil
	}
	return m.enterSession(m.opts, func(ctx context.Context, h *inspan.Host) (*inspan.Session, error) { return h.Fork(ctx, id, 0) })
}

// pickSession lets the person choose a session of this folder, or of any.
func (m *model) pickSession() tea.Cmd {
	a, ctx, root, now := m.App, m.ctx, realPath(m.Root), m.clock()
	if a == nil {
		return nil
	}
	return func() tea.Msg {
		list, err := a.Store().List(ctx)
		return later(func(m *model) tea.Cmd {
			m.fail(err)
			var items []choice
			var ids []string
			for _, here := range []bool{true, false} { // those of this folder first
				for _, s := range list {
					if (s.Root == root) != here || s.Parent != "" || s.Empty {
						continue
					}
					doc := ago(now.Sub(s.Modified)) + " · " + s.ID
					if !here {
						doc += " · " + s.Root
					}
					items = append(items, choice{cmp.Or(s.Title, s.Preview, s.ID), doc})
					ids = append(ids, s.ID)
				}
			}
			if len(items) == 0 {
				m.hint = "there is no earlier session"
				return nil
			}
			m.over = &picker{title: "go on with", items: items, take: func(m *model, i int) tea.Cmd { return m.resumeCommand(ids[i]) }}
			return nil
		})
	}
}

func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// modelCommand goes on with another model.
func (m *model) modelCommand(name string) tea.Cmd {
	if m.App == nil {
		m.hint = "there are no settings to take models from"
		return nil
	}
	if name == "" {
		return m.pickModel()
	}
	a := m.App
	return m.work(func(ctx context.Context) (string, error) {
		choice, err := a.Providers.Model(ctx, name, "")
		if err != nil {
			return "", err
		}
		return choice.Model.Info().Route(), nil
	}, func(m *model, route string) tea.Cmd {
		o := m.opts
		o.Model = name
		id := m.seat.id()
		if id == "" {
			m.opts = o
			m.tell("the next session works with " + route)
			return nil
		}
		o.Mode = ""
		return m.resume(o, id)
	})
}

func (m *model) pickModel() tea.Cmd {
	a, ctx := m.App, m.ctx
	return func() tea.Msg {
		var items []choice
		for _, p := range a.Providers.List() {
			if p.Ready && p.Default != "" {
				items = append(items, choice{p.Name + "/" + p.Default, "default of " + p.Name})
			}
		}
		for _, f := range a.Providers.Discover(ctx) {
			for _, info := range f.Models {
				items = append(items, choice{info.Route(), "at home"})
			}
		}
		return later(func(m *model) tea.Cmd {
			if len(items) == 0 {
				m.hint = "no model is ready; see 'inspan models'"
				return nil
			}
			m.over = &picker{title: "model", items: items, take: func(m *model, i int) tea.Cmd { return m.modelCommand(items[i].text) }}
			return nil
		})
	}
}
