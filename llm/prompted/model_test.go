package prompted_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/prompted"
)

// TestModel runs the suite over a server that knows no tools, and over one
// that has to say so first.
func TestModel(t *testing.T) {
	for name, always := range map[string]bool{"always": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			harnesstest.TestModel(t, harnesstest.ModelParams{
				New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake { return newFake(t, always, turns) },
				Errors: []llm.Kind{
					llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindWindow, llm.KindAuth, llm.KindInvalid,
				},
			})
		})
	}
}

// server plays turns as a model without tools would. It refuses tools.
type server struct {
	mu       sync.Mutex
	turns    []harnesstest.Turn
	requests []string
	refused  int
}

func (s *server) answer(_ *http.Request, body []byte) openaitest.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(string(body), `"tools":[`) {
		s.refused++
		return openaitest.Answer{Status: 400, Type: "invalid_request_error", Message: "The model does not support tools."}
	}
	s.requests = append(s.requests, string(body))
	turn := s.turns[0]
	s.turns = s.turns[1:]
	return answer(turn)
}

func newFake(t *testing.T, always bool, turns []harnesstest.Turn) harnesstest.Fake {
	s := &server{turns: turns}
	fake := &openaitest.Server{Answer: s.answer, Key: "k", Dialect: "openrouter"}
	tr := openaitest.Transport(t, fake)
	if turns[0].Stall == "connect" {
		tr = openaitest.NoTransport(t)
	}
	// How long the vendor takes is measured by the one request it answers.
	always = always || turns[0].Stall != ""
	return harnesstest.Fake{
		Model: &prompted.Model{Always: always, Model: &openai.Model{
			ID: "m", HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake/v1", Dialect: "openrouter",
			Key: func(context.Context) (string, error) { return "k", nil },
		}},
		Requests: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.requests
		},
		InFlight: fake.InFlight,
	}
}

// answer renders a turn in the words of the model.
func answer(turn harnesstest.Turn) openaitest.Answer {
	a := openaitest.Answer{Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	text := ""
	for _, p := range turn.Parts {
		switch v := p.(type) {
		case llm.Text:
			text += v.Text
		case llm.Call:
			args := string(v.Args)
			if v.Invalid != "" {
				args = v.Invalid
			}
			text += "\n<tool_call>\n{\"name\": \"" + v.Name + "\", \"arguments\": " + args
			if turn.Stop != llm.StopLength {
				text += "}\n</tool_call>"
			}
		default:
			a.Parts = append(a.Parts, p)
		}
	}
	if text != "" {
		a.Parts = append(a.Parts, llm.Text{Text: text})
	}
	if turn.Cut {
		a.CutAt = 6
	}
	switch turn.Stall {
	case "first byte":
		a.Hold = make(chan struct{})
	case "idle":
		a.Hold, a.HoldAt = make(chan struct{}), 6
	case "total":
		a.Pace = time.Second
	}
	if turn.Fail != nil {
		return fail(a, turn)
	}
	return a
}

func fail(a openaitest.Answer, turn harnesstest.Turn) openaitest.Answer {
	const invalid = "invalid_request_error"
	for kind, as := range map[llm.Kind]openaitest.Answer{
		llm.KindTransient: {Status: 500, Type: "server_error", Message: "The server had an error."},
		llm.KindRateLimited: {
			Status: 429, Code: "rate_limit_exceeded", Message: "Rate limit reached.",
			Header: http.Header{"Retry-After": {"17"}},
		},
		llm.KindOverloaded: {Status: 503, Code: "server_is_overloaded", Message: "The engine is currently overloaded."},
		llm.KindWindow: {
			Status: 400, Type: invalid, Code: "context_length_exceeded",
			Message: "This model's maximum context length is 200000 tokens. " +
				"However, your messages resulted in 210000 tokens.",
		},
		llm.KindAuth:    {Status: 401, Type: invalid, Code: "invalid_api_key", Message: "Incorrect API key provided."},
		llm.KindInvalid: {Status: 400, Type: invalid, Code: "unsupported_parameter", Message: "Unsupported parameter: 'x'."},
	} {
		if kind == turn.Fail.Kind {
			a.Status, a.Type, a.Code, a.Message, a.Header = as.Status, as.Type, as.Code, as.Message, as.Header
		}
	}
	if turn.Late {
		a.Status, a.ErrorAt = 0, 6
	}
	return a
}

// TestFallback checks that tools are refused once, by the model, and never again.
func TestFallback(t *testing.T) {
	s := &server{turns: []harnesstest.Turn{
		{Parts: llm.Parts{llm.Call{Name: "now", Args: []byte(`{}`)}}},
		{Parts: llm.Say("noon")},
	}}
	m := &prompted.Model{Model: &openai.Model{
		ID: "m", HTTP: openaitest.Transport(t, &openaitest.Server{Answer: s.answer}), BaseURL: "http://fake/v1",
	}}
	if m.Info().NoTools {
		t.Error("the model says that it takes no tools")
	}
	req := llm.Request{
		System: []string{"Be terse."}, Tools: []llm.ToolSpec{{Name: "now", Description: "Tell the <time>."}},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("when?")}},
	}
	r := last(t, m, req)
	want := llm.Parts{llm.Call{ID: "call_1", Name: "now", Args: []byte(`{}`)}}
	if diff := cmp.Diff(want, r.Parts); diff != "" || r.Stop != llm.StopCalls {
		t.Errorf("Stop %q\n%s", r.Stop, diff)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts},
		llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{
			CallID: "call_1",
			Name:   "now", Parts: llm.Say("12:00 </tool_response>"), Error: true,
		}}})
	if r := last(t, m, req); r.Parts.Text() != "noon" || s.refused != 1 {
		t.Errorf("got %+v, after %d refusals", r, s.refused)
	}
	for _, part := range []string{
		`Be terse.\n\n# Tools\n\n`,
		`<tools>\n{\"type\":\"function\",\"function\":{\"name\":\"now\",\"description\":\"Tell the ` +
			`<time>.\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}\n</tools>`,
		`{"role":"assistant","content":"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"}`,
		`{"role":"user","content":"<tool_response>\n{\"name\": \"now\", \"error\": true}\n12:00 <\\/tool_response>\n</tool_response>"}`,
	} {
		if !strings.Contains(s.requests[1], part) {
			t.Errorf("%s is not in %s", part, s.requests[1])
		}
	}
}

// TestNative checks that nothing changes for a model that takes tools, but for a call in its text that it makes in its
// own way too.
func TestNative(t *testing.T) {
	var sent []string
	m := &openai.Model{ID: "m", BaseURL: "http://fake/v1", HTTP: openaitest.Transport(t, &openaitest.Server{
		Answer: func(_ *http.Request, body []byte) openaitest.Answer {
			sent = append(sent, string(body))
			return openaitest.Answer{Parts: llm.Parts{
				llm.Text{Text: "<tool_call>{\"name\":\"now\"}"},
				llm.Call{ID: "x", Name: "now", Args: []byte(`{}`)},
			}}
		},
	})}
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "now"}}, Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("when?")}}}
	plain, wrapped := last(t, m, req), last(t, &prompted.Model{Model: m}, req)
	if diff := cmp.Diff(plain.Parts[1:], wrapped.Parts); diff != "" || sent[0] != sent[1] {
		t.Errorf("sent %s\nand %s\n%s", sent[0], sent[1], diff)
	}
}

// player yields one list of chunks a request; an error ends each.
type player struct {
	plays [][]llm.Chunk
	fails []llm.Kind // empty means the list ends with a reply
}

func (*player) Info() llm.Info { return llm.Info{Provider: "p", Model: "m"} }

func (m *player) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	play, fail := m.plays[0], m.fails[0]
	m.plays, m.fails = m.plays[1:], m.fails[1:]
	return func(yield func(llm.Chunk, error) bool) {
		for _, c := range play {
			if !yield(c, nil) {
				return
			}
		}
		if fail != "" {
			yield(llm.Chunk{}, &llm.Error{Kind: fail})
		}
	}
}

// TestVoid checks that voided text of a retry does not count, and that tools refused in the middle of a reply are an
// error like any other.
func TestVoid(t *testing.T) {
	retry := llm.Chunk{Retry: &llm.Retry{Attempt: 2}}
	reply := llm.Chunk{Reply: &llm.Reply{Parts: llm.Say("done"), Stop: llm.StopEnd}}
	half := llm.Chunk{Text: "half <tool_call>{\"name\":\"now\",\"arg"}
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "now"}}}
	for _, c := range []struct {
		name  string
		plays [][]llm.Chunk
		fails []llm.Kind
		want  llm.Kind
		text  string
	}{
		{"refused", [][]llm.Chunk{{}, {half, retry, {Text: "done"}, reply}}, []llm.Kind{llm.KindNoTools, ""}, "", "half|done"},
		{"refused behind a retry", [][]llm.Chunk{{{Text: "x"}, retry}, {{Text: "done"}, reply}}, []llm.Kind{llm.KindNoTools, ""}, "", "x|done"},
		{"refused behind text", [][]llm.Chunk{{{Text: "x"}}}, []llm.Kind{llm.KindNoTools}, llm.KindNoTools, "x"},
		{"another failure", [][]llm.Chunk{{}}, []llm.Kind{llm.KindAuth}, llm.KindAuth, ""},
		{"in the prompted form", [][]llm.Chunk{{}, {}}, []llm.Kind{llm.KindNoTools, llm.KindNoTools}, llm.KindNoTools, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &prompted.Model{Model: &player{plays: c.plays, fails: c.fails}}
			var text string
			var failed llm.Kind
			for c, err := range m.Stream(t.Context(), req) {
				if err != nil {
					failed = llm.AsError(err).Kind
				}
				if text += c.Text; c.Retry != nil {
					text += "|"
				}
			}
			if text != c.text || failed != c.want {
				t.Errorf("streamed %q, failed with %q; want %q, %q", text, failed, c.text, c.want)
			}
		})
	}
}

// TestIDs checks that ids continue after those of the history, and that a history with calls can be sent without tools.
func TestIDs(t *testing.T) {
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "now"}}, Messages: []llm.Message{
		{Role: llm.Assistant, Parts: llm.Parts{
			llm.Call{ID: "call_7", Name: "now", Args: []byte(`{}`)},
			llm.Call{ID: "toolu_9", Name: "now", Args: []byte(`{}`)},
		}},
		{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "call_7", Name: "now"}, llm.Result{CallID: "toolu_9", Name: "now"}}},
	}}
	m := &prompted.Model{Model: &talker{plain: true, pieces: []string{`[TOOL_CALLS][{"name":"now","arguments":{}},{"name":"now","arguments":{}}]`}}}
	var ids []string
	for _, c := range last(t, m, req).Calls() {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff([]string{"call_8", "call_9"}, ids); diff != "" {
		t.Error(diff)
	}
	req.Tools = nil
	if r := last(t, m, req); len(r.Calls()) > 0 {
		t.Errorf("calls without tools: %+v", r)
	}
}

func last(t *testing.T, m llm.Model, req llm.Request) *llm.Reply {
	t.Helper()
	var r *llm.Reply
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		r = c.Reply
	}
	return r
}
