package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
)

func TestRefusals(t *testing.T) {
	const base = "http://x/v1"
	wiretest.TestRefusals(t, "testdata/refusals.txt", chat(Model{ID: "m", BaseURL: base}))
	wiretest.TestRefusals(t, "testdata/refusals.txt", responses(Responses{ID: "m", BaseURL: base}))
}

// TestBareOverflow checks Cerebras' errors about a prompt that is too long, which have no text, and that no other
// server's errors are read that way.
func TestBareOverflow(t *testing.T) {
	for dialect, want := range map[string][2]llm.Kind{
		"cerebras": {llm.KindWindow, llm.KindWindow},
		"vllm":     {llm.KindInvalid, llm.KindTooLarge},
	} {
		for i, status := range []int{400, 413} {
			m := &Model{ID: "m", Dialect: dialect, BaseURL: openaitest.Start(t,
				&openaitest.Server{Dialect: dialect, Answer: func(*http.Request, []byte) openaitest.Answer {
					return openaitest.Answer{Status: status, Body: " "}
				}})}
			if _, e := ask(t, m, greeting()); e == nil || e.Kind != want[i] {
				t.Errorf("%s, %d: %v, want %s", dialect, status, e, want[i])
			}
		}
	}
}

// TestSilentOverflow checks that a prompt larger than the window is one that was cut, at servers that say no word of
// it.
func TestSilentOverflow(t *testing.T) {
	for _, c := range []struct {
		dialect string
		window  int
		want    llm.Kind
	}{
		{"zai", 1000, llm.KindWindow},
		{"zai", 1001, ""},
		{"zai", 0, ""}, // not known
		{"lmstudio", 1000, llm.KindWindow},
		{"vllm", 1000, ""},
	} {
		base := openaitest.Start(t, &openaitest.Server{Dialect: c.dialect, Answer: func(*http.Request, []byte) openaitest.Answer {
			return openaitest.Answer{Parts: llm.Say("what was the question?"), Usage: llm.Usage{Input: 900, CacheRead: 101, Output: 5}}
		}})
		_, e := ask(t, &Model{ID: "glm", Dialect: c.dialect, Window: c.window, BaseURL: base}, greeting())
		switch {
		case (e != nil) != (c.want != ""), e != nil && e.Kind != c.want:
			t.Errorf("%s with a window of %d: %v", c.dialect, c.window, e)
		case e != nil && (e.Used != 1001 || e.Limit != 1000 || e.Provider != "openai"):
			t.Errorf("got %+v", e)
		}
	}
}

// TestNoSilentOverflow checks that an estimated usage is not an overflow.
func TestNoSilentOverflow(t *testing.T) {
	base := openaitest.Start(t, &openaitest.Server{
		Dialect: "zai", Habits: openaitest.Habits{NoUsage: true},
		Answer: func(*http.Request, []byte) openaitest.Answer {
			return openaitest.Answer{Parts: llm.Say("hello")}
		},
	})
	if r, e := ask(t, &Model{ID: "glm", Dialect: "zai", Window: 1, BaseURL: base}, greeting()); e != nil || !r.Usage.Estimated {
		t.Errorf("got %+v, %v", r, e)
	}
}

// FuzzClassify checks that no answer of a server breaks the classification.
func FuzzClassify(f *testing.F) {
	f.Add(400, `{"error":{"message":"maximum context length is 1 tokens. However, 22 `+
		`tokens","metadata":{"raw":"{\"error\":{\"metadata\":{\"raw\":1}}}"}}}`)
	f.Add(500, `[{"error":"x","estimated_time":1e300}]`)
	f.Add(200, `{"code":99999999999999999999,"message":null}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := classify(status, []byte(body))
		if e.Kind == "" || e.Used < 0 || e.Limit < 0 || e.RetryAfter < 0 {
			t.Fatalf("%d %q = %+v", status, body, e)
		}
		if strings.TrimSpace(body) != "" && e.Message == "" && !json.Valid([]byte(body)) {
			t.Fatalf("%d %q lost its words", status, body)
		}
	})
}
