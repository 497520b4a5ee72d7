package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// member is a session that works for the open one, directly or not.
type member struct {
	id, task string
	name     string // of a member of a team; empty means none
	depth    int    // 1 if it works for the open one directly
	stop     event.Reason
	works    bool
	idle     bool // a message or a task wakes it
}

// line shows the member in a list.
func (m member) line() choice {
	state := "open"
	switch {
	case m.works:
		state = "running"
	case m.idle:
		state = "idle"
	case m.stop != "":
		state = strings.ReplaceAll(string(m.stop), "_", " ")
	}
	name := cmp.Or(m.name, m.id[strings.LastIndexByte(m.id, '.')+1:])
	return choice{strings.Repeat("  ", m.depth-1) + name + "  " + words.OneLine(m.task, 60), state + " · " + m.id}
}

// listMembers returns all that work for a session, each before those that work for it. Working are those that the
// session waits for now.
func listMembers(ctx context.Context, a *app.App, id string, working []string) ([]member, error) {
	list, err := a.Running.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	st, err := a.Running.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []member
	began := map[string]time.Time{}
	for _, info := range list {
		began[info.ID] = info.Created
		if below, ok := strings.CutPrefix(info.ID, id+"."); ok {
			m := member{
				id: info.ID, task: cmp.Or(info.Title, info.Preview), depth: 1 + strings.Count(below, "."), stop: info.Stop,
				works: slices.Contains(working, info.ID),
			}
			if i := slices.IndexFunc(st.Children, func(c inspan.Child) bool { return c.Child == info.ID }); i >= 0 {
				c := st.Children[i]
				m.name, m.idle = c.Name, !c.Open && c.Returned != nil && c.Returned.Idle
			}
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b member) int {
		return compareMembers(began, a.id, b.id)
	})
	return out, nil
}

// compareMembers orders two sessions of a family by the start of their branches, and each before those that work for it.
func compareMembers(began map[string]time.Time, a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, y := strings.Join(as[:i+1], "."), strings.Join(bs[:i+1], ".")
		if x != y {
			return cmp.Or(began[x].Compare(began[y]), strings.Compare(x, y))
		}
	}
	return len(as) - len(bs)
}

// subagents lets the person choose a session that works for the open one, and shows its work; with an id, it
// shows that one.
func (s *sessions) subagents(id string) tea.Cmd {
	a, ctx, own := s.talk.tui.App, s.talk.ctx, s.talk.runner.id()
	if own == "" || a == nil {
		s.hints.say("there are no subagents yet")
		return nil
	}
	var working []string
	for _, c := range s.talk.view.Now.Children {
		working = append(working, c.Spawned.Child)
	}
	return func() tea.Msg {
		all, err := listMembers(ctx, a, own, working)
		return later(func() tea.Cmd {
			s.talk.fail(err)
			if len(all) == 0 {
				s.hints.say("there are no subagents yet")
				return nil
			}
			if id != "" {
				i := slices.IndexFunc(all, func(m member) bool {
					return m.id == id || m.name != "" && strings.EqualFold(m.name, id) || strings.HasSuffix(m.id, "."+id)
				})
				if i < 0 {
					s.hints.say("no subagent is called " + words.OneLine(words.Hidden(id), 40) + "; /subagents lists them")
					return nil
				}
				return s.printMember(all[i])
			}
			var items []choice
			for _, m := range all {
				items = append(items, m.line())
			}
			s.over.pick("subagents", items, func(i int) tea.Cmd { return s.printMember(all[i]) })
			return nil
		})
	}
}

// printMember prints what a subagent has done so far.
func (s *sessions) printMember(m member) tea.Cmd {
	a, ctx := s.talk.tui.App, s.talk.ctx
	return func() tea.Msg {
		past, err := fold(ctx, a, m.id)
		return later(func() tea.Cmd {
			if err != nil {
				s.talk.fail(err)
				return nil
			}
			blocks := past.blocks
			s.talk.note(fmt.Sprintf("subagent %s · %s · %s", m.id, text.Count(past.Spent.Turns, "turn"), words.Cost(past.Spent.Cost, past.Spent.Unpriced)))
			if n := len(blocks) - shown; n > 0 {
				s.talk.note(text.Count(n, "earlier item") + " in its log: inspan logs " + m.id)
				blocks = blocks[n:]
			}
			s.talk.view.blocks = append(s.talk.view.blocks, blocks...)
			s.talk.note("so far subagent " + m.id)
			return nil
		})
	}
}
