package running

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/store"
)

// Named returns the order to continue a session. It distinguishes the two optional arguments: a lone argument
// is an ID if a session has it, and a task otherwise.
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

// Asks reports whether a session answers questions about a corpus.
func (t *Table) Asks(ctx context.Context, named string) (bool, error) {
	id, err := store.Resolve(ctx, t.Sessions, named)
	if err != nil {
		return false, err
	}
	opened, err := store.Opening(ctx, t.Sessions, id)
	return opened != nil && opened.Corpus.Asked(), err
}

// last is how a person names the most recently used session.
const last = "last"

// Here returns the session that a text means, for a command that changes something: "last" is the most recently
// used one in the current folder, so that no session of another folder is changed by mistake.
func (t *Table) Here(ctx context.Context, text string) (string, error) {
	if text == last {
		return t.LastHere(ctx)
	}
	return store.Resolve(ctx, t.Sessions, text)
}

// Seen is like Here for a command that changes nothing. If the current folder has no session, "last" is that of
// any folder.
func (t *Table) Seen(ctx context.Context, text string) (string, error) {
	if text == last {
		if id, err := t.LastHere(ctx); err == nil {
			return id, nil
		}
	}
	return store.Resolve(ctx, t.Sessions, text)
}

// LastHere is LastIn for the current folder.
func (t *Table) LastHere(ctx context.Context) (string, error) { return t.LastIn(ctx, ".") }

// LastIn returns the most recently used session in a folder, or in a copy of it that a session was given. Sessions of a
// folder that was renamed move with it. If there is none, the error is a [words.Misuse].
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
		case s.Root == here, s.Labels[CopyLabel] == here:
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

// renamed reports whether the folder that a session works in is gone, and is the one that is here now.
func (t *Table) renamed(ctx context.Context, s store.Info, here string) bool {
	if _, err := os.Lstat(s.Root); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	opened, _ := store.Opening(ctx, t.Sessions, s.ID)
	return opened != nil && opened.Folder != "" && opened.Folder == keep.FolderID(here)
}

// Rehome has all sessions of one folder work in another from now on, and returns how many those are that a person
// began. Their checkpoints come along. While someone drives one, none moves.
func (t *Table) Rehome(ctx context.Context, from, to string) (leads int, err error) {
	list, err := t.Sessions.List(ctx)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, s := range list {
		if s.Root != from || s.Events == 0 {
			continue
		}
		if h, err := t.Sessions.Holder(ctx, s.ID); h != nil || err != nil {
			return 0, errors.Join(fmt.Errorf("session %s is being driven; stop it first: inspan stop %s", s.ID, s.ID), err)
		}
		ids = append(ids, s.ID)
		if s.Parent == "" {
			leads++
		}
	}
	if len(ids) > 0 {
		old := snapshot.Store{Dir: t.CheckpointDir(from), Root: from}
		store := snapshot.Store{Dir: t.CheckpointDir(to), Root: to}
		if err := store.Adopt(ctx, &old); err != nil {
			return 0, err
		}
	}
	for _, id := range ids {
		log, err := t.Sessions.Open(ctx, id)
		if err != nil {
			return 0, err
		}
		_, err = log.Append(ctx, event.Moved{Root: to})
		if err := errors.Join(err, log.Close()); err != nil {
			return 0, err
		}
	}
	return leads, nil
}
