package harnesstest

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
)

// Inner returns a real model with a vendor in memory that plays turns. It is for the test of a model that wraps
// another: put yours around Fake.Model and pass it to [TestModel]. The vendor expresses KindTransient,
// KindRateLimited, KindOverloaded, KindQuota, KindWindow, KindAuth and KindInvalid.
func Inner(t *testing.T, turns ...Turn) Fake {
	var mu sync.Mutex
	var requests []string
	server := &anthropictest.Server{Key: "sk-ant-test", Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, string(body))
		turn := turns[0]
		turns = turns[1:]
		return played(turn)
	}}
	transport := anthropictest.Transport(t, server)
	if turns[0].Stall == "connect" {
		transport = anthropictest.NoTransport(t)
	}
	return Fake{
		Model: &anthropic.Model{
			ID: "claude-opus-4-8", HTTP: transport, Deadlines: Deadlines(), BaseURL: "http://fake",
			Key: func(context.Context) (string, error) { return "sk-ant-test", nil },
		},
		Requests: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return requests
		},
		InFlight: server.InFlight,
		Volatile: []string{`,"cache_control":{"type":"ephemeral"}`},
	}
}

// played returns the vendor's answer in a turn.
func played(turn Turn) anthropictest.Answer {
	a := anthropictest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	a = a.Befallen(turn.Cut, turn.Stall)
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
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access "+
				"on 2026-12-01."
		case llm.KindWindow:
			a.Status, a.Type, a.Message = 400, "invalid_request_error", "prompt is too long: "+
				strconv.Itoa(e.Used)+" tokens > "+strconv.Itoa(e.Limit)+" maximum"
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
