package running

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Named tells the two optional arguments apart: a lone argument is an ID
// if a session has it, and a task otherwise.
func (t *Table) Named(ctx context.Context, args []string) (id, task string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	if len(args) == 1 {
		_, err = t.Sessions.Resolve(ctx, args[0])
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(args[0], " \t\n") {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; if this is a task, use: inspan resume last %q", err, args[0])
			}
			return args[0], "", err
		}
		task = args[0]
	}
	id, err = t.LastHere(ctx)
	return id, task, err
}

// LastHere is the session used last in the current folder; [ErrNothingToDo]: there is none.
func (t *Table) LastHere(ctx context.Context) (string, error) {
	here, err := filepath.Abs(".")
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	list, err := t.Sessions.List(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range list {
		if s.Root == here && s.Parent == "" && !s.Empty {
			return s.ID, nil
		}
	}
	return "", idle{fmt.Errorf("no session has run in %s; name one from 'inspan sessions list'", here)}
}
