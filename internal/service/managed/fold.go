package managed

// The page of the mapping: a client of the Managed Agents wire sees a session as a pure fold over the session's
// log.
//
//   - Each of our events becomes none, one or several of theirs. An id consists of our event's number and an index. So
//     folding the log again yields the same events with the same ids, and those behind any of them.
//   - The message and the thinking of a reply have the number of the request, because previews name them before the reply
//     exists.
//   - A call is emitted when its verdict is known. A call that asks is emitted when it can be answered.
//   - A session is idle while it waits for an answer and nothing runs.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// Event is one of their events.
type Event struct {
	ID     string
	Type   string
	At     time.Time
	Fields map[string]any
}

// MarshalJSON implements [json.Marshaler].
func (e Event) MarshalJSON() ([]byte, error) {
	out := maps.Clone(e.Fields)
	if out == nil {
		out = map[string]any{}
	}
	out["type"] = e.Type
	if e.ID != "" { // previews have no id
		out["id"], out["processed_at"] = e.ID, stamp(e.At)
	}
	return json.Marshal(out)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Kinds of this door's notes in sessions.
const (
	ofUpdate     = "managed.update"     // the session was changed; value: the changed fields
	ofOutcome    = "managed.outcome"    // an outcome was defined
	ofEvaluation = "managed.evaluation" // an outcome was graded

	ofConfirmation = "managed.confirmation" // a worker may make a call that asks
)

// Prefixes of keys of this door's messages.
const (
	systemKey  = "managed.system/"  // a system.message
	outcomeKey = "managed.outcome/" // it belongs to an outcome, which has emitted it already
)

// Fold folds a session's log. Set the exported fields; the rest is state.
type Fold struct {
	Custom  []string // names of the client's tools
	Servers []string // names of the agent's MCP servers
	// Thread and Agent are set for the log of a subagent; empty: it is the session's own.
	Thread, Agent string

	elsewhere bool              // tools of the agent's set run on workers
	handed    map[string]string // these tools with their policies
	confirmed map[string]uint64 // numbers of confirmations, by key

	session  string // of the current event
	seq      uint64 // of the current event
	at       time.Time
	out      []Event
	active   bool   // a run is in progress
	shown    string // last emitted status
	asked    uint64 // number of the open request
	calls    map[string]*call
	running  map[string]bool // calls
	unjudged map[string]bool // calls of the last reply
	open     []question
	told     []string          // ids of the events for which an idle session waits, as emitted
	agents   map[string]string // kinds of subagents, by session
	keys     map[string]bool
	outcomes map[string]*Outcome
	order    []string // of these
}

// call is a call by the model.
type call struct {
	name   string
	args   json.RawMessage
	parent string
	event  string // id of its event; empty: none was emitted yet
	kind   string // of that event
}

// question is an open question.
type question struct {
	Event  string // id of the event that asks
	ID     string // of the question, as in event.Decided
	Seq    uint64
	Custom bool
	child  string
	parent string
	call   bool // it is about a call, and was not raised
	worker bool // a worker answers it
	asks   bool // only after a client has confirmed the call
}

// waits reports whether a client must answer.
func (q question) waits() bool { return !q.worker || q.asks }

// Open returns the question of an event, if it is open.
func (f *Fold) Open(id string) (question, bool) {
	i := slices.IndexFunc(f.open, func(q question) bool { return q.Event == id })
	if i < 0 {
		return question{}, false
	}
	return f.open[i], true
}

// Apply folds a stored event, and returns its form for clients.
func (f *Fold) Apply(e event.Event) []Event {
	if e.Transient() || e.Body == nil {
		return nil
	}
	f.session, f.seq, f.at, f.out = e.Session, e.Seq, e.Time, nil
	if f.calls == nil {
		f.calls, f.running, f.unjudged = map[string]*call{}, map[string]bool{}, map[string]bool{}
		f.agents, f.keys, f.outcomes = map[string]string{}, map[string]bool{}, map[string]*Outcome{}
		f.confirmed = map[string]uint64{}
	}
	if key := event.Key(e.Body); key != "" {
		if f.keys[key] {
			return nil // a duplicate counts once
		}
		f.keys[key] = true
	}
	f.fold(e.Body)
	f.settle()
	return f.out
}

func (f *Fold) fold(body event.Body) {
	switch b := body.(type) {
	case event.Said:
		f.said(b.Parts, cmp.Or(b.Origin, event.OriginPerson), b.Message)
	case event.Steered:
		if b.By != loop.By {
			f.said(b.Parts, b.Origin, b.Message)
		}
	case event.Cancelled:
		f.cancelled(b)
	case event.Asked:
		f.run()
		f.add("span.model_request_start", nil)
		f.asked = f.seq
	case event.Replied:
		f.replied(b)
	case event.Failed:
		f.failed(b)
	case event.Judged, event.Waiting, event.Started, event.Ended:
		f.called(b)
	case event.Decided:
		f.decided(b)
	case event.Raised:
		f.raised(b)
	case event.Spawned:
		f.spawned(b)
	case event.Returned:
		f.returned(b)
	case event.Compacted:
		f.add("agent.thread_context_compacted", nil)
	case event.Stopped:
		f.stopped(b)
	case event.Recorded:
		f.noted(b)
	}
}

// add adds an event with a new id.
func (f *Fold) add(kind string, fields map[string]any) string {
	id := f.id(f.seq, fmt.Sprint(len(f.out)))
	f.put(id, kind, fields)
	return id
}

func (f *Fold) put(id, kind string, fields map[string]any) {
	f.out = append(f.out, Event{ID: id, Type: kind, At: f.at, Fields: fields})
}

// id returns an event id that is unique on this server.
func (f *Fold) id(seq uint64, place string) string {
	return fmt.Sprintf("sevt_%s_%d_%s", f.session, seq, place)
}

// status emits the new status of the session, or of the thread whose log it is.
func (f *Fold) status(is string, fields map[string]any) {
	f.shown = is
	if f.Thread == "" {
		f.add("session.status_"+is, fields)
		return
	}
	if fields == nil {
		fields = map[string]any{}
	}
	fields["session_thread_id"], fields["agent_name"] = f.Thread, f.Agent
	f.add("session.thread_status_"+is, fields)
}

func (f *Fold) idle(reason, details any) {
	f.status(idle, map[string]any{"stop_reason": reason, "stop_details": details})
}

// run emits that the session runs, if it did not.
func (f *Fold) run() {
	if f.active {
		return
	}
	f.active = true
	if f.shown != running {
		f.status(running, nil)
	}
}

func (f *Fold) said(parts llm.Parts, by event.Origin, key string) {
	switch {
	case strings.HasPrefix(key, systemKey):
		f.add("system.message", map[string]any{"content": blocks(parts)})
		return
	case !by.Leads() || len(parts) == 0:
		return
	case !strings.HasPrefix(key, outcomeKey):
		f.add("user.message", map[string]any{"content": blocks(parts)})
	}
	f.run()
}

func (f *Fold) messageID(asked uint64) string  { return f.id(asked, "message") }
func (f *Fold) thinkingID(asked uint64) string { return f.id(asked, "thinking") }

func (f *Fold) replied(b event.Replied) {
	asked := f.asked
	if asked == 0 {
		asked = f.seq // the beginning of the log is missing
	}
	if slices.ContainsFunc(b.Parts, func(p llm.Part) bool { _, is := p.(llm.Reasoning); return is }) {
		f.put(f.thinkingID(asked), "agent.thinking", nil)
	}
	if text := b.Parts.Text(); text != "" {
		f.put(f.messageID(asked), "agent.message", map[string]any{"content": []block{{Type: "text", Text: text}}})
	}
	f.requestEnd(asked, false, b.Usage)
	for _, c := range b.Parts.Calls() {
		f.calls[c.ID] = &call{name: c.Name, args: c.Args}
		f.unjudged[c.ID] = true
	}
}

// requestEnd closes the span of a request.
func (f *Fold) requestEnd(asked uint64, failed bool, u llm.Usage) {
	f.add("span.model_request_end", map[string]any{
		"is_error": failed, "model_request_start_id": f.id(asked, "0"), "model_usage": modelUsage(u),
	})
	f.asked = 0
}

func modelUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

func (f *Fold) failed(b event.Failed) {
	if f.asked != 0 {
		f.requestEnd(f.asked, true, b.Usage)
	}
	status := "exhausted"
	if b.Retry > 0 {
		status = "retrying"
	}
	f.problem(b.Cause, b.Message, status)
}

func (f *Fold) cancelled(b event.Cancelled) {
	if b.Limit != "" {
		return
	}
	f.add("user.interrupt", nil)
	if o := f.outcome(); o != nil && !f.active {
		f.giveUp("interrupted")
		f.idle(map[string]any{"type": "end_turn"}, nil)
	}
}

// problem emits an error.
func (f *Fold) problem(cause llm.Kind, message, retry string) {
	f.add("session.error", problem(cause, message, retry))
}

// problem returns the fields of an error event.
func problem(cause llm.Kind, message, retry string) map[string]any {
	kinds := map[llm.Kind]string{
		llm.KindOverloaded: "model_overloaded_error", llm.KindRateLimited: "model_rate_limited_error", llm.KindBilling: "billing_error",
		llm.KindQuota: "billing_error", "": "unknown_error",
	}
	kind := kinds[cause]
	if kind == "" {
		kind = "model_request_failed_error"
	}
	return map[string]any{"error": map[string]any{
		"type": kind, "message": message, "retry_status": map[string]any{"type": retry},
	}}
}

func (f *Fold) spawned(b event.Spawned) {
	thread := threadPrefix + b.Child
	if _, again := f.agents[b.Child]; !again {
		f.agents[b.Child] = agentName(b.Agent)
		f.add("session.thread_created", map[string]any{
			"session_thread_id": thread, "agent_name": f.agents[b.Child], "workflow_run_id": nil,
		})
	}
	f.add("agent.thread_message_sent", map[string]any{
		"to_session_thread_id": thread, "to_agent_name": f.agents[b.Child], "content": blocks(llm.Say(b.Task)),
	})
	f.add("session.thread_status_running", map[string]any{"session_thread_id": thread, "agent_name": f.agents[b.Child]})
}

func agentName(kind string) string {
	if kind == "" {
		return "agent"
	}
	return kind
}

func (f *Fold) returned(b event.Returned) {
	thread, name := threadPrefix+b.Child, agentName(f.agents[b.Child])
	f.close(func(q question) bool { return q.child == b.Child })
	reason, details := stopReason(b.Reason, b.Detail)
	f.add("session.thread_status_idle", map[string]any{
		"session_thread_id": thread, "agent_name": name, "stop_reason": reason, "stop_details": details,
	})
	f.add("agent.thread_message_received", map[string]any{
		"from_session_thread_id": thread, "from_agent_name": name, "content": blocks(b.Parts),
	})
}

// stopReason returns why a run has stopped, in terms of the wire.
func stopReason(r event.Reason, detail string) (reason, details any) {
	kind := "end_turn"
	switch r {
	case event.ReasonFailed:
		kind = "retries_exhausted"
	case event.ReasonBudget, event.ReasonMaxTokens, event.ReasonMaxTurns, event.ReasonMaxTime, event.ReasonRate:
		kind = "budget_reached"
	case event.ReasonRefused:
		return map[string]any{"type": "refusal"}, map[string]any{"type": "refusal", "category": nil, "explanation": detail}
	}
	return map[string]any{"type": kind}, nil
}

func (f *Fold) stopped(b event.Stopped) {
	if f.asked != 0 { // the request has failed
		f.requestEnd(f.asked, true, llm.Usage{})
	}
	f.active, f.open, f.told = false, nil, nil
	clear(f.running)
	clear(f.unjudged)
	if b.Reason == event.ReasonStuck {
		f.problem("", string(b.Reason)+": "+b.Detail, "terminal")
	}
	switch o := f.outcome(); {
	case o == nil:
	case b.Reason == event.ReasonDone:
		return // its result is graded, which is part of its running
	case b.Reason == event.ReasonCancelled:
		f.giveUp("interrupted")
	default:
		f.giveUp("failed")
	}
	f.idle(stopReason(b.Reason, b.Detail))
}

// settle emits that the session waits for an answer, or is done.
func (f *Fold) settle() {
	if !f.active {
		return
	}
	var ids []string
	for _, q := range f.open {
		if q.waits() {
			ids = append(ids, q.Event)
		}
	}
	switch {
	case len(f.told) > 0 && len(ids) == 0:
		f.told = nil
		f.status(running, nil)
	case len(ids) > 0 && !slices.Equal(ids, f.told) && (len(f.told) > 0 || f.quiet()):
		f.told = ids
		f.idle(map[string]any{"type": "requires_action", "event_ids": ids}, nil)
	}
}

// quiet reports whether nothing runs except calls that wait themselves.
func (f *Fold) quiet() bool {
	if f.asked != 0 || len(f.unjudged) > 0 || slices.ContainsFunc(f.open, func(q question) bool { return !q.waits() }) {
		return false
	}
	for id := range f.running {
		if !slices.ContainsFunc(f.open, func(q question) bool { return q.parent == id || q.child != "" }) {
			return false
		}
	}
	return true
}

// noted folds a note of this door.
func (f *Fold) noted(b event.Recorded) {
	switch b.Of {
	case ofUpdate:
		var said struct{ Agent *agent }
		fields := map[string]any{}
		if json.Unmarshal(b.Value, &fields) == nil && json.Unmarshal(b.Value, &said) == nil {
			f.add("session.updated", fields)
			if said.Agent != nil {
				f.equip(said.Agent)
			}
		}
	case ofOutcome:
		o := &Outcome{}
		if json.Unmarshal(b.Value, o) == nil && f.outcomes[b.ID] == nil {
			o.ID, o.Result = b.ID, "running"
			f.outcomes[b.ID], f.order = o, append(f.order, b.ID)
			f.add("user.define_outcome", o.fields())
		}
	case ofEvaluation:
		f.evaluated(b)
	case ofConfirmation:
		f.allowed(b)
	case ofRefusal:
		f.refused(b.Value)
	}
}
