package server_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

// repeated is a list of JSON of so many of the same.
func repeated(one string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// TestBudgets checks that a request which holds too much of something is refused, and which field that is.
func TestBudgets(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	tools := repeated(`{"name":"t","description":"d","input_schema":{"type":"object"}}`, 257)
	for _, c := range []struct{ body, says string }{
		{`{"prompt":"x","inputs":{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}}`, "body: its lists and objects are more than 64 deep"},
		{`{"prompt":"x","labels":` + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000) + `}`, "body: its lists and objects are more than 64 deep"},
		{`{"prompt":"x","inputs":{"a":` + repeated("0", 20_000) + `}}`, "body: it holds more than 20000 values"},
		{`{"prompt":"x","deny":` + repeated(`"bash"`, 1001) + `}`, "deny: it has 1001 entries; use at most 1000"},
		{`{"prompt":"x","ask":["bash","` + strings.Repeat("é", 1001) + `"]}`, "ask.1: it has 1001 characters; use at most 1000"},
		{`{"prompt":"x","tools":` + tools + `}`, "tools: it has 257 entries; use at most 256"},
		{
			`{"prompt":"x","tools":[{"name":"t","description":"d","input_schema":{"type":"object","required":` + repeated(`"a"`, 2000) + `}}]}`,
			"tools.0.input_schema: it holds more than 2000 values",
		},
		{`{"prompt":"x","servers":` + repeated(`{"name":"s","url":"https://a.example/"}`, 21) + `}`, "servers: it has 21 entries; use at most 20"},
		{`{"prompt":"x","model":"` + strings.Repeat("m", 257) + `"}`, "model: it has 257 characters; use at most 256"},
		{`{"prompt":"` + strings.Repeat("p", 1<<20+1) + `"}`, "prompt: it has 1048577 characters; use at most 1048576"},
	} {
		req := h.request(t.Context(), "POST", "/api/v1/tasks", nil)
		req.Body, req.ContentLength = http.NoBody, int64(len(c.body))
		req.Body = readCloser{strings.NewReader(c.body)}
		if status, got := h.do(req); status != http.StatusBadRequest || !strings.Contains(got, c.says) {
			t.Errorf("%.60s...: %d %.300s", c.body, status, got)
		}
	}
	for _, fits := range []string{
		`{"prompt":"` + strings.Repeat("é", 1<<20) + `"}`,
		`{"prompt":"x","deny":` + repeated(`"bash"`, 1000) + `}`,
		`{"prompt":"[[[[` + strings.Repeat("[{,", 60_000) + `\"\\"}`, // of a text nothing is counted
	} {
		req := h.request(t.Context(), "POST", "/api/v1/tasks", nil)
		req.Body, req.ContentLength = readCloser{strings.NewReader(fits)}, int64(len(fits))
		if status, got := h.do(req); status != http.StatusCreated {
			t.Errorf("%.60s...: %d %.300s", fits, status, got)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestMemoryOfBodies checks that reading a body allocates a small multiple of its bytes, whatever it is made of.
func TestMemoryOfBodies(t *testing.T) {
	const most, small = 20, 3 << 20 // bytes for each byte of the body, and for what is small
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{`[]`, `{}`, `0`, `""`, `"é"`, `{"a":0}`, `[[]]`, `[[[[[[]]]]]]`, `{"":{"":{"":0}}}`, `null`, `1e9`, `"\u0041"`}
	for n := range 400 {
		part := parts[n%len(parts)]
		for n >= len(parts) && random.IntN(3) > 0 {
			part = fmt.Sprintf([]string{`[%s]`, `{"k":%s}`, `[0,%s]`, `{"a":1,"b":%s}`}[random.IntN(4)], part)
		}
		list := repeated(part, 1+random.IntN((256<<10)/len(part)))
		field := []string{"inputs", "labels", "deny", "tools", "servers", "prompt", "unknown"}[random.IntN(7)]
		body := []byte(`{"prompt":"x","` + field + `":` + []string{list, `{"a":` + list + `}`}[random.IntN(2)] + `}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := server.Decode(bytes.NewReader(body), new(server.Spec))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(small+most*len(body)) {
			t.Errorf("%d bytes for %d: %.80s (%v)", n, len(body), body, err)
		}
	}
}
