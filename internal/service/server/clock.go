package server

import "time"

// Clock tells the time and signals when a time has come.
type Clock interface {
	Now() time.Time
	// At returns a channel that gets a value at the given time, or some time before it: the caller checks
	// again. The caller calls stop when it no longer waits.
	At(t time.Time) (due <-chan time.Time, stop func())
}

// systemClock is the clock of the machine.
type systemClock struct{}

// mostAway is the longest time between two checks of the clock. Timers stop while a machine sleeps, and ignore
// changes of its clock.
const mostAway = time.Minute

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) At(t time.Time) (<-chan time.Time, func()) {
	timer := time.NewTimer(min(time.Until(t), mostAway))
	return timer.C, func() { timer.Stop() }
}
