// Package loop is the agent's loop as a pure fold: [State.Apply] adds an event, [State.Next] names the next action.
// It has no effects, reads no clock and knows no tool by name, so the same log gives the same state and the same
// next request on every machine, every time.
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
	event.Taint // whether the conversation holds untrusted or private text
	derived
}

// Apply folds one event into the state. An event that doesn't fit, such as the end of an unknown call, changes
// nothing. Apply returns an error if a snapshot can't be read, or if only a later version understands the event.
//
// The methods that it calls are named like their events.
func (s *State) Apply(e event.Event) error {
	if e.Transient() {
		return nil
	}
	if err := event.Understood(e); err != nil {
		return err
	}
	if s.isDuplicate(e.Body) {
		s.Seq, s.At = e.Seq, e.Time
		return nil
	}
	s.addTime(e)
	s.trackCache(e)
	switch b := e.Body.(type) {
	case event.Opened:
		s.Session, s.Agent, s.Root, s.Cwd, s.Levers, s.Within, s.Corpus = e.Session, b.Agent, b.Root, b.Root, b.Levers, b.Traceparent, b.Corpus
	case event.Tasked:
		s.tainted(b.Taint)
		s.Tasks = s.Tasks.After(s.Session, e)
	case event.Forked:
		s.Session, s.Within, s.Tasks = e.Session, "", s.Tasks.After(s.Session, e)
		s.Run.Asking, s.Granted = false, nil // approvals were for the original session
		s.loseSteps()
		s.dropBackground()
		s.abandonRun()
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
		s.Queue = slices.DeleteFunc(s.Queue, func(q queued) bool { return q.Seq == b.Of && b.Of > 0 })
		s.WrittenTools = slices.DeleteFunc(slices.Clone(s.WrittenTools), func(w Written) bool { return w.Seq == b.Of })
	case event.Steered:
		s.tainted(b.Taint)
		s.recordSteer(b)
		if b.Origin == event.OriginAgent {
			s.deliverArrival(b.By, b.Parts)
			break
		}
		s.deliver(message{Parts: b.Parts, Person: BeginsRun(b), Seq: e.Seq}, storedOrigin(b.Origin))
		if slices.Contains(b.Why, WhyArrived) {
			s.admitArrivals(true)
		}
	case event.Cancelled:
		s.cancelled(b)
	case event.Claimed:
		s.claimed(b)
	case event.Asked:
		s.Run.Asking, s.Run.Unclaimed, s.Run.Turn = true, false, b.Turn
	case event.Replied:
		s.replied(b, e.Seq, e.Time)
	case event.Routed:
		s.ReportedWindow, s.PrivateText = b.Window, cmp.Or(b.Private, s.PrivateText)
		s.Run.Category = cmp.Or(b.Judged, s.Run.Category)
		s.Total.Usage = s.Total.Usage.Add(b.Usage)
		s.Total.Cost += b.Cost
	case event.Failed:
		s.failed(b, e.Time)
	case event.Healed:
		s.Messages, _ = healed(s.Messages, b.Level)
		s.CallsDropped = s.CallsDropped || b.Level == HealCalls
		s.Run.Failed, s.index = nil, messageIndex{}
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
		if s.Run.Active {
			s.Run.Paused = &b
		}
	case event.StepStarted, event.StepEnded:
		s.stepped(e)
	case event.Stopped:
		s.stopped(b)
	case event.Compact:
		s.Compaction.Wanted = &b
	case event.Kept:
		s.kept(b)
	case event.Compacted:
		return s.restoreSnapshot(e, b.Snapshot)
	case event.Rewound:
		return s.restoreSnapshot(e, b.Snapshot)
	case event.Restored:
		s.restored(b)
	case event.Workspace:
		s.Workspace = b
	}
	s.Seq, s.At = e.Seq, e.Time
	s.derive()
	return nil
}

// derive updates the fields that are computed from others.
func (s *State) derive() {
	s.index.update(s.Messages)
	// Run.Calls may be another list than before.
	calls, t := s.Run.Calls, s.calls
	switch {
	case len(calls) == 0:
		s.calls = nil
	case t == nil || len(t.calls) != len(calls) || &t.calls[0] != &calls[0]:
		s.calls = newTable(calls)
	}
}

// restoreSnapshot replaces the state with a snapshot.
func (s *State) restoreSnapshot(e event.Event, snapshot json.RawMessage) error {
	var base State
	if err := json.Unmarshal(snapshot, &base); err != nil {
		return fmt.Errorf("snapshot at event %d: %w", e.Seq, err)
	}
	base.starts = s.starts
	events := make([]uint64, len(base.Person)) // earlier versions recorded none
	copy(events, base.Events)
	base.Events = events
	*s = base
	s.Seq, s.At, s.CallsDropped = e.Seq, e.Time, true
	s.derive()
	return nil
}

// Rewound returns the event that takes the conversation back to an earlier state. It keeps the current usage and
// settings. Unless files were restored as well, it keeps the record of the work too.
func (s *State) Rewound(to *State, files bool) (event.Rewound, error) {
	next := *to
	if to.Session != s.Session { // to is from before a fork
		next.Granted = nil
	}
	if !files {
		next.Work = s.Work
	}
	next.Session, next.Epoch, next.Title, next.Total = s.Session, s.Epoch, s.Title, s.Total
	next.Children, next.Shared, next.Background, next.InputKeys = s.Children, s.Shared, s.Background, s.InputKeys
	next.Tools, next.Route, next.Effort, next.Mode, next.Limits, next.Window = s.Tools, s.Route, s.Effort, s.Mode, s.Limits, s.Window
	next.Folders, next.Retold = s.Folders, "" // the message with the tools may be gone
	next.Untrusted, next.Private = s.Untrusted || to.Untrusted, s.Private || to.Private
	next.Run.Asking, next.Queue, next.Workspace = false, nil, s.Workspace
	next.Run.Calls = slices.Clone(next.Run.Calls)
	next.abandonRun()
	snapshot, err := next.Snapshot()
	return event.Rewound{To: to.Seq, Of: s.Seq, Snapshot: snapshot}, err
}

// restored tells the model which files a person restored. The text is part of the fold and must not change.
func (s *State) restored(b event.Restored) {
	if len(b.Files) == 0 || len(s.Messages) == 0 || s.Run.Active {
		return
	}
	changed := slices.DeleteFunc(slices.Clone(b.Files), func(path string) bool { return slices.Contains(b.Removed, path) })
	var said []string
	if len(changed) > 0 {
		said = append(said, "The person has put these files back to an earlier state: "+strings.Join(changed, ", ")+
			". Read them again before you go on.")
	}
	if len(b.Removed) > 0 {
		said = append(said, "The person has removed these files again: "+strings.Join(b.Removed, ", ")+".")
	}
	s.push(llm.User, llm.Say("["+strings.Join(said, " ")+"]"))
}

// Request returns the next request to the model. It depends on the state alone. Unless the conversation is replaced,
// each request of a session starts with the previous one.
func (s *State) Request() llm.Request {
	turns := s.Run.Turn
	if s.Run.Asking {
		turns-- // the current turn has not ended
	}
	return llm.Request{
		System:   s.System,
		Tools:    s.Tools,
		Messages: s.Messages,
		Effort:   s.Effort,
		Session:  s.Session,
		Pin:      s.Run.Route,
		Private:  s.PrivateText,
		Work: llm.Work{ // for a router, which chooses among models
			Person: s.Person, Turns: max(turns, 0), Files: len(s.Run.ChangedFiles), Failing: s.Run.FailedCalls, Again: s.Run.Repeats.Most,
			Useless: s.Run.Nudges, Judged: s.Run.Category, Cut: s.Compaction.Tried > 0,
		},
	}
}

// Snapshot returns the state as the Snapshot of a Compacted event.
func (s *State) Snapshot() (json.RawMessage, error) { return json.Marshal(s) }

func (s *State) added(b event.Added) {
	s.tainted(b.Taint)
	if b.Where == event.PlaceSystem {
		s.System, s.Sources, s.index = append(s.System, b.Text), append(s.Sources, b.Source), messageIndex{}
		return
	}
	s.AddedSources = append(s.AddedSources, b.Source)
	s.deliver(message{Parts: llm.Say(b.Text)}, event.OriginHarness)
}

func (s *State) switched(b event.Switched) {
	if b.Route != "" {
		s.Route, s.ReportedWindow = b.Route, 0
		s.Run.NotBefore, s.Run.WaitCause, s.Run.Paused = time.Time{}, "", nil // the wait was for the old model
	}
	if b.Effort != "" {
		s.Effort = b.Effort
	}
	if b.Mode != "" {
		s.Mode = b.Mode
	}
	if b.Tools != nil {
		s.Tools, s.Retold, s.index = b.Tools, "", messageIndex{}
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
		s.Window, s.ReportedWindow, s.Compaction.Wait = *b.Window, 0, 0
	}
}

// setFolders changes the additional folders. The system prompt names the initial ones, so the model gets a message
// about changes. The text is part of the fold and must not change.
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
		s.deliver(message{Parts: llm.Say("[" + strings.Join(said, " ") + "]")}, event.OriginHarness)
	}
}

// hooked folds in the outcome of a hook.
func (s *State) hooked(b event.Hooked) {
	if b.Moment == tool.PromptSaid {
		s.Run.UnseenText = ""
		if b.Action == tool.Deny {
			s.cancel()
			s.Run.HookDenial = b.By + ": " + b.Reason
		}
	}
	if b.Text == "" {
		return
	}
	m := message{Parts: llm.Say(b.Text)}
	if !s.Run.Active {
		s.NextMessage = append(s.NextMessage, m)
		return
	}
	if b.Moment == tool.RunStop {
		s.Run.HookRounds++
	}
	s.deliver(m, event.OriginHook)
}

// deliver passes a message to the model at the next opportunity. Without a run, a message of the person or the lead
// begins one, and other messages wait for the person's next message.
func (s *State) deliver(m message, by event.Origin) {
	switch {
	case !s.Run.Active && m.Person:
		s.beginRun(m, by)
	case !s.Run.Active:
		s.NextMessage = append(s.NextMessage, m)
	case s.Run.Asking || len(s.Run.Calls) > 0:
		s.Run.Steer = append(s.Run.Steer, m)
	default:
		s.Run.Reply = replyNone
		s.addMessages(m)
	}
}

// claimed cleans up after the previous driver and records the settings of the new one.
func (s *State) claimed(b event.Claimed) {
	s.Epoch, s.Unattended, s.Keeps, s.NoKeep = b.Epoch, b.Unattended, b.Keeps, b.NoKeep
	s.Run.Asking, s.Run.QueueHeld = false, false
	s.loseSteps()
	if !s.Run.Active {
		s.beginQueued()
	}
	s.Run.Unclaimed = false
	s.calls = nil // the phases of calls change
	s.loseCalls(s.Run.Calls, true)
	if len(s.Run.Calls) == 0 {
		s.flushSteer()
	}
}

// maxRetrySeconds bounds the wait that an event may ask for.
const maxRetrySeconds = 1e9

// failed records a failed request. If it is to be retried, the state holds the time and the cause, so any driver
// retries it, even after a restart.
func (s *State) failed(b event.Failed, at time.Time) {
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	if b.Retry > 0 {
		s.Run.NotBefore, s.Run.WaitCause = at.Add(time.Duration(min(b.Retry, maxRetrySeconds)*float64(time.Second))), b.Cause
		return
	}
	s.Run.Asking = false
	s.Run.Failed = &b
	if s.overflowed() && b.Limit > 0 {
		s.ReportedWindow = b.Limit
	}
	s.flushSteer()
}

// HasTool reports whether the model knows a tool.
func (s *State) HasTool(name string) bool {
	return slices.ContainsFunc(s.Tools, func(t llm.ToolSpec) bool { return t.Name == name })
}

// push appends a message to the conversation. Existing messages only change when Healed, Pruned, Compacted or Rewound
// events replace them.
func (s *State) push(role llm.Role, parts llm.Parts) {
	s.Messages = append(s.Messages, llm.Message{Role: role, Parts: parts})
}

func (s *State) flushSteer() {
	if len(s.Run.Steer) > 0 {
		s.Run.Reply = replyNone
	}
	steer := s.Run.Steer
	s.Run.Steer = nil
	s.addMessages(steer...)
}

// blank reports whether parts hold no call and no text except white space.
func blank(parts llm.Parts) bool {
	return len(parts.Calls()) == 0 && strings.TrimSpace(parts.Text()) == ""
}
