package loop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// queued is a person's message that came during a run.
type queued struct {
	Parts llm.Parts    `json:"parts"`
	By    event.Origin `json:"by,omitempty"`
	Seq   uint64       `json:"seq,omitempty"` // of the Said event; 0 if an earlier version wrote the snapshot
}

// UnmarshalJSON also accepts the form of version 0.1, which is only the parts.
func (q *queued) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, &q.Parts)
	}
	type plain queued
	return json.Unmarshal(data, (*plain)(q))
}

// maxInputKeys bounds the remembered keys of inputs. It is enough because programs resend only recent inputs.
const maxInputKeys = 256

// isDuplicate reports whether an input with the same key was accepted before, and remembers the key.
func (s *State) isDuplicate(b event.Body) bool {
	key := Key(b)
	if key == "" {
		return false
	}
	if slices.Contains(s.InputKeys, key) {
		return true
	}
	if s.InputKeys = append(s.InputKeys, key); len(s.InputKeys) > maxInputKeys {
		s.InputKeys = slices.Clone(s.InputKeys[len(s.InputKeys)-maxInputKeys:])
	}
	return false
}

// HasInput reports whether an input with this key was accepted before.
func (s *State) HasInput(key string) bool { return key != "" && slices.Contains(s.InputKeys, key) }

func (s *State) said(b event.Said, seq uint64) {
	switch {
	case len(b.Parts) == 0:
		s.continueRun()
	case !b.Leads():
		s.deliver(message{Parts: b.Parts}, b.Origin)
	case s.Run.Active:
		s.Queue = append(s.Queue, queued{b.Parts, storedOrigin(b.Origin), seq})
	default:
		s.beginRun(message{Parts: b.Parts, Seq: seq}, storedOrigin(b.Origin))
	}
}

// storedOrigin returns an origin in the form of the state, in which empty means a person, as in old snapshots.
func storedOrigin(o event.Origin) event.Origin {
	if o == event.OriginPerson {
		return ""
	}
	return o
}

// BeginsRun reports whether an input begins or continues a run if none is in progress.
func BeginsRun(b event.Body) bool {
	switch b := b.(type) {
	case event.Said:
		return len(b.Parts) == 0 || b.Leads()
	case event.Steered:
		return b.Origin.Leads() && b.By != By
	}
	return false
}

// beginRun begins a run with a message of the person or the lead.
func (s *State) beginRun(m message, by event.Origin) {
	s.recordTask(m.Parts.Text(), by)
	s.Run, s.Compaction.Tried = Run{Active: true, Unclaimed: true}, 0
	s.starts++
	aside := s.NextMessage
	s.NextMessage = nil
	m.Person = true
	s.addMessages(append([]message{m}, aside...)...)
}

// recordTask records the request. With a short follow-up such as "yes, do it", the earlier request is kept too.
func (s *State) recordTask(task string, by event.Origin) {
	switch {
	case s.Task == "" || by != s.TaskBy || len(task) > maxFollowUp || strings.Contains(task, "\n"):
		s.EarlierTask = ""
	case s.EarlierTask == "":
		s.EarlierTask = s.Task
	default:
		s.EarlierTask += "\n\n" + s.Task
	}
	if head, tail, dropped := text.CutMiddle(s.EarlierTask, maxBefore); dropped > 0 {
		s.EarlierTask = head + "\n[...]\n" + tail
	}
	s.Task, s.TaskBy = task, by
}

const (
	maxFollowUp = 100     // bytes of a follow-up to a task
	maxBefore   = 8 << 10 // bytes of the request before it
)

// Asked returns the task, after the request that it follows up on, if any.
func (s *State) Asked() string {
	if s.EarlierTask == "" {
		return s.Task
	}
	return s.EarlierTask + "\n\n" + s.Task
}

// continueRun continues the last run after it stopped for any reason but done.
func (s *State) continueRun() {
	r := &s.Run
	if r.Active || r.Stopped == nil || r.Stopped.Reason == event.ReasonDone {
		return
	}
	s.Compaction.Tried = 0
	*r = Run{Active: true, Unclaimed: true, Turn: r.Turn, Seconds: r.Seconds, Route: r.Route, Category: r.Category}
	s.starts++
	if n := len(s.Messages); n > 0 && s.Messages[n-1].Role == llm.Assistant {
		s.push(llm.User, llm.Say("Go on."))
	}
}

// HasUnstartedInput reports whether a driver is needed because of an input: a message is queued, or began a run that
// no driver has claimed and no one has cancelled.
func (s *State) HasUnstartedInput() bool {
	queued := len(s.Queue) > 0
	if s.Run.Active {
		return s.Run.Unclaimed && (queued || !s.Run.Cancelled)
	}
	return queued
}

// cancel makes the run end as soon as its calls have ended.
func (s *State) cancel() {
	s.Run.Cancelled = s.Run.Active
}

// cancelled interrupts the run. A sender that says the time is used up may have checked too early, so that only
// counts if it is true.
func (s *State) cancelled(b event.Cancelled) {
	if b.Limit == event.ReasonDone {
		s.Run.JobsTimedOut = s.awaitsJobs()
		return
	}
	if b.Limit == event.ReasonRate {
		s.stopByBreaker(b)
		return
	}
	timeUp := b.Limit == event.ReasonMaxTime
	if timeUp && (s.Run.Cancelled || s.Limits.Seconds == 0 || s.Run.Used() < s.Limits.Seconds) {
		return
	}
	s.cancel()
	s.Run.OutOfTime, s.Run.QueueHeld = s.Run.Active && timeUp, s.Run.Active && b.All
}

// abandonRun cancels the run of a forked or rewound session. Its running calls belong to the original, so this
// session will never learn their outcome.
func (s *State) abandonRun() {
	s.cancel()
	s.Run.Unclaimed = false
	s.calls = nil // the phases of calls change
	s.loseCalls(s.Run.Calls, false)
}

func (s *State) stopped(b event.Stopped) {
	s.Run.Active, s.Run.Stopped = false, &b
	s.Run.Calls, s.Run.Asking = nil, false
	if s.Run.Reply != replyCalls {
		s.Run.Route = "" // the next request need not go to the model that made the calls
	}
	if !s.Run.QueueHeld {
		s.beginQueued()
	}
}

// beginQueued begins a run with the next queued message.
func (s *State) beginQueued() {
	if len(s.Queue) == 0 {
		return
	}
	next := s.Queue[0]
	s.Queue = s.Queue[1:]
	s.beginRun(message{Parts: next.Parts, Seq: next.Seq}, next.By)
}
