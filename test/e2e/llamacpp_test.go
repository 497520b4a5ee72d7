package e2e_test

import (
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/openai"
)

func llamacpp(t *testing.T) llm.Endpoint {
	return llm.Endpoint{BaseURL: env(t, "INSPAN_E2E_LLAMACPP") + "/v1", ID: "any", Dialect: "llamacpp"}
}

func speaks(e llm.Endpoint) *openai.Model { return (*openai.Model)(&e) }

func TestLlamacppStreams(t *testing.T) { streams(t, speaks(llamacpp(t))) }

func TestLlamacppCancel(t *testing.T) { frees(t, speaks(llamacpp(t))) }

// TestLlamacppWindow takes the window from the server's answer.
func TestLlamacppWindow(t *testing.T) {
	e := llamacpp(t)
	list, err := openai.Discover(t.Context(), e)
	if err != nil || len(list) != 1 || list[0].Window == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	refusesTooLong(t, speaks(e), list[0].Window)
}

// TestLlamacppGrows checks that the second turn comes from the cache, except for the new part.
func TestLlamacppGrows(t *testing.T) {
	a, b := grows(t, speaks(llamacpp(t)))
	if b.CacheRead < a.Prompt()*9/10 {
		t.Errorf("first turn %+v, second %+v", a, b)
	}
	t.Logf("first turn %+v, second %+v", a, b)
}

// TestLlamacppCalls has the server demand a call. It does not constrain the model
// under every template, and one of 135M weights calls nothing by itself.
func TestLlamacppCalls(t *testing.T) {
	e := llamacpp(t)
	must := map[string]any{"tool_choice": "required"}
	e.HTTP = &forced{fields: must}
	if o := ask(t, speaks(e), llm.Request{
		Tools: []llm.ToolSpec{read}, Messages: user("Read the file a.txt."),
		MaxOutput: 200,
	}); o.reply != nil && len(o.reply.Calls()) == 0 {
		t.Skip("the model talks instead of calling, and the server lets it: take another model")
	}
	e.HTTP = &forced{fields: must}
	calls(t, speaks(e))
}
