package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
	"github.com/inspan/inspan/llm/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// body returns what the model sends.
func body(m *Model, req llm.Request) []byte {
	p, _ := m.platform()
	return encode(m.Info(), p, wire.ToolNames(req, wire.ToolName), req)
}

// goldenRequests are the requests whose bytes are held in testdata.
func goldenRequests() map[string]struct {
	m   Model
	req llm.Request
} {
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
			llm.Result{CallID: "toolu_1", Name: "read", Parts: llm.Parts{llm.Text{Text: "text"}, llm.Image{MediaType: "image/png", Data: []byte("png")}}},
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
	type row = struct {
		m   Model
		req llm.Request
	}
	return map[string]row{
		"full-adaptive": {Model{ID: "claude-opus-5-5"}, full},
		"full-budget":   {Model{ID: "claude-haiku-4-5"}, full},
		"bare":          {Model{ID: "claude-opus-4-8"}, bare},
		"history-tools": {Model{ID: "claude-opus-4-8"}, noTools},
		"paused":        {Model{ID: "claude-opus-4-8"}, paused},
		"bedrock":       {Model{ID: "us.anthropic.claude-opus-5-5-v1:0", Dialect: "bedrock"}, full},
		"vertex":        {Model{ID: "claude-opus-5-5", Dialect: "vertex"}, full},
		"markers-near":  {Model{ID: "claude-opus-4-8"}, longTurn(17, "One.", "Two.", "Three.")},
		"markers-far":   {Model{ID: "claude-opus-4-8"}, longTurn(18, "One.", "Two.", "Three.")},
		"markers-one":   {Model{ID: "claude-opus-4-8"}, longTurn(18, "One.")},
		"markers-none":  {Model{ID: "claude-opus-4-8"}, longTurn(18)},
	}
}

// longTurn is a conversation whose last turn added n results and a text.
func longTurn(n int, system ...string) llm.Request {
	req := llm.Request{
		System:   system,
		Tools:    []llm.ToolSpec{{Name: "read"}, {Name: "now"}},
		Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("Go.")}, {Role: llm.Assistant}, {Role: llm.User}},
	}
	for i := range (n + 1) / 2 {
		id := "toolu_" + string(rune('a'+i))
		req.Messages[1].Parts = append(req.Messages[1].Parts, llm.Call{ID: id, Name: "now", Args: json.RawMessage(`{}`)})
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Result{CallID: id, Name: "now"})
	}
	if n%2 == 0 {
		req.Messages[2].Parts = append(req.Messages[2].Parts, llm.Text{Text: "Go on."})
	}
	return req
}

func TestGoldenRequests(t *testing.T) {
	for name, g := range goldenRequests() {
		got := body(&g.m, g.req)
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

func TestVersion(t *testing.T) {
	cases := []struct {
		id           string
		major, minor int
		ok           bool
	}{
		{"claude-opus-4-6", 4, 6, true},
		{"claude-opus-5", 5, 0, true},
		{"claude-3-7-sonnet-20250219", 3, 7, true},
		{"claude-sonnet-4-20250514", 4, 0, true},
		{"anthropic.claude-opus-4-6-v1:0", 4, 6, true},
		{"claude-haiku-4-5@20251001", 4, 5, true},
		{"claude-mythos-preview", 0, 0, false},
		{"gpt-5", 0, 0, false},
	}
	for _, c := range cases {
		if major, minor, ok := version(c.id); major != c.major || minor != c.minor || ok != c.ok {
			t.Errorf("version(%q) = %d, %d, %v", c.id, major, minor, ok)
		}
	}
}

func noSecret(t *testing.T, m *Model, secrets ...string) *llm.Error {
	t.Helper()
	var last error
	for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		last = err
	}
	var e *llm.Error
	if !errors.As(last, &e) {
		t.Fatalf("got %v, want an error", last)
	}
	all := e.Error() + e.Message + e.Code + e.RequestID
	if e.Err != nil {
		all += e.Err.Error()
	}
	for _, s := range secrets {
		if strings.Contains(all, s) {
			t.Errorf("the error holds a secret: %s", all)
		}
	}
	return e
}

func TestRetryAfterDate(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	m := &Model{ID: "m", BaseURL: anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{Status: 429, Type: "rate_limit_error", Header: http.Header{"Retry-After": {date}}}
	}})}
	if e := noSecret(t, m); e.RetryAfter < 59*time.Minute || e.RequestID == "" || e.Status != 429 {
		t.Errorf("got %+v", e)
	}
}

// decodeAll runs a stream to its end.
func decodeAll(r io.Reader) (llm.Reply, string, error) {
	d := newDecoder("anthropic/m", wire.NewAliases(wire.ToolName))
	var text strings.Builder
	done, err := d.run(serverSent(r), func(c llm.Chunk) bool {
		text.WriteString(c.Text)
		return true
	})
	if !done && err == nil {
		err = errors.New("neither done nor failed")
	}
	return d.reply, text.String(), err
}

const sample = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_stop","index":9}

data: {"type":"something_new","index":3}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`

func TestDecodeSample(t *testing.T) {
	got, _, err := decodeAll(strings.NewReader(sample))
	want := llm.Reply{
		Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`), Route: "anthropic/m"},
			llm.Reasoning{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"xyz"}`), Route: "anthropic/m"},
			llm.Call{ID: "toolu_1", Name: "now", Args: json.RawMessage(`{}`)},
		},
		Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, CacheRead: 5, Output: 7}, Route: "anthropic/m",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestUnsignedThinking holds that thinking that was cut off is dropped.
func TestUnsignedThinking(t *testing.T) {
	unsigned := strings.Replace(sample, `"signature":"c2ln"`, `"signature":""`, 1)
	got, _, err := decodeAll(strings.NewReader(unsigned))
	if err != nil || len(got.Parts) != 2 || string(got.Parts[0].(llm.Reasoning).Opaque) != `{"type":"redacted_thinking","data":"xyz"}` {
		t.Errorf("got %+v, %v", got.Parts, err)
	}
}

// TestKeepAlive holds that a finished exchange leaves its connection for the
// next one.
func TestKeepAlive(t *testing.T) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(&anthropictest.Server{})
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	m := &Model{ID: "m", BaseURL: server.URL, HTTP: &http.Transport{}}
	for range 5 {
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 requests took %d connections, want 1", n)
	}
}

// TestKeyHeader sends the key the vendor's way, or as a bearer token.
func TestKeyHeader(t *testing.T) {
	for bearer, want := range map[bool][2]string{false: {"some-key", ""}, true: {"", "Bearer some-key"}} {
		var got [2]string
		m := &Model{ID: "m", Bearer: bearer, Key: func(context.Context) (string, error) { return "some-key", nil }}
		m.HTTP = anthropictest.Transport(t, &anthropictest.Server{Answer: func(r *http.Request, _ []byte) anthropictest.Answer {
			got = [2]string{r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")}
			return anthropictest.Answer{Parts: llm.Say("hi")}
		}})
		m.BaseURL = "http://vendor"
		for _, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("bearer %v: sent %q", bearer, got)
		}
	}
}
