package limit_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
	"github.com/inspan/inspan/llm/limit"
)

// TestModel holds that a model that is held to limits is as good as without,
// as long as they are not reached.
func TestModel(t *testing.T) {
	harnesstest.TestModel(t, harnesstest.ModelParams{
		New:    newFake,
		Errors: []llm.Kind{llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindQuota, llm.KindWindow, llm.KindInvalid},
	})
}

func newFake(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
	var mu sync.Mutex
	var requests []string
	server := &anthropictest.Server{Key: "sk-ant-test", Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, string(body))
		turn := turns[0]
		turns = turns[1:]
		return answer(turn)
	}}
	transport := anthropictest.Transport(t, server)
	if turns[0].Stall == "connect" {
		transport = anthropictest.NoTransport(t)
	}
	dir := t.TempDir()
	pace := &limit.Limit{Path: filepath.Join(dir, "pace"), Requests: 600, Tokens: 1_000_000}
	purse := &limit.Budget{Path: filepath.Join(dir, "spent"), PerDay: 1000}
	return harnesstest.Fake{
		Model: purse.Model(pace.Model(&anthropic.Model{
			ID: "claude-opus-4-8", HTTP: transport, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake",
			Key: func(context.Context) (string, error) { return "sk-ant-test", nil },
		})),
		Requests: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return requests
		},
		InFlight: server.InFlight,
		Volatile: []string{`,"cache_control":{"type":"ephemeral"}`},
	}
}

func answer(turn harnesstest.Turn) anthropictest.Answer {
	a := anthropictest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	if turn.Cut {
		a.CutAt = 6
	}
	switch turn.Stall {
	case "first byte":
		a.Hold = make(chan struct{})
	case "idle":
		a.Hold, a.HoldAt = make(chan struct{}), 6
	case "total":
		a.Pace = time.Second
	}
	if e := turn.Fail; e != nil {
		switch e.Kind {
		case llm.KindTransient:
			a.Status, a.Type, a.Message = 500, "api_error", "Internal server error"
		case llm.KindRateLimited:
			a.Status, a.Type, a.Message = 429, "rate_limit_error", "This request would exceed your rate limit"
			a.Header = http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter.Seconds()))}}
		case llm.KindOverloaded:
			a.Status, a.Type, a.Message = 529, "overloaded_error", "Overloaded"
		case llm.KindQuota:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01."
		case llm.KindWindow:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "prompt is too long: "+strconv.Itoa(e.Used)+" tokens > "+strconv.Itoa(e.Limit)+" maximum"
		default:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "max_tokens: Field required"
		}
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}
