package tui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// sessionOpened says that a session was opened, or why it was not.
type sessionOpened struct {
	s      session
	past   *view       // its past; nil if it is new
	opts   app.Options // options that it was opened with, unless it is new
	coming string      // the model that answers from now on; empty if it is unchanged
	told   string      // what has changed, if it is the same session with other options; empty if it is another session
	driver string      // the process that continues its run elsewhere; empty if none
	err    error
	inputs []event.Body
}

// open creates a session, and starts it with inputs.
func (t *talk) open(inputs ...event.Body) tea.Cmd {
	t.opening = true
	ctx, backend, opts, warn := t.ctx, t.backend, t.opts, t.warner()
	return func() tea.Msg {
		s, err := backend.create(ctx, opts, warn)
		return sessionOpened{s: s, err: err, inputs: inputs}
	}
}

// enter opens a session with its past, and closes the present one. If opening fails, the present session and
// its options stay. It may be the same session, for an agent with other options.
func (t *talk) enter(o app.Options, open func(context.Context, func(string)) (session, error)) tea.Cmd {
	a := t.tui.App
	if a == nil {
		t.hints.say("there are no sessions to open")
		return nil
	}
	t.opening = true
	t.runner.unwatch()
	ctx, backend, runner, warn := t.ctx, t.backend, t.runner, t.warner()
	return func() tea.Msg {
		s, err := open(ctx, warn)
		if err != nil {
			return sessionOpened{err: err}
		}
		past, err := fold(ctx, a, s.ID())
		if err != nil {
			_, bad := s.close()
			return sessionOpened{err: errors.Join(err, bad)}
		}
		if err := runner.close(); err != nil {
			warn(err.Error())
		}
		msg := sessionOpened{s: s, past: past, opts: o}
		if past.Run.Busy {
			if msg.driver, err = backend.driver(ctx, s.ID()); err != nil {
				warn(err.Error())
			}
		}
		return msg
	}
}

// resume opens an earlier session.
func (t *talk) resume(o app.Options, id string) tea.Cmd {
	backend := t.backend
	return t.enter(o, func(ctx context.Context, warn func(string)) (session, error) { return backend.open(ctx, o, id, warn) })
}

// fold returns the view of a stored session.
func fold(ctx context.Context, a *app.App, id string) (*view, error) {
	v := newView()
	for e, err := range a.Running.Past(ctx, id) {
		if err != nil {
			return nil, err
		}
		v.Apply(e)
	}
	return v, nil
}

// onSessionOpened takes the newly opened session. If it only waits for answers, a run holds it, so that other processes
// see who asks.
func (t *talk) onSessionOpened(msg sessionOpened) tea.Cmd {
	t.opening = false
	if msg.err != nil {
		t.fail(msg.err)
		t.held = nil
		t.takeUnsent()
		if t.runner.session() == nil {
			t.view = emptyView(t.view)
		}
		t.follow()
		return nil
	}
	t.runner.take(msg.s)
	if msg.past != nil {
		t.opts, t.driver, t.coming = msg.opts, msg.driver, msg.coming
		t.replaceSession(msg.past, msg.told)
	} else {
		// The session's settings, before its first events arrive.
		st := msg.s.Status()
		t.view.Session = transcript.Session{
			ID: st.Session, Root: st.Root, Title: st.Title, Route: st.Route, Mode: st.Mode, Limits: st.Limits, Window: msg.s.Context().Window,
		}
	}
	switch {
	case len(msg.inputs)+len(t.held) > 0:
	case t.driver == "" && msg.s.Status().OnlyWaits:
		return t.start()
	case len(t.view.Waiting()) > 0:
		t.hints.say(t.driver)
	}
	return t.continueWithHeld(msg.inputs...)
}

// shown is how many past blocks are shown of a resumed session.
const shown = 30

// replaceSession replaces the present session. If it is the same session, it is on the screen already, and told
// describes the changes.
func (t *talk) replaceSession(past *view, told string) {
	blocks := past.blocks
	if told != "" {
		blocks = nil
	}
	if n := len(blocks) - shown; n > 0 && !t.tui.Fullscreen {
		blocks = append([]*block{{kind: noteBlock, text: text.Count(n, "earlier item") + " in the session's log"}}, blocks[n:]...)
	}
	past.blocks = slices.Concat(t.view.blocks, blocks)
	if told != "" {
		past.note(told)
	} else {
		past.note("session " + past.Session.ID)
		if root := past.Session.Root; !t.backend.has(root) {
			past.warn(words.Hidden("it works in another folder: " + root))
		}
	}
	past.Now.Rest()
	t.view = past
	t.measure()
	t.forget()
	t.opts.Mode = ""
}

// startOver closes the session. The next message begins another.
func (t *talk) startOver() tea.Cmd {
	mode := t.mode()
	t.view = emptyView(t.view)
	t.opts.Mode = mode
	t.opts.Labels = maps.Clone(t.opts.Labels)
	delete(t.opts.Labels, store.UUIDLabel) // it names the session before
	t.coming = ""
	t.opts.Model = cmp.Or(t.opts.Model, t.tui.Options.Model) // a resumed session had its own model
	t.forget()
	if id := t.runner.id(); id != "" {
		t.note(t.backend.closed(id))
	}
	t.note("your next message starts a new session")
	t.opening, t.closing = true, true
	runner := t.runner
	return func() tea.Msg {
		err := runner.close()
		return later(func() tea.Cmd {
			t.opening, t.closing = false, false
			t.fail(err)
			return tea.Batch(t.runDeferred(), t.continueWithHeld())
		})
	}
}

// emptyView returns an empty view with the lines that were not printed yet.
func emptyView(old *view) *view {
	v := newView()
	v.blocks = old.blocks
	return v
}
