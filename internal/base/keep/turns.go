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
	Most int // concurrent turns; 0 means the number of processors

	once   sync.Once
	places chan struct{} // holds one value for each taken turn

	mu    sync.Mutex
	moved time.Time // when a turn was taken or ended last
}

// longestTurn bounds the wait for a turn while none begins or ends.
const longestTurn = 5 * time.Second

// Take waits for a turn and returns the function that ends it; an error if ctx is done first. The work must be
// correct without a turn, too: when all turns hang, others go without one after 5 seconds.
func (t *Turns) Take(ctx context.Context) (end func(), err error) {
	late := time.NewTimer(longestTurn)
	defer late.Stop()
	for {
		select {
		case t.made() <- struct{}{}:
			t.move()
			return func() { t.move(); <-t.places }, nil
		case <-late.C:
			left := longestTurn - t.still()
			if left <= 0 {
				return func() {}, nil
			}
			late.Reset(left)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *Turns) move() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moved = time.Now()
}

// still returns how long no turn has begun or ended.
func (t *Turns) still() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.moved)
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
