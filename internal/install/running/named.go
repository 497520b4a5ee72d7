package running

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// New is the order to work on a task in a new session.
func (t *Table) New(task string) Order { return Order{Text: task} }

// Named is the order to go on with a session. It tells the two optional arguments apart: a lone
// argument is an ID if a session has it, and a task otherwise.
func (t *Table) Named(ctx context.Context, args []string) (o Order, err error) {
	if len(args) > 0 && args[0] == last {
		o = Order{Text: strings.Join(args[1:], " ")}
		o.ID, err = t.LastHere(ctx)
		return o, err
	}
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

// Asks reports whether the session that a person names answers questions to a corpus.
func (t *Table) Asks(ctx context.Context, named string) (bool, error) {
	id, err := store.Resolve(ctx, t.Sessions, named)
	if err != nil {
		return false, err
	}
	for e, err := range store.Events(ctx, t.Sessions, id) {
		b, _ := e.Body.(event.Opened)
		return b.Corpus.Asked(), err
	}
	return false, nil
}

// last is how a person names the session used last.
const last = "last"

// Here is the session that a text means where something is changed: "last" is the one used last in
// the current folder, as the last of another folder would be changed by mistake.
func (t *Table) Here(ctx context.Context, text string) (string, error) {
	if text == last {
		return t.LastHere(ctx)
	}
	return store.Resolve(ctx, t.Sessions, text)
}

// Seen is the session that a text means where nothing is changed. It is as Here has it, and "last" is
// that of any folder if this one has none.
func (t *Table) Seen(ctx context.Context, text string) (string, error) {
	if text == last {
		if id, err := t.LastHere(ctx); err == nil {
			return id, nil
		}
	}
	return store.Resolve(ctx, t.Sessions, text)
}

// LastHere is LastIn of the current folder.
func (t *Table) LastHere(ctx context.Context) (string, error) { return t.LastIn(ctx, ".") }

// LastIn is the session used last in a folder. The sessions of one that was renamed move with it. That there is none is a [words.Misuse].
func (t *Table) LastIn(ctx context.Context, folder string) (string, error) {
	here, err := filepath.Abs(folder)
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	var elsewhere []store.Info
	for s, err := range store.Recent(ctx, t.Sessions) {
		switch {
		case err != nil:
			return "", err
		case s.Parent != "" || s.Empty:
		case s.Root == here:
			return s.ID, nil
		default:
			elsewhere = append(elsewhere, s)
		}
	}
	for _, s := range elsewhere {
		if t.renamed(ctx, s, here) {
			_, err := t.Rehome(ctx, s.Root, here)
			return s.ID, err
		}
	}
	return "", words.Misuse{Err: fmt.Errorf("no session has run in %s; name one from 'inspan sessions list'", here)}
}
