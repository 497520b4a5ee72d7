package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai/openaitest"
)

func TestClassify(t *testing.T) {
	cases := []struct {
		status      int
		body        string
		kind        llm.Kind
		used, limit int
	}{
		{400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","code":"context_length_exceeded"}}`, llm.KindWindow, 130000, 128000},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).","type":"BadRequestError","code":400}`, llm.KindWindow, 5000, 4096},
		{400, `{"error":{"code":400,"message":"request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":12345,"n_ctx":8192}}`, llm.KindWindow, 12345, 8192},
		{400, `{"error":{"message":"Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}`, llm.KindWindow, 0, 0},
		{400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, llm.KindWindow, 0, 0},
		{400, `{"error":{"message":"prompt token count of 130000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, llm.KindWindow, 130000, 128000},
		{400, `{"error":{"message":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}}`, llm.KindWindow, 140000, 131072},
		{400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, llm.KindWindow, 210000, 200000},
		{400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144"}}`, llm.KindWindow, 0, 262144},
		{422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens\",\"error_type\":\"validation\"}", llm.KindWindow, 5000, 4096},
		{400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, llm.KindWindow, 1200000, 1048576},
		{413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 7000","code":"rate_limit_exceeded"}}`, llm.KindWindow, 7000, 6000},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.KindBilling, 0, 0},
		{429, `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429}}`, llm.KindQuota, 0, 0},
		{429, `{"error":{"message":"Rate limit reached for requests","code":"rate_limit_exceeded"}}`, llm.KindRateLimited, 0, 0},
		{402, `{"error":{"message":"Insufficient credits","code":402}}`, llm.KindBilling, 0, 0},
		{403, `{"error":{"message":"Input was flagged","code":403,"metadata":{"reasons":["violence"]}}}`, llm.KindRefused, 0, 0},
		{403, `{"error":{"message":"Country not supported","code":"unsupported_country_region_territory"}}`, llm.KindAuth, 0, 0},
		{404, `{"error":{"message":"model \"qwen9\" not found, try pulling it first","type":"api_error"}}`, llm.KindNoModel, 0, 0},
		{404, `404 page not found`, llm.KindInvalid, 0, 0},
		{400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, llm.KindNoModel, 0, 0},
		{503, `{"error":"Model x is currently loading","estimated_time":20.5}`, llm.KindOverloaded, 0, 0},
		{503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.KindOverloaded, 0, 0},
		{400, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API."}}`, llm.KindHistory, 0, 0},
		{500, `{"error":{"message":"no user query found in messages"}}`, llm.KindHistory, 0, 0},
		{400, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, llm.KindInvalid, 0, 0},
		// What the servers of the table say of a prompt that is too long.
		{400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`, llm.KindWindow, 0, 0},
		{400, `{"error":{"message":"This endpoint's maximum context length is 202752 tokens. However, you requested about 203889 tokens (183648 of text input, 4241 of tool input, 16000 in the output).","code":400}}`, llm.KindWindow, 203889, 202752},
		{400, `{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_error","code":"3051"}`, llm.KindWindow, 140000, 131072},
		{400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 265000)","type":"invalid_request_error"}}`, llm.KindWindow, 0, 262144},
		{400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, llm.KindWindow, 0, 0},
		{400, `{"error":{"message":"invalid params, context window exceeds limit (2013)"}}`, llm.KindWindow, 0, 2013},
		{400, `{"error":"Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough."}`, llm.KindWindow, 10136, 7866},
		{500, `{"error":{"message":"Context size has been exceeded."}}`, llm.KindWindow, 0, 0},
		{400, `{"error":{"message":"The input (150000 tokens) is longer than the model's context length (131072 tokens)."}}`, llm.KindInvalid, 0, 0},
		{422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`\",\"error_type\":\"validation\"}", llm.KindWindow, 5000, 4096},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}`, llm.KindWindow, 210000, 200000},
		{429, `{"error":{"message":"Requests have exceeded token rate limit of your current pricing tier.","code":"429"}}`, llm.KindRateLimited, 0, 0},
		{429, `{"error":{"message":"Rate limit exceeded: limit of 5 concurrent requests for model with context 8192"}}`, llm.KindRateLimited, 0, 0},
		// Tools.
		{404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`, llm.KindNoTools, 0, 0},
		{400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`, llm.KindNoTools, 0, 0},
		{500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, llm.KindNoTools, 0, 0},
		{500, `{"code":500,"message":"Unsupported param: tools","type":"server_error"}`, llm.KindNoTools, 0, 0},
		{400, `{"error":{"message":"registry.ollama.ai/library/gemma3 does not support tools","type":"api_error"}}`, llm.KindNoTools, 0, 0},
		{400, `{"error":{"message":"tool calling is not supported with this model","type":"invalid_request_error","param":"tool calling"}}`, llm.KindNoTools, 0, 0},
		{400, "{\"error\":{\"message\":\"`tools` is not supported with this model\"}}", llm.KindNoTools, 0, 0},
		{400, `{"code":"Client specified an invalid argument","error":"Invalid request content: The model does not support tool use or function calling but tools or tool_choice have been specified on the request."}`, llm.KindNoTools, 0, 0},
		{400, `{"error":{"message":"litellm.UnsupportedParamsError: Anthropic expects the tools= param to be passed in."}}`, llm.KindInvalid, 0, 0},
		// The rest.
		{429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":90}}`, llm.KindQuota, 0, 0},
		{402, `{"error":"You have exceeded your monthly included credits for Inference Providers."}`, llm.KindBilling, 0, 0},
		{403, `{"error":{"message":"Key limit exceeded (total limit)","code":403}}`, llm.KindBilling, 0, 0},
		{403, `{"error":{"message":"Your chosen model requires moderation and your input was flagged","code":403,"metadata":{"reasons":["violence"]}}}`, llm.KindRefused, 0, 0},
		{404, `{"error":{"message":"No endpoints found for x/y.","code":404}}`, llm.KindNoModel, 0, 0},
		{400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","code":"3230"}`, llm.KindHistory, 0, 0},
		{400, `{"object":"error","message":"Tool call id was call_98660886 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","code":"3280"}`, llm.KindInvalid, 0, 0},
		{422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`, llm.KindInvalid, 0, 0},
		{502, `{"error":{"message":"Provider returned error","code":502}}`, llm.KindTransient, 0, 0},
		{503, `{"error":{"message":"No instances available (yet) to serve the request","code":503}}`, llm.KindOverloaded, 0, 0},
		{401, `{"error":{"message":"token expired"}}`, llm.KindAuthExpired, 0, 0},
		{400, ``, llm.KindInvalid, 0, 0},
		{408, ``, llm.KindTransient, 0, 0},
		{502, `<html>`, llm.KindTransient, 0, 0},
		{413, ``, llm.KindTooLarge, 0, 0},
	}
	for _, c := range cases {
		e := classify(c.status, []byte(c.body))
		if e.Kind != c.kind || e.Used != c.used || e.Limit != c.limit {
			t.Errorf("%d %s = %s %d %d, want %s %d %d", c.status, c.body, e.Kind, e.Used, e.Limit, c.kind, c.used, c.limit)
		}
	}
	for body, want := range map[string]time.Duration{
		`{"error":"Model x is currently loading","estimated_time":20.5}`:                20500 * time.Millisecond,
		`{"error":{"type":"usage_limit_reached","message":"x","resets_in_seconds":90}}`: 90 * time.Second,
		`{"error":{"type":"usage_limit_reached","message":"x","resets_at":1e9}}`:        time.Second,
		`{"error":{"type":"usage_limit_reached","message":"x","resets_at":-1}}`:         0,
	} {
		if e := classify(503, []byte(body)); e.RetryAfter != want {
			t.Errorf("%s: RetryAfter = %v, want %v", body, e.RetryAfter, want)
		}
	}
}

// TestResets reads the time at which an allowance comes back.
func TestResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Hour).Unix()
		body, err := json.Marshal(map[string]any{"error": map[string]any{"type": "usage_limit_reached", "message": "used up", "resets_at": at}})
		if err != nil {
			t.Fatal(err)
		}
		if e := classify(429, body); e.Kind != llm.KindQuota || e.RetryAfter != time.Hour {
			t.Errorf("got %s, %v", e.Kind, e.RetryAfter)
		}
	})
}

// TestBareOverflow holds that Cerebras says nothing of a prompt that is too
// long, and that nobody else is understood that way.
func TestBareOverflow(t *testing.T) {
	for dialect, want := range map[string][2]llm.Kind{
		"cerebras": {llm.KindWindow, llm.KindWindow},
		"vllm":     {llm.KindInvalid, llm.KindTooLarge},
	} {
		for i, status := range []int{400, 413} {
			m := &Model{ID: "m", Dialect: dialect, BaseURL: openaitest.Start(t, &openaitest.Server{Dialect: dialect, Answer: func(*http.Request, []byte) openaitest.Answer {
				return openaitest.Answer{Status: status, Body: " "}
			}})}
			if _, e := ask(t, m, greeting()); e == nil || e.Kind != want[i] {
				t.Errorf("%s, %d: %v, want %s", dialect, status, e, want[i])
			}
		}
	}
}

// TestSilentOverflow holds that a prompt larger than the window is one that was
// cut, at servers that say no word of it.
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

// TestNoSilentOverflow holds that a guess at the usage is no overflow.
func TestNoSilentOverflow(t *testing.T) {
	base := openaitest.Start(t, &openaitest.Server{Dialect: "zai", Habits: openaitest.Habits{NoUsage: true}, Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say("hello")}
	}})
	if r, e := ask(t, &Model{ID: "glm", Dialect: "zai", Window: 1, BaseURL: base}, greeting()); e != nil || !r.Usage.Estimated {
		t.Errorf("got %+v, %v", r, e)
	}
}

func TestBudgetHeld(t *testing.T) {
	m := &Model{ID: "m", BaseURL: openaitest.Start(t, &openaitest.Server{Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Status: 402, Message: "Insufficient credits", Header: http.Header{"Retry-After": {"9"}}}
	}})}
	if _, e := ask(t, m, greeting()); e == nil || e.Kind != llm.KindQuota || e.RetryAfter != 9*time.Second {
		t.Errorf("got %+v", e)
	}
}

// FuzzClassify holds that no answer of a server breaks the classification.
func FuzzClassify(f *testing.F) {
	f.Add(400, `{"error":{"message":"maximum context length is 1 tokens. However, 22 tokens","metadata":{"raw":"{\"error\":{\"metadata\":{\"raw\":1}}}"}}}`)
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
