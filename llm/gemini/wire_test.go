package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// body returns the request that the model sends.
func body(m *Model, req llm.Request) []byte {
	return encode(m.Info(), wire.ToolNames(req, toolName), req)
}

// sending makes a model that sends with a transport.
func sending(id string) func(http.RoundTripper) llm.Model {
	return func(tr http.RoundTripper) llm.Model { return &Model{ID: id, HTTP: tr} }
}

func TestGoldenRequests(t *testing.T) {
	route := "gemini/gemini-3.8-flash"
	own := func(opaque string) llm.Reasoning { return llm.Reasoning{Opaque: json.RawMessage(opaque), Route: route} }
	png := llm.Image{MediaType: "image/png", Data: []byte("png")}
	history := []llm.Message{
		{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Look <here>"}, png, llm.Image{MediaType: "image/gif", Data: []byte("gif")}}},
		{Role: llm.Assistant, Parts: llm.Parts{
			own(`{"text":"hm \u003c","thought":true}`),
			llm.Reasoning{Text: "x", Opaque: json.RawMessage(`{"type":"thinking"}`), Route: "other/model"},
			own(`{"on":"text","thoughtSignature":"dGV4dA=="}`),
			llm.Text{Text: "Reading."},
			own(`{"on":"call","thoughtSignature":"Y2FsbA=="}`),
			llm.Call{ID: "a1", Name: "read", Args: json.RawMessage(`{"path": "a\u003cb"}`)},
			llm.Call{ID: "bad id!", Name: "read", Args: json.RawMessage(`{}`)},
		}},
		{Role: llm.User, Parts: llm.Parts{
			llm.Text{Text: "Also this."},
			llm.Result{CallID: "bad id!", Parts: llm.Say("no"), Error: true},
			llm.Result{CallID: "a1", Name: "read", Parts: llm.Parts{
				llm.Text{Text: "one"},
				png,
				llm.Text{Text: "two"},
				llm.Image{MediaType: "image/gif", Data: []byte("gif")},
			}},
		}},
		{Role: llm.User, Parts: llm.Say("Go on.")},
		{Role: llm.Assistant, Parts: llm.Parts{
			own(`{"text":"\n","thoughtSignature":"YmxhbmsK"}`),
			llm.Text{Text: "\n"},
			own(`{"on":"call","thoughtSignature":"b3JwaGFu"}`), // its call is gone
		}},
		{Role: llm.User, Parts: llm.Say("And?")},
		{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "toolu_1", Name: "now"}, llm.Call{ID: "toolu_2", Name: "now"}}},
		{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "toolu_1", Name: "now"}, llm.Result{CallID: "toolu_2", Name: "now"}}},
	}
	tools := []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "now"}}
	full := llm.Request{System: []string{"One.", " ", "Two."}, Tools: tools, Messages: history, Effort: "high", MaxOutput: 9000}
	noTools := full
	noTools.Tools, noTools.Effort, noTools.MaxOutput = nil, "", 0
	wiretest.TestRequests(t, *update, map[string]wiretest.Golden{
		"full-level":    {Model: sending("gemini-3.8-flash"), Request: full},
		"full-budget":   {Model: sending("gemini-2.5-pro"), Request: full},
		"history-tools": {Model: sending("gemini-3.8-flash"), Request: noTools},
		"bare":          {Model: sending("gemma-4-31b-it"), Request: llm.Request{Messages: history[:1]}},
	})
}

func TestGeneration(t *testing.T) {
	for id, want := range map[string]float64{
		"gemini-4-argon": 4, "models/gemini-3.8-flash": 3.8, "gemini-3.5-flash-lite": 3.5, "gemini-2.5-flash-001": 2.5,
		"gemini-flash-latest": 99, "gemma-4-31b-it": 0,
	} {
		if got := generation(id); got != want {
			t.Errorf("generation(%q) = %v, want %v", id, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	if got := (&Model{ID: "models/gemini-3.8-flash"}).Info(); got.Provider != "gemini" ||
		got.Window != 1_048_576 || len(got.Prices) != 2 || !got.Images {
		t.Errorf("got %+v", got)
	}
	if own := (&Model{ID: "x", Window: 5}).Info(); own.Window != 5 || own.Images {
		t.Errorf("got %+v", own)
	}
}

func TestURL(t *testing.T) {
	vertex := "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"
	for base, want := range map[string]string{
		"":                    "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
		"http://proxy:8080/":  "http://proxy:8080/v1beta/models/m:streamGenerateContent?alt=sse",
		"http://proxy/gem/v1": "http://proxy/gem/v1/models/m:streamGenerateContent?alt=sse",
		vertex:                vertex + "/models/m:streamGenerateContent?alt=sse",
	} {
		if got := (&Model{ID: "models/m", BaseURL: base}).url(); got != want {
			t.Errorf("url with base %q = %q, want %q", base, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	wiretest.TestRefusals(t, "testdata/refusals.txt", sending("m"))
}

// decodeAll runs a stream to its end.
func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := newDecoder("gemini/gemini-3-m", wire.NewAliases(toolName), make([]llm.Message, 3))
	var text strings.Builder
	done, err := d.run(serverSent(r), func(c llm.Chunk) bool {
		text.WriteString(c.Text)
		return true
	})
	if done == nil && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, text.String(), err
}

const sample = `data: {"candidates":[{"content":{"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":15},"responseId":"r1"}

data: {}

data: {"candidates":[{"content":{"parts":[{"text":"h","thought":true}],"role":"model"}}]}

data: {"candidates":[{"content":{"parts":[{"text":"m","thought":true}],"role":"model"}}]}

data: {"candidates":[{"content":{"parts":[{"text":"Read"}],"role":"model"}}]}

data: {"candidates":[{"content":{"parts":[{"text":"ing."},{"text":" Now","thoughtSignature":"dGV4dA=="},{"text":" go"}],"role":"model"}}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"now"},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"id":"x7","name":"read","args":{"a": 1}}}],"role":"model"}}],"usageMetadata":{"promptTokenCount":15,"cachedContentTokenCount":5,"candidatesTokenCount":4}}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"ZW5k"}],"role":"model"}}]}

data: {"candidates":[{"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":7,"thoughtsTokenCount":3,"toolUsePromptTokenCount":2}}

`

// TestSignaturesReturn checks that each signature of the sample goes back on exactly the part it came with, and to no
// other route, where the first call gets the sentinel instead.
func TestSignaturesReturn(t *testing.T) {
	reply, _, err := decodeAll(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: reply.Parts}}}
	for _, c := range []struct{ provider, want string }{
		{"gemini", `[{"text":"hm","thought":true},{"text":"Reading."},{"text":" Now","thoughtSignature":"dGV4dA=="},{"text":" go"},` +
			`{"functionCall":{"id":"call_3_4","name":"now","args":{}},"thoughtSignature":"Y2FsbA=="},` +
			`{"functionCall":{"id":"x7","name":"read","args":{"a":1}}},{"text":"","thoughtSignature":"ZW5k"}]`},
		{"other", `[{"text":"Reading."},{"text":" Now"},{"text":" go"},` +
			`{"functionCall":{"id":"call_3_4","name":"now","args":{}},"thoughtSignature":"skip_thought_signature_validator"},` +
			`{"functionCall":{"id":"x7","name":"read","args":{"a":1}}}]`},
	} {
		sent := body(&Model{Provider: c.provider, ID: "gemini-3-m"}, req)
		var got struct {
			Contents []struct{ Parts json.RawMessage }
		}
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got.Contents[0].Parts)); diff != "" {
			t.Errorf("%s:\n%s", c.provider, diff)
		}
	}
}

func TestStops(t *testing.T) {
	table := map[string]string{}
	for reason, want := range map[string]string{
		"STOP": "calls", "MAX_TOKENS": "length", "CONTINUATION": "length", "SAFETY": "refusal", "RECITATION": "refusal",
		"LANGUAGE": "refusal", "BLOCKLIST": "refusal", "PROHIBITED_CONTENT": "refusal", "SPII": "refusal", "IMAGE_SAFETY": "refusal",
		"OTHER": "other", "TOO_MANY_TOOL_CALLS": "other", "NEW": "other",
		"MALFORMED_FUNCTION_CALL": "transient", "UNEXPECTED_TOOL_CALL": "transient", "MALFORMED_RESPONSE": "transient",
		"MISSING_THOUGHT_SIGNATURE": "invalid_history", "FINISH_REASON_UNSPECIFIED": "stream_cut",
	} {
		table[strings.Replace(sample, `"STOP"`, `"`+reason+`","finishMessage":"why"`, 1)] = want
	}
	// The vendor rejects a prompt with candidates or without.
	for data, want := range map[string]string{
		`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"responseId":"r"}`:                       "content_refused",
		`{"candidates":[],"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"}}`:          "content_refused",
		`{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}`:                                  "stream_cut",
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"promptFeedback":{"blockReason":"OTHER"}}`: "stream_cut",
	} {
		table["data: "+data+"\n\n"] = want
	}
	p := wired()
	inner := p.Check
	p.Check = func(t testing.TB, reply llm.Reply, shown string) {
		inner(t, reply, shown)
		if len(reply.Calls()) != 2 {
			t.Errorf("%s: %d calls, want 2", reply.Stop, len(reply.Calls()))
		}
	}
	wiretest.TestStops(t, p, table)
}

// TestUsage reads the running totals: the prompt includes cached tokens, thoughts are counted apart from the reply, and
// a later chunk may leave figures out.
func TestUsage(t *testing.T) {
	wiretest.TestUsage(t, wired(), map[string]llm.Usage{
		`data: {"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"thoughtsTokenCount":5}}

data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"toolUsePromptTokenCount":3}}

`: {Input: 43, CacheRead: 60, Output: 12, Reasoning: 5},
		`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"serviceTier":"PRIORITY"}}

`: {Input: 1, Tier: "priority"},
		`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"trafficType":"ON_DEMAND_FLEX"}}

`: {Input: 1, Tier: "flex"},
		`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"trafficType":"ON_DEMAND"}}

`: {Input: 1},
	})
}

func wired() wiretest.WireParams {
	opaque := func(text, opaque string) llm.Reasoning {
		return llm.Reasoning{Text: text, Opaque: json.RawMessage(opaque), Route: "gemini/gemini-3-m"}
	}
	return wiretest.WireParams{
		Decode: decodeAll, Sample: sample, Shown: "Reading. Now go", Complete: len(sample) - len("\n\n"), OwnIDs: true,
		Reply: llm.Reply{
			ID: "r1",
			Parts: llm.Parts{
				opaque("hm", `{"text":"hm","thought":true}`),
				llm.Text{Text: "Reading."},
				opaque("", `{"on":"text","thoughtSignature":"dGV4dA=="}`),
				llm.Text{Text: " Now"},
				llm.Text{Text: " go"},
				opaque("", `{"on":"call","thoughtSignature":"Y2FsbA=="}`),
				llm.Call{ID: "call_3_4", Name: "now", Args: json.RawMessage(`{}`)},
				llm.Call{ID: "x7", Name: "read", Args: json.RawMessage(`{"a":1}`)},
				opaque("", `{"text":"","thoughtSignature":"ZW5k"}`),
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 12, CacheRead: 5, Output: 10, Reasoning: 3}, Route: "gemini/gemini-3-m", RequestID: "r1",
		},
		Check: func(t testing.TB, whole llm.Reply, shown string) {
			if shown != whole.Parts.Text() {
				t.Fatalf("streamed %q, replied %q", shown, whole.Parts.Text())
			}
			if sent := body(&Model{ID: "gemini-3-m"}, llm.Request{Messages: []llm.Message{{
				Role:  llm.Assistant,
				Parts: whole.Parts,
			}}}); !json.Valid(sent) {
				t.Fatalf("the reply can't be sent back: %s", sent)
			}
		},
	}
}

func TestCutAnywhere(t *testing.T) { wiretest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	wiretest.FuzzWire(f, wired(), `data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`+"\n\n",
		`data: {"promptFeedback":{"blockReason":"SAFETY"}}`+"\n\n")
}

func TestKeyStaysSecret(t *testing.T) {
	const key, other = "AIza-very-secret", "other-secret"
	var bases []string
	for _, answer := range []geminitest.Answer{
		{Status: 401, Type: "UNAUTHENTICATED", Message: "bad key " + key + " and " + other},
		{Status: 500, Body: "oops: x-goog-api-key: " + key + " Bearer " + other},
		{Parts: llm.Say("x"), ErrorAt: 2, Type: "INTERNAL", Message: "key " + key},
	} {
		bases = append(bases, geminitest.Start(t, &geminitest.Server{
			Key:    key,
			Answer: func(*http.Request, []byte) geminitest.Answer { return answer },
		}))
	}
	for _, bearer := range []bool{false, true} {
		wiretest.TestSecrets(t, []string{key, other}, func(base string) llm.Model {
			return &Model{
				ID: "m", Bearer: bearer, BaseURL: base, Header: http.Header{"Api-Key": {other}},
				Key: func(context.Context) (string, error) { return key, nil },
			}
		}, bases...)
	}
}

// TestKey sends the key the vendor's way, or as a bearer token.
func TestKey(t *testing.T) {
	for header, bearer := range map[string]bool{"X-Goog-Api-Key": false, "Authorization": true} {
		wiretest.TestKey(t, header, func(tr http.RoundTripper, key func(context.Context) (string, error)) llm.Model {
			return &Model{ID: "m", Bearer: bearer, HTTP: tr, Key: key}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	wiretest.TestKeepAlive(t, &geminitest.Server{}, func(base string, tr http.RoundTripper) llm.Model {
		return &Model{ID: "m", BaseURL: base, HTTP: tr}
	})
}
