package ollama_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/ollama"
)

func TestModel(t *testing.T) {
	for _, id := range []string{"qwen3-coder:30b", "gpt-oss:20b"} {
		t.Run(id, func(t *testing.T) {
			harnesstest.TestModel(t, harnesstest.ModelParams{
				New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake { return newFake(t, id, turns) },
				// The wire has arguments as objects only, no such stops.
				Without: []string{"broken-arguments", "length", "pause", "stop/refusal", "stop/window"},
				Errors: []llm.Kind{
					llm.KindTransient, llm.KindOverloaded, llm.KindWindow, llm.KindTooLarge, llm.KindAuth, llm.KindInvalid,
					llm.KindNoModel, llm.KindQuota, llm.KindNoTools,
				},
			})
		})
	}
}

func newFake(t *testing.T, id string, turns []harnesstest.Turn) harnesstest.Fake {
	player := wiretest.Play(turns, answer, ollamatest.Answer{Status: 500, Message: "no turn left"})
	server := &ollamatest.Server{Answer: player.Answer, Key: "token-test"}
	tr := ollamatest.Transport(t, server)
	if turns[0].Stall == "connect" {
		tr = ollamatest.NoTransport(t)
	}
	return harnesstest.Fake{
		Model: &ollama.Model{
			ID: id, HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake/v1", Window: 32768, Images: true,
			Key: func(context.Context) (string, error) { return "token-test", nil },
		},
		Requests: player.Requests,
		InFlight: server.InFlight,
	}
}

// answer renders a turn in the vendor's words.
func answer(turn harnesstest.Turn) ollamatest.Answer {
	a := ollamatest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	a = a.Befallen(turn.Cut, turn.Stall)
	if turn.Fail != nil {
		fail(&a, turn.Fail)
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}

func fail(a *ollamatest.Answer, e *llm.Error) {
	set := func(status int, message string) { a.Status, a.Message = status, message }
	switch e.Kind {
	case llm.KindTransient:
		set(500, "llama runner process has terminated: exit status 2")
	case llm.KindOverloaded:
		set(503, "server busy, please try again.  maximum pending requests exceeded")
	case llm.KindWindow:
		set(400, fmt.Sprintf(`{"error":{"code":400,"message":"request (%d tokens) exceeds the available context size (%d tokens), try `+
			`increasing it","type":"exceed_context_size_error"}}`, e.Used, e.Limit))
	case llm.KindTooLarge:
		set(413, "request body too large")
	case llm.KindAuth:
		set(401, "unauthorized")
	case llm.KindInvalid:
		set(400, `"x" does not support thinking`)
	case llm.KindNoTools:
		set(400, "registry.ollama.ai/library/x does not support tools")
	case llm.KindNoModel:
		set(404, "model 'none' not found")
	case llm.KindQuota:
		set(429, "you've reached your weekly usage limit")
	default:
		panic("no answer of the vendor means " + e.Kind)
	}
}
