package snapshot

import (
	"context"
	"errors"
	"fmt"
)

// Check reads the whole content of a checkpoint. The error is a [DamageError] if something has changed since it was
// written.
func (s *Store) Check(ctx context.Context, id string) error {
	v, unlock, err := s.reading(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	in, err := s.view(v, id)
	if err != nil {
		return err
	}
	return in.walk(&view{v: v, id: id}, func(d difference) error {
		return errors.Join(in.check(d.path, d.old), ctx.Err())
	})
}

// Diff returns the differences between two checkpoints, sorted by path.
func (s *Store) Diff(ctx context.Context, a, b string) ([]Change, error) {
	v, unlock, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	from, err := s.view(v, a)
	if err != nil {
		return nil, err
	}
	to, err := s.view(v, b)
	if err != nil {
		return nil, err
	}
	var out []Change
	err = from.walk(to, func(d difference) error {
		out = append(out, changeOf(d.path, d.old, d.now, ""))
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("compare checkpoints: %w", err)
	}
	sortChanges(out)
	return out, nil
}
