package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/store"
)

// stamp identifies a state of a file without reading it: a log that has grown has another.
type stamp struct {
	Size int64
	At   time.Time // of the last change
}

func (a stamp) same(b stamp) bool { return a.Size == b.Size && a.At.Equal(b.At) }

// grain is how much older the time of a file may be than its last event: clocks and the times in archives have
// a limited precision.
const grain = 2 * time.Second

// stamped is a session and the stamp of its log.
type stamped struct {
	id string
	stamp
	err error // why there is no stamp
}

// stamps returns the stamps of all sessions, by id.
func (s *Store) stamps(ctx context.Context) ([]stamped, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	files, err := s.fs().Stats(s.Dir)
	if err != nil {
		return nil, err
	}
	out := make([]stamped, len(ids))
	err = each(ctx, len(ids), func(i int) {
		out[i].id = ids[i]
		out[i].stamp, out[i].err = files.of(ids[i] + "/" + logName)
	})
	return out, errors.Join(err, files.done())
}

// each calls do for all numbers below n, several at once.
func each(ctx context.Context, n int, do func(i int)) error {
	const part = 64
	var all sync.WaitGroup
	workers := max(1, min(runtime.GOMAXPROCS(0), n/part))
	for w := range workers {
		all.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers && ctx.Err() == nil; i++ {
				do(i)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// Recent implements [store.RecentLister]. A log is never older than its last event, except by the grain, so a
// session that changed later than all other files is the newest.
func (s *Store) Recent(ctx context.Context) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		all, err := s.stamps(ctx)
		if err != nil {
			yield(store.Info{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		slices.SortFunc(all, func(a, b stamped) int { return b.At.Compare(a.At) })
		var read []store.Info // read and not yet yielded, in order
		for i, next := range all {
			read = append(read, s.info(next.id))
			store.Sort(read)
			for len(read) > 0 && (i+1 == len(all) || read[0].Modified.After(all[i+1].At.Add(grain))) {
				if !yield(read[0], nil) {
					return
				}
				read = read[1:]
			}
			if err := ctx.Err(); err != nil {
				yield(store.Info{}, fmt.Errorf("list sessions: %w", err))
				return
			}
		}
	}
}
