package keep

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Turns limits concurrent work that needs a whole processor: more at once would only slow each other and the
// rest of this program. The zero value is ready. It is safe for concurrent use; don't change it after the first
// turn.
type Turns struct {
	Most int // concurrent turns; 0: the number of processors

	once   sync.Once
	places chan struct{} // holds one value for each taken turn
}

// longestTurn bounds the wait for a turn.
const longestTurn = 5 * time.Second

// Take waits for a turn and returns the function that ends it; an error if ctx is done first. The work must be
// correct without a turn, too: a hanging turn delays others by at most 5 seconds.
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

// Taken reports whether Take would wait.
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
