package openai_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai"
)

// toolNames is the rule of both wires.
var toolNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// TestModel runs the suite with every server of the table, and with the habits of some unknown servers.
func TestModel(t *testing.T) {
	for _, d := range openai.Dialects() {
		var without []string
		switch d.Name {
		case "openai", "azure":
			without = []string{"reasoning"} // they keep it to themselves
		case "mistral", "llamacpp":
			without = []string{"pause"} // the model can't speak last
		case "deepseek":
			without = []string{"images"} // it takes none
		case "tgi":
			without = []string{"tool-names"} // it streams calls without their names
		}
		testModel(t, d.Name, d.Name, openaitest.Habits{}, without...)
	}
	testModel(t, "unnamed", "", openaitest.Habits{})
	testModel(t, "unnamed-counting", "", openaitest.Habits{ChoiceUsage: true, SameIDs: true})
	testModel(t, "unnamed-short", "", openaitest.Habits{Reasoning: "reasoning", WholeCalls: true, NoIndex: true, NoIDs: true, NoDone: true})
}

func testModel(t *testing.T, name, dialect string, habits openaitest.Habits, without ...string) {
	t.Run(name, func(t *testing.T) {
		harnesstest.TestModel(t, harnesstest.ModelParams{
			New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
				return newFake(t, dialect, habits, turns)
			},
			Without: without,
			Errors:  kinds(), ToolNames: toolNames,
		})
	})
}

// TestResponsesModel runs the suite on the Responses wire. With phases, a reply has an extra part that keeps them,
// which "text" does not expect.
func TestResponsesModel(t *testing.T) {
	without := []string{"pause", "stop/window"} // the API has neither
	for name, c := range map[string]struct {
		phases, failed bool
		without        []string
	}{
		"plain":  {without: without},
		"phases": {phases: true, failed: true, without: append(without, "text")},
	} {
		t.Run(name, func(t *testing.T) {
			harnesstest.TestModel(t, harnesstest.ModelParams{
				New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
					player := wiretest.Play(turns, answer, openaitest.Answer{Status: 500, Message: "no turn left"})
					s := &openaitest.Responses{Answer: player.Answer, Key: "sk-test-key", Phases: c.phases, Failed: c.failed}
					return newResponsesFake(t, s, player.Requests, turns[0].Stall == "connect")
				},
				Without: c.without,
				Errors:  kinds(), ToolNames: toolNames,
			})
		})
	}
}

func newResponsesFake(t *testing.T, s *openaitest.Responses, requests func() []string, silent bool) harnesstest.Fake {
	tr := openaitest.ResponsesTransport(t, s)
	if silent {
		tr = openaitest.NoTransport(t)
	}
	return harnesstest.Fake{
		Model: &openai.Responses{
			ID: "gpt-5", HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake/v1",
			Key: func(context.Context) (string, error) { return "sk-test-key", nil },
		},
		Requests: requests, InFlight: s.InFlight,
	}
}

// kinds are the failures the vendor can express.
func kinds() []llm.Kind {
	return []llm.Kind{
		llm.KindTransient, llm.KindRateLimited, llm.KindQuota, llm.KindOverloaded, llm.KindWindow, llm.KindTooLarge,
		llm.KindAuth, llm.KindAuthExpired, llm.KindBilling, llm.KindRefused, llm.KindHistory, llm.KindInvalid, llm.KindNoModel,
		llm.KindNoTools,
	}
}

func newFake(t *testing.T, dialect string, habits openaitest.Habits, turns []harnesstest.Turn) harnesstest.Fake {
	player := wiretest.Play(turns, answer, openaitest.Answer{Status: 500, Message: "no turn left"})
	server := &openaitest.Server{Answer: player.Answer, Key: "sk-test-key", Dialect: dialect, Habits: habits}
	tr := openaitest.Transport(t, server)
	if turns[0].Stall == "connect" {
		tr = openaitest.NoTransport(t)
	}
	return harnesstest.Fake{
		Model: &openai.Model{
			ID: "m", HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake/v1", Dialect: dialect,
			Key: func(context.Context) (string, error) { return "sk-test-key", nil },
		},
		Requests: player.Requests, InFlight: server.InFlight,
	}
}

// answer renders a turn in the vendor's words.
func answer(turn harnesstest.Turn) openaitest.Answer {
	a := openaitest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	a = a.Befallen(turn.Cut, turn.Stall)
	if turn.Fail != nil {
		fail(&a, turn.Fail)
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}

func fail(a *openaitest.Answer, e *llm.Error) {
	set := func(status int, kind, code, message string) {
		a.Status, a.Type, a.Code, a.Message = status, kind, code, message
	}
	const invalid = "invalid_request_error"
	switch e.Kind {
	case llm.KindTransient:
		set(500, "server_error", "", "The server had an error while processing your request.")
	case llm.KindRateLimited:
		set(429, "requests", "rate_limit_exceeded", "Rate limit reached for gpt-5 on requests per min.")
		a.Header = http.Header{"Retry-After-Ms": {strconv.FormatInt(e.RetryAfter.Milliseconds(), 10)}}
	case llm.KindQuota:
		set(429, "tokens", "rate_limit_exceeded", "Rate limit reached on tokens per day (TPD): Limit 100000, Used 99999.")
	case llm.KindOverloaded:
		set(503, "server_error", "server_is_overloaded", "The engine is currently overloaded, please try again later.")
	case llm.KindWindow:
		set(400, invalid, "context_length_exceeded", "This model's maximum context length is "+strconv.Itoa(e.Limit)+
			" tokens. However, your messages resulted in "+strconv.Itoa(e.Used)+" tokens.")
	case llm.KindTooLarge:
		set(413, invalid, "", "Request body is too big")
	case llm.KindAuth:
		set(401, invalid, "invalid_api_key", "Incorrect API key provided: sk-t*****key.")
	case llm.KindAuthExpired:
		set(401, invalid, "", "Your token has expired.")
	case llm.KindBilling:
		set(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case llm.KindRefused:
		set(400, invalid, "content_filter", "The response was filtered due to the prompt triggering content management policy.")
	case llm.KindHistory:
		set(400, invalid, "", "An assistant message with 'tool_calls' must be followed by tool messages.")
	case llm.KindInvalid:
		set(400, invalid, "unsupported_parameter", "Unsupported parameter: 'x'.")
	case llm.KindNoModel:
		set(404, invalid, "model_not_found", "The model `m` does not exist or you do not have access to it.")
	case llm.KindNoTools:
		set(400, invalid, "", "The model does not support tools.")
	default:
		panic("no answer of the vendor means " + e.Kind)
	}
}
