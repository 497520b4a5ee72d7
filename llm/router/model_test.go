package router_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
	"github.com/inspan/inspan/llm/router"
)

// behind is a router that goes by the name of its only route: the suite wants
// replies, reasoning and errors to bear the name of the model under test, and
// those of a router bear the name of who answered.
type behind struct {
	llm.Model
	info llm.Info
}

func (b behind) Info() llm.Info { return b.info }

// TestModel holds that a router with one route is as good as the route.
func TestModel(t *testing.T) {
	harnesstest.TestModel(t, harnesstest.ModelParams{
		New: newFake,
		// It wants text first; a router says first who answers.
		Without: []string{"early-stop"},
		Errors:  []llm.Kind{llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindWindow, llm.KindAuth, llm.KindInvalid},
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
	route := &anthropic.Model{
		ID: "claude-opus-4-8", HTTP: transport, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake",
		Key: func(context.Context) (string, error) { return "sk-ant-test", nil },
	}
	m := &router.Model{ID: "one", Routes: []router.Route{{Name: "only", Model: route}}}
	return harnesstest.Fake{
		Model: behind{m, route.Info()},
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
		case llm.KindWindow:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "prompt is too long: "+strconv.Itoa(e.Used)+" tokens > "+strconv.Itoa(e.Limit)+" maximum"
		case llm.KindAuth:
			a.Status, a.Type, a.Message = 401, "authentication_error", "invalid x-api-key"
		default:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "max_tokens: Field required"
		}
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}
