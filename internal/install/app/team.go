package app

import (
	"context"
	"errors"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/view/team"
)

// Team returns who works for the session with this full id, and their tasks.
func (a *App) Team(ctx context.Context, id string) (team.Board, error) {
	lead, err := a.Running.Status(ctx, id)
	if err != nil {
		return team.Board{}, err
	}
	return team.Of(lead, func(id string) (inspan.Status, error) { return a.Running.Status(ctx, id) })
}

// Assign gives a task of the session with this full id to a member, or to all if the name is "all", also a task that
// another member has.
// An unknown name or task is a [words.Misuse].
func (a *App) Assign(ctx context.Context, id, task, name string) error {
	board, err := a.Team(ctx, id)
	if err != nil {
		return err
	}
	b, err := board.Assign(id, task, name)
	if err != nil {
		return err
	}
	w, err := a.Running.Watch(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(w.Send(ctx, b), w.Close())
}
