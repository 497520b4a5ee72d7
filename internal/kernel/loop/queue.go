package loop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// queued is a message that came during a run.
type queued struct {
	Parts llm.Parts    `json:"parts"`
	By    event.Origin `json:"by,omitempty"`
	Seq   uint64       `json:"seq,omitempty"` // of the Said event; 0 if an earlier version folded it
}

// UnmarshalJSON also accepts the form of version 0.1, which is only the parts.
func (q *queued) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, &q.Parts)
	}
	type plain queued
	return json.Unmarshal(data, (*plain)(q))
}

// mostTaken is how many keys of inputs are remembered; programs resend recent inputs.
const mostTaken = 256

// twice reports whether an input with the same key was accepted before, and remembers the key.
func (s *State) twice(b event.Body) bool {
	key := event.Key(b)
	if key == "" {
		return false
	}
	if slices.Contains(s.Taken, key) {
		return true
	}
	if s.Taken = append(s.Taken, key); len(s.Taken) > mostTaken {
		s.Taken = slices.Clone(s.Taken[len(s.Taken)-mostTaken:])
	}
	return false
}

// Took reports whether an input with this key was accepted.
func (s *State) Took(key string) bool { return key != "" && slices.Contains(s.Taken, key) }

func (s *State) said(b event.Said, seq uint64) {
	switch {
	case len(b.Parts) == 0:
		s.goOn()
	case !b.Leads():
		s.steered(words{Parts: b.Parts}, b.Origin)
	case s.Run.Active:
		s.Queue = append(s.Queue, queued{b.Parts, asker(b.Origin), seq})
	default:
		s.begin(words{Parts: b.Parts, Seq: seq}, asker(b.Origin))
	}
}

// asker is an origin as states have it: empty is a person, as digests of old logs have it too.
func asker(o event.Origin) event.Origin {
	if o == event.OriginPerson {
		return ""
	}
	return o
}

// Orders reports whether an input says what to do next, and so begins a run if none is in progress.
func Orders(b event.Body) bool {
	switch b := b.(type) {
	case event.Said:
		return len(b.Parts) == 0 || b.Leads()
	case event.Steered:
		return b.Origin.Leads() && b.By != By
	}
	return false
}

// withdrawn removes a message from the queue.
func (s *State) withdrawn(b event.Withdrawn) {
	s.Queue = slices.DeleteFunc(s.Queue, func(q queued) bool { return q.Seq == b.Of && b.Of > 0 })
	s.Written = slices.DeleteFunc(slices.Clone(s.Written), func(w Written) bool { return w.Seq == b.Of })
}

// begin begins a run with words of the session's principal.
func (s *State) begin(w words, by event.Origin) {
	s.asked(w.Parts.Text(), by)
	s.Run, s.Compaction.Tried = Run{Active: true, New: true}, 0
	s.starts++
	aside := s.Aside
	s.Aside = nil
	w.Person = true
	s.say(append([]words{w}, aside...)...)
}

// asked records the task. A short follow-up such as "yes, do it" is kept with the request before it.
func (s *State) asked(text string, by event.Origin) {
	switch {
	case s.Task == "" || by != s.TaskBy || len(text) > maxFollowUp || strings.Contains(text, "\n"):
		s.Before = ""
	case s.Before == "":
		s.Before = s.Task
	default:
		s.Before += "\n\n" + s.Task
	}
	if head, tail, dropped := tool.Cut(s.Before, maxBefore); dropped > 0 {
		s.Before = head + "\n[...]\n" + tail
	}
	s.Task, s.TaskBy = text, by
}

const (
	maxFollowUp = 100     // bytes of a follow-up to a task
	maxBefore   = 8 << 10 // bytes of the request before it
)

// Asked returns the request: the task, and the request it follows up on, if any.
func (s *State) Asked() string {
	if s.Before == "" {
		return s.Task
	}
	return s.Before + "\n\n" + s.Task
}

// goOn continues the last run after it stopped for any reason but done.
func (s *State) goOn() {
	r := &s.Run
	if r.Active || r.Stopped == nil || r.Stopped.Reason == event.ReasonDone {
		return
	}
	s.Compaction.Tried = 0
	*r = Run{Active: true, New: true, Turn: r.Turn, Seconds: r.Seconds, Route: r.Route, Judged: r.Judged}
	s.starts++
	if n := len(s.Messages); n > 0 && s.Messages[n-1].Role == llm.Assistant {
		s.push(llm.User, llm.Say("Go on."))
	}
}

// Unheard reports whether a message to the idle session waits that no run has begun with, and that was not
// cancelled.
func (s *State) Unheard() bool {
	queued := len(s.Queue) > 0
	if s.Run.Active {
		return s.Run.New && (queued || !s.Run.Cancelled)
	}
	return queued
}

// cancel ends the run as soon as its calls have ended.
func (s *State) cancel() {
	s.Run.Cancelled = s.Run.Active
}

// cancelled interrupts the run. "Time used up" only counts if it is true: the sender may have looked too early.
func (s *State) cancelled(b event.Cancelled) {
	if b.Limit == event.ReasonDone {
		s.Run.Impatient = s.awaitsJobs()
		return
	}
	if b.Limit == event.ReasonRate {
		s.brake(b)
		return
	}
	late := b.Limit == event.ReasonMaxTime
	if late && (s.Run.Cancelled || s.Limits.Seconds == 0 || s.Run.Used() < s.Limits.Seconds) {
		return
	}
	s.cancel()
	s.Run.Late, s.Run.Held = s.Run.Active && late, s.Run.Active && b.All
}

// leave ends the run in a copy of the session, or after a rewind: what was running runs elsewhere, or did, and
// nobody will report its outcome.
func (s *State) leave() {
	s.cancel()
	s.Run.New = false
	s.calls = nil // the phases of calls change
	s.abandon(s.Run.Calls, false)
}

func (s *State) stopped(b event.Stopped) {
	s.Run.Active, s.Run.Stopped = false, &b
	s.Run.Calls, s.Run.Asking = nil, false
	if s.Run.Reply != replyCalls {
		s.Run.Route = "" // no calls are left that this model has reasoned about
	}
	if !s.Run.Held {
		s.unqueue()
	}
}

// unqueue begins a run with the next queued message.
func (s *State) unqueue() {
	if len(s.Queue) == 0 {
		return
	}
	next := s.Queue[0]
	s.Queue = s.Queue[1:]
	s.begin(words{Parts: next.Parts, Seq: next.Seq}, next.By)
}
