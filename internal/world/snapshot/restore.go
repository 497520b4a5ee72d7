package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// ownerAll are the permissions that a folder needs for changes of its names.
const ownerAll = 0o700

// Restore brings the paths that differ within the spans into their state in the checkpoint to, and reports the
// changes. Spans are in chronological order; without any there is nothing to do. Changes that others made to a
// text between the spans or since are preserved. If that is impossible, because both changed the same lines or
// it is not text, the path is kept, unless force is set. Content that is not in the store is kept even then.
//
// Before the first change it checks that all needed content is readable, and takes a checkpoint, whatever the
// quota. From then on it ignores the context. If the error says that the restore is unfinished, for example
// because the disk is full, Recover finishes it.
func (s *Store) Restore(ctx context.Context, to string, spans []Span, force bool) (Restored, error) {
	unlock, err := s.change(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	defer unlock()
	if err := s.idle(); err != nil {
		return Restored{}, err
	}
	if err := s.known(to, spans); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	before, err := s.take(ctx, false)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	v, err := s.load()
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	defer v.close()
	cur, err := s.view(v, before.ID)
	if err != nil {
		return Restored{}, err
	}
	p, err := s.plan(ctx, cur, to, spans, force)
	if err == nil {
		err = p.sound()
	}
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	if len(p.todo) == 0 {
		return Restored{Before: before.ID, After: before.ID, Plan: p.public()}, nil
	}
	j, err := p.journal(before.ID)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	if err := s.writeFile(s.path(journalName), j.encode()); err != nil {
		// It may be in place anyway; then Recover continues.
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return s.finish(context.WithoutCancel(ctx), v, j, false)
}

// Recover finishes an interrupted restore. The result is nil if there was none. Paths that are neither in their
// old nor in their new state were changed since: they are kept, and reported.
func (s *Store) Recover(ctx context.Context) (*Restored, error) {
	if _, err := os.Stat(s.path(formatName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := s.change(ctx)
	if err != nil {
		return nil, fmt.Errorf("finish a restore: %w", err)
	}
	defer unlock()
	j, err := readJournal(s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := s.load()
	if err != nil {
		return nil, fmt.Errorf("finish a restore: %w", err)
	}
	defer v.close()
	r, err := s.finish(context.WithoutCancel(ctx), v, j, true)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// known returns an error unless all checkpoints of a restore exist.
func (s *Store) known(to string, spans []Span) error {
	_, err := s.record(to)
	for _, span := range spans {
		_, err1 := s.record(span.Before)
		_, err2 := s.record(span.After)
		err = errors.Join(err, err1, err2)
	}
	return err
}

// journal returns the journal of the plan.
func (p *plan) journal(before string) (*journal, error) {
	j := &journal{before: before, word: strings.ToLower(rand.Text()[:12]), kept: p.kept, made: p.cur.v.made}
	locked := map[string]change{}
	for _, path := range sorted(p.todo) {
		c := p.todo[path]
		j.todo = append(j.todo, c)
		if path == "" || c.modeOnly() {
			continue
		}
		dir, _ := split(path)
		e, err := p.cur.at(dir)
		if err != nil {
			return nil, err
		}
		if e.kind == isDir && e.perm&ownerAll != ownerAll {
			locked[dir] = change{path: dir, from: e, to: e}
		}
	}
	for _, path := range sorted(locked) {
		j.locked = append(j.locked, locked[path])
	}
	return j, nil
}

// finish executes the journal, takes the checkpoint after it and deletes the journal.
func (s *Store) finish(ctx context.Context, v *vault, j *journal, again bool) (Restored, error) {
	unfinished := func(err error) (Restored, error) {
		return Restored{}, fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	v.made = j.made
	a := &applier{s: s, ctx: ctx, v: v, j: j, kept: map[string]string{}}
	if err := a.run(again); err != nil {
		return unfinished(err)
	}
	after, err := s.take(ctx, false)
	if err != nil {
		return unfinished(err)
	}
	s.step("remove journal")
	if err := os.Remove(s.path(journalName)); err != nil {
		return unfinished(err)
	}
	return Restored{Before: j.before, After: after.ID, Plan: a.done()}, keep.Sync(s.Dir)
}
