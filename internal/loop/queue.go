package loop

import (
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

func (s *State) said(b event.Said) {
	switch {
	case len(b.Parts) == 0:
		s.goOn()
	case s.Run.Active:
		s.Queue = append(s.Queue, b.Parts)
	default:
		s.begin(b.Parts)
	}
}

func (s *State) begin(parts llm.Parts) {
	s.Task = parts.Text()
	s.Run = Run{Active: true}
	s.say(words{parts, true})
	for _, w := range s.Aside {
		s.say(w)
	}
	s.Aside = nil
}

// goOn lets the last run continue after it stopped for any reason but done.
func (s *State) goOn() {
	r := &s.Run
	if r.Active || r.Stopped == nil || r.Stopped.Reason == event.ReasonDone {
		return
	}
	*r = Run{Active: true, Turn: r.Turn, Seconds: r.Seconds, Route: r.Route}
	if n := len(s.Messages); n > 0 && s.Messages[n-1].Role == llm.Assistant {
		s.push(llm.User, llm.Say("Go on."))
	}
}

// cancel ends the run as soon as its calls have ended.
func (s *State) cancel() {
	s.Run.Cancelled = s.Run.Active
}

func (s *State) stopped(b event.Stopped) {
	s.Run.Active, s.Run.Stopped = false, &b
	s.Run.Calls, s.Run.Asking = nil, false
	if !s.Run.Held {
		s.unqueue()
	}
}

// unqueue begins with what was said next while the run before went on.
func (s *State) unqueue() {
	if len(s.Queue) == 0 {
		return
	}
	next := s.Queue[0]
	s.Queue = s.Queue[1:]
	s.begin(next)
}
