package drive

import (
	"context"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

// jobs tracks the background jobs that this process started for the session. A job belongs to its process. Other
// drivers learn of its start from event.Ended and of its end from event.Finished.
type jobs struct {
	journal *journal

	mu      sync.Mutex
	started map[string]bool // by id
}

// add remembers a job of this process. Job may be nil.
func (j *jobs) add(job *tool.Job) {
	if job == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.started == nil {
		j.started = map[string]bool{}
	}
	j.started[job.ID] = true
}

// hasStarted reports whether this process has started a job.
func (j *jobs) hasStarted() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.started) > 0
}

// finished stores the end of a job, even between runs. If the log can't be written, the next driver finds that the job
// is gone.
func (j *jobs) finished(end tool.JobEnd) {
	_, _ = j.journal.log.Append(context.Background(), j.journal.secrets.Body(event.Finished{
		Job: end.ID, Exit: end.Exit, Error: end.Error, Seconds: end.Seconds, Line: end.Line,
	}))
}

// lostEnds returns the ends of jobs whose process is gone.
func (j *jobs) lostEnds(running []loop.Job) []event.Body {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []event.Body
	for _, job := range running {
		if !j.started[job.ID] {
			out = append(out, event.Finished{Job: job.ID, Error: "it ended with the program that ran it"})
		}
	}
	return out
}
