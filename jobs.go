package inspan

import (
	"context"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/tool"
)

// A job belongs to the program that runs it. The log tells of it to whoever drives the
// session: Ended that it runs, Finished that it does not any more.

// jobs are those that this program has begun for a session.
type jobs struct {
	starting sync.Mutex      // guards begun
	begun    map[string]bool // by id
}

// began remembers a job of this program.
func (j *jobs) began(one *tool.Job) {
	if one == nil {
		return
	}
	j.starting.Lock()
	defer j.starting.Unlock()
	if j.begun == nil {
		j.begun = map[string]bool{}
	}
	j.begun[one.ID] = true
}

// working reports whether this program has begun any.
func (j *jobs) working() bool {
	j.starting.Lock()
	defer j.starting.Unlock()
	return len(j.begun) > 0
}

// jobEnded stores that a job has ended, whether or not a run goes on. A log that takes no
// more says it when the session is driven next.
func (d *driver) jobEnded(end tool.JobEnd) {
	_, _ = d.log.Append(context.Background(), d.redacted(event.Finished{
		Job: end.ID, Exit: end.Exit, Error: end.Error, Seconds: end.Seconds, Line: end.Line,
	}))
}

// lost are jobs of programs that drove the session before and ended without a word.
func (j *jobs) lost(running []loop.Job) []event.Body {
	j.starting.Lock()
	defer j.starting.Unlock()
	var out []event.Body
	for _, one := range running {
		if !j.begun[one.ID] {
			out = append(out, event.Finished{Job: one.ID, Error: "it ended with the program that ran it"})
		}
	}
	return out
}
