// Package loop is the agent's loop as a pure fold: [State.Apply] takes what
// happened, [State.Next] says what must happen now. It performs no effect,
// reads no clock and knows no tool by name, so the same log gives the same
// state and the same next request on every machine, every time.
//
//	said ─► Ask ─► replied ─┬─ no calls ─► Stop
//	         ▲              └─ calls ─► Judge ─► (Wait) ─► Run ─► ended ─┐
//	         └────────────────────────────────────────────────────────────┘
package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// State is everything known about a session, folded from its events. Its JSON form is the snapshot in a
// Compacted event.
//
// The zero value is the state of an empty log. It is not safe for concurrent use.
type State struct {
	Identity
	Setup
	Conversation
	Run Run `json:"run"`
	Knowledge
	Children []Child      `json:"children,omitempty"`
	Levers   event.Levers `json:"levers,omitzero"`
	Background
	Shared
	Total Total `json:"total"`
	Work  Work  `json:"work"`
	Context
	Claim
	event.Taint // kinds of text in the conversation
	derived
}

// Apply folds one event into the state. Events that don't fit, such as the end of a call that nobody made,
// change nothing. Apply returns an error if a snapshot can't be read, or if only a later version understands
// the event.
func (s *State) Apply(e event.Event) error {
	if e.Transient() {
		return nil
	}
	if err := event.Understood(e); err != nil {
		return err
	}
	if s.twice(e.Body) {
		s.Seq, s.At = e.Seq, e.Time
		return nil
	}
	s.pass(e)
	s.cools(e)
	switch b := e.Body.(type) {
	case event.Opened:
		s.Session, s.Agent, s.Root, s.Cwd, s.Levers, s.Within, s.Corpus = e.Session, b.Agent, b.Root, b.Root, b.Levers, b.Traceparent, b.Corpus
	case event.Tasked:
		s.tainted(b.Taint)
		s.Tasks = s.Tasks.After(s.Session, e)
	case event.Forked:
		s.Session, s.Within, s.Tasks = e.Session, "", s.Tasks.After(s.Session, e)
		s.Run.Asking, s.Granted = false, nil // approvals were for the original session
		s.strand()
		s.disown()
		s.leave()
	case event.Moved:
		if rel, err := filepath.Rel(s.Root, s.Cwd); err == nil && filepath.IsLocal(rel) {
			s.Cwd = filepath.Join(b.Root, rel)
		}
		s.Root = b.Root
	case event.Titled:
		s.Title = b.Title
	case event.Added:
		s.added(b)
	case event.Switched:
		s.switched(b)
	case event.Said:
		s.tainted(b.Taint)
		s.said(b, e.Seq)
	case event.Withdrawn:
		s.withdrawn(b)
	case event.Steered:
		s.tainted(b.Taint)
		s.told(b)
		if b.Origin == event.OriginAgent {
			s.arrived(b.By, b.Parts)
			break
		}
		s.steered(words{Parts: b.Parts, Person: Orders(b), Seq: e.Seq}, b.Origin)
		if slices.Contains(b.Why, event.WhyArrived) {
			s.admit(true)
		}
	case event.Cancelled:
		s.cancelled(b)
	case event.Claimed:
		s.claimed(b)
	case event.Asked:
		s.Run.Asking, s.Run.New, s.Run.Turn = true, false, b.Turn
	case event.Replied:
		s.replied(b, e.Seq, e.Time)
	case event.Routed:
		s.Bound, s.Confided = b.Window, cmp.Or(b.Private, s.Confided)
		s.Run.Judged = cmp.Or(b.Judged, s.Run.Judged)
		s.Total.Usage = s.Total.Usage.Add(b.Usage)
		s.Total.Cost += b.Cost
	case event.Failed:
		s.failed(b, e.Time)
	case event.Healed:
		s.heal(b)
	case event.Hooked:
		s.hooked(b)
	case event.Pruned:
		s.prune(b)
	case event.Judged, event.Waiting, event.Decided, event.Wanted, event.Started, event.Ended:
		s.called(e)
	case event.Finished:
		s.finished(b)
	case event.Spawned:
		s.spawned(b)
	case event.Raised:
		s.raised(Question{b, e.Seq})
	case event.Returned:
		s.returned(b)
		s.Tasks = s.Tasks.After(s.Session, e)
	case event.Paused:
		s.paused(b)
	case event.StepStarted, event.StepEnded:
		s.stepped(e)
	case event.Stopped:
		s.stopped(b)
	case event.Compact:
		s.Compaction.Wanted = &b
	case event.Kept:
		s.kept(b)
	case event.Compacted:
		return s.become(e, b.Snapshot)
	case event.Rewound:
		return s.become(e, b.Snapshot)
	case event.Restored:
		s.restored(b)
	case event.Workspace:
		s.Workspace = b
	}
	s.Seq, s.At = e.Seq, e.Time
	s.derive()
	return nil
}

// derive updates the fields that follow from others.
func (s *State) derive() {
	s.sight.look(s.Messages)
	s.tabulate()
}

// tabulate makes a new table if the last reply has other calls than before.
func (s *State) tabulate() {
	switch {
	case len(s.Run.Calls) == 0:
		s.calls = nil
	case !s.calls.of(s.Run.Calls):
		s.calls = newTable(s.Run.Calls)
	}
}

// become replaces the state with a snapshot.
func (s *State) become(e event.Event, snapshot json.RawMessage) error {
	var base State
	if err := json.Unmarshal(snapshot, &base); err != nil {
		return fmt.Errorf("snapshot at event %d: %w", e.Seq, err)
	}
	base.starts = s.starts
	events := make([]uint64, len(base.Person)) // an earlier version recorded none
	copy(events, base.Events)
	base.Events = events
	*s = base
	s.Seq, s.At, s.Lacks = e.Seq, e.Time, true
	s.derive()
	return nil
}

// Rewound returns the event that takes the conversation back to an earlier state. Consumption is kept, and so
// are the current settings. What is known of the work is kept too, unless files were restored as well.
func (s *State) Rewound(to *State, files bool) (event.Rewound, error) {
	next := *to
	if to.Session != s.Session { // to is from before a fork
		next.Granted = nil
	}
	if !files {
		next.Work = s.Work
	}
	next.Session, next.Epoch, next.Title, next.Total = s.Session, s.Epoch, s.Title, s.Total
	next.Children, next.Shared, next.Background, next.Taken = s.Children, s.Shared, s.Background, s.Taken
	next.Tools, next.Route, next.Effort, next.Mode, next.Limits, next.Window = s.Tools, s.Route, s.Effort, s.Mode, s.Limits, s.Window
	next.Folders, next.Retold = s.Folders, "" // the message may be gone
	next.Untrusted, next.Private = s.Untrusted || to.Untrusted, s.Private || to.Private
	next.Run.Asking, next.Queue, next.Workspace = false, nil, s.Workspace
	next.Run.Calls = slices.Clone(next.Run.Calls)
	next.leave()
	snapshot, err := next.Snapshot()
	return event.Rewound{To: to.Seq, Of: s.Seq, Snapshot: snapshot}, err
}

// restored tells the model about files that were restored, if it knows them.
func (s *State) restored(b event.Restored) {
	if len(b.Files) == 0 || len(s.Messages) == 0 || s.Run.Active {
		return
	}
	back := slices.DeleteFunc(slices.Clone(b.Files), func(path string) bool { return slices.Contains(b.Removed, path) })
	var said []string
	if len(back) > 0 {
		said = append(said, "The person has put these files back to an earlier state: "+strings.Join(back, ", ")+
			". Read them again before you go on.")
	}
	if len(b.Removed) > 0 {
		said = append(said, "The person has removed these files again: "+strings.Join(b.Removed, ", ")+".")
	}
	s.push(llm.User, llm.Say("["+strings.Join(said, " ")+"]"))
}

// Request returns the next request to the model. It depends on the state alone, and each request of a session
// starts with the one before it.
func (s *State) Request() llm.Request {
	return llm.Request{
		System:   s.System,
		Tools:    s.Tools,
		Messages: s.Messages,
		Effort:   s.Effort,
		Session:  s.Session,
		Pin:      s.Run.Route,
		Private:  s.Confided,
		Work:     s.work(),
	}
}

// Snapshot returns the state as the Snapshot of a Compacted event.
func (s *State) Snapshot() (json.RawMessage, error) { return json.Marshal(s) }

func (s *State) added(b event.Added) {
	s.tainted(b.Taint)
	if b.Where == event.PlaceSystem {
		s.System, s.Sources, s.sight = append(s.System, b.Text), append(s.Sources, b.Source), sight{}
		return
	}
	s.Noted = append(s.Noted, b.Source)
	s.steered(words{Parts: llm.Say(b.Text)}, event.OriginHarness)
}

func (s *State) switched(b event.Switched) {
	if b.Route != "" {
		s.Route, s.Bound = b.Route, 0
		s.Run.NotBefore, s.Run.Awaits, s.Run.Paused = time.Time{}, "", nil // the wait was for another model
	}
	if b.Effort != "" {
		s.Effort = b.Effort
	}
	if b.Mode != "" {
		s.Mode = b.Mode
	}
	if b.Tools != nil {
		s.Tools, s.Retold, s.sight = b.Tools, "", sight{}
	}
	if b.Retold != "" {
		s.Retold = b.Retold
	}
	if b.Limits != nil {
		s.Limits = *b.Limits
	}
	if b.Folders != nil {
		s.setFolders(b.Folders)
	}
	if b.Window != nil && *b.Window != s.Window {
		s.Window, s.Bound, s.Compaction.Wait = *b.Window, 0, 0
	}
}

// setFolders changes the additional folders. The system prompt names the initial ones; later changes are told
// to the model.
func (s *State) setFolders(folders []string) {
	before := s.Folders
	s.Folders = slices.Clone(folders)
	var said []string
	for _, list := range []struct {
		now, of []string
		text    string
	}{
		{folders, before, "The person has opened these folders to the session; tools and commands may use them as the workspace, by absolute paths: "},
		{before, folders, "These folders are closed to the session again: "},
	} {
		changed := slices.DeleteFunc(slices.Clone(list.now), func(dir string) bool { return slices.Contains(list.of, dir) })
		if len(changed) > 0 {
			said = append(said, list.text+strings.Join(changed, ", ")+".")
		}
	}
	if len(said) > 0 && len(s.Messages) > 0 {
		s.steered(words{Parts: llm.Say("[" + strings.Join(said, " ") + "]")}, event.OriginHarness)
	}
}

// hooked applies the outcome of a hook.
func (s *State) hooked(b event.Hooked) {
	if b.Moment == tool.PromptSaid {
		s.Run.Heard = ""
		if b.Action == tool.Deny {
			s.cancel()
			s.Run.Denied = b.By + ": " + b.Reason
		}
	}
	if b.Text == "" {
		return
	}
	w := words{Parts: llm.Say(b.Text)}
	if !s.Run.Active {
		s.Aside = append(s.Aside, w)
		return
	}
	if b.Moment == tool.RunStop {
		s.Run.Rounds++
	}
	s.steered(w, event.OriginHook)
}

// steered passes words to the model at the next opportunity. Without a run, only words of the session's
// principal begin one.
func (s *State) steered(w words, by event.Origin) {
	switch {
	case !s.Run.Active && w.Person:
		s.begin(w, by)
	case !s.Run.Active:
		s.Aside = append(s.Aside, w)
	case s.Run.Asking || len(s.Run.Calls) > 0:
		s.Run.Steer = append(s.Run.Steer, w)
	default:
		s.Run.Reply = replyNone
		s.say(w)
	}
}

// claimed cleans up after the previous driver.
func (s *State) claimed(b event.Claimed) {
	s.Epoch, s.Unattended, s.Keeps, s.NoKeep = b.Epoch, b.Unattended, b.Keeps, b.NoKeep
	s.Run.Asking, s.Run.Held = false, false
	s.strand()
	if !s.Run.Active {
		s.unqueue()
	}
	s.Run.New = false
	s.calls = nil // the phases of calls change
	s.abandon(s.Run.Calls, true)
	if len(s.Run.Calls) == 0 {
		s.flushSteer()
	}
}

// longestRetry bounds the seconds that are read from an event.
const longestRetry = 1e9

// failed records how long to wait and why. Any driver asks again when that time comes, also after a restart. A
// driver with less patience need not wait.
func (s *State) failed(b event.Failed, at time.Time) {
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	if b.Retry > 0 {
		s.Run.NotBefore, s.Run.Awaits = at.Add(time.Duration(min(b.Retry, longestRetry)*float64(time.Second))), b.Cause
		return
	}
	s.Run.Asking = false
	s.Run.Failed = &b
	if s.overflowed() && b.Limit > 0 {
		s.Bound = b.Limit
	}
	s.flushSteer()
}

// HasTool reports whether the model was told about a tool.
func (s *State) HasTool(name string) bool {
	return slices.ContainsFunc(s.Tools, func(t llm.ToolSpec) bool { return t.Name == name })
}

// push appends a message to the conversation. Existing messages never change, except when Healed, Pruned or
// Compacted replace them.
func (s *State) push(role llm.Role, parts llm.Parts) {
	s.Messages = append(s.Messages, llm.Message{Role: role, Parts: parts})
}

func (s *State) flushSteer() {
	if len(s.Run.Steer) > 0 {
		s.Run.Reply = replyNone
	}
	steer := s.Run.Steer
	s.Run.Steer = nil
	s.say(steer...)
}

// blank reports whether parts hold nothing to send: no call, and no text except white space.
func blank(parts llm.Parts) bool {
	return len(parts.Calls()) == 0 && strings.TrimSpace(parts.Text()) == ""
}
