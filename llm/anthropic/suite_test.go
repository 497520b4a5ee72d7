package anthropic_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
)

var update = flag.Bool("update", false, "write the golden files anew")

func wired() wiretest.WireParams {
	const route = "anthropic/m"
	return wiretest.WireParams{
		Decode: anthropic.DecodeAll, Sample: anthropic.Sample,
		Complete: strings.Index(anthropic.Sample, `"output_tokens":7}}`) + len(`"output_tokens":7}}`),
		Reply: llm.Reply{
			ID: "msg_1",
			Parts: llm.Parts{
				llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`), Route: route},
				llm.Reasoning{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"xyz"}`), Route: route},
				llm.Call{ID: "toolu_1", Name: "now", Args: json.RawMessage(`{}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, CacheRead: 5, Output: 7}, Route: route,
		},
	}
}

func TestStops(t *testing.T) {
	table := map[string]string{
		ending(`{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"no"}}`): "refusal",
		"event: error\ndata: {\"detail\":\"the upstream is out of order\"}\n\n":                                     "transient",
		"event: error\ndata: out of order\n\n":                                                                      "transient",
	}
	for reason, want := range map[string]string{
		"end_turn": "end", "stop_sequence": "end", "tool_use": "calls", "max_tokens": "length", "pause_turn": "pause",
		"refusal": "refusal", "sensitive": "refusal", "model_context_window_exceeded": "window", "brand_new": "other",
	} {
		table[ending(`{"stop_reason":"`+reason+`"}`)] = want
	}
	p := wired()
	p.Check = func(t testing.TB, reply llm.Reply, shown string) {
		if reply.Parts.Text() != "so far" || shown != "so far" {
			t.Errorf("%s: the text is %q, shown %q", reply.Stop, reply.Parts.Text(), shown)
		}
	}
	wiretest.TestStops(t, p, table)
}

// ending is a stream with some text that ends in this way.
func ending(delta string) string {
	return `data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":` + delta + `,"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`
}

// TestUsage reads the figures in each of their forms: cumulative, and the writes
// to the cache in one or by how long they live.
func TestUsage(t *testing.T) {
	table := map[string]llm.Usage{}
	lifetimes := `"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}`
	for usage, want := range map[string]llm.Usage{
		`{"input_tokens":3.0,"output_tokens":"7"}`:                                                  {Input: 3, CacheRead: 5, Output: 7},
		`{"input_tokens":3,"output_tokens":7}`:                                                      {Input: 3, CacheRead: 5, Output: 7},
		`{"output_tokens":7,"cache_creation_input_tokens":9,` + lifetimes + `}`:                     {Input: 10, CacheRead: 5, CacheWrite: 9, CacheHour: 5, Output: 7},
		`{"output_tokens":7,` + lifetimes + `}`:                                                     {Input: 10, CacheRead: 5, CacheWrite: 9, CacheHour: 5, Output: 7},
		`{"output_tokens":7,"service_tier":"standard","speed":"standard","inference_geo":"global"}`: {Input: 10, CacheRead: 5, Output: 7},
		`{"output_tokens":7,"service_tier":"batch","speed":"fast","inference_geo":"us"}`:            {Input: 10, CacheRead: 5, Output: 7, Tier: "batch fast region"},
		`{"output_tokens":7,"service_tier":"<b>"}`:                                                  {Input: 10, CacheRead: 5, Output: 7, Tier: "unknown"},
		`{"output_tokens":7,"output_tokens_details":{"thinking_tokens":6},"server_tool_use":{"web_search_requests":1}}`: {
			Input: 10, CacheRead: 5, Output: 7, Reasoning: 6,
		},
	} {
		table[strings.Replace(anthropic.Sample, `{"output_tokens":7}`, usage, 1)] = want
	}
	wiretest.TestUsage(t, wired(), table)
}

func TestRefusals(t *testing.T) {
	wiretest.TestRefusals(t, "testdata/refusals.txt", sending(anthropic.Model{ID: "m"}))
}

// sending makes a model that sends with a transport.
func sending(m anthropic.Model) func(http.RoundTripper) llm.Model {
	return func(tr http.RoundTripper) llm.Model {
		m.HTTP = tr
		return &m
	}
}

func TestGoldenRequests(t *testing.T) {
	route := "anthropic/claude-opus-5-5"
	history := []llm.Message{
		{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Look <here>"}, llm.Image{MediaType: "image/png", Data: []byte("png")}}},
		{Role: llm.Assistant, Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm \u003c","signature":"c2ln"}`), Route: route},
			llm.Reasoning{Text: "x", Opaque: json.RawMessage(`{"type":"thinking"}`), Route: "other/model"},
			llm.Text{Text: "Reading."},
			llm.Call{ID: "toolu_1", Name: "read", Args: json.RawMessage(`{"path": "a\u003cb"}`)},
			llm.Call{ID: "bad id!", Name: "read", Args: json.RawMessage(`{}`)},
		}},
		{Role: llm.User, Parts: llm.Parts{
			llm.Text{Text: "Also this."},
			llm.Result{CallID: "toolu_1", Name: "read", Parts: llm.Parts{
				llm.Text{Text: "text"},
				llm.Image{MediaType: "image/png", Data: []byte("png")},
			}},
			llm.Result{CallID: "bad id!", Name: "read", Error: true},
		}},
		{Role: llm.User, Parts: llm.Say("Go on.")},
	}
	tools := []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "now"}}
	full := llm.Request{System: []string{"One.", " ", "Two."}, Tools: tools, Messages: history, Effort: "high", MaxOutput: 9000}
	bare := llm.Request{Messages: history[:1]}
	noTools := full
	noTools.Tools = nil
	paused := llm.Request{Messages: []llm.Message{history[0], {Role: llm.Assistant, Parts: llm.Say("So \n")}}}
	row := func(id string, req llm.Request) wiretest.Golden {
		return wiretest.Golden{Model: sending(anthropic.Model{ID: id}), Request: req}
	}
	cloud := func(dialect, id string) wiretest.Golden {
		return wiretest.Golden{Model: sending(anthropic.Model{ID: id, Dialect: dialect, BaseURL: "http://x"}), Request: full}
	}
	wiretest.TestRequests(t, *update, map[string]wiretest.Golden{
		"full-adaptive": row("claude-opus-5-5", full),
		"full-budget":   row("claude-haiku-4-5", full),
		"bare":          row("claude-opus-4-8", bare),
		"history-tools": row("claude-opus-4-8", noTools),
		"paused":        row("claude-opus-4-8", paused),
		"bedrock":       cloud("bedrock", "us.anthropic.claude-opus-5-5-v1:0"),
		"vertex":        cloud("vertex", "claude-opus-5-5"),
		"markers-near":  row("claude-opus-4-8", anthropic.LongTurn(17, "One.", "Two.", "Three.")),
		"markers-far":   row("claude-opus-4-8", anthropic.LongTurn(18, "One.", "Two.", "Three.")),
		"markers-one":   row("claude-opus-4-8", anthropic.LongTurn(18, "One.")),
		"markers-none":  row("claude-opus-4-8", anthropic.LongTurn(18)),
	})
}

func TestCutAnywhere(t *testing.T) { wiretest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	wiretest.FuzzWire(f, wired(), `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n")
}

func TestKeyStaysSecret(t *testing.T) {
	const key, bearer = "sk-ant-very-secret", "other-secret"
	var bases []string
	for _, answer := range []anthropictest.Answer{
		{Status: 401, Type: "authentication_error", Message: "bad key " + key + " and " + bearer},
		{Status: 500, Body: "oops: x-api-key: " + key + " Bearer " + bearer},
		{Parts: llm.Say("x"), ErrorAt: 2, Type: "api_error", Message: "key " + key},
	} {
		bases = append(bases, anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request,
			[]byte,
		) anthropictest.Answer {
			return answer
		}}))
	}
	wiretest.TestSecrets(t, []string{key, bearer}, func(base string) llm.Model {
		return &anthropic.Model{
			ID: "m", BaseURL: base, Header: http.Header{"Authorization": {"Bearer " + bearer}},
			Key: func(context.Context) (string, error) { return key, nil },
		}
	}, bases...)
}

// TestKey sends the key the vendor's way, or as a bearer token.
func TestKey(t *testing.T) {
	for header, bearer := range map[string]bool{"X-Api-Key": false, "Authorization": true} {
		wiretest.TestKey(t, header, func(tr http.RoundTripper, key func(context.Context) (string, error)) llm.Model {
			return &anthropic.Model{ID: "m", Bearer: bearer, HTTP: tr, Key: key}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	wiretest.TestKeepAlive(t, &anthropictest.Server{}, func(base string, tr http.RoundTripper) llm.Model {
		return &anthropic.Model{ID: "m", BaseURL: base, HTTP: tr}
	})
}
