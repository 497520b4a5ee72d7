package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoldenRequests(t *testing.T) {
	png := llm.Image{MediaType: "image/png", Data: []byte("png")}
	history := []llm.Message{
		{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Look <here>"}, png}},
		{Role: llm.Assistant, Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"thinking":"hm \u003c"}`), Route: "ollama/gpt-oss:20b"},
			llm.Text{Text: "Reading."},
			llm.Call{ID: "call_1_0", Name: "read", Args: json.RawMessage(`{"path": "a\u003cb"}`)},
			llm.Call{ID: "call_1_1", Name: "now"},
		}},
		{Role: llm.User, Parts: llm.Parts{
			llm.Text{Text: "Also this."},
			llm.Result{CallID: "call_1_0", Name: "read", Parts: llm.Parts{llm.Text{Text: "text"}, png}},
			llm.Result{CallID: "call_1_1", Name: "now", Parts: llm.Say("no clock"), Error: true},
		}},
	}
	tools := []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object", "properties": {} }`)}, {Name: "now"}}
	full := llm.Request{System: []string{"One.", " ", "Two."}, Tools: tools, Messages: history, Effort: "high", MaxOutput: 9000}
	wiretest.TestRequests(t, *update, map[string]wiretest.Golden{
		"full": {Model: sending(Model{ID: "gpt-oss:20b", Window: 32768}), Request: full, Valid: ollamatest.Validate},
		"bare": {
			Model:   sending(Model{ID: "qwen3-coder"}),
			Request: llm.Request{Messages: history[:1], Effort: "high"}, Valid: ollamatest.Validate,
		},
	})
}

// sending makes a model that sends with a transport.
func sending(m Model) func(http.RoundTripper) llm.Model {
	return func(tr http.RoundTripper) llm.Model {
		m.HTTP = tr
		return &m
	}
}

// decodeAll runs a stream to its end.
func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := decoder{model: "m", history: make([]llm.Message, 3), reply: llm.Reply{Route: "ollama/m"}}
	var text strings.Builder
	done, err := d.run(r, func(c llm.Chunk) bool {
		text.WriteString(c.Text)
		return true
	})
	if !done && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, text.String(), err
}

const sample = `{"message":{"role":"assistant","content":"","thinking":"h"},"done":false}
{"message":{"role":"assistant","content":"","thinking":"m"},"done":false}
{"message":{"role":"assistant","content":"Read"},"done":false}

{"message":{"role":"assistant","content":"ing."},"done":false}
{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"now","arguments":{}}},{"id":"x7","function":{"name":"read","arguments":{"a": 1}}}]},"done":false}
{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":15,"prompt_eval_cached_count":5,"eval_count":7}
`

func TestStops(t *testing.T) {
	table := map[string]string{}
	for reason, want := range map[string]string{
		"stop": "calls", "length": "length",
		"new": "other", "load": "transient", "unload": "transient",
	} {
		table[strings.Replace(sample, `"stop"`, `"`+reason+`"`, 1)] = want
	}
	wiretest.TestStops(t, wired(), table)
}

func TestUsage(t *testing.T) {
	wiretest.TestUsage(t, wired(), map[string]llm.Usage{
		`{"done":true,"done_reason":"stop","prompt_eval_count":15,"eval_count":7}` + "\n":                               {Input: 15, Output: 7},
		`{"done":true,"done_reason":"stop","prompt_eval_count":15,"prompt_eval_cached_count":15,"eval_count":0}` + "\n": {CacheRead: 15},
		`{"done":true,"done_reason":"stop","prompt_eval_count":15.0,"eval_count":"7"}` + "\n":                           {Input: 15, Output: 7},
		`{"done":true,"done_reason":"stop"}` + "\n":                                                                     {},
	})
}

func TestRefusals(t *testing.T) {
	wiretest.TestRefusals(t, "testdata/refusals.txt", sending(Model{ID: "x:7b"}))
}

func TestKeyStaysSecret(t *testing.T) {
	const key, other = "very-secret", "other-secret"
	var bases []string
	for _, answer := range []ollamatest.Answer{
		{Status: 401, Message: "bad key " + key + " and " + other},
		{Status: 500, Body: "oops: Authorization: Bearer " + key + " " + other},
		{Parts: llm.Say("x"), ErrorAt: 2, Message: "key " + key},
	} {
		bases = append(bases, ollamatest.Start(t, &ollamatest.Server{Answer: func(*http.Request, []byte) ollamatest.Answer { return answer }}))
	}
	wiretest.TestSecrets(t, []string{key, other}, func(base string) llm.Model {
		return &Model{
			ID: "m", BaseURL: base, Header: http.Header{"Api-Key": {other}},
			Key: func(context.Context) (string, error) { return key, nil },
		}
	}, bases...)
	wiretest.TestKey(t, "Authorization", func(tr http.RoundTripper, key func(context.Context) (string, error)) llm.Model {
		return &Model{ID: "m", HTTP: tr, Key: key}
	})
}

func TestKeepAlive(t *testing.T) {
	for _, window := range []int{0, 4096} { // a second question is for the window
		wiretest.TestKeepAlive(t, &ollamatest.Server{}, func(base string, tr http.RoundTripper) llm.Model {
			return &Model{ID: "m", Window: window, BaseURL: base, HTTP: tr}
		})
	}
}

// TestSilentCut lets a server read less of a prompt than it was sent.
func TestSilentCut(t *testing.T) {
	const window = 4_096
	cases := []struct {
		size, read int
		cut        bool
	}{
		{2_000, 500, false},    // fits in any case
		{13_000, 3_900, false}, // may just fit
		{13_000, 4_096, true},  // fills the window
		{13_000, 0, false},     // the server did not say
		{40_000, 2_000, true},  // less than there must have been
	}
	for _, c := range cases {
		err := overflowed(window, c.size, c.read)
		if (err != nil) != c.cut || c.cut && llm.AsError(err).Kind != llm.KindWindow {
			t.Errorf("%d bytes, %d tokens read: %v, want an error: %v", c.size, c.read, err, c.cut)
		}
	}
}

// TestExchanges runs whole exchanges whose figures matter.
func TestExchanges(t *testing.T) {
	for _, c := range []struct {
		usage llm.Usage
		size  int
		want  llm.Stop
		kind  llm.Kind
	}{
		{llm.Usage{Input: 100, Output: 50}, 400, llm.StopLength, ""},
		{llm.Usage{Input: 60, CacheRead: 40, Output: 924}, 400, llm.StopWindow, ""},
		{llm.Usage{Input: 500, CacheRead: 12, Output: 50}, 40_000, "", llm.KindWindow},
	} {
		m := &Model{ID: "m", Window: 1024, BaseURL: ollamatest.Start(t, &ollamatest.Server{Answer: func(*http.Request, []byte) ollamatest.Answer {
			return ollamatest.Answer{Parts: llm.Say("so far"), Stop: llm.StopLength, Usage: c.usage}
		}})}
		var got llm.Stop
		var kind llm.Kind
		for chunk, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{
			Role:  llm.User,
			Parts: llm.Say(strings.Repeat("word", c.size/4)),
		}}}) {
			if err != nil {
				kind = llm.AsError(err).Kind
			}
			if chunk.Reply != nil {
				got = chunk.Reply.Stop
				if chunk.Reply.Usage != c.usage {
					t.Errorf("usage %+v, want %+v", chunk.Reply.Usage, c.usage)
				}
			}
		}
		if got != c.want || kind != c.kind {
			t.Errorf("%+v: %q, %q, want %q, %q", c.usage, got, kind, c.want, c.kind)
		}
	}
}

func wired() wiretest.WireParams {
	return wiretest.WireParams{
		Decode: decodeAll, Sample: sample, Shown: "Reading.", Complete: len(sample) - 1, OwnIDs: true,
		Reply: llm.Reply{
			Parts: llm.Parts{
				llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"thinking":"hm"}`), Route: "ollama/m"},
				llm.Text{Text: "Reading."},
				llm.Call{ID: "call_3_0", Name: "now", Args: json.RawMessage(`{}`)},
				llm.Call{ID: "x7", Name: "read", Args: json.RawMessage(`{"a":1}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, CacheRead: 5, Output: 7}, Route: "ollama/m",
		},
		Check: func(t testing.TB, whole llm.Reply, _ string) {
			if sent := encode(llm.Info{Provider: "ollama", Model: "m"},
				llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: whole.Parts}}}); !json.Valid(sent) {
				t.Fatalf("the reply can't be sent back: %s", sent)
			}
		},
	}
}

func TestCutAnywhere(t *testing.T) { wiretest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	wiretest.FuzzWire(f, wired(), `{"error":"an error was encountered while running the model"}`+"\n")
}
