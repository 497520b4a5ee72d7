package harnesstest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
)

// ModelParams say how to put a model under test.
type ModelParams struct {
	// New returns a model whose vendor plays turns, one a request, in order.
	// It is called inside a synctest bubble and must tear down with t: the
	// vendor has to be in memory, as with anthropictest.Transport. The model's
	// deadlines must be [Deadlines].
	New func(t *testing.T, turns ...Turn) Fake
	// Without names the scenarios that have no meaning for this model, such as
	// "timeout/connect" for one without a network. A name with subordinate
	// scenarios stands for all of them.
	Without []string
	// Errors are the kinds of failure the vendor can express.
	Errors []llm.Kind
	// ToolNames matches the names of tools that the vendor accepts. Nil omits the checks of them. It needs a
	// Fake with Requests, which are JSON and have the tools in "tools".
	ToolNames *regexp.Regexp
}

// Fake is a model with its fake vendor.
type Fake struct {
	Model llm.Model
	// Requests returns the requests so far, as sent. nil omits the checks of them.
	Requests func() []string
	// InFlight returns how many requests the vendor is answering. nil omits the checks of it.
	InFlight func() int
	// Volatile are the strings in a request that may move from one to the
	// next, such as cache markers.
	Volatile []string
}

// Turn is the vendor's answer to one request.
type Turn struct {
	Parts llm.Parts // the reply; a Call's Invalid, if set, is its argument text
	Stop  llm.Stop  // empty means as the parts suggest
	Usage llm.Usage
	Split int // bytes of the pieces text and arguments are streamed in; 0 means as the vendor likes

	// Fail, if set, refuses the request with the vendor's error of this kind. Used, Limit and RetryAfter must
	// come out again.
	Fail *llm.Error
	// Late lets Fail happen in the middle of the reply.
	Late bool
	// Cut breaks the connection in the middle of the reply.
	Cut bool
	// Stall makes the vendor hang in this phase: "connect", "first byte" or "idle"; in "total" the reply
	// continues without end.
	Stall string
}

// Deadlines returns the required deadlines of the model under test.
func Deadlines() llm.Deadlines {
	return llm.Deadlines{Connect: 3 * time.Second, FirstByte: 5 * time.Second, Idle: 7 * time.Second, Total: 20 * time.Second}
}

// TestModel proves that a model keeps the contract of [llm.Model] and loses nothing between the vendor's wire
// and the vocabulary.
func TestModel(t *testing.T, p ModelParams) {
	s := modelSuite{p}
	s.run(t, "text", s.text)
	s.run(t, "empty", s.empty)
	s.run(t, "calls", s.calls)
	s.run(t, "split", s.split)
	s.run(t, "broken-arguments", s.brokenArgs)
	s.run(t, "length", s.length)
	s.run(t, "reasoning", s.reasoning)
	s.run(t, "foreign-reasoning", s.foreignReasoning)
	s.run(t, "images", s.images)
	s.run(t, "pause", s.pause)
	for _, stop := range []llm.Stop{llm.StopRefusal, llm.StopWindow, llm.StopOther} {
		s.run(t, "stop/"+string(stop), func(t *testing.T) { s.stop(t, stop) })
	}
	for _, kind := range p.Errors {
		s.run(t, "error/"+string(kind), func(t *testing.T) { s.fails(t, kind, false) })
	}
	s.run(t, "late-error", func(t *testing.T) { s.fails(t, llm.KindOverloaded, true) })
	s.run(t, "cut", s.cut)
	s.run(t, "early-stop", s.earlyStop)
	s.run(t, "cancel", s.cancel)
	s.run(t, "cancelled-before", s.cancelledBefore)
	for phase, limit := range map[string]time.Duration{
		"connect": Deadlines().Connect, "first byte": Deadlines().FirstByte,
		"idle": Deadlines().Idle, "total": Deadlines().Total,
	} {
		s.run(t, "timeout/"+phase, func(t *testing.T) { s.timeout(t, phase, limit) })
	}
	s.run(t, "same-bytes", s.sameBytes)
	s.run(t, "growth", s.growth)
	s.run(t, "odd-history", s.oddHistory)
	s.run(t, "again", s.again)
	if p.ToolNames != nil {
		s.run(t, "tool-names", s.toolNames)
	}
}

type modelSuite struct{ ModelParams }

func (s modelSuite) run(t *testing.T, name string, f func(t *testing.T)) {
	group, _, _ := strings.Cut(name, "/")
	if slices.Contains(s.Without, name) || slices.Contains(s.Without, group) {
		return
	}
	t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { synctest.Test(t, f) })
}

// outcome is the complete output of one stream.
type outcome struct {
	text, reasoning, args string
	reply                 *llm.Reply
	err                   *llm.Error
}

// ask sends a request, checks the protocol of the stream and collects it.
func ask(ctx context.Context, t *testing.T, m llm.Model, req llm.Request) outcome {
	t.Helper()
	var o outcome
	over := false
	for c, err := range m.Stream(ctx, req) {
		if over {
			t.Fatalf("something follows the end of the stream: %+v, %v", c, err)
		}
		over = err != nil || c.Reply != nil
		if err != nil {
			if !errors.As(err, &o.err) {
				t.Fatalf("error is a %T, want *llm.Error: %v", err, err)
			}
			continue
		}
		if n := fieldsSet(c); n != 1 {
			t.Errorf("chunk has %d fields set, want 1: %+v", n, c)
		}
		o.text += c.Text
		o.reasoning += c.Reasoning
		if c.Call != nil {
			o.args += c.Call.Args
		}
		o.reply = c.Reply
	}
	if !over {
		t.Fatal("the stream ended without a reply or an error")
	}
	return o
}

func fieldsSet(c llm.Chunk) int {
	n := 0
	for v := range reflect.ValueOf(c).NumField() {
		if !reflect.ValueOf(c).Field(v).IsZero() {
			n++
		}
	}
	return n
}

// reply is ask for streams that must succeed.
func reply(t *testing.T, m llm.Model, req llm.Request) (llm.Reply, outcome) {
	t.Helper()
	o := ask(t.Context(), t, m, req)
	if o.err != nil {
		t.Fatalf("Stream: %v", o.err)
	}
	if got, want := o.reply.Route, m.Info().Route(); got != want {
		t.Errorf("Reply.Route = %q, want %q", got, want)
	}
	return *o.reply, o
}

func said(text string) llm.Message {
	return llm.Message{Role: llm.User, Parts: llm.Say(text)}
}

func question() llm.Request {
	return llm.Request{
		System:   []string{"You are terse.", "The project is a test."},
		Tools:    suiteTools(),
		Messages: []llm.Message{said("Read the two files.")},
		Session:  "s1",
	}
}

func suiteTools() []llm.ToolSpec {
	return []llm.ToolSpec{
		{
			Name: "read", Description: "Read a file.",
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		},
		{Name: "now", Description: "Tell the time."},
	}
}

func twoCalls() llm.Parts {
	return llm.Parts{
		llm.Text{Text: "Reading both."},
		llm.Call{ID: "call_a", Name: "read", Args: json.RawMessage(`{"path":"a <b> & \"c\" é 😀.go"}`)},
		llm.Call{ID: "call_b", Name: "now", Args: json.RawMessage(`{}`)},
	}
}

// answered returns the message that answers every call of parts.
func answered(parts llm.Parts) llm.Message {
	m := llm.Message{Role: llm.User}
	for i, c := range parts.Calls() {
		m.Parts = append(m.Parts, llm.Result{CallID: c.ID, Name: c.Name, Parts: llm.Say("result"), Error: i == 1})
	}
	return m
}

// stored returns parts as a log gives them back.
func stored(t *testing.T, parts llm.Parts) llm.Parts {
	t.Helper()
	b, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	var out llm.Parts
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantCalls(t *testing.T, r llm.Reply, want []llm.Call) {
	t.Helper()
	got := r.Calls()
	if len(got) != len(want) {
		t.Fatalf("got %d calls, want %d: %+v", len(got), len(want), got)
	}
	ids := map[string]bool{}
	for i, c := range got {
		if c.Name != want[i].Name || c.Invalid != want[i].Invalid || !sameJSON(c.Args, want[i].Args) {
			t.Errorf("call %d = %s %s invalid %q, want %s %s invalid %q", i, c.Name, c.Args, c.Invalid, want[i].Name, want[i].Args, want[i].Invalid)
		}
		if c.ID == "" || ids[c.ID] {
			t.Errorf("call %d has the id %q, want one of its own", i, c.ID)
		}
		ids[c.ID] = true
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y map[string]any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x != nil && reflect.DeepEqual(x, y)
}
