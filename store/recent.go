package store

import (
	"context"
	"iter"
)

// RecentLister is an optional interface of a [Store] that finds the most recently changed sessions without reading
// the others.
type RecentLister interface {
	// Recent yields what List returns, in the same order, but reads only as far as the caller iterates.
	Recent(ctx context.Context) iter.Seq2[Info, error]
}

// Recent yields the sessions of a store, the most recently changed first.
func Recent(ctx context.Context, s Store) iter.Seq2[Info, error] {
	if n, ok := s.(RecentLister); ok {
		return n.Recent(ctx)
	}
	return func(yield func(Info, error) bool) {
		infos, err := s.List(ctx)
		if err != nil {
			yield(Info{}, err)
			return
		}
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}
