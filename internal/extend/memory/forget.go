package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Forget removes the entry with this id from the scope that has it, and returns it.
func (s *Store) Forget(ctx context.Context, id string) (Entry, error) {
	for _, scope := range Scopes() {
		e, err := s.Remove(ctx, scope, id)
		if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNoScope) {
			return e, err
		}
	}
	return Entry{}, unknown(id)
}

// Find returns an error if no scope has an entry with one of the ids.
func (s *Store) Find(ids ...string) error {
	for _, id := range ids {
		if !slices.ContainsFunc(Scopes(), func(scope Scope) bool {
			_, err := s.Entry(scope, id)
			return err == nil
		}) {
			return unknown(id)
		}
	}
	return nil
}

func unknown(id string) error {
	return fmt.Errorf("nothing is remembered as %q; see 'inspan memory list'", id)
}
