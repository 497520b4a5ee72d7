package memory

import (
	"context"
	"errors"
	"fmt"
)

// Forget removes the entry of an id from whichever scope has it, and returns it.
func (s *Store) Forget(ctx context.Context, id string) (Entry, error) {
	for _, scope := range Scopes() {
		e, err := s.Remove(ctx, scope, id)
		if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNoScope) {
			return e, err
		}
	}
	return Entry{}, fmt.Errorf("nothing is remembered as %q; see 'inspan memory list'", id)
}
