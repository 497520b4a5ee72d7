package inspan

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// A job belongs to the program that runs it. The log tells of it to whoever drives the
// session: Ended that it runs, Finished that it does not any more.

// began remembers a job of this program.
func (s *Session) began(j *tool.Job) {
	if j == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.begun[j.ID] = true
}

// jobEnded stores that a job has ended, whether or not a run goes on. A log that takes no
// more says it when the session is driven next.
func (d *driver) jobEnded(end tool.JobEnd) {
	_, _ = d.log.Append(context.Background(), d.redacted(event.Finished{
		Job: end.ID, Exit: end.Exit, Error: end.Error, Seconds: end.Seconds, Line: end.Line,
	}))
}

// lostJobs are the jobs of programs that drove the session before and ended without a word.
func (d *driver) lostJobs() []event.Body {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []event.Body
	for _, j := range d.state.Jobs {
		if !d.begun[j.ID] {
			out = append(out, event.Finished{Job: j.ID, Error: "it ended with the program that ran it"})
		}
	}
	return out
}
