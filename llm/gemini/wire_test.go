package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/gemini/geminitest"
	"github.com/inspan/inspan/llm/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// body returns what the model sends.
func body(m *Model, req llm.Request) []byte {
	return encode(m.Info(), wire.ToolNames(req, toolName), req)
}

// goldenRequests are the requests whose bytes are held in testdata.
func goldenRequests() map[string]struct {
	id  string
	req llm.Request
} {
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
			llm.Result{CallID: "a1", Name: "read", Parts: llm.Parts{llm.Text{Text: "one"}, png, llm.Text{Text: "two"}, llm.Image{MediaType: "image/gif", Data: []byte("gif")}}},
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
	type row = struct {
		id  string
		req llm.Request
	}
	return map[string]row{
		"full-level":    {"gemini-3.8-flash", full},
		"full-budget":   {"gemini-2.5-pro", full},
		"history-tools": {"gemini-3.8-flash", noTools},
		"bare":          {"gemma-4-31b-it", llm.Request{Messages: history[:1]}},
	}
}

func TestGoldenRequests(t *testing.T) {
	for name, g := range goldenRequests() {
		got := body(&Model{ID: g.id}, g.req)
		var indented bytes.Buffer
		if err := json.Indent(&indented, got, "", " "); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		file := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(file, append(indented.Bytes(), '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), indented.String()+"\n"); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
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
	if got := (&Model{ID: "models/gemini-3.8-flash"}).Info(); got.Provider != "gemini" || got.Window != 1_048_576 || len(got.Prices) != 2 || !got.Images {
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

func TestClassify(t *testing.T) {
	quota := func(id string) string {
		return `{"error":{"code":429,"message":"You exceeded your current quota.\nPlease retry in 8.9s.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"` + id + `"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`
	}
	cases := []struct {
		status      int
		body        string
		kind        llm.Kind
		wait        time.Duration
		used, limit int
	}{
		{429, quota("GenerateRequestsPerMinutePerProjectPerModel"), llm.KindRateLimited, 22 * time.Second, 0, 0},
		{429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), llm.KindQuota, 0, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for metric: x, limit: 0, model: gemini-3.1-pro\nPlease retry in 10.6s."}}`, llm.KindBilling, 0, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded, limit: 200\nPlease retry in 8.5s."}}`, llm.KindRateLimited, 8500 * time.Millisecond, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Resource exhausted. Please try again later."}}`, llm.KindRateLimited, 0, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Your prepayment credits are depleted."}}`, llm.KindBilling, 0, 0, 0},
		{400, `{"error":{"status":"INVALID_ARGUMENT","message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}`, llm.KindWindow, 0, 1200000, 1048576},
		{400, `{"error":{"status":"INVALID_ARGUMENT","message":"The input token count exceeds the maximum number of tokens allowed 1048576."}}`, llm.KindWindow, 0, 0, 1048576},
		{400, `{"error":{"status":"INVALID_ARGUMENT","message":"Unable to submit request because the input token count is 1200000 but model only supports up to 1048576."}}`, llm.KindWindow, 0, 1200000, 1048576},
		{400, `[{"error":{"status":"INVALID_ARGUMENT","message":"Please ensure that the number of function response parts is equal"}}]`, llm.KindHistory, 0, 0, 0},
		{400, `{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}`, llm.KindAuth, 0, 0, 0},
		{400, `{"error":{"status":"FAILED_PRECONDITION","message":"Please enable billing on your project."}}`, llm.KindBilling, 0, 0, 0},
		{401, `{"error":{"status":"UNAUTHENTICATED","message":"invalid credentials","details":[{"reason":"ACCESS_TOKEN_EXPIRED"}]}}`, llm.KindAuthExpired, 0, 0, 0},
		{403, `{"error":{"status":"PERMISSION_DENIED","message":"Verify your account","details":[{"reason":"VALIDATION_REQUIRED"}]}}`, llm.KindAuth, 0, 0, 0},
		{404, `{"error":{"status":"NOT_FOUND","message":"x"}}`, llm.KindNoModel, 0, 0, 0},
		{413, `<html>too large</html>`, llm.KindTooLarge, 0, 0, 0},
		{499, `{"error":{"code":499,"status":"CANCELLED","message":"The operation was cancelled."}}`, llm.KindTransient, 0, 0, 0},
		{499, `client closed request`, llm.KindTransient, 0, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"No capacity available for model x on the server","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"},{"retryDelay":"9s"}]}}`, llm.KindOverloaded, 9 * time.Second, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"You have exhausted your capacity on this model.","details":[{"reason":"QUOTA_EXHAUSTED"},{"retryDelay":"13463.5s"}]}}`, llm.KindQuota, 13463500 * time.Millisecond, 0, 0},
		{429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Too fast","details":[{"reason":"RATE_LIMIT_EXCEEDED"},{"retryDelay":"0.5s"}]}}`, llm.KindRateLimited, 500 * time.Millisecond, 0, 0},
		{502, `<html>bad gateway</html>`, llm.KindTransient, 0, 0, 0},
		{504, `{"error":{"status":"DEADLINE_EXCEEDED","message":"x"}}`, llm.KindTransient, 0, 0, 0},
		{200, `{"error":{"code":503,"message":"The model is overloaded."}}`, llm.KindOverloaded, 0, 0, 0},
		{200, `{"error":{"code":500,"status":"BRAND_NEW"}}`, llm.KindTransient, 0, 0, 0},
	}
	for _, c := range cases {
		e := classify(c.status, []byte(c.body))
		if e.Kind != c.kind || e.RetryAfter != c.wait || e.Used != c.used || e.Limit != c.limit {
			t.Errorf("%d %s = %s %v %d %d, want %s %v %d %d", c.status, c.body, e.Kind, e.RetryAfter, e.Used, e.Limit, c.kind, c.wait, c.used, c.limit)
		}
	}
}

// decodeAll runs a stream to its end.
func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := newDecoder("gemini/gemini-3-m", wire.NewAliases(toolName), make([]llm.Message, 3))
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

func TestDecodeSample(t *testing.T) {
	got, text, err := decodeAll(strings.NewReader(sample))
	opaque := func(text, opaque string) llm.Reasoning {
		return llm.Reasoning{Text: text, Opaque: json.RawMessage(opaque), Route: "gemini/gemini-3-m"}
	}
	want := llm.Reply{
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
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || text != "Reading. Now go" {
		t.Errorf("%q, %v\n%s", text, err, diff)
	}
}

// TestSignaturesReturn holds that each signature of the sample goes back on
// exactly the part it came with, and to no other route, where the first call
// gets the sentinel instead.
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

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]llm.Stop{
		"STOP": llm.StopEnd, "MAX_TOKENS": llm.StopLength, "CONTINUATION": llm.StopLength, "SAFETY": llm.StopRefusal,
		"RECITATION": llm.StopRefusal, "LANGUAGE": llm.StopRefusal, "BLOCKLIST": llm.StopRefusal, "PROHIBITED_CONTENT": llm.StopRefusal,
		"SPII": llm.StopRefusal, "IMAGE_SAFETY": llm.StopRefusal, "OTHER": llm.StopOther, "TOO_MANY_TOOL_CALLS": llm.StopOther, "NEW": llm.StopOther,
	} {
		got, _, err := decodeAll(strings.NewReader(strings.Replace(sample, `"STOP"`, `"`+reason+`"`, 1)))
		if want == llm.StopEnd {
			want = llm.StopCalls
		}
		if err != nil || got.Stop != want || len(got.Calls()) != 2 {
			t.Errorf("%s: %q, %v, want %q", reason, got.Stop, err, want)
		}
	}
	for reason, want := range map[string]llm.Kind{
		"MALFORMED_FUNCTION_CALL": llm.KindTransient, "UNEXPECTED_TOOL_CALL": llm.KindTransient, "MALFORMED_RESPONSE": llm.KindTransient,
		"MISSING_THOUGHT_SIGNATURE": llm.KindHistory, "FINISH_REASON_UNSPECIFIED": llm.KindStreamCut,
	} {
		_, _, err := decodeAll(strings.NewReader(strings.Replace(sample, `"STOP"`, `"`+reason+`","finishMessage":"why"`, 1)))
		if e := llm.AsError(err); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %s", reason, err, want)
		}
	}
}

func wired() harnesstest.WireParams {
	return harnesstest.WireParams{
		Decode: decodeAll, Sample: sample, Parts: 9, Complete: len(sample) - len("\n\n"), OwnIDs: true,
		Check: func(t testing.TB, whole llm.Reply, shown string) {
			if shown != whole.Parts.Text() {
				t.Fatalf("streamed %q, replied %q", shown, whole.Parts.Text())
			}
			if sent := body(&Model{ID: "gemini-3-m"}, llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: whole.Parts}}}); !json.Valid(sent) {
				t.Fatalf("the reply can't be sent back: %s", sent)
			}
		},
	}
}

func TestCutAnywhere(t *testing.T) { harnesstest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	harnesstest.FuzzWire(f, wired(), `data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`+"\n\n", `data: {"promptFeedback":{"blockReason":"SAFETY"}}`+"\n\n")
}

func TestKeyStaysSecret(t *testing.T) {
	const key, other = "AIza-very-secret", "other-secret"
	var bases []string
	for _, answer := range []geminitest.Answer{
		{Status: 401, Type: "UNAUTHENTICATED", Message: "bad key " + key + " and " + other},
		{Status: 500, Body: "oops: x-goog-api-key: " + key + " Bearer " + other},
		{Parts: llm.Say("x"), ErrorAt: 2, Type: "INTERNAL", Message: "key " + key},
	} {
		bases = append(bases, geminitest.Start(t, &geminitest.Server{Key: key, Answer: func(*http.Request, []byte) geminitest.Answer { return answer }}))
	}
	for _, bearer := range []bool{false, true} {
		harnesstest.TestSecrets(t, []string{key, other}, func(base string) llm.Model {
			return &Model{ID: "m", Bearer: bearer, BaseURL: base, Header: http.Header{"Api-Key": {other}}, Key: func(context.Context) (string, error) { return key, nil }}
		}, bases...)
	}
	harnesstest.TestNoKey(t, func(key func(context.Context) (string, error)) llm.Model { return &Model{ID: "m", Key: key} })
}
