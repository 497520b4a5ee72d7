package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/cost"
	"github.com/inspan/inspan/internal/export"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
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
		if past.cutOff() {
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
	held := slices.Concat(msg.inputs, m.held)
	m.held = nil
	if len(held) == 0 {
		m.follow()
		return nil
	}
	return m.start(held...)
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
	v.session, v.root, v.route, v.mode, v.limits = st.Session, st.Root, st.Route, st.Mode, st.Limits
	v.window = s.Context().Window
}

// show puts a session in the place of the one before.
func (m *model) show(past *view) {
	blocks := past.blocks
	if n := len(blocks) - shown; n > 0 && m.full == nil {
		blocks = append([]*block{{kind: noteBlock, text: text.Count(n, "earlier thing") + " in the log of the session"}}, blocks[n:]...)
	}
	past.blocks = slices.Concat(m.view.blocks, blocks)
	past.note("session " + past.session)
	past.running, past.pause = nil, pause{}
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
			if len(m.held) == 0 {
				return nil
			}
			held := m.held
			m.held = nil
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

var errNoSession = errors.New("there is no session yet")

func (m *model) listSessions(string) func(context.Context) (string, error) {
	a, root, now, current := m.App, realPath(m.Root), m.clock(), m.seat.id()
	return func(ctx context.Context) (string, error) {
		list, err := a.Store().List(ctx)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, s := range list {
			if s.Root == root && s.Parent == "" && !s.Empty {
				mark := " "
				if s.ID == current {
					mark = "›"
				}
				fmt.Fprintf(&b, "%s %s  %-12s %s\n", mark, s.ID, ago(now.Sub(s.Modified)), words.OneLine(cmp.Or(s.Title, s.Preview), 80))
			}
		}
		return cmp.Or(b.String(), "no session was run in this folder"), nil
	}
}

func (m *model) permissions(string) func(context.Context) (string, error) {
	a, root, mode := m.App, m.root(), m.mode()
	return func(context.Context) (string, error) {
		rules, err := a.Permission.Rules(root)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "mode %s\n", mode)
		for _, r := range rules {
			fmt.Fprintf(&b, "  %-6s %s  (%s)\n", r.Action, r.Text, cmp.Or(r.Scope, "built in"))
		}
		if len(rules) == 0 {
			b.WriteString("  no rules\n")
		}
		return b.String(), nil
	}
}

func (m *model) context(string) func(context.Context) (string, error) {
	a, root, s, warn := m.App, m.root(), m.seat.session(), m.warner()
	return func(ctx context.Context) (string, error) {
		var c inspan.Context
		var err error
		if s != nil {
			c = s.Context()
		} else if c, err = a.Context(ctx, root, "", warn); err != nil {
			return "", err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "about %s tokens", text.Thousands(c.Tokens))
		if c.Window > 0 {
			fmt.Fprintf(&b, ", %d%% of a window of %s, of which %s stay free for the reply", percent(c.Tokens, c.Window), text.Thousands(c.Window), text.Thousands(c.Reserve))
		}
		b.WriteString("\n")
		for _, s := range c.Sources {
			fmt.Fprintf(&b, "%9s  %3d%%  %s\t%s\n", text.Thousands(s.Tokens), percent(s.Tokens, cmp.Or(c.Window, c.Tokens)), words.OneLine(s.Name, 60), s.Why)
		}
		if c.Compactions > 0 {
			fmt.Fprintf(&b, "It was compacted (%d); the history tool searches what is gone.\n", c.Compactions)
		}
		if c.Untrusted && c.Private {
			b.WriteString("It holds text from elsewhere and what is private, so whatever could carry that away asks.\n")
		}
		return b.String(), nil
	}
}

func (m *model) cost(string) func(context.Context) (string, error) {
	a, id, warn := m.App, m.seat.id(), m.warner()
	return func(ctx context.Context) (string, error) {
		if id == "" {
			return "", errNoSession
		}
		entries, err := cost.Spent(ctx, a.Store(), cost.Spending{Session: id}, warn)
		if err != nil {
			return "", err
		}
		rows, err := cost.Group(entries, "model")
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, r := range append(rows, cost.Sum(entries)) {
			hint := ""
			if r.Unpriced > 0 {
				hint = fmt.Sprintf("  %d without a price", r.Unpriced)
			}
			fmt.Fprintf(&b, "%s  %.4g replies  %s in (%d%% cached)  %s out  %s%s\n", r.Key, r.Replies, text.Thousands(r.Usage.Prompt()),
				max(0, percent(r.Usage.CacheRead, r.Usage.Prompt())), text.Thousands(r.Usage.Output), words.Dollars(r.Dollars), hint)
		}
		return b.String(), nil
	}
}

func (m *model) export(path string) func(context.Context) (string, error) {
	a, id := m.App, m.seat.id()
	path = cmp.Or(path, "inspan-"+id+".md")
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.root(), path)
	}
	return func(ctx context.Context) (string, error) {
		if id == "" {
			return "", errNoSession
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", err
		}
		err = export.Markdown(f, a.Store().Events(ctx, id))
		return "written to " + path, firstError(err, f.Close())
	}
}
