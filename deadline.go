package inspan

import (
	"sync"
	"time"
)

// deadline does something when its time has come. The time can be changed, and stand
// still, which puts it off. Safe for concurrent use.
type deadline struct {
	do func()

	mu    sync.Mutex
	at    time.Time // zero: never
	holds int
	since time.Time // it stands still, if holds > 0
	timer *time.Timer
	doing sync.WaitGroup
}

// set makes it another time; zero: never.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.Equal(at) {
		return
	}
	d.at = at
	d.arm()
}

// hold lets the time stand still until goOn is called, once.
func (d *deadline) hold() (goOn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds++; d.holds == 1 {
		d.since = time.Now()
		d.arm()
	}
	return d.goOn
}

func (d *deadline) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds--; d.holds == 0 && !d.at.IsZero() {
		d.at = d.at.Add(time.Since(d.since))
		d.arm()
	}
}

// arm makes the timer what the fields say.
func (d *deadline) arm() {
	if d.timer != nil && d.timer.Stop() {
		d.doing.Done()
	}
	d.timer = nil
	if d.at.IsZero() || d.holds > 0 {
		return
	}
	d.doing.Add(1)
	d.timer = time.AfterFunc(time.Until(d.at), func() {
		defer d.doing.Done()
		d.do()
	})
}

// end makes it never come. What is being done has been done when end returns.
func (d *deadline) end() {
	d.set(time.Time{})
	d.doing.Wait()
}
