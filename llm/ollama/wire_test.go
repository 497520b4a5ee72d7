package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama/ollamatest"
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
	tools := []llm.ToolSpec{{Name: "read", Description: "Read.", Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "now"}}
	full := llm.Request{System: []string{"One.", " ", "Two."}, Tools: tools, Messages: history, Effort: "high", MaxOutput: 9000}
	for name, g := range map[string]struct {
		m   Model
		req llm.Request
	}{
		"full": {Model{ID: "gpt-oss:20b", Window: 32768}, full},
		"bare": {Model{ID: "qwen3-coder"}, llm.Request{Messages: history[:1], Effort: "high"}},
	} {
		got := encode(g.m.Info(), g.req)
		if err := ollamatest.Validate(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
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

func TestDecodeSample(t *testing.T) {
	got, text, err := decodeAll(strings.NewReader(sample))
	want := llm.Reply{
		Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"thinking":"hm"}`), Route: "ollama/m"},
			llm.Text{Text: "Reading."},
			llm.Call{ID: "call_3_0", Name: "now", Args: json.RawMessage(`{}`)},
			llm.Call{ID: "x7", Name: "read", Args: json.RawMessage(`{"a":1}`)},
		},
		Stop: llm.StopCalls, Usage: llm.Usage{Input: 10, CacheRead: 5, Output: 7}, Route: "ollama/m",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || text != "Reading." {
		t.Errorf("%q, %v\n%s", text, err, diff)
	}
}

func TestDoneReasons(t *testing.T) {
	for reason, want := range map[string]llm.Stop{"stop": llm.StopCalls, "length": llm.StopLength, "new": llm.StopOther} {
		got, _, err := decodeAll(strings.NewReader(strings.Replace(sample, `"stop"`, `"`+reason+`"`, 1)))
		if err != nil || got.Stop != want {
			t.Errorf("%s: %q, %v, want %q", reason, got.Stop, err, want)
		}
	}
	for _, reason := range []string{"load", "unload"} {
		_, _, err := decodeAll(strings.NewReader(strings.Replace(sample, `"stop"`, `"`+reason+`"`, 1)))
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindTransient {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestClassify(t *testing.T) {
	cases := []struct {
		status      int
		body        string
		kind        llm.Kind
		used, limit int
	}{
		{400, `{"error":"{\"error\":{\"code\":400,\"message\":\"request (351 tokens) exceeds the available context size (256 tokens), try increasing it\"}}"}`, llm.KindWindow, 351, 256},
		{400, `{"error":"the input length exceeds the context length"}`, llm.KindWindow, 0, 0},
		{500, `{"error":"no user query found in messages"}`, llm.KindWindow, 0, 0},
		{404, `{"error":"model 'x' not found"}`, llm.KindNoModel, 0, 0},
		{400, `{"error":"registry.ollama.ai/library/x:latest does not support tools"}`, llm.KindNoTools, 0, 0},
		{400, `{"error":"\"x\" does not support thinking"}`, llm.KindInvalid, 0, 0},
		{500, `{"error":"model requires more system memory (9 GiB) than is available (2 GiB)"}`, llm.KindInvalid, 0, 0},
		{500, `{"error":"llm server loading model"}`, llm.KindOverloaded, 0, 0},
		{502, `<html>bad gateway</html>`, llm.KindTransient, 0, 0},
		{200, `{"error":"an error was encountered while running the model"}`, llm.KindTransient, 0, 0},
	}
	for _, c := range cases {
		if e := classify("x", c.status, []byte(c.body)); e.Kind != c.kind || e.Used != c.used || e.Limit != c.limit {
			t.Errorf("%d %s = %s %d %d, want %s %d %d", c.status, c.body, e.Kind, e.Used, e.Limit, c.kind, c.used, c.limit)
		}
	}
	if e := classify("x:7b", 404, []byte(`{"error":"model 'x:7b' not found"}`)); !strings.HasSuffix(e.Message, "ollama pull x:7b") {
		t.Errorf("no hint: %q", e.Message)
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

// TestStops runs whole exchanges whose figures matter.
func TestStops(t *testing.T) {
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
		for chunk, err := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(strings.Repeat("word", c.size/4))}}}) {
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

func wired() harnesstest.WireParams {
	return harnesstest.WireParams{
		Decode: decodeAll, Sample: sample, Parts: 4, Complete: len(sample) - 1, OwnIDs: true,
		Check: func(t testing.TB, whole llm.Reply, _ string) {
			if sent := encode(llm.Info{Provider: "ollama", Model: "m"}, llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: whole.Parts}}}); !json.Valid(sent) {
				t.Fatalf("the reply can't be sent back: %s", sent)
			}
		},
	}
}

func TestCutAnywhere(t *testing.T) { harnesstest.TestCuts(t, wired()) }

func FuzzDecode(f *testing.F) {
	harnesstest.FuzzWire(f, wired(), `{"error":"an error was encountered while running the model"}`+"\n")
}
