package console

import (
	"fmt"
	"math"
	"time"
)

// countdown shows how long something will still take, on a line of its own that
// is written over every second.
type countdown struct {
	stop, stopped chan struct{}
}

// waits tells why a wait of some seconds is needed and what comes then. On a
// terminal the seconds are counted.
func (v *view) waits(why, what string, seconds float64) {
	if !v.Live {
		v.line("%s", v.paint(yellow, fmt.Sprintf("! %s; %s in %s", why, what, left(seconds))))
		return
	}
	v.line("%s", v.paint(yellow, "! "+why))
	v.wait = &countdown{make(chan struct{}), make(chan struct{})}
	go v.wait.run(v.Console, what, time.Now().Add(time.Duration(seconds*float64(time.Second))))
}

// endWait ends the countdown, if one runs, and leaves its line as it is.
func (v *view) endWait() {
	if v.wait != nil {
		close(v.wait.stop)
		<-v.wait.stopped
		v.wait = nil
	}
}

func (w *countdown) run(c *Console, what string, until time.Time) {
	defer close(w.stopped)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		text := fmt.Sprintf("  %s in %s", what, left(max(0, time.Until(until).Seconds())))
		fmt.Fprint(c.Err, "\r"+c.paint(yellow, text)+"\x1b[K")
		select {
		case <-tick.C:
		case <-w.stop:
			fmt.Fprintln(c.Err)
			return
		}
	}
}

// left is a time in the words of a person who waits for it to pass.
func left(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return time.Duration(math.Ceil(seconds) * float64(time.Second)).String()
}
