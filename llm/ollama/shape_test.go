package ollama_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama"
)

func TestDiscover(t *testing.T) {
	server := &ollamatest.Server{
		Models: []llm.Info{
			{Provider: "home", Model: "qwen3-coder:30b", Window: 262144},
			{Provider: "home", Model: "nomic-embed-text:latest", Window: 2048},
			{Provider: "home", Model: "gemma3:12b", Window: 131072, Images: true, NoTools: true},
		},
		Facts: map[string]ollamatest.Facts{"nomic-embed-text:latest": {Embed: true}},
		Key:   "token-test",
	}
	at := llm.Endpoint{Provider: "home", BaseURL: ollamatest.Start(t, server) + "/v1", Key: key("token-test")}
	got, err := ollama.Discover(t.Context(), at)
	if diff := cmp.Diff([]llm.Info{server.Models[0], server.Models[2]}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func key(k string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return k, nil }
}

// TestDiscoverOld checks that nothing is held against the models of a server that tells little.
func TestDiscoverOld(t *testing.T) {
	want := []llm.Info{{Provider: "ollama", Model: "mistral:7b", Window: 32768}}
	base := ollamatest.Start(t, &ollamatest.Server{Old: true, Models: want})
	got, err := ollama.Discover(t.Context(), llm.Endpoint{BaseURL: base})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestDiscoverBroken checks that a model whose files are damaged hides no other.
func TestDiscoverBroken(t *testing.T) {
	server := &ollamatest.Server{Models: []llm.Info{{Model: "broken:1b"}, {Model: "good:1b", Window: 8192}}}
	at := llm.Endpoint{HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		w := httptest.NewRecorder()
		if strings.Contains(string(body), "broken") {
			w.WriteHeader(http.StatusInternalServerError)
		} else {
			server.ServeHTTP(w, httptest.NewRequest(r.Method, r.URL.Path, strings.NewReader(string(body))))
		}
		return w.Result(), nil
	})}
	got, err := ollama.Discover(t.Context(), at)
	want := []llm.Info{{Provider: "ollama", Model: "broken:1b"}, {Provider: "ollama", Model: "good:1b", Window: 8192}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAsk checks the behaviour that both questions share.
func TestAsk(t *testing.T) {
	wiretest.TestDiscover(t, llm.Endpoint{}, ollama.Discover, `{"models":[{"name":"a"},{"name":"b"}]}`)
	wiretest.TestDiscover(t, llm.Endpoint{ID: "x"}, show)
	at := llm.Endpoint{ID: "x", HTTP: roundTrip(func(*http.Request) (*http.Response, error) {
		body := `{"error":"model 'x' not found"}`
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
	for _, ask := range []func(context.Context, llm.Endpoint) ([]llm.Info, error){ollama.Discover, show} {
		if list, err := ask(t.Context(), at); list != nil || err == nil || llm.AsError(err).Kind != llm.KindNoModel {
			t.Errorf("no such model: %v, %v", list, err)
		}
	}
}

// show is a question for one model.
func show(ctx context.Context, at llm.Endpoint) ([]llm.Info, error) {
	shape, err := ollama.Show(ctx, at)
	if shape.Model == "" {
		return nil, err
	}
	return []llm.Info{shape.Info}, err
}

const gb = int64(1e9)

// TestFit has the real figures of models, and the window that memories of
// several sizes hold.
func TestFit(t *testing.T) {
	for name, c := range map[string]struct {
		window   int
		weights  int64
		info     map[string]any
		perToken int64
		fits     map[int64]int // by GB
	}{
		"smollm2:135m": {
			8192, 98_362_432,
			map[string]any{"block_count": 30, "embedding_length": 576, "attention.head_count": 9, "attention.head_count_kv": 3},
			23_040,
			map[int64]int{0: 8192, 8: 8192, 80: 8192},
		},
		"llama3.1:8b": {
			131072, 4_920_753_328,
			map[string]any{"block_count": 32, "embedding_length": 4096, "attention.head_count": 32, "attention.head_count_kv": 8},
			131_072,
			map[int64]int{0: 8192, 4: 4096, 8: 9216, 16: 64512, 24: 118784, 32: 131072},
		},
		"qwen2.5-coder:7b": {
			32768, 4_683_087_519,
			map[string]any{"block_count": 28, "embedding_length": 3584, "attention.head_count": 28, "attention.head_count_kv": 4},
			57_344,
			map[int64]int{8: 25600, 12: 32768},
		},
		"qwen3:32b": {
			40960, 20_201_240_574,
			map[string]any{
				"block_count": 64, "embedding_length": 5120, "attention.head_count": 64, "attention.head_count_kv": 8,
				"attention.key_length": 128, "attention.value_length": 128,
			},
			262_144,
			map[int64]int{16: 4096, 24: 4096, 32: 28672, 48: 40960},
		},
		"gpt-oss:20b": {
			131072, 13_793_441_244,
			map[string]any{
				"block_count": 24, "embedding_length": 2880, "attention.head_count": 64, "attention.head_count_kv": 8,
				"attention.key_length": 64, "attention.value_length": 64,
			},
			49_152,
			map[int64]int{16: 4096, 24: 131072},
		},
		"lfm2:1.2b": { // most of its layers keep no keys
			128000, 730_893_248,
			map[string]any{
				"block_count": 16, "embedding_length": 2048, "attention.head_count": 32,
				"attention.head_count_kv": []int{0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0},
			},
			12_288,
			map[int64]int{8: 128000, 2: 5120},
		},
		"qwen3-next:80b": { // every fourth layer keeps keys
			262144, 50_000_000_000,
			map[string]any{
				"block_count": 48, "full_attention_interval": 4, "embedding_length": 2048, "attention.head_count": 16,
				"attention.head_count_kv": 2, "attention.key_length": 256, "attention.value_length": 256,
			},
			24_576,
			map[int64]int{48: 4096, 64: 262144},
		},
		"deepseek-r1:671b": { // keeps a compressed form
			163840, 404_430_188_519,
			map[string]any{
				"block_count": 61, "embedding_length": 7168, "attention.head_count": 128, "attention.head_count_kv": 128,
				"attention.key_length": 192, "attention.value_length": 128, "attention.kv_lora_rank": 512,
			},
			0,
			map[int64]int{0: 8192, 8: 8192, 16: 32768, 24: 131072},
		},
		"old": {2048, 1e9, nil, 0, map[int64]int{0: 2048, 24: 2048}},
		"odd": {
			0, 1e9,
			map[string]any{"block_count": "many", "embedding_length": -1, "attention.head_count": 1e300},
			0,
			map[int64]int{0: 8192, 24: 131072},
		},
	} {
		server := &ollamatest.Server{
			Models: []llm.Info{{Provider: "ollama", Model: name, Window: c.window}},
			Facts:  map[string]ollamatest.Facts{name: {Info: c.info, Size: c.weights}},
		}
		got, err := ollama.Show(t.Context(), llm.Endpoint{ID: name, BaseURL: ollamatest.Start(t, server)})
		want := ollama.Shape{Info: server.Models[0], Weights: c.weights, PerToken: c.perToken}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		for memory, fits := range c.fits {
			if n := got.Fit(memory * gb); n != fits {
				t.Errorf("%s: %d fit into %d GB, want %d", name, n, memory, fits)
			}
		}
	}
}

// TestFitByMemory uses figures that real cards report.
func TestFitByMemory(t *testing.T) {
	for memory, want := range map[int64]int{
		-1: 8192, 0: 8192, 4 << 30: 8192,
		8188 << 20: 8192, 15360 << 20: 32768, 23028 << 20: 131072, 80 << 30: 131072,
	} {
		if got := (ollama.Shape{}).Fit(memory); got != want {
			t.Errorf("%d bytes: %d, want %d", memory, got, want)
		}
	}
	for window, want := range map[int]int{512: 512, 1500: 1024, 5000: 4096, 8192: 8192} {
		if got := (ollama.Shape{Info: llm.Info{Window: window}}).Fit(0); got != want {
			t.Errorf("a model of %d: %d, want %d", window, got, want)
		}
	}
}

// TestShowLoaded checks that a loaded model is reported, with how much of it the GPU has not taken.
func TestShowLoaded(t *testing.T) {
	server := &ollamatest.Server{
		Models: []llm.Info{{Provider: "ollama", Model: "m:latest", Window: 131072}},
		Facts:  map[string]ollamatest.Facts{"m:latest": {Size: 5 * gb, OnCPU: 2 * gb}},
	}
	m := &ollama.Model{ID: "m", Window: 16384, BaseURL: ollamatest.Start(t, server)}
	if _, err := say(t.Context(), m, "hello"); err != nil {
		t.Fatal(err)
	}
	got, err := ollama.Show(t.Context(), llm.Endpoint(*m))
	if err != nil || got.Loaded != 16384 || got.OnCPU != 2*gb || got.Weights != 5*gb || got.Model != "m" {
		t.Errorf("%+v, %v", got, err)
	}
}

// say asks a model and returns the error of its stream.
func say(ctx context.Context, m llm.Model, text string) (reply *llm.Reply, err *llm.Error) {
	for chunk, e := range m.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}}) {
		reply, err = chunk.Reply, llm.AsError(e)
	}
	return reply, err
}

// TestWindowIsVerified checks that a reply read within a smaller window than was asked for does not pass, and that only
// a server's word counts against it.
func TestWindowIsVerified(t *testing.T) {
	for name, c := range map[string]struct {
		server *ollamatest.Server
		window int
		limit  int
	}{
		"as asked":              {&ollamatest.Server{}, 16384, 0},
		"the model has less":    {&ollamatest.Server{Models: []llm.Info{{Model: "m", Window: 8192}}}, 16384, 8192},
		"the server gives less": {&ollamatest.Server{Largest: 4096}, 16384, 4096},
		"nothing was asked":     {&ollamatest.Server{Largest: 2048}, 0, 0},
		"an old server":         {&ollamatest.Server{Largest: 4096, Old: true}, 16384, 0},
	} {
		m := &ollama.Model{ID: "m", Window: c.window, BaseURL: ollamatest.Start(t, c.server)}
		for range 2 {
			reply, e := say(t.Context(), m, "hello")
			switch {
			case c.limit == 0:
				if reply == nil || e != nil {
					t.Errorf("%s: %v", name, e)
				}
			case e == nil || e.Kind != llm.KindWindow || e.Limit != c.limit || e.Provider != "ollama" || !strings.Contains(e.Message, "16384"):
				t.Errorf("%s: %v, %v", name, reply, e)
			}
		}
	}
}

// TestVerifyIsBrief checks that a server too slow to tell its window delays the reply by little and spoils nothing, and
// that a caller who leaves is heard.
func TestVerifyIsBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := ollamatest.Transport(t, &ollamatest.Server{})
		m := &ollama.Model{ID: "m", Window: 16384, BaseURL: "http://fake", HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/api/ps" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return server.RoundTrip(r)
		})}
		start := time.Now()
		if reply, e := say(t.Context(), m, "hello"); reply == nil || e != nil || time.Since(start) > 300*time.Millisecond {
			t.Errorf("%v, %v after %v", reply, e, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if reply, e := say(ctx, m, "hello"); reply != nil || e == nil || e.Kind != llm.KindCancelled {
			t.Errorf("cancelled: %v, %v", reply, e)
		}
	})
}

// TestRefusedPromptIsMeasured checks that a refusal without figures comes out with the window that is really loaded.
func TestRefusedPromptIsMeasured(t *testing.T) {
	server := &ollamatest.Server{Largest: 4096}
	m := &ollama.Model{ID: "m", Window: 4096, BaseURL: ollamatest.Start(t, server)}
	if _, e := say(t.Context(), m, "hello"); e != nil {
		t.Fatal(e)
	}
	server.Answer = func(*http.Request, []byte) ollamatest.Answer {
		return ollamatest.Answer{Status: 400, Message: "the input length exceeds the context length"}
	}
	if _, e := say(t.Context(), m, "hello"); e == nil || e.Kind != llm.KindWindow || e.Limit != 4096 {
		t.Errorf("%v", e)
	}
}
