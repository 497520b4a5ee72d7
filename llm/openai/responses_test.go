package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

// talk is a conversation with everything in it that a request can hold. The
// thoughts are those of route.
func talk(route string) llm.Request {
	opaque := func(items string) json.RawMessage { return json.RawMessage(items) }
	return llm.Request{
		System: []string{"One.", " ", "Two."}, Effort: "low", MaxOutput: 900, Session: "s-1",
		Tools: []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object", "properties": {} }`)}, {Name: "now"}},
		Messages: []llm.Message{
			{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Look <here>"}, llm.Image{MediaType: "image/png", Data: []byte("png")}}},
			{Role: llm.Assistant, Parts: llm.Parts{
				llm.Reasoning{
					Text: "hm", Route: route,
					Opaque: opaque(`[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"h\u003cm"}],"encrypted_content":"e1"},` +
						`{"type":"message","id":"msg_1","phase":"commentary"},{"type":"function_call","id":"fc_1","call_id":"call_1"},` +
						`{"type":"function_call","id":"fc_2","call_id":"` + strings.Repeat("x", 65) + `"}]`),
				},
				llm.Reasoning{Text: "x", Opaque: opaque(`{"type":"thinking"}`), Route: "other/model"},
				llm.Text{Text: "Reading."},
				llm.Call{ID: "call_1", Name: "read", Args: json.RawMessage(`{"path": "a\u003cb"}`)},
				llm.Call{ID: strings.Repeat("x", 65), Name: "read", Args: json.RawMessage(`{}`)},
			}},
			{Role: llm.User, Parts: llm.Parts{
				llm.Text{Text: "Also this."},
				llm.Result{CallID: "call_1", Name: "read", Parts: llm.Parts{
					llm.Text{Text: "text"},
					llm.Image{MediaType: "image/png", Data: []byte("png")},
				}},
				llm.Result{CallID: strings.Repeat("x", 65), Name: "read", Parts: llm.Say("no such file"), Error: true},
			}},
			{Role: llm.Assistant, Parts: llm.Parts{
				llm.Reasoning{Route: route, Opaque: opaque(`[{"type":"message"},{"type":"message","phase":"final_answer"}]`)},
				llm.Text{Text: "Between."},
				llm.Text{Text: "The end."},
				llm.Reasoning{Text: "cut", Route: route, Opaque: opaque(`[{"id":"rs_9","type":"reasoning","summary":[],"encrypted_content":"e9"}]`)},
			}},
			{Role: llm.User, Parts: llm.Say("Go on.")},
			{Role: llm.User, Parts: llm.Say("Now.")},
		},
	}
}

// TestOtherWire checks that thoughts of the other wire are left out where both have the same route.
func TestOtherWire(t *testing.T) {
	m := &Model{ID: "gpt-5"}
	ask := func(opaque string) llm.Request {
		return llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: llm.Parts{
			llm.Reasoning{Route: m.Info().Route(), Opaque: json.RawMessage(opaque)}, llm.Call{ID: "a", Name: "now", Args: json.RawMessage(`{}`)},
		}}}}
	}
	for _, body := range [][]byte{
		encoded(m, ask(`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}]}]`)),
		encodedResponses((*Responses)(m), ask(`{"reasoning":"secret"}`)),
	} {
		if !json.Valid(body) || strings.Contains(string(body), "secret") {
			t.Errorf("got %s", body)
		}
	}
}

func TestReasons(t *testing.T) {
	for id, want := range map[string]bool{
		"gpt-5": true, "gpt-6-sol": true, "o3": true, "openai/gpt-5.4": true, "gpt-5-chat-latest": false,
		"gpt-4.1": false, "olmo-3": false, "gpt-oss-20b": false, "x/openchat-5": false,
	} {
		if got := reasons(id); got != want {
			t.Errorf("reasons(%q) = %v", id, got)
		}
	}
}

// sse is one event.
func sse(kind, fields string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + fields + "}\n\n"
}

func doneItem(index int, item string) string {
	return sse("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, item))
}

const (
	completed = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n"
	hello     = `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"hello"}]}`
)

func decodeResponses(r io.Reader) (llm.Reply, string, error) {
	d := newResponseDecoder("p/m", earlier(), newAliases(earlier(), idUpTo64))
	var shown strings.Builder
	ok, err := d.read(r, true, func(c llm.Chunk) bool {
		shown.WriteString(c.Text + c.Reasoning)
		if c.Call != nil {
			shown.WriteString("<" + c.Call.Name + ">" + c.Call.Args)
		}
		return true
	})
	if !ok && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, shown.String(), err
}

func TestResponsesStops(t *testing.T) {
	incomplete := func(details string) string {
		return doneItem(0, hello) + sse("response.incomplete", `,"response":{"status":"incomplete","incomplete_details":`+details+`,"output":[]}`)
	}
	late := func(code, message string) string {
		return doneItem(0, hello) + sse("response.failed", `,"response":{"status":"failed","error":{"code":"`+
			code+`","message":"`+message+`"},"output":[]}`)
	}
	wiretest.TestStops(t, wiredResponses(), map[string]string{
		doneItem(0, hello) + completed: "end",
		sse("response.output_text.done", `,"output_index":0,"text":"hello"`) + completed:                                                                          "end",
		sse("response.output_text.delta", `,"output_index":0,"delta":"hello"`) + sse("response.output_text.done", `,"output_index":0,"text":"hello"`) + completed: "end",
		sse("response.output_item.added", `,"output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}`) +
			sse("response.function_call_arguments.done", `,"output_index":0,"arguments":"{}"`) + completed: "calls",
		sse("response.completed", `,"response":{"output":[`+hello+`]}`):                                "end", // no status
		doneItem(0, `{"type":"message","content":[{"type":"refusal","refusal":"hello"}]}`) + completed: "refusal",
		sse("response.refusal.delta", `,"output_index":0,"delta":"hello"`) + completed:                 "refusal",
		doneItem(0, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`) + completed:  "calls",
		incomplete(`{"reason":"max_output_tokens"}`):                                                   "length",
		incomplete(`{"reason":"content_filter"}`):                                                      "refusal",
		incomplete(`{"reason":"brand_new"}`):                                                           "other",
		incomplete(`null`):                                                                             "other",
		doneItem(0, hello):                                                                             "stream_cut",
		doneItem(0, hello) + "data: [DONE]\n\n":                                                        "stream_cut",
		"":                                                                                             "stream_cut",
		"data: {broken\n\n":                                                                            "stream_cut",
		"data: {\"type\":\"response.completed\"}\n\n":                                                  "stream_cut",
		sse("response.output_item.done", `,"item":{"type":"message","content":"x"}`) + completed: "stream_cut",
		late("server_error", "oops"):                                                                        "transient",
		late("usage_limit_reached", "The usage limit has been reached"):                                     "quota",
		late("insufficient_quota", "You exceeded your current quota"):                                       "billing",
		late("rate_limit_exceeded", "Please try again in 2s"):                                               "rate_limited",
		late("invalid_image_format", "bad image"):                                                           "invalid_history",
		late("invalid_prompt", "Your prompt was flagged"):                                                   "content_refused",
		late("bio_policy", "no"):                                                                            "content_refused",
		late("context_length_exceeded", "Your input exceeds the context window of this model"):              "context_overflow",
		sse("response.failed", `,"response":{"status":"failed","error":null,"output":[]}`):                  "transient",
		sse("response.cancelled", `,"response":{"status":"cancelled"}`):                                     "transient",
		sse("error", `,"code":"server_is_overloaded","message":"busy","param":null`):                        "overloaded",
		sse("error", `,"error":{"type":"too_many_requests","code":"rate_limit_exceeded","message":"slow"}`): "rate_limited",
		"data: {\"error\":{\"code\":502,\"message\":\"Provider returned error\"}}\n\n":                      "transient",
	})
	_, _, err := decodeResponses(strings.NewReader(sse("error", `,"message":"busy"`)))
	if e := llm.AsError(err); e.Code != "" || e.Message != "busy" {
		t.Errorf("got code %q, message %q", e.Code, e.Message)
	}
}

// TestResponsesItems checks items, well-formed or not.
func TestResponsesItems(t *testing.T) {
	thought := `{"type":"reasoning","id":"rs_1","encrypted_content":"e","summary":[{"type":"summary_text","text":"a"},` +
		`{"type":"summary_text","text":"b"}]}`
	call := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"x\":1}"}`
	for name, c := range map[string]struct{ stream, want, shown string }{
		"thought and call": {
			doneItem(0, thought) + doneItem(1, call) + completed,
			`[{"type":"reasoning","text":"a\n\nb","opaque":[` + thought +
				`,{"type":"function_call","id":"fc_1","call_id":"call_1"}],"route":"p/m"},` +
				`{"type":"call","id":"call_1","name":"f","args":{"x":1}}]`,
			"a\n\nb<f>{\"x\":1}",
		},
		"streamed sections": {
			sse("response.output_item.added", `,"output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"begun","summary":[]}`) +
				sse("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"a"`) +
				sse("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":1,"delta":"b"`) + doneItem(0, thought) + completed,
			`[{"type":"reasoning","text":"a\n\nb","opaque":[` + thought + `],"route":"p/m"}]`, "a\n\nb",
		},
		"never done": { // begun, so that what it holds may be incomplete
			sse("response.output_item.added", `,"output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"begun","summary":[]}`) +
				sse("response.reasoning_summary_text.delta", `,"output_index":0,"delta":"a"`) +
				sse("response.output_item.added",
					`,"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":""}`) +
				sse("response.function_call_arguments.delta", `,"output_index":1,"delta":"{\"x\":1}"`) + completed,
			`[{"type":"reasoning","text":"a","route":"p/m"},{"type":"call","id":"call_1","name":"f","args":{"x":1}}]`, "a<f><f>{\"x\":1}",
		},
		"nothing to send back": {
			doneItem(0, `{"type":"reasoning","id":"rs_1","summary":[]}`) + doneItem(1, call) + completed,
			`[{"type":"call","id":"call_1","name":"f","args":{"x":1}}]`, "<f>{\"x\":1}",
		},
		"open thought": {
			doneItem(0, `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`) + doneItem(1, hello) +
				completed,
			`[{"type":"reasoning","text":"hm","opaque":[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text",` +
				`"text":"hm"}]},` +
				`{"type":"message","id":"msg_1"}],"route":"p/m"},{"type":"text","text":"hello"}]`, "hmhello",
		},
		"phase without a thought": {
			doneItem(0, hello) + doneItem(1,
				`{"type":"message","id":"msg_2","phase":"final_answer","content":[{"type":"output_text","text":"end"}]}`) + completed,
			`[{"type":"text","text":"hello"},{"type":"reasoning","opaque":[{"type":"message","phase":"final_answer"}],"route":"p/m"},` +
				`{"type":"text","text":"end"}]`, "helloend",
		},
		"phase before a call": {
			doneItem(0, `{"type":"message","id":"msg_1","phase":"commentary","content":[{"type":"output_text","text":"hm"}]}`) + doneItem(1, call) +
				completed,
			`[{"type":"reasoning","opaque":[{"type":"message","phase":"commentary"}],"route":"p/m"},{"type":"text","text":"hm"},` +
				`{"type":"call","id":"call_1","name":"f","args":{"x":1}}]`, "hm<f>{\"x\":1}",
		},
		"less in the end": {
			doneItem(0, thought) + sse("response.completed",
				`,"response":{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]}]}`),
			`[{"type":"reasoning","text":"a\n\nb","opaque":[` + thought + `],"route":"p/m"}]`, "a\n\nb",
		},
		"only in the end": {
			sse("response.completed", `,"response":{"status":"completed","output":[`+hello+`]}`),
			`[{"type":"text","text":"hello"}]`, "hello",
		},
		"index not counted": {
			doneItem(0, hello) + doneItem(0, call) + sse("response.completed", `,"response":{"status":"completed","output":[`+hello+`,`+call+`]}`),
			`[{"type":"text","text":"hello"},{"type":"call","id":"call_1","name":"f","args":{"x":1}}]`, "hello<f>{\"x\":1}",
		},
		"same ids": {
			doneItem(0, `{"type":"function_call","call_id":"call_0","name":"f","arguments":{"x":1}}`) +
				doneItem(1, `{"type":"function_call","name":"f","arguments":""}`) + completed,
			`[{"type":"call","id":"call_1_0","name":"f","args":{"x":1}},{"type":"call","id":"call_1_1","name":"f","args":{}}]`, "<f>{\"x\":1}<f>",
		},
		"not known": {
			sse("response.brand_new.delta", `,"delta":{"x":1}`) + ": comment\n\n" +
				doneItem(0, `{"type":"brand_new_call","summary":"s","content":7,"arguments":[1]}`) + doneItem(1, hello) + completed,
			`[{"type":"text","text":"hello"}]`, "hello",
		},
	} {
		r, shown, err := decodeResponses(strings.NewReader(c.stream))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := json.Marshal(r.Parts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" || shown != c.shown {
			t.Errorf("%s: shown %q, want %q\n%s", name, shown, c.shown, diff)
		}
	}
}

// TestPhases checks that phases come back, with a thought and without one.
func TestPhases(t *testing.T) {
	var sent []string
	turns := []llm.Parts{
		{llm.Text{Text: "Looking."}, llm.Call{ID: "a", Name: "now", Args: json.RawMessage(`{}`)}},
		{llm.Reasoning{Text: "hm"}, llm.Text{Text: "Noon."}},
		llm.Say("Bye."),
	}
	m := &Responses{ID: "gpt-5", BaseURL: openaitest.StartResponses(t,
		&openaitest.Responses{Phases: true, Answer: func(_ *http.Request, body []byte) openaitest.Answer {
			sent = append(sent, string(body))
			return openaitest.Answer{Parts: turns[len(sent)-1]}
		}})}
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}
	for range turns {
		r, err := ask(t, m, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: r.Parts})
		next := llm.Message{Role: llm.User, Parts: llm.Say("Go on.")}
		for _, c := range r.Calls() {
			next.Parts = append(next.Parts, llm.Result{CallID: c.ID, Parts: llm.Say("12:00")})
		}
		req.Messages = append(req.Messages, next)
	}
	for _, want := range []string{
		`{"type":"message","role":"assistant","content":"Looking.","phase":"commentary"}`,
		`"content":[{"type":"output_text","text":"Noon.","annotations":[]}],"phase":"final_answer"}`,
	} {
		if !strings.Contains(sent[2], want) {
			t.Errorf("%s\nis not in\n%s", want, sent[2])
		}
	}
}

// TestLeftOpen checks that a reply does not wait for the end of a connection after the terminal event.
func TestLeftOpen(t *testing.T) {
	for _, last := range []string{completed, sse("response.failed",
		`,"response":{"status":"failed","error":{"code":"server_error","message":"oops"}}`)} {
		pr, pw := io.Pipe()
		go func() { _, _ = io.WriteString(pw, doneItem(0, hello)+last) }()
		r, _, err := decodeResponses(pr)
		if (last == completed) != (err == nil) || err == nil && r.Parts.Text() != "hello" {
			t.Errorf("got %+v, %v", r, err)
		}
		_ = pr.Close()
	}
}

// TestLeftOpenByServer checks that the connection is given up after a failure, at once and not by a deadline,
// though the server leaves it open.
func TestLeftOpenByServer(t *testing.T) {
	for _, last := range []string{completed, sse("response.failed",
		`,"response":{"status":"failed","error":{"code":"server_error","message":"oops"}}`)} {
		synctest.Test(t, func(t *testing.T) {
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, doneItem(0, hello)+last) }()
			m := &Responses{ID: "m", HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
				context.AfterFunc(r.Context(), func() { _ = pr.CloseWithError(r.Context().Err()) }) // as a transport does
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: pr}, nil
			})}
			start := time.Now()
			if _, e := ask(t, m, greeting()); (e == nil) != (last == completed) || time.Since(start) > time.Second {
				t.Errorf("%v after %v", e, time.Since(start))
			}
		})
	}
}

// TestThoughtsGone checks that items go without the ids that bind them to a thought when the thought is not there any
// more.
func TestThoughtsGone(t *testing.T) {
	m := &Responses{ID: "gpt-6-sol"}
	req := talk(m.Info().Route())
	for i, message := range req.Messages {
		req.Messages[i].Parts = slices.DeleteFunc(message.Parts, func(p llm.Part) bool {
			_, ok := p.(llm.Reasoning)
			return ok
		})
	}
	got := encodedResponses(m, req)
	if err := openaitest.ValidateResponses(got); err != nil || regexp.MustCompile(`"id":"(fc|rs|msg)_`).Match(got) {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestResponsesNotStreamed(t *testing.T) {
	server := &openaitest.Responses{NotStreamed: true, Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{
			Parts: llm.Parts{llm.Text{Text: "hello"}, llm.Call{ID: "a", Name: "now", Args: json.RawMessage(`{}`)}},
			Usage: llm.Usage{Input: 5, Output: 2},
		}
	}}
	r, err := ask(t, &Responses{ID: "m", BaseURL: openaitest.StartResponses(t, server)}, greeting())
	if err != nil || r.Parts.Text() != "hello" || len(r.Calls()) != 1 || r.Stop != llm.StopCalls || r.Usage.Input != 5 || r.RequestID == "" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestResponsesUsage(t *testing.T) {
	wiretest.TestUsage(t, wiredResponses(), map[string]llm.Usage{
		sse("response.completed", `,"response":{"status":"completed","output":[],"usage":{"input_tokens":100,`+
			`"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"output_tokens":9,`+
			`"output_tokens_details":{"reasoning_tokens":4}}}`): {
			Input: 10, CacheRead: 60, CacheWrite: 30, Output: 9, Reasoning: 4,
		},
		sse("response.completed", `,"response":{"status":"completed","output":[],"service_tier":"priority","usage":{"input_tokens":100}}`): {
			Input: 100, Tier: "priority",
		},
		sse("response.completed", `,"response":{"status":"completed","output":[],"service_tier":"default","usage":{"input_tokens":100}}`): {Input: 100},
	})
	m := &Responses{ID: "m", HTTP: wiretest.Canned(doneItem(0, hello) + completed)}
	if r, err := ask(t, m, greeting()); err != nil || !r.Usage.Estimated || r.Usage.Output != 2 || r.Usage.Input == 0 {
		t.Errorf("got %+v, %v", r.Usage, err)
	}
}

func TestResponsesKeyStaysSecret(t *testing.T) {
	const key, other = "sk-very-secret", "azure-secret"
	var bases []string
	for _, answer := range []openaitest.Answer{
		{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided: " + key + ", " + other},
		{Parts: llm.Say("x"), ErrorAt: 3, Message: "key " + key},
	} {
		for _, asFailed := range []bool{true, false} {
			vendor := &openaitest.Responses{Failed: asFailed, Answer: func(*http.Request, []byte) openaitest.Answer { return answer }}
			bases = append(bases, openaitest.StartResponses(t, vendor))
		}
	}
	wiretest.TestSecrets(t, []string{key, other}, func(base string) llm.Model {
		return &Responses{
			ID: "m", BaseURL: base, Header: http.Header{"Api-Key": {other}},
			Key: func(context.Context) (string, error) { return key, nil },
		}
	}, bases...)
}

func sampleResponse() string {
	return sse("response.created", `,"response":{"status":"in_progress","output":[]}`) +
		sse("response.output_item.added", `,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`) +
		sse("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"hm"`) +
		doneItem(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"e","summary":[{"type":"summary_text","text":"hm"}]}`) +
		sse("response.output_item.added", `,"output_index":1,"item":{"type":"message","id":"msg_1","phase":"commentary","content":[]}`) +
		sse("response.output_text.delta", `,"output_index":1,"delta":"hé😀"`) +
		doneItem(1, `{"type":"message","id":"msg_1","phase":"commentary","content":[{"type":"output_text","text":"hé😀"}]}`) +
		sse("response.output_item.added",
			`,"output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":""}`) +
		sse("response.function_call_arguments.delta", `,"output_index":2,"delta":"{\"x\":1}"`) +
		doneItem(2, `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}"}`) +
		sse("response.completed", `,"response":{"status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":5}}`)
}

// replayable holds that a decoded reply can be stored and sent again.
func replayable(t testing.TB, r llm.Reply) {
	t.Helper()
	ids := map[string]bool{}
	next := llm.Message{Role: llm.User, Parts: llm.Say("Go on.")}
	for _, c := range r.Calls() {
		var object map[string]any
		if json.Unmarshal(c.Args, &object) != nil || object == nil || c.ID == "" || ids[c.ID] {
			t.Fatalf("bad call: %+v", c)
		}
		ids[c.ID] = true
		next.Parts = append(next.Parts, llm.Result{CallID: c.ID, Name: c.Name})
	}
	if _, err := json.Marshal(r.Parts); err != nil {
		t.Fatal(err)
	}
	body := encodedResponses(&Responses{Provider: "p", ID: "m", BaseURL: "http://x"},
		llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: r.Parts}, next}})
	if !json.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
}

func wiredResponses() wiretest.WireParams {
	sample := sampleResponse()
	return wiretest.WireParams{
		Decode: decodeResponses, Sample: sample, Shown: "hmhé😀<f><f>{\"x\":1}", Complete: len(sample) - 2,
		Reply: llm.Reply{
			Parts: llm.Parts{
				llm.Reasoning{Text: "hm", Route: "p/m", Opaque: json.RawMessage(
					`[{"type":"reasoning","id":"rs_1","encrypted_content":"e","summary":[{"type":"summary_text","text":"hm"}]},` +
						`{"type":"message","id":"msg_1","phase":"commentary"},{"type":"function_call","id":"fc_1","call_id":"a"}]`)},
				llm.Text{Text: "hé😀"},
				llm.Call{ID: "a", Name: "f", Args: json.RawMessage(`{"x":1}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, Output: 5}, Route: "p/m",
		},
		Check: func(t testing.TB, whole llm.Reply, _ string) { replayable(t, whole) },
	}
}

func TestResponsesCutAnywhere(t *testing.T) { wiretest.TestCuts(t, wiredResponses()) }

func FuzzDecodeResponses(f *testing.F) {
	p := wiredResponses()
	wiretest.FuzzWire(f, p, strings.ReplaceAll(p.Sample, `"output_index":2`, `"output_index":-1`))
}
