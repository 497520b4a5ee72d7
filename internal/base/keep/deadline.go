package keep

import (
	"sync"
	"time"
)

// Deadline calls a function at a time. The time can be moved, and paused, which postpones it. It is safe for
// concurrent use.
type Deadline struct {
	Do func() // called in its own goroutine

	mu     sync.Mutex
	at     time.Time // zero means never
	pauses int
	since  time.Time // of the first pause, if pauses > 0
	timer  *time.Timer
	doing  sync.WaitGroup
}

// Set moves the deadline. Zero means never.
func (d *Deadline) Set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.Equal(at) {
		return
	}
	d.at = at
	d.arm()
}

// Pause pauses the deadline until resume is called, once.
func (d *Deadline) Pause() (resume func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pauses++; d.pauses == 1 {
		d.since = time.Now()
		d.arm()
	}
	return d.resume
}

func (d *Deadline) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pauses--; d.pauses == 0 && !d.at.IsZero() {
		d.at = d.at.Add(time.Since(d.since))
		d.arm()
	}
}

// arm sets the timer according to the fields.
func (d *Deadline) arm() {
	if d.timer != nil && d.timer.Stop() {
		d.doing.Done()
	}
	d.timer = nil
	if d.at.IsZero() || d.pauses > 0 {
		return
	}
	d.doing.Add(1)
	d.timer = time.AfterFunc(time.Until(d.at), func() {
		defer d.doing.Done()
		d.Do()
	})
}

// Stop cancels the deadline. If Do is running, Stop returns after it.
func (d *Deadline) Stop() {
	d.Set(time.Time{})
	d.doing.Wait()
}
