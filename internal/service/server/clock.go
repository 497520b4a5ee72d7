package server

import "time"

// Clock tells the time, and when a time has come.
type Clock interface {
	Now() time.Time
	// At returns a channel that gets a value when a time has come, or some time before: whoever waits
	// looks again. Stop is called when nobody waits any more.
	At(t time.Time) (due <-chan time.Time, stop func())
}

// systemClock is that of the machine.
type systemClock struct{}

// mostAway is how long nobody looks at the clock. Timers stand still while a machine sleeps, and do
// not see when its clock is set.
const mostAway = time.Minute

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) At(t time.Time) (<-chan time.Time, func()) {
	timer := time.NewTimer(min(time.Until(t), mostAway))
	return timer.C, func() { timer.Stop() }
}
