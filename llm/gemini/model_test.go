package gemini_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/gemini"
)

func TestModel(t *testing.T) {
	for _, id := range []string{"gemini-4-argon", "gemini-3.1-pro-preview", "gemini-2.5-flash", "gemini-flash-latest", "gemma-4-31b-it"} {
		t.Run(id, func(t *testing.T) {
			harnesstest.TestModel(t, harnesstest.ModelParams{
				New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake { return newFake(t, id, turns) },
				// The wire has arguments as objects only, and no such stops.
				Without:   []string{"broken-arguments", "length", "pause", "stop/window"},
				ToolNames: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$`),
				Errors: []llm.Kind{
					llm.KindTransient, llm.KindRateLimited, llm.KindQuota, llm.KindOverloaded, llm.KindWindow, llm.KindTooLarge,
					llm.KindAuth, llm.KindAuthExpired, llm.KindBilling, llm.KindRefused, llm.KindHistory, llm.KindInvalid, llm.KindNoModel,
				},
			})
		})
	}
}

func newFake(t *testing.T, id string, turns []harnesstest.Turn) harnesstest.Fake {
	player := wiretest.Play(turns, answer, geminitest.Answer{Status: 500, Type: "INTERNAL", Message: "no turn left"})
	server := &geminitest.Server{Answer: player.Answer, Key: "AIza-test"}
	tr := geminitest.Transport(t, server)
	if turns[0].Stall == "connect" {
		tr = geminitest.NoTransport(t)
	}
	return harnesstest.Fake{
		Model: &gemini.Model{
			ID: id, HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake",
			Key: func(context.Context) (string, error) { return "AIza-test", nil },
		},
		Requests: player.Requests,
		InFlight: server.InFlight,
	}
}

// answer renders a turn in the vendor's words.
func answer(turn harnesstest.Turn) geminitest.Answer {
	a := geminitest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	a = a.Befallen(turn.Cut, turn.Stall)
	if turn.Fail != nil {
		fail(&a, turn.Fail)
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}

func quota(id, delay string) string {
	return fmt.Sprintf(`[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":%q,`+
		`"quotaValue":"20"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%q}]`, id, delay)
}

func fail(a *geminitest.Answer, e *llm.Error) {
	set := func(status int, kind, message string) { a.Status, a.Type, a.Message = status, kind, message }
	switch e.Kind {
	case llm.KindTransient:
		set(500, "INTERNAL", "An internal error has occurred.")
	case llm.KindRateLimited:
		set(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.")
		a.Code = quota("GenerateRequestsPerMinutePerProjectPerModel", e.RetryAfter.String())
	case llm.KindQuota:
		set(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details. Please retry in 8.94s.")
		a.Code = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "8s")
	case llm.KindOverloaded:
		set(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
	case llm.KindWindow:
		set(400, "INVALID_ARGUMENT", fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).",
			e.Used, e.Limit))
	case llm.KindTooLarge:
		set(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.")
	case llm.KindAuth:
		set(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
	case llm.KindAuthExpired:
		set(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.")
	case llm.KindBilling:
		set(403, "PERMISSION_DENIED", "This API method requires billing to be enabled.")
	case llm.KindRefused:
		*a = geminitest.Blocked("PROHIBITED_CONTENT")
	case llm.KindHistory:
		set(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts.")
	case llm.KindInvalid:
		set(400, "INVALID_ARGUMENT", "Invalid value at 'generation_config'")
	case llm.KindNoModel:
		set(404, "NOT_FOUND", "models/gemini-none is not found for API version v1beta")
	default:
		panic("no answer of the vendor means " + e.Kind)
	}
}
