package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/testkit"
)

// TestRounds checks what a client must send to answer a question in the revision without requests to clients: the key
// of the question, once, with the same call, and one of the offered answers.
func TestRounds(t *testing.T) {
	h := newHouse(t, "ask")
	h.rounds = &sdk.MultiRoundTripOptions{Disabled: true}
	c := h.connect(newer, says("")) // has forms, and answers by hand
	call := func(content, state string, answer sdk.InputResponse) (*sdk.CallToolResult, error) {
		p := &sdk.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "new.txt", "content": content}, RequestState: state}
		if answer != nil {
			p.InputResponses = sdk.InputResponseMap{"decision": answer}
		}
		return c.CallTool(t.Context(), p)
	}
	form := func(choice string) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": choice}}
	}
	asks := func(res *sdk.CallToolResult, err error) string {
		t.Helper()
		if err != nil || !res.NeedsInput() || res.RequestState == "" || len(res.InputRequests) != 1 {
			t.Fatalf("it does not ask: %+v %v", res, err)
		}
		return res.RequestState
	}
	refused := func(what string, res *sdk.CallToolResult, err error) {
		t.Helper()
		if err == nil || h.read("new.txt") != "" {
			t.Errorf("%s is taken: %+v", what, res)
		}
	}
	first := asks(call("made", "", nil))
	res, err := call("made", first+"x", form("allow once"))
	refused("another key", res, err)
	res, err = call("other", first, form("allow once"))
	refused("another call", res, err)
	second := asks(call("made", first, nil))
	res, err = call("made", first, form("allow once"))
	refused("a key that was used", res, err)
	third := asks(call("made", second, form("allow everything")))
	third = asks(call("made", third, form("")))
	third = asks(call("made", third, &sdk.ElicitResult{Action: "perhaps", Content: map[string]any{"decision": "allow once"}}))
	third = asks(call("made", third, &sdk.ListRootsResult{})) //nolint:staticcheck // an answer of another kind
	if h.read("new.txt") != "" {
		t.Fatal("made without an answer")
	}
	if res, err := call("made", third, form("allow once")); err != nil || res.IsError || res.NeedsInput() || h.read("new.txt") != "made" {
		t.Errorf("%+v %v", res, err)
	}
	if res, err := call("made", third, form("allow once")); err == nil {
		t.Errorf("answered twice: %+v", res)
	}
}

// TestLateAnswers checks that a question does not wait forever.
func TestLateAnswers(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.Patience = 50 * time.Millisecond
		h.rounds = &sdk.MultiRoundTripOptions{Disabled: true}
		release := make(chan struct{})
		defer close(release)
		c := h.connect(revision, func(*sdk.ElicitParams) *sdk.ElicitResult {
			<-release
			return &sdk.ElicitResult{Action: "cancel"}
		})
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "new.txt", "content": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		if revision == older && !strings.Contains(textOf(res), "nobody answered in time") {
			t.Errorf("%s", textOf(res))
		}
		testkit.WaitFor(t, "the end of the wait", func() bool {
			for info, err := range h.Host.List(t.Context()) {
				if err == nil && strings.Contains(h.log(info.ID), "nobody answered in time") {
					return true
				}
			}
			return false
		})
		if h.read("new.txt") != "" {
			t.Error("it was made")
		}
	})
}

// TestManyQuestions checks that those which wait are bounded.
func TestManyQuestions(t *testing.T) {
	h := newHouse(t, "ask")
	h.rounds = &sdk.MultiRoundTripOptions{Disabled: true}
	c := h.connect(newer, says(""))
	for i := range 16 {
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{
			Name:      "write_file",
			Arguments: map[string]any{"path": "new.txt", "content": strings.Repeat("x", i)},
		})
		if err != nil || !res.NeedsInput() {
			t.Fatalf("question %d: %+v %v", i, res, err)
		}
	}
	if text, failed := c.call("write_file", map[string]any{"path": "new.txt", "content": "y"}); !failed ||
		!strings.Contains(text, "too many questions") {
		t.Errorf("%s", text)
	}
	h.write("a.txt", "one")
	if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
		t.Errorf("what does not ask: %s", text)
	}
}
