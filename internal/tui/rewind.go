package tui

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
)

// pickPoint lets the person choose where to go back to, and what goes back.
func (m *model) pickPoint() tea.Cmd {
	a, ctx, id, now := m.App, m.ctx, m.seat.id(), m.clock()
	if id == "" || a == nil {
		m.hint = "nothing was said yet"
		return nil
	}
	return func() tea.Msg {
		points, err := a.Rewind.Points(ctx, id)
		return later(func(m *model) tea.Cmd {
			m.fail(err)
			if len(points) == 0 {
				m.hint = "nothing was said yet"
				return nil
			}
			var items []choice
			for i := range points {
				p := points[len(points)-1-i]
				items = append(items, choice{p.Text, ago(now.Sub(p.Time))})
			}
			m.over = &picker{title: "go back to before you said", items: items, take: func(m *model, i int) tea.Cmd {
				p := points[len(points)-1-i]
				return m.pickKind(p.Seq, p.Text)
			}}
			return nil
		})
	}
}

// pickKind lets the person choose what goes back.
func (m *model) pickKind(seq uint64, said string) tea.Cmd {
	m.over = &picker{title: "what goes back", items: []choice{
		{"files and conversation", "as if it had not been said"},
		{"only the files", "the model still knows what it did"},
		{"only the conversation", "the files stay as they are"},
	}, take: func(m *model, i int) tea.Cmd { return m.planRewind(seq, said, i != 2, i != 1) }}
	return nil
}

// planRewind works out the way back and shows it first.
func (m *model) planRewind(seq uint64, said string, files, conversation bool) tea.Cmd {
	a, ctx, id, root := m.App, m.ctx, m.seat.id(), m.root()
	return func() tea.Msg {
		r, err := a.Rewind.Back(ctx, id, root, seq, files, conversation)
		return later(func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			m.over = &confirm{title: "do this? nothing is lost, it can be taken back", body: r.Lines(false), yes: func(m *model) tea.Cmd {
				if !conversation {
					said = ""
				}
				return m.rewind(r.To, func(ctx context.Context) (*event.Restored, error) { return r.Restore(ctx, false) }, said)
			}}
			return nil
		})
	}
}

// rewind goes back, and puts what was said then into the prompt.
func (m *model) rewind(to uint64, restore func(context.Context) (*event.Restored, error), said string) tea.Cmd {
	s, a, ctx := m.seat.session(), m.App, m.ctx
	if s == nil || m.running {
		m.hint = "a run goes on; nothing was changed"
		return nil
	}
	m.opening = true
	m.seat.unwatch()
	return func() tea.Msg {
		err := s.Rewind(ctx, to, restore)
		var past *view
		if err == nil {
			past, err = fold(ctx, a, s.ID())
		}
		return later(func(m *model) tea.Cmd { return m.rewound(past, said, err) })
	}
}

func (m *model) rewound(past *view, said string, err error) tea.Cmd {
	m.opening = false
	if err != nil {
		m.fail(err)
		return nil
	}
	blocks := m.view.blocks
	if n := len(past.blocks); m.full == nil { // what was before has been printed
		past.blocks = slices.Concat(blocks, past.blocks[n-lastNotes(past.blocks):])
	} else {
		m.full.blocks = nil
		m.print, m.full.lines = printer{look: m.look}, nil
	}
	m.view = past
	m.ask, m.decided, m.refused = nil, nil, nil
	if said != "" && m.prompt.empty() {
		m.prompt.set(said)
	}
	held := m.release()
	if len(held) == 0 {
		m.follow()
		return nil
	}
	return m.start(held...)
}

// lastNotes counts the notes at the end.
func lastNotes(blocks []*block) int {
	n := 0
	for n < len(blocks) && blocks[len(blocks)-1-n].kind == noteBlock {
		n++
	}
	return min(n, 2)
}

// undo puts the files back to before what was said last.
func (m *model) undo(string) tea.Cmd {
	a, ctx, id := m.App, m.ctx, m.seat.id()
	if id == "" || a == nil {
		m.hint = "nothing was done yet"
		return nil
	}
	return func() tea.Msg {
		points, err := a.Rewind.Points(ctx, id)
		return later(func(m *model) tea.Cmd {
			if err != nil || len(points) == 0 {
				m.fail(err)
				return nil
			}
			return m.planRewind(points[len(points)-1].Seq, "", true, false)
		})
	}
}
