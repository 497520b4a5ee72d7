package tui

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// sessions switches to another session, or to another model for the same one.
type sessions struct {
	talk  *talk
	over  *overlay
	hints *hints
}

// resume continues an earlier session; without an id, the person chooses one.
func (s *sessions) resume(id string) tea.Cmd {
	if id == "" {
		return s.pick()
	}
	o := s.talk.opts
	o.Mode, o.Model, o.Folders = "", "", s.talk.tui.Options.Folders // folders were opened for another session
	return s.talk.resume(o, id)
}

// fork continues in a copy of the session.
func (s *sessions) fork() tea.Cmd {
	id := s.talk.runner.id()
	if id == "" {
		s.hints.say("there is no session to copy yet")
		return nil
	}
	backend, o := s.talk.backend, s.talk.opts
	return s.talk.enter(o, func(ctx context.Context, warn func(string)) (session, error) { return backend.fork(ctx, o, id, warn) })
}

// askAside asks the model a question in a copy of the session, in mode plan, and shows the answer. The session stays
// as it is, and a run continues. The copy is a session of its own, so its cost is counted.
func (s *sessions) askAside(question string) tea.Cmd {
	id, t, o := s.talk.runner.id(), s.talk.tui, s.talk.opts
	switch {
	case question == "":
		s.hints.say("write the question too: /btw what does this flag do?")
		return nil
	case id == "":
		s.hints.say("there is no conversation yet; send it as a message")
		return nil
	}
	o.Mode = tool.ModePlan
	s.hints.say("asking beside the conversation")
	return s.talk.work(func(ctx context.Context) (said string, err error) {
		host := t.host(o, func(string) {})
		at, err := settledAt(ctx, host, id)
		if err != nil {
			return "", err
		}
		c, err := host.Fork(ctx, id, at)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		if c.Status().Active { // the copy is not to continue the run
			for _, err := range c.Run(ctx, event.Cancelled{By: "a question aside", All: true}) {
				if err != nil {
					return "", err
				}
			}
		}
		var fold transcript.Fold
		title := event.Titled{Title: words.OneLine("btw: "+question, 200)}
		for e, err := range c.Run(ctx, event.Switched{Mode: tool.ModePlan}, title, event.Say(question)) {
			if err != nil {
				return "", err
			}
			fold.Apply(e)
		}
		if len(c.Status().Questions()) > 0 || fold.Last == "" {
			return "", errors.New("there is no answer to /btw; see session " + c.ID())
		}
		return "btw: " + question + "\n" + fold.Last, nil
	}, func(said string) tea.Cmd {
		s.hints.reset()
		s.talk.printText(said)
		return nil
	})
}

// settledAt returns the number of the last event of a session at which no call was open and no reply was being
// written: 0 for the end, or, during a run, the event before the model was asked last.
func settledAt(ctx context.Context, host *inspan.Host, id string) (at uint64, err error) {
	for e, err := range host.Events(ctx, id) {
		if err != nil {
			return 0, err
		}
		switch e.Body.(type) {
		case event.Asked:
			at = e.Seq - 1
		case event.Stopped:
			at = 0
		}
	}
	return at, nil
}

// pick lets the person choose a session of this folder, or of any.
func (s *sessions) pick() tea.Cmd {
	a, ctx, backend, now := s.talk.tui.App, s.talk.ctx, s.talk.backend, s.talk.tui.clock()
	if a == nil {
		return nil
	}
	return func() tea.Msg {
		list, err := a.Running.Sessions.List(ctx)
		return later(func() tea.Cmd {
			s.talk.fail(err)
			var items []choice
			var ids []string
			for _, here := range []bool{true, false} { // those of this folder first
				for _, info := range list {
					if backend.has(info.Root) != here || info.Parent != "" || info.Empty {
						continue
					}
					doc := ago(now.Sub(info.Modified)) + " · " + info.ID
					if !here {
						doc += " · " + info.Root
					}
					items = append(items, choice{cmp.Or(info.Title, info.Preview, info.ID), doc})
					ids = append(ids, info.ID)
				}
			}
			if len(items) == 0 {
				s.hints.say("there are no earlier sessions")
				return nil
			}
			s.over.pick("resume", items, func(i int) tea.Cmd { return s.resume(ids[i]) })
			return nil
		})
	}
}

func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return keep.Real(path)
}

// model continues with another model; without a name, the person chooses one.
func (s *sessions) model(name string) tea.Cmd {
	a := s.talk.tui.here()
	if a == nil {
		s.hints.say("there are no settings that name models")
		return nil
	}
	if name == "" {
		return s.pickModel()
	}
	return s.talk.work(func(ctx context.Context) (string, error) {
		choice, err := a.Providers.Model(ctx, name, "")
		if err != nil {
			return "", err
		}
		return choice.Model.Info().Route(), nil
	}, func(route string) tea.Cmd {
		o := s.talk.opts
		o.Model = name
		id := s.talk.runner.id()
		if id == "" {
			s.talk.opts, s.talk.coming = o, route
			s.talk.note("the next session uses " + route)
			return nil
		}
		return s.reopenWith(o, id, "model "+route+" answers your next message", route)
	})
}

// reopenWith continues the same session with other options. Told describes the changes, and route the model that
// answers; empty means the same one.
func (s *sessions) reopenWith(o app.Options, id, told, route string) tea.Cmd {
	if why := wouldEnd(s.talk.background()); why != "" {
		s.hints.say(why)
		return nil
	}
	o.Mode = ""
	resume := s.talk.resume(o, id)
	return func() tea.Msg {
		msg, ok := resume().(sessionOpened)
		if ok {
			msg.told, msg.coming = told, route
		}
		return msg
	}
}

// addFolder adds a folder to the session; without a path it lists them.
func (s *sessions) addFolder(path string) tea.Cmd {
	a := s.talk.tui.here()
	if a == nil {
		return nil
	}
	if path == "" {
		s.talk.note("folders beside the workspace: " + cmp.Or(words.OneLine(strings.Join(s.talk.folders(), ", "), 300), "none; /add-dir FOLDER opens one"))
		return nil
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = keep.AtHome(rest)
	}
	return s.talk.work(func(context.Context) (string, error) { return a.Folder(path) }, func(dir string) tea.Cmd {
		o := s.talk.opts
		o.Folders = append(slices.Clone(o.Folders), dir)
		told := words.OneLine(dir, 300) + " is open to the session as its workspace is"
		if id := s.talk.runner.id(); id != "" {
			return s.reopenWith(o, id, told, s.talk.coming)
		}
		s.talk.opts = o
		s.talk.note(told)
		return nil
	})
}

func (s *sessions) pickModel() tea.Cmd {
	a, ctx := s.talk.tui.App, s.talk.ctx
	return func() tea.Msg {
		var items []choice
		for _, p := range a.Providers.List() {
			if p.Ready && p.Default != "" {
				items = append(items, choice{p.Name + "/" + p.Default, "default of " + p.Name})
			}
		}
		for _, f := range a.Providers.Discover(ctx) {
			for _, info := range f.Models {
				items = append(items, choice{info.Route(), "local"})
			}
		}
		return later(func() tea.Cmd {
			if len(items) == 0 {
				s.hints.say("no model is ready; see 'inspan models'")
				return nil
			}
			now := s.talk.route()
			if now != "" && !slices.ContainsFunc(items, func(c choice) bool { return c.text == now }) {
				items = append([]choice{{text: now}}, items...)
			}
			s.over.pick("model", items, func(i int) tea.Cmd { return s.model(items[i].text) }).markCurrent(now)
			return nil
		})
	}
}
