package session

import "sync"

// bell wakes all goroutines of this process that wait for one session.
type bell struct {
	users int // open logs; guarded by the store

	mu   sync.Mutex
	rung chan struct{} // closed by ring; nil while nothing waits
}

// wait returns a channel that is closed by the next ring.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
