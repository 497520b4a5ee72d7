package running

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/store"
)

// renamed reports whether the folder that a session works in is gone, and is the one that is here now.
func (t *Table) renamed(ctx context.Context, s store.Info, here string) bool {
	if _, err := os.Lstat(s.Root); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	for e, err := range store.Events(ctx, t.Sessions, s.ID) {
		b, _ := e.Body.(event.Opened)
		return err == nil && b.Folder != "" && b.Folder == keep.FolderID(here)
	}
	return false
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
