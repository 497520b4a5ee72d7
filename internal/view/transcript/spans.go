package transcript

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// SpanKind is the kind of work during a span.
type SpanKind string

// Kinds of spans.
const (
	SpanRun   SpanKind = "run"   // from a message to the end of the agent's run
	SpanModel SpanKind = "model" // one request to a model
	SpanPause SpanKind = "pause" // until a failed request is sent again
	SpanCall  SpanKind = "call"  // a tool call
	SpanWait  SpanKind = "wait"  // waiting for a person's decision
	SpanChild SpanKind = "child" // another session works for this one
	SpanJob   SpanKind = "job"   // a background job that a call started
	SpanStep  SpanKind = "step"  // a step of a workflow
)

// Span is a period in which a session does one thing.
type Span struct {
	ID      string     `json:"id" jsonschema:"unique in the session, and the same whenever it is asked for"`
	Parent  string     `json:"parent,omitempty" jsonschema:"id of the span that this one is a part of"`
	Kind    SpanKind   `json:"kind" jsonschema:"run, model, pause, call, wait, child, job or step"`
	Name    string     `json:"name,omitempty" jsonschema:"of the model, tool, agent or step"`
	Call    string     `json:"call,omitempty" jsonschema:"id of the call, of a call"`
	Seq     uint64     `json:"seq" jsonschema:"event of the session that begins it"`
	Start   time.Time  `json:"start"`
	End     time.Time  `json:"end,omitzero" jsonschema:"missing while it is in progress"`
	Outcome string     `json:"outcome,omitempty" jsonschema:"ok, lost, or what the event that ends it says"`
	Class   string     `json:"class,omitempty" jsonschema:"what kind of fault made a call or a step fail"`
	First   int64      `json:"first_millis,omitempty" jsonschema:"of a model: until the first chunk of its reply"`
	Usage   *llm.Usage `json:"usage,omitempty"`
	Cost    float64    `json:"cost,omitempty" jsonschema:"US dollars"`
	Reply   string     `json:"reply,omitempty" jsonschema:"of a model: the vendor's id of its reply"`
	Server  string     `json:"server,omitempty" jsonschema:"of a model: host that sent it"`
	Session string     `json:"session,omitempty" jsonschema:"of a child: it has spans of its own"`
	Sum     string     `json:"-"` // of a call, see event.Started
	Content *Content   `json:"-"` // only on request, see [NewSpans]
}

const (
	spanOK   = "ok"
	spanLost = "lost" // it ended without an outcome
)

// Spans folds the events of a session into spans. The zero value is empty. A fork has no spans from before the fork.
type Spans struct {
	all         []*Span // in the order of their starts
	open        map[string]*Span
	run         *Span             // the run in progress, or nil
	last        time.Time         // time of the last folded event
	traceparent string            // the session's parent span in another program
	agent       string            // kind of the session's agent
	tools       map[string]string // tools, by call id
	parents     map[string]string // parents of nested calls, by call id
	begun       []*Span           // begun since the last [Spans.News]
	ended       []*Span           // ended since then
	contents    *contents         // nil without content
}

// NewSpans returns a fold that also keeps content, if content is set.
func NewSpans(content bool) *Spans {
	if content {
		return &Spans{contents: &contents{}}
	}
	return &Spans{}
}

// List returns the spans in the order of their starts.
func (s *Spans) List() []Span {
	out := make([]Span, len(s.all))
	for i, span := range s.all {
		out[i] = *span
	}
	return out
}

// News returns the spans that have ended since its last call, and then the runs, children, steps and waits that began
// since then and are in progress. Other spans in progress are usually short, and are left out.
func (s *Spans) News() (out []Span) {
	for _, span := range s.begun {
		long := slices.Contains([]SpanKind{SpanRun, SpanChild, SpanStep, SpanWait}, span.Kind)
		if long && span.End.IsZero() && slices.Contains(s.all, span) {
			out = append(out, *span)
		}
	}
	for _, span := range s.ended {
		out = append(out, *span)
		span.Content = nil // frees memory; it is reported only once
	}
	s.begun, s.ended = nil, nil
	return out
}

// Trace holds the spans of a session and of the sessions that worked for it.
type Trace struct {
	Session string    `json:"session"`
	Until   time.Time `json:"until"` // the latest known moment
	// Traceparent is the parent span in another program, in the form of W3C Trace Context; empty if none.
	Traceparent string  `json:"traceparent,omitempty"`
	Agent       string  `json:"agent,omitempty"` // kind of the session's agent; empty if it works for no other
	Spans       []Span  `json:"spans"`
	Agents      []Trace `json:"agents,omitempty"`
}

// Of returns the trace of the folded session, without its agents.
func (s *Spans) Of(session string) Trace {
	return Trace{Session: session, Until: s.last, Traceparent: s.traceparent, Agent: s.agent, Spans: s.List()}
}

// Read folds events. After an error, the events before it are folded.
func (s *Spans) Read(events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		s.Apply(e)
	}
	return nil
}

// Apply folds an event. Transient events change nothing.
func (s *Spans) Apply(e event.Event) {
	if s.open == nil {
		s.open, s.tools, s.parents = map[string]*Span{}, map[string]string{}, map[string]string{}
	}
	if !e.Transient() {
		s.last = e.Time
		s.contents.hear(e.Body)
	}
	switch b := e.Body.(type) {
	case event.Opened:
		s.traceparent, s.agent = b.Traceparent, b.Agent
	case event.Forked:
		*s = *NewSpans(s.contents != nil)
	case event.Said, event.Steered:
		if loop.BeginsRun(e.Body) {
			s.beginRun(e)
		}
	case event.Withdrawn:
		s.withdrawn(b)
	case event.Claimed:
		// The previous driver left these unfinished. Waits for a person, children and jobs continue.
		s.endAll(e.Time, spanLost, SpanModel, SpanPause, SpanCall, SpanStep)
	case event.Stopped:
		s.endAll(e.Time, spanLost, SpanModel, SpanPause)
		s.end(key(SpanRun, ""), e.Time, string(b.Reason))
		s.run = nil
	case event.Asked, event.Routed, event.Replied, event.Failed:
		s.asked(e)
	case event.Judged, event.Waiting, event.Raised, event.Decided, event.Started, event.Ended:
		s.called(e)
	case event.Spawned:
		call := b.Call[:max(0, strings.LastIndexByte(b.Call, '@'))]
		span := s.begin(SpanChild, b.Child, b.Agent, e, s.open[key(SpanCall, call)])
		span.Session = b.Child
		if !slices.ContainsFunc(s.all, func(other *Span) bool { return other.ID == ChildSpan(b.Child) }) { // it has not worked before
			span.ID = ChildSpan(b.Child)
		}
	case event.Returned:
		s.childReturned(e, b)
	case event.Finished:
		s.finished(e, b)
	case event.StepStarted:
		if b.Step != event.Workflow { // its span would equal the run's
			s.begin(SpanStep, b.Step, cmp.Or(b.Title, b.Step), e, s.open[key(SpanStep, b.Parent)])
		}
	case event.StepEnded:
		if span := s.end(key(SpanStep, b.Step), e.Time, string(b.Outcome)); span != nil {
			span.Cost, span.Class = b.Cost, string(b.Class)
		}
	}
}

// ChildSpan returns the id of the span in which a session first works for another. It is known before the span begins.
func ChildSpan(session string) string { return string(SpanChild) + "-" + session }

func key(kind SpanKind, id string) string { return string(kind) + " " + id }

// begin begins a span below parent, or below the run if parent is nil. An unfinished span with the same key ends as
// lost.
func (s *Spans) begin(kind SpanKind, id, name string, e event.Event, parent *Span) *Span {
	span := &Span{ID: fmt.Sprintf("%s-%d", kind, e.Seq), Kind: kind, Name: name, Seq: e.Seq, Start: e.Time}
	if parent == nil {
		parent = s.run
	}
	if parent != nil {
		span.Parent = parent.ID
	}
	s.end(key(kind, id), e.Time, spanLost)
	s.all, s.open[key(kind, id)] = append(s.all, span), span
	s.begun = append(s.begun, span)
	return span
}

// end ends a span in progress and returns it; nil if there is none.
func (s *Spans) end(key string, at time.Time, outcome string) *Span {
	span := s.open[key]
	if span != nil {
		span.End, span.Outcome = at, outcome
		delete(s.open, key)
		s.ended = append(s.ended, span)
	}
	return span
}

// endAll ends the spans in progress of some kinds.
func (s *Spans) endAll(at time.Time, outcome string, kinds ...SpanKind) {
	for k, span := range s.open {
		for _, kind := range kinds {
			if span.Kind == kind {
				s.end(k, at, outcome)
			}
		}
	}
}

// beginRun begins a run, unless one is in progress.
func (s *Spans) beginRun(e event.Event) {
	if s.run == nil {
		s.run = s.begin(SpanRun, "", "", e, nil)
	}
}

// withdrawn removes a run that was requested but has not begun.
func (s *Spans) withdrawn(b event.Withdrawn) {
	if n := len(s.all); s.run != nil && s.run.Seq == b.Of && s.all[n-1] == s.run {
		s.all = s.all[:n-1]
		delete(s.open, key(SpanRun, ""))
		s.run = nil
	}
}

func (s *Spans) asked(e event.Event) {
	model := key(SpanModel, "")
	switch b := e.Body.(type) {
	case event.Asked:
		s.beginRun(e)
		s.end(key(SpanPause, ""), e.Time, spanOK)
		s.begin(SpanModel, "", b.Route, e, nil).Content = s.contents.asked()
	case event.Routed:
		span := s.open[model]
		if span == nil {
			return
		}
		if b.From != "" { // another model was asked before and failed
			span.Name, span.Cost = b.From, b.Cost
			s.end(model, e.Time, string(b.Cause))
			span = s.begin(SpanModel, "", b.Route, e, nil)
		}
		span.Name = b.Route
	case event.Replied:
		if span := s.end(model, e.Time, string(b.Stop)); span != nil {
			span.Name, span.Usage, span.Cost, span.First = cmp.Or(b.Route, span.Name), &b.Usage, b.Cost, b.First
			span.Reply, span.Server = b.ReplyID, b.Server
			span.Content.replied(b)
		}
		for _, part := range b.Parts {
			if c, is := part.(llm.Call); is {
				s.recordTool(c.ID, c.Name)
			}
		}
	case event.Failed:
		if span := s.end(model, e.Time, string(b.Cause)); span != nil && b.Route != "" {
			span.Usage, span.Cost = &b.Usage, b.Cost
		}
		if b.Retry > 0 {
			s.begin(SpanPause, "", string(b.Cause), e, nil)
		}
	}
}

// recordTool records the tool of a call.
func (s *Spans) recordTool(call, name string) {
	if name != "" {
		s.tools[call] = name
	}
}

func (s *Spans) called(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		s.recordTool(b.Call, b.Tool)
		if b.Parent != "" {
			s.parents[b.Call] = b.Parent
		}
	case event.Waiting:
		s.begin(SpanWait, b.Call, s.tools[b.Call], e, nil)
	case event.Raised:
		asking := s.open[key(SpanCall, b.Call)]
		if b.Child != "" {
			asking = s.open[key(SpanChild, b.Child)]
		}
		s.begin(SpanWait, b.ID, b.Tool, e, asking)
	case event.Decided:
		outcome := "denied"
		if b.Allow {
			outcome = "allowed"
		}
		s.end(key(SpanWait, b.Call), e.Time, outcome)
		for _, call := range slices.Sorted(maps.Keys(s.parents)) {
			parent := s.parents[call]
			if span := s.open[key(SpanWait, call)]; span != nil && b.OnCall(call, parent, span.Seq) {
				s.end(key(SpanWait, call), e.Time, outcome)
			}
		}
	case event.Started:
		span := s.begin(SpanCall, b.Call, s.tools[b.Call], e, s.open[key(SpanCall, b.Parent)])
		span.Call, span.Sum, span.Content = b.Call, b.Sum, s.contents.called(b.Call)
	case event.Ended:
		s.end(key(SpanWait, b.Call), e.Time, string(b.Outcome))
		delete(s.parents, b.Call)
		if b.Class == fault.ErrorUnknown && s.open[key(SpanCall, b.Call)] == nil { // calls of unknown tools get a span too
			s.begin(SpanCall, b.Call, s.tools[b.Call], e, nil).Call = b.Call
		}
		span := s.end(key(SpanCall, b.Call), e.Time, string(b.Outcome))
		if span == nil {
			return // it was not run
		}
		span.Cost, span.Class = b.Cost, string(b.Class)
		span.Content.ended(b)
		if b.Job != nil {
			s.begin(SpanJob, b.Job.ID, span.Name, e, span)
		}
	}
}

// childReturned ends the span of a child, and the waits for answers to its questions.
func (s *Spans) childReturned(e event.Event, b event.Returned) {
	span := s.end(key(SpanChild, b.Child), e.Time, cmp.Or(string(b.Reason), spanLost))
	if span == nil {
		return
	}
	span.Usage, span.Cost = &b.Usage, b.Cost
	for k, wait := range s.open {
		if wait.Kind == SpanWait && wait.Parent == span.ID {
			s.end(k, e.Time, spanLost)
		}
	}
}

func (s *Spans) finished(e event.Event, b event.Finished) {
	outcome := spanOK
	switch {
	case b.Kept:
		outcome = "kept"
	case b.Exit == nil:
		outcome = "unknown"
	case *b.Exit != 0:
		outcome = "failed"
	}
	s.end(key(SpanJob, b.Job), e.Time, outcome)
}

// TraceOf reads the trace of a session and its agents from their logs. Agents whose logs are gone are left out.
// If content is set, spans have content.
func TraceOf(ctx context.Context, sessions store.Store, id string, content bool) (Trace, error) {
	return traceOf(ctx, sessions, id, content, map[string]bool{})
}

func traceOf(ctx context.Context, sessions store.Store, id string, content bool, seen map[string]bool) (Trace, error) {
	seen[id] = true
	spans := NewSpans(content)
	if err := spans.Read(store.Events(ctx, sessions, id)); err != nil {
		return Trace{}, err
	}
	t := spans.Of(id)
	for _, span := range t.Spans {
		if span.Session == "" || seen[span.Session] {
			continue
		}
		if agent, err := traceOf(ctx, sessions, span.Session, content, seen); err == nil {
			t.Agents = append(t.Agents, agent)
		} else if ctx.Err() != nil {
			return t, err
		}
	}
	return t, nil
}
