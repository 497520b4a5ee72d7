package managed

// The page of the mapping: a client of the Managed Agents wire sees a session as a pure function of the session's
// log. The transcript's fold describes the session; this one gives it the form of the wire.
//
//   - Each of our events becomes none, one or several of theirs. An id consists of our event's number and an index. So
//     folding the log again yields the same events with the same ids, and those after any of them.
//   - The message and the thinking of a reply have the number of the request, because previews name them before the reply
//     exists.
//   - A call is emitted when its verdict is known. A call that asks is emitted when it can be answered.
//   - A session is idle while it waits for an answer and nothing runs.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
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
	// Thread and Agent are set for the log of a subagent; empty means it is the session's own.
	Thread, Agent string

	elsewhere bool              // tools of the agent's set run on workers
	handed    map[string]string // these tools with their policies
	confirmed map[string]uint64 // numbers of confirmations, by key

	transcript transcript.Fold
	session    string // of the current event
	seq        uint64 // of the current event
	at         time.Time
	out        []Event
	shown      string // last emitted status
	asked      uint64 // number of the open request
	calls      map[*transcript.Call]shownCall
	open       []question
	told       []string          // ids of the events for which an idle session waits, as emitted
	agents     map[string]string // kinds of subagents, by session
	outcomes   map[string]*Outcome
	order      []string // of these
}

// Apply folds a stored event, and returns its form for clients.
func (f *Fold) Apply(e event.Event) []Event {
	if e.Transient() || e.Body == nil {
		return nil
	}
	f.session, f.seq, f.at, f.out = e.Session, e.Seq, e.Time, nil
	if f.calls == nil {
		f.calls, f.agents = map[*transcript.Call]shownCall{}, map[string]string{}
		f.outcomes, f.confirmed = map[string]*Outcome{}, map[string]uint64{}
	}
	for _, item := range f.transcript.Apply(e) {
		f.item(item, loop.Key(e.Body))
	}
	switch b := e.Body.(type) { // these are no items
	case event.Asked:
		f.run()
		f.add("span.model_request_start", nil)
		f.asked = f.seq
	case event.Failed:
		f.failed(b)
	case event.Recorded:
		f.noted(b)
	}
	f.settle()
	return f.out
}

// item emits the news about an item, if the wire has a form for them. Key is that of the current event.
func (f *Fold) item(item transcript.Item, key string) {
	switch i := item.(type) {
	case *transcript.Said:
		if i.Seq == f.seq && (!i.Steered || i.By != loop.By) { // else it was emitted when it was said
			f.said(i, key)
		}
	case *transcript.Reply:
		if i.State == transcript.Whole {
			f.replied(i)
		}
	case *transcript.Call:
		f.call(i)
	case *transcript.Question:
		f.question(i)
	case *transcript.Child:
		if i.Returned == nil {
			f.spawned(i.Spawned)
		} else {
			f.returned(*i.Returned)
		}
	case *transcript.Stop:
		f.stopped(i.Stopped)
	case *transcript.Note:
		switch b := i.Of.(type) {
		case event.Cancelled:
			f.cancelled(b)
		case event.Compacted:
			f.add("agent.thread_context_compacted", nil)
		}
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

// run emits that the session runs, unless that is known, or it waits for an answer.
func (f *Fold) run() {
	if f.shown != running && len(f.told) == 0 {
		f.status(running, nil)
	}
}

func (f *Fold) said(s *transcript.Said, key string) {
	switch {
	case strings.HasPrefix(key, systemKey):
		f.add("system.message", map[string]any{"content": blocks(s.Parts)})
		return
	case !s.Origin.Leads():
		return
	case !strings.HasPrefix(key, outcomeKey):
		f.add("user.message", map[string]any{"content": blocks(s.Parts)})
	}
	f.run()
}

func (f *Fold) messageID(asked uint64) string  { return f.id(asked, "message") }
func (f *Fold) thinkingID(asked uint64) string { return f.id(asked, "thinking") }

func (f *Fold) replied(r *transcript.Reply) {
	asked := f.asked
	if asked == 0 {
		asked = f.seq // the beginning of the log is missing
	}
	if slices.ContainsFunc(r.Parts, func(p llm.Part) bool { _, is := p.(llm.Reasoning); return is }) {
		f.put(f.thinkingID(asked), "agent.thinking", nil)
	}
	if r.Text != "" {
		f.put(f.messageID(asked), "agent.message", map[string]any{"content": []block{{Type: "text", Text: r.Text}}})
	}
	f.requestEnd(asked, false, r.Usage)
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
	if o := f.outcome(); o != nil && !f.transcript.Run.Busy {
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
	reason, details := stopReason(b.Reason, b.Detail)
	f.add("session.thread_status_idle", map[string]any{
		"session_thread_id": thread, "agent_name": name, "stop_reason": reason, "stop_details": details,
	})
	f.add("agent.thread_message_received", map[string]any{
		"from_session_thread_id": thread, "from_agent_name": name, "content": blocks(b.Parts),
	})
}

// stopReason returns the reason why a run has stopped, in terms of the wire.
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
	f.open, f.told = nil, nil
	clear(f.calls)
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
	if !f.transcript.Run.Busy {
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
	if f.asked != 0 || slices.ContainsFunc(f.open, func(q question) bool { return !q.waits() }) {
		return false
	}
	for c := range f.calls {
		if c.Parent == nil && (c.State == transcript.Made || c.State == transcript.Judged && c.Judged.Action == tool.Ask) {
			return false // it may ask, or run
		}
	}
	return !slices.ContainsFunc(f.transcript.Now.Running, func(c *transcript.Call) bool {
		return !slices.ContainsFunc(f.open, func(q question) bool { return q.child() != "" || q.parent() == c.Call.ID })
	})
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
