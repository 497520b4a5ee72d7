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

// ownerAll is what a folder needs so that names in it can be changed.
const ownerAll = 0o700

// Restore makes the paths that differ within the spans what they are in the
// checkpoint to, and says what it did. Spans are given in the order in which
// they happened; without any there is nothing to do. What somebody else has changed in a
// text between the spans or since stays in it. Where that can't be, as both have changed the
// same lines or it is not text, the path is kept, unless force is set; what is not in the
// store is kept even then.
//
// Before the first change everything that is needed is checked, and a
// checkpoint is taken, whatever the quota. From then on the context is not
// listened to. If the error says that the restore is unfinished, say because
// the disk is full, Recover finishes it.
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
		// It may stand in its place all the same; then Recover goes on.
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return s.finish(context.WithoutCancel(ctx), v, j, false)
}

// Recover finishes a restore that was cut off. The result is nil if there was
// none. Paths that are neither what they were nor what they are to become were
// changed by somebody else since: they are kept, and reported.
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

// known fails unless there are all checkpoints that a restore needs.
func (s *Store) known(to string, spans []Span) error {
	_, err := s.record(to)
	for _, span := range spans {
		_, err1 := s.record(span.Before)
		_, err2 := s.record(span.After)
		err = errors.Join(err, err1, err2)
	}
	return err
}

// journal writes the plan down.
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

// finish does what the journal says, takes the checkpoint after it and deletes
// the journal.
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
