package tui

import (
	"context"
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/running"
)

// rewinder goes back to before a message, with the files, the conversation or both.
type rewinder struct {
	talk     *talk
	over     *overlay
	hints    *hints
	composer *composer
	screen   *screen
}

// pick lets the person choose the message to go back to, and whether to restore files, the conversation or both.
func (r *rewinder) pick() tea.Cmd {
	a, backend, ctx, id, now := r.talk.tui.App, r.talk.backend, r.talk.ctx, r.talk.runner.id(), r.talk.tui.clock()
	if id == "" || a == nil {
		r.hints.say("there are no messages yet")
		return nil
	}
	return func() tea.Msg {
		points, err := backend.rewindPoints(ctx, id)
		return later(func() tea.Cmd {
			r.talk.fail(err)
			if len(points) == 0 {
				r.hints.say("there are no messages yet")
				return nil
			}
			slices.Reverse(points)
			var items []choice
			for _, p := range points {
				items = append(items, choice{p.Text, ago(now.Sub(p.Time))})
			}
			r.over.pick("rewind to before", items, func(i int) tea.Cmd {
				r.over.pick("restore", []choice{
					{"files and conversation", "as if you had not sent the message"},
					{"only the files", "the model still knows what it did"},
					{"only the conversation", "the files stay as they are"},
				}, func(kind int) tea.Cmd { return r.plan(points[i].Seq, points[i].Text, kind != 2, kind != 1) })
				return nil
			})
			return nil
		})
	}
}

// plan plans the rewind and shows it first.
func (r *rewinder) plan(seq uint64, said string, files, conversation bool) tea.Cmd {
	backend, ctx, open, root := r.talk.backend, r.talk.ctx, r.talk.runner.session(), r.talk.root()
	if !conversation {
		said = ""
	}
	if open == nil {
		return nil
	}
	return func() tea.Msg {
		way, err := backend.planRewind(ctx, open, root, seq, files, conversation)
		return later(func() tea.Cmd {
			switch {
			case errors.Is(err, running.ErrNothingToRewind) && !conversation:
				r.talk.note("nothing to undo: " + err.Error() + "; /rewind goes back to an earlier message")
				return nil
			case err != nil:
				r.talk.fail(err)
				return nil
			}
			r.over.confirm(way.question, way.lines, func() tea.Cmd { return r.back(way.rewind, said) }, r.talk.unchanged)
			return nil
		})
	}
}

// back rewinds, and puts the message into the prompt.
func (r *rewinder) back(rewind func(context.Context) error, said string) tea.Cmd {
	s, a, ctx := r.talk.runner.session(), r.talk.tui.App, r.talk.ctx
	if s == nil || r.talk.running {
		r.hints.say("a run has started; nothing was changed")
		return nil
	}
	r.talk.opening = true
	r.talk.runner.unwatch()
	return func() tea.Msg {
		err := rewind(ctx)
		var past *view
		if err == nil {
			past, err = fold(ctx, a, s.ID())
		}
		return later(func() tea.Cmd { return r.arrived(past, said, err) })
	}
}

// arrived shows the session in its new state.
func (r *rewinder) arrived(past *view, said string, err error) tea.Cmd {
	r.talk.opening = false
	if err != nil {
		r.talk.fail(err)
		return nil
	}
	if !r.screen.clearTranscript() { // earlier lines have been printed
		n := len(past.blocks)
		past.blocks = slices.Concat(r.talk.view.blocks, past.blocks[n-lastNotes(past.blocks):])
	}
	r.talk.view, r.talk.decided = past, nil
	r.talk.measure()
	if said != "" && r.composer.prompt.empty() {
		r.composer.prompt.set(said)
	}
	return r.talk.continueWithHeld()
}

// lastNotes counts the notes at the end.
func lastNotes(blocks []*block) int {
	n := 0
	for n < len(blocks) && blocks[len(blocks)-1-n].kind == noteBlock {
		n++
	}
	return min(n, 2)
}

// undo restores the files to before the last message.
func (r *rewinder) undo() tea.Cmd {
	a, backend, ctx, id := r.talk.tui.App, r.talk.backend, r.talk.ctx, r.talk.runner.id()
	if id == "" || a == nil {
		r.hints.say("there is nothing to undo yet")
		return nil
	}
	return func() tea.Msg {
		points, err := backend.rewindPoints(ctx, id)
		return later(func() tea.Cmd {
			if err != nil || len(points) == 0 {
				r.talk.fail(err)
				return nil
			}
			return r.plan(points[len(points)-1].Seq, "", true, false)
		})
	}
}
