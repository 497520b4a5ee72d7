package keep

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Turns has only so many do at once what takes a processor whole: more would only keep each other,
// and all else that this program does, from it. The zero value is ready. It is safe for concurrent
// use, and is not changed once somebody has taken a turn.
type Turns struct {
	Most int // at once; 0: as many as there are processors

	once   sync.Once
	places chan struct{} // holds one for each turn that is taken
}

// longestTurn is how long somebody waits for the turns of others at most.
const longestTurn = 5 * time.Second

// Take waits for a turn and returns what ends it; an error, if ctx is done before. What takes a turn
// must be right without it: somebody who hangs holds the others up for 5 seconds and no longer.
func (t *Turns) Take(ctx context.Context) (end func(), err error) {
	late := time.NewTimer(longestTurn)
	defer late.Stop()
	select {
	case t.made() <- struct{}{}:
		return func() { <-t.places }, nil
	case <-late.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Taken reports whether somebody would have to wait for a turn.
func (t *Turns) Taken() bool { return len(t.made()) == cap(t.places) }

func (t *Turns) made() chan struct{} {
	t.once.Do(func() {
		if t.Most == 0 {
			t.Most = runtime.GOMAXPROCS(0)
		}
		t.places = make(chan struct{}, t.Most)
	})
	return t.places
}
