package anthropic_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/wiretest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/cloud"
)

// toolNames is the vendor's rule.
var toolNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestModel(t *testing.T) {
	for _, id := range []string{"claude-opus-5-5", "claude-opus-4-8", "claude-haiku-4-5", "some-other-model"} {
		t.Run(id, func(t *testing.T) {
			harnesstest.TestModel(t, harnesstest.ModelParams{
				New:    func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake { return newFake(t, at{id: id}, turns) },
				Errors: append(kinds(), llm.KindQuota), ToolNames: toolNames,
			})
		})
	}
	t.Run("bedrock", func(t *testing.T) {
		harnesstest.TestModel(t, harnesstest.ModelParams{
			New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
				return newFake(t, at{"us.anthropic.claude-sonnet-5-5-20260930-v1:0", "bedrock", failBedrock}, turns)
			},
			Errors: append(kinds(), llm.KindQuota), ToolNames: toolNames,
		})
	})
	t.Run("vertex", func(t *testing.T) {
		harnesstest.TestModel(t, harnesstest.ModelParams{
			New: func(t *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
				return newFake(t, at{"claude-haiku-4-5@20251001", "vertex", failVertex}, turns)
			},
			Errors: kinds(), ToolNames: toolNames,
		})
	})
}

// kinds are the kinds of failure that every platform can express.
func kinds() []llm.Kind {
	return []llm.Kind{
		llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindWindow, llm.KindTooLarge,
		llm.KindAuth, llm.KindAuthExpired, llm.KindBilling, llm.KindRefused, llm.KindHistory, llm.KindInvalid, llm.KindNoModel,
	}
}

// at is a model where it is served.
type at struct {
	id, dialect string
	fail        func(*anthropictest.Answer, *llm.Error) // nil means in the vendor's words
}

func newFake(t *testing.T, at at, turns []harnesstest.Turn) harnesstest.Fake {
	player := wiretest.Play(turns, at.answer, anthropictest.Answer{Status: 500, Type: "no turn left"})
	server := &anthropictest.Server{Answer: player.Answer, Key: "sk-ant-test", Dialect: at.dialect}
	var tr http.RoundTripper = anthropictest.Transport(t, server)
	if turns[0].Stall == "connect" {
		tr = anthropictest.NoTransport(t)
	}
	m := &anthropic.Model{
		ID: at.id, HTTP: tr, Deadlines: harnesstest.Deadlines(), BaseURL: "http://fake", Dialect: at.dialect,
		Key: func(context.Context) (string, error) { return "sk-ant-test", nil },
	}
	switch at.dialect {
	case "bedrock":
		server.Secret = "secret"
		m.Key, m.HTTP = nil, &cloud.AWS{Region: "eu-west-1", HTTP: tr, Credentials: func(context.Context) (cloud.Credentials, error) {
			return cloud.Credentials{AccessKey: anthropictest.AccessKey, SecretKey: "secret"}, nil
		}}
	case "vertex":
		m.BaseURL = "http://fake/v1/projects/p/locations/global/publishers/anthropic"
	}
	return harnesstest.Fake{
		Model:    m,
		Requests: player.Requests,
		InFlight: server.InFlight,
		Volatile: []string{`,"cache_control":{"type":"ephemeral"}`},
	}
}

// answer renders a turn in the vendor's words.
func (at at) answer(turn harnesstest.Turn) anthropictest.Answer {
	a := anthropictest.Answer{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage, Split: turn.Split}
	a = a.Befallen(turn.Cut, turn.Stall)
	if turn.Fail != nil {
		if at.fail == nil {
			at.fail = fail
		}
		at.fail(&a, turn.Fail)
		if turn.Late {
			a.Status, a.ErrorAt = 0, 6
		}
	}
	return a
}

func fail(a *anthropictest.Answer, e *llm.Error) {
	set := func(status int, kind, message string) { a.Status, a.Type, a.Message = status, kind, message }
	switch e.Kind {
	case llm.KindTransient:
		set(500, "api_error", "Internal server error")
	case llm.KindRateLimited:
		set(429, "rate_limit_error", "This request would exceed your rate limit")
		a.Header = http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter.Seconds()))}}
	case llm.KindQuota:
		set(400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01.")
	case llm.KindOverloaded:
		set(529, "overloaded_error", "Overloaded")
	case llm.KindWindow:
		set(400, "invalid_request_error", "prompt is too long: "+strconv.Itoa(e.Used)+" tokens > "+strconv.Itoa(e.Limit)+" maximum")
	case llm.KindTooLarge:
		set(413, "request_too_large", "Request exceeds the maximum size")
	case llm.KindAuth:
		set(401, "authentication_error", "invalid x-api-key")
	case llm.KindAuthExpired:
		set(401, "authentication_error", "OAuth token has expired. Please obtain a new token.")
	case llm.KindBilling:
		set(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")
	case llm.KindRefused:
		set(400, "invalid_request_error", "Output blocked by content filtering policy")
	case llm.KindHistory:
		set(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
	case llm.KindInvalid:
		set(400, "invalid_request_error", "max_tokens: Field required")
	case llm.KindNoModel:
		set(404, "not_found_error", "model: claude-none")
	default:
		panic("no answer of the vendor means " + e.Kind)
	}
}

// failBedrock says it in Bedrock's exceptions.
func failBedrock(a *anthropictest.Answer, e *llm.Error) {
	set := func(status int, kind, message string) { a.Status, a.Type, a.Message = status, kind, message }
	switch e.Kind {
	case llm.KindTransient:
		set(424, "ModelErrorException", "The system encountered an unexpected error during processing.")
	case llm.KindRateLimited:
		set(429, "ThrottlingException", "Too many requests, please wait before trying again.")
		a.Header = http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter.Seconds()))}}
	case llm.KindQuota:
		set(429, "ThrottlingException", "Too many tokens per day, please wait before trying again.")
	case llm.KindOverloaded:
		set(429, "ModelNotReadyException", "The model is not ready to serve inference requests.")
	case llm.KindWindow:
		set(400, "ValidationException", "prompt is too long: "+strconv.Itoa(e.Used)+" tokens > "+strconv.Itoa(e.Limit)+" maximum")
	case llm.KindTooLarge:
		set(400, "ValidationException",
			"1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000")
	case llm.KindAuth:
		set(403, "AccessDeniedException", "You don't have access to the model with the specified model ID.")
	case llm.KindAuthExpired:
		set(403, "ExpiredTokenException", "The security token included in the request is expired")
	case llm.KindBilling:
		set(403, "AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided.")
	case llm.KindRefused:
		set(400, "ValidationException", "Output blocked by content filtering policy")
	case llm.KindHistory:
		set(400, "ValidationException", "messages.1.content.0: Invalid `signature` in `thinking` block")
	case llm.KindInvalid:
		set(400, "ValidationException", "max_tokens: Field required")
	case llm.KindNoModel:
		set(404, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier.")
	default:
		panic("no answer of Bedrock means " + e.Kind)
	}
}

// failVertex says it in Google's words where Google answers before the model is
// reached.
func failVertex(a *anthropictest.Answer, e *llm.Error) {
	set := func(status int, kind, message string) { a.Status, a.Type, a.Message = status, kind, message }
	switch e.Kind {
	case llm.KindTransient:
		set(499, "CANCELLED", "The operation was cancelled.")
	case llm.KindRateLimited:
		set(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later.")
		a.Header = http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter.Seconds()))}}
	case llm.KindAuth:
		set(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource.")
	case llm.KindAuthExpired:
		set(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
		a.Code = "ACCESS_TOKEN_EXPIRED"
	case llm.KindBilling:
		set(403, "PERMISSION_DENIED", "This API method requires billing to be enabled.")
	case llm.KindNoModel:
		set(404, "NOT_FOUND", "Publisher Model `claude-none` was not found or your project does not have access to it.")
	default:
		fail(a, e)
	}
}
