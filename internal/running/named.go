package running

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/store"
)

// New is the order to work on a task in a new session.
func (t *Table) New(task string) Order { return Order{Text: task} }

// Named is the order to go on with a session. It tells the two optional arguments apart: a lone
// argument is an ID if a session has it, and a task otherwise.
func (t *Table) Named(ctx context.Context, args []string) (o Order, err error) {
	if len(args) == 2 {
		return Order{ID: args[0], Text: args[1]}, nil
	}
	if len(args) == 1 {
		_, err = store.Resolve(ctx, t.Sessions, args[0])
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(args[0], " \t\n") {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; if this is a task, use: inspan resume last %q", err, args[0])
			}
			return Order{ID: args[0]}, err
		}
		o.Text = args[0]
	}
	o.ID, err = t.LastHere(ctx)
	return o, err
}

// LastHere is the session used last in the current folder. That there is none is a [words.Misuse].
func (t *Table) LastHere(ctx context.Context) (string, error) {
	here, err := filepath.Abs(".")
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	for s, err := range store.Recent(ctx, t.Sessions) {
		if err != nil {
			return "", err
		}
		if s.Root == here && s.Parent == "" && !s.Empty {
			return s.ID, nil
		}
	}
	return "", words.Misuse{Err: fmt.Errorf("no session has run in %s; name one from 'inspan sessions list'", here)}
}
