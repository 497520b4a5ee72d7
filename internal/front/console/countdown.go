package console

import (
	"fmt"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/words"
)

// countdown shows how long something will take, on a line of its own that is overwritten every second.
type countdown struct {
	stop, stopped chan struct{}
}

// printWait names the reason for a wait and the next step. It gives the same reason only once in a row. On a
// terminal it counts the seconds.
func (v *view) printWait(why, what string, wait time.Duration) {
	if why = words.OneLine(why, 200); why == v.lastWait {
		why = "the same again"
	} else {
		v.lastWait = why
	}
	if !v.Live {
		v.line("%s", v.paint(yellow, fmt.Sprintf("! %s; %s in %s", why, what, words.Left(wait))))
		return
	}
	v.line("%s", v.paint(yellow, "! "+why))
	v.wait = &countdown{make(chan struct{}), make(chan struct{})}
	go v.wait.run(v.Console, what, time.Now().Add(wait))
}

// endWait ends a running countdown, and leaves its line as it is.
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
		text := fmt.Sprintf("  %s in %s", what, words.Left(time.Until(until)))
		if width := c.width(c.Err); width > 0 { // a line that wraps can't be overwritten
			text = ansi.Truncate(text, width-1, "…")
		}
		fmt.Fprint(c.Err, "\r"+c.paint(yellow, text)+"\x1b[K")
		select {
		case <-tick.C:
		case <-w.stop:
			fmt.Fprintln(c.Err)
			return
		}
	}
}
