package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/llm"
)

// This file exports traces for OpenTelemetry, in the JSON encoding of OTLP (opentelemetry-proto 1, protobuf's JSON with
// hexadecimal ids). Names follow the semantic conventions for generative AI. These still change, so a table has a row
// for each supported version. Other attributes begin with "inspan.". Content is included only on request.
//
// Ids are derived from the ids of sessions and spans, so a session always exports the same ids. If another program's
// span is the parent of a session, the session is part of that program's trace.

// conventions describes one version of the semantic conventions.
type conventions struct {
	version     string
	provider    string // key of the provider's name
	xaiName     string // its name for xAI
	hasMessages bool   // it has messages as attributes
	hasCached   bool   // it has cached parts of the prompt, and arguments and results of calls
	hasFirst    bool   // it has the time to the first chunk of a reply, and reasoning
}

func allConventions() []conventions {
	return []conventions{
		{version: "1.36.0", provider: "gen_ai.system", xaiName: "xai"},
		{version: "1.37.0", provider: "gen_ai.provider.name", xaiName: "x_ai", hasMessages: true},
		{version: "1.40.0", provider: "gen_ai.provider.name", xaiName: "x_ai", hasCached: true, hasMessages: true},
		{version: "1.41.0", provider: "gen_ai.provider.name", xaiName: "x_ai", hasCached: true, hasFirst: true, hasMessages: true},
	}
}

// Semconvs returns the supported versions of the semantic conventions, the latest last.
func Semconvs() (out []string) {
	for _, c := range allConventions() {
		out = append(out, c.version)
	}
	return out
}

// The numbers of spans in a request, without and with content.
const (
	otlpBatch        = 1000
	otlpContentBatch = 50
)

// OTLP configures how traces and measures are sent to an OpenTelemetry receiver. The zero value is ready to
// use.
type OTLP struct {
	Semconv    string            // one of [Semconvs]; empty means the latest
	Release    string            // version of the program
	Attributes map[string]string // resource attributes; service.name defaults to "inspan"
	// Live replaces a span in progress with a marker: a child span without duration, with the attribute inspan.pending.
	// The span itself is sent when it has ended. Without Live, a span in progress ends at the last event of its session.
	Live bool
	// Content means that spans have content. They are large, so a request has fewer of them.
	Content bool
}

// conventions returns the names of the configured version.
func (o OTLP) conventions() (conventions, error) {
	all := allConventions()
	i := len(all) - 1
	if o.Semconv != "" {
		if i = slices.IndexFunc(all, func(c conventions) bool { return c.version == o.Semconv }); i < 0 {
			return conventions{}, fmt.Errorf("no semantic conventions %q; use %s", o.Semconv, strings.Join(Semconvs(), ", "))
		}
	}
	return all[i], nil
}

func (o OTLP) owner() otlpAttributes {
	a := otlpValues{}
	if o.Attributes["service.name"] == "" {
		a = a.text("service.name", "inspan")
	}
	if o.Attributes["service.version"] == "" {
		a = a.text("service.version", o.Release)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Attributes)) {
		a = a.text(key, o.Attributes[key])
	}
	return otlpAttributes{a}
}

// Traces returns requests for the traces endpoint of a receiver, each as JSON.
func (o OTLP) Traces(traces ...Trace) ([][]byte, error) {
	c, err := o.conventions()
	if err != nil {
		return nil, err
	}
	x := &otlpBuilder{conventions: c, live: o.Live}
	for _, t := range traces {
		_, parent := otlpIDs(t.Traceparent)
		x.session(t, parent)
	}
	var out [][]byte
	size := otlpBatch
	if o.Content {
		size = otlpContentBatch
	}
	for batch := range slices.Chunk(x.spans, size) {
		raw, err := json.Marshal(otlpRequest{[]otlpResource{{
			Resource: o.owner(), Scopes: []otlpScope{{Scope: otlpScopeName{"inspan", o.Release}, Spans: batch, Schema: schemas + x.version}},
		}}})
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

const schemas = "https://opentelemetry.io/schemas/"

type otlpRequest struct {
	Resources []otlpResource `json:"resourceSpans"`
}

type otlpResource struct {
	Resource otlpAttributes `json:"resource"`
	Scopes   []otlpScope    `json:"scopeSpans"`
}

type otlpAttributes struct {
	Attributes otlpValues `json:"attributes"`
}

type otlpScope struct {
	Scope  otlpScopeName `json:"scope"`
	Spans  []otlpSpan    `json:"spans"`
	Schema string        `json:"schemaUrl"`
}

type otlpScopeName struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Values of enums in opentelemetry-proto.
const (
	otlpInternal    = 1
	otlpClient      = 3
	otlpStatusError = 2
)

type otlpSpan struct {
	Trace      string      `json:"traceId"`
	ID         string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes otlpValues  `json:"attributes"`
	Status     *otlpStatus `json:"status,omitempty"`
}

type otlpStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type otlpValue struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

type otlpValues []otlpValue

// text and number add an attribute unless the value is empty; integer always adds it.
func (v otlpValues) text(key, value string) otlpValues {
	if value == "" {
		return v
	}
	return append(v, otlpValue{key, map[string]any{"stringValue": strings.ToValidUTF8(value, "\ufffd")}})
}

func (v otlpValues) integer(key string, n int) otlpValues {
	return append(v, otlpValue{key, map[string]any{"intValue": strconv.Itoa(n)}})
}

func (v otlpValues) number(key string, n float64) otlpValues {
	if n == 0 {
		return v
	}
	return append(v, otlpValue{key, map[string]any{"doubleValue": n}})
}

// otlpIDs returns the ids in a traceparent, empty if it is invalid.
func otlpIDs(traceparent string) (trace, span string) {
	if !text.IsTraceparent(traceparent) {
		return "", ""
	}
	fields := strings.Split(traceparent, "-")
	return fields[1], fields[2]
}

type otlpBuilder struct {
	conventions

	live  bool
	spans []otlpSpan
}

// session adds the spans of a session as children of the span parent; empty means none.
func (x *otlpBuilder) session(t Trace, parent string) {
	agents := map[string]Trace{}
	for _, agent := range t.Agents {
		agents[agent.Session] = agent
	}
	for _, span := range t.Spans {
		s := x.span(t, span)
		if s.Parent = parent; span.Parent != "" {
			_, s.Parent = otlpIDs(text.SpanContext(t.Traceparent, t.Session, span.Parent))
		}
		if x.live && span.End.IsZero() {
			s.Parent = s.ID
			_, s.ID = otlpIDs(text.SpanContext(t.Traceparent, t.Session, span.ID+" begun"))
			s.Attributes = append(s.Attributes, otlpValue{"inspan.pending", map[string]any{"boolValue": true}})
		}
		x.spans = append(x.spans, s)
		if agent, is := agents[span.Session]; is && span.Kind == SpanChild {
			delete(agents, span.Session) // an agent that worked several times has several spans here, but one trace
			agent.Traceparent = text.SpanContext(t.Traceparent, t.Session, span.ID)
			x.session(agent, s.ID)
		}
	}
}

func (x *otlpBuilder) span(t Trace, span Span) otlpSpan {
	end := span.End
	if end.IsZero() && !x.live {
		end = t.Until
	}
	if end.Before(span.Start) { // a clock was set back, or a live span has not ended
		end = span.Start
	}
	s := otlpSpan{Kind: otlpInternal, Start: otlpTime(span.Start), End: otlpTime(end)}
	s.Trace, s.ID = otlpIDs(text.SpanContext(t.Traceparent, t.Session, span.ID))
	a := otlpValues{}.text("gen_ai.conversation.id", t.Session)
	switch span.Kind {
	case SpanRun:
		who := cmp.Or(t.Agent, "inspan")
		s.Name = "invoke_agent " + who
		a = a.text("gen_ai.operation.name", "invoke_agent").text("gen_ai.agent.name", who).text("gen_ai.agent.id", t.Session).
			text(x.provider, "inspan")
	case SpanModel:
		s.Kind = otlpClient
		s.Name, a = x.model(span, a)
	case SpanCall:
		s.Name = "execute_tool " + span.Name
		a = a.text("gen_ai.operation.name", "execute_tool").text("gen_ai.tool.name", span.Name).text("gen_ai.tool.call.id", span.Call)
		if span.Class != string(fault.ErrorUnknown) { // an unknown tool has no type
			a = a.text("gen_ai.tool.type", "function")
		}
	case SpanChild:
		s.Name = "invoke_agent " + cmp.Or(span.Name, "agent")
		a = a.text("gen_ai.operation.name", "invoke_agent").text("gen_ai.agent.name", cmp.Or(span.Name, "agent")).
			text("gen_ai.agent.id", span.Session).text(x.provider, "inspan")
	default:
		s.Name = string(span.Kind) + " " + span.Name
	}
	s.Name = strings.TrimSpace(strings.ToValidUTF8(s.Name, "\ufffd"))
	if parent := kin.Parent(t.Session); parent != "" {
		a = a.text("inspan.agent", t.Agent).text("inspan.parent", parent).text("inspan.lead", kin.Lead(t.Session))
	}
	a = a.text("inspan.kind", string(span.Kind)).integer("inspan.seq", int(span.Seq)).text("inspan.outcome", span.Outcome).
		number("inspan.cost_usd", span.Cost)
	if span.Failed() {
		a = a.text("error.type", cmp.Or(span.Class, span.Outcome))
		s.Status = &otlpStatus{Code: otlpStatusError, Message: span.Outcome}
	}
	s.Attributes = x.content(span, a)
	return s
}

func otlpTime(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// model returns the name and attributes of the span of a request to a model.
func (x *otlpBuilder) model(span Span, a otlpValues) (name string, all otlpValues) {
	provider, model := x.providerAndModel(span)
	a = a.text("gen_ai.operation.name", "chat").text(x.provider, provider).text("gen_ai.request.model", model)
	if stop := llm.Stop(span.Outcome); stop != "" && (!span.Failed() || stop == llm.StopRefusal) {
		a = a.text("gen_ai.response.model", model)
		reasons := map[string]any{"values": []any{map[string]any{"stringValue": finish(stop)}}}
		a = append(a, otlpValue{"gen_ai.response.finish_reasons", map[string]any{"arrayValue": reasons}})
	}
	a = a.text("gen_ai.response.id", span.Reply)
	if i := strings.LastIndexByte(span.Server, ':'); i > 0 {
		a = a.text("server.address", strings.Trim(span.Server[:i], "[]"))
		if port, err := strconv.Atoi(span.Server[i+1:]); err == nil {
			a = a.integer("server.port", port)
		}
	}
	if u := span.Usage; u != nil {
		a = a.integer("gen_ai.usage.input_tokens", u.Prompt()).integer("gen_ai.usage.output_tokens", u.Output)
		if x.hasCached {
			a = a.integer("gen_ai.usage.cache_read.input_tokens", u.CacheRead).integer("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)
		}
		if x.hasFirst {
			a = a.integer("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
		}
	}
	if x.hasFirst {
		a = a.number("gen_ai.response.time_to_first_chunk", float64(span.First)/1000)
	}
	return "chat " + model, a
}

// providerAndModel splits the route in a span's name.
func (x conventions) providerAndModel(span Span) (provider, model string) {
	provider, model, _ = strings.Cut(span.Name, "/")
	return x.providerName(provider), cmp.Or(model, span.Name)
}

// providerName returns the conventions' name of a provider, or the given name if they have none.
func (x conventions) providerName(name string) string {
	for _, known := range [][2]string{
		{"gemini", "gcp.gemini"},
		{"google", "gcp.gemini"},
		{"vertex", "gcp.vertex_ai"},
		{"bedrock", "aws.bedrock"},
		{"azure", "azure.ai.openai"},
		{"mistral", "mistral_ai"},
		{"xai", x.xaiName},
	} {
		if known[0] == name {
			return known[1]
		}
	}
	return name
}

// Failed reports whether a span ended with a failure.
func (s Span) Failed() bool {
	if s.End.IsZero() {
		return false
	}
	switch s.Kind {
	case SpanModel:
		return !slices.Contains([]llm.Stop{llm.StopEnd, llm.StopCalls, llm.StopPause, llm.StopLength, llm.StopWindow}, llm.Stop(s.Outcome))
	case SpanRun, SpanChild:
		return s.Outcome != string(event.ReasonDone)
	case SpanCall, SpanStep:
		return s.Outcome != string(event.OutcomeOK)
	}
	return s.Outcome == spanLost
}
