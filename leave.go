package inspan

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Leftovers are what a session leaves at its end: what it had started and still ran, and texts that
// would speak to later agents.
type Leftovers struct {
	Kept  []tool.Leftover // it goes on
	Ended []tool.Leftover
	// Instructions are the paths of files with instructions for agents that changed while the session ran,
	// without a person having been asked.
	Instructions []string
	// Unmerged are the sessions of agents that have changed files in a copy of the workspace which nobody
	// has merged.
	Unmerged []string
}

// Leave ends what the session has started and still runs, and lets go on what is to
// outlive it, which is possible only at a normal end: the last run is over, and was not
// interrupted. What goes on stands in the log. Calls fail afterwards. The second time it
// only says again what became of all.
func (s *Session) Leave() Leftovers {
	s.leaving.Do(func() {
		if s.agent.Leave == nil {
			return
		}
		st := s.Status()
		normal := !st.Active && st.Stopped != nil && st.Stopped.Reason != event.ReasonCancelled
		s.leftovers = s.agent.Leave(normal, st.Mode)
		s.leftover(s.leftovers.Kept)
		s.leftover(s.leftovers.Ended)
		for _, l := range s.leftovers.Kept {
			// A log that takes no more has no say: the process goes on by now.
			_, _ = s.log.Append(context.Background(), s.redacted(event.Finished{Job: l.Job, Kept: true, Command: l.Command, PID: l.PID}))
		}
	})
	return s.leftovers
}

// leave is Leave for the end of a session, which goes on whatever comes of it.
func leave(s *Session) (err error) {
	defer caught("Agent.Leave", nil, &err)
	s.Leave()
	return nil
}
