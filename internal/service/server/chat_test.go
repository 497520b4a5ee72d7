package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// complete sends a conversation and returns the answer.
func (h *house) complete(messages ...chatMessage) string {
	h.t.Helper()
	var out struct {
		Object  string
		Choices []struct {
			Message chatMessage
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	h.call("POST", "/v1/chat/completions", map[string]any{"model": "inspan", "messages": messages, "temperature": 0.2}, http.StatusOK, &out)
	if out.Object != "chat.completion" || len(out.Choices) != 1 || out.Choices[0].Finish != "stop" || out.Usage.Total == 0 {
		h.t.Fatalf("answer %+v", out)
	}
	return out.Choices[0].Message.Content
}

func (h *house) tasks() []server.Task {
	h.t.Helper()
	var out struct{ Tasks []server.Task }
	h.call("GET", "/api/v1/tasks", nil, http.StatusOK, &out)
	return out.Tasks
}

// TestChat checks that a client which sends the conversation again, with the answer, talks to the same agent, and one
// that sends another goes to a new one.
func TestChat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	talk := []chatMessage{{"system", "Be brief."}, {"user", "say: heron"}}
	first := h.complete(talk...)
	if first != "heron" {
		t.Errorf("answer %q", first)
	}
	again := slices.Concat(talk, []chatMessage{{"assistant", first}, {"user", "say: egret"}})
	if got := h.complete(again...); got != "egret" {
		t.Errorf("answer %q", got)
	}
	if task := h.says(h.tasks()[0].ID, "egret"); len(h.tasks()) != 1 || task.Result.Turns != 2 || task.Spec.System != "Be brief." {
		t.Errorf("task %+v", task)
	}
	h.complete(again...) // it has gone on from there
	tasks := h.tasks()
	if len(tasks) != 2 || !strings.Contains(tasks[0].Spec.Prompt, "heron") {
		t.Errorf("tasks %+v", tasks)
	}
	h.identity("ann", "a", server.Operator).complete(again...)
	if tasks := h.tasks(); len(tasks) != 3 {
		t.Errorf("another identity has gone on with a conversation: %d tasks", len(tasks))
	}
}

// TestChatStream checks the form of a streamed answer, and that a client which goes interrupts it.
func TestChatStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	body := map[string]any{
		"model": "inspan", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"messages": []chatMessage{{"user", "say: heron"}},
	}
	_, text := h.do(h.request(t.Context(), "POST", "/v1/chat/completions", body))
	got, finish, usage := "", "", false
	for line := range strings.Lines(text) {
		data, is := strings.CutPrefix(line, "data: {")
		if !is {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta  chatMessage
				Finish string `json:"finish_reason"`
			}
			Usage *struct{}
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			got, finish = got+c.Delta.Content, finish+c.Finish
		}
		usage = usage || chunk.Usage != nil
	}
	if got != "heron" || finish != "stop" || !usage || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%q, %q, %v: %s", got, finish, usage, text)
	}
	body["messages"] = []chatMessage{{"user", "bash: touch began; sleep 100"}}
	res, err := http.DefaultClient.Do(h.request(t.Context(), "POST", "/v1/chat/completions", body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	id := h.tasks()[0].ID
	h.when(id, "interrupted", func(t server.Task) bool { return t.Result != nil && t.Result.Stopped == "cancelled" })
}

// TestResponses checks that a response follows another, once, and the form of a stream.
func TestResponses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ask := func(status int, body map[string]any) (id, text string) {
		t.Helper()
		body["model"] = "inspan"
		var out struct {
			ID, Status string
			Output     []struct{ Content []struct{ Text string } }
		}
		h.call("POST", "/v1/responses", body, status, &out)
		if status == http.StatusOK && (out.Status != "completed" || len(out.Output) != 1) {
			t.Fatalf("response %+v", out)
		}
		if status != http.StatusOK {
			return "", ""
		}
		return out.ID, out.Output[0].Content[0].Text
	}
	id, text := ask(http.StatusOK, map[string]any{"input": "say: heron", "instructions": "Be brief."})
	if text != "heron" {
		t.Errorf("answer %q", text)
	}
	list := []map[string]any{{"role": "user", "content": []map[string]string{{"type": "input_text", "text": "say: egret"}}}}
	if _, text = ask(http.StatusOK, map[string]any{"input": list, "previous_response_id": id}); text != "egret" {
		t.Errorf("answer %q", text)
	}
	if task := h.says(h.tasks()[0].ID, "egret"); len(h.tasks()) != 1 || task.Result.Turns != 2 {
		t.Errorf("task %+v", task)
	}
	ask(http.StatusBadRequest, map[string]any{"input": "say: x", "previous_response_id": id})
	id, _ = ask(http.StatusOK, map[string]any{"input": "say: x", "store": false})
	ask(http.StatusBadRequest, map[string]any{"input": "say: x", "previous_response_id": id})
	_, body := h.do(h.request(t.Context(), "POST", "/v1/responses", map[string]any{"model": "inspan", "input": "say: heron", "stream": true}))
	for _, name := range []string{
		"response.created", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	} {
		if !strings.Contains(body, "event: "+name+"\n") {
			t.Errorf("no %s in %s", name, body)
		}
	}
}

// TestChatRefuses checks the errors for requests that an agent can't serve.
func TestChatRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	hi := []chatMessage{{"user", "hi"}}
	for _, tc := range []struct {
		path, field string
		body        map[string]any
	}{
		{"/v1/chat/completions", "tools", map[string]any{"model": "inspan", "messages": hi, "tools": []any{map[string]any{"type": "function"}}}},
		{"/v1/chat/completions", "stop", map[string]any{"model": "inspan", "messages": hi, "stop": "END"}},
		{"/v1/responses", "background", map[string]any{"model": "inspan", "input": "hi", "background": true}},
		{"/v1/chat/completions", "n", map[string]any{"model": "inspan", "messages": hi, "n": 2}},
		{"/v1/chat/completions", "model", map[string]any{"messages": hi}},
		{"/v1/chat/completions", "messages", map[string]any{"model": "inspan", "messages": []chatMessage{{"user", "a"}, {"assistant", "b"}}}},
		{"/v1/chat/completions", "messages.0.role", map[string]any{"model": "inspan", "messages": []chatMessage{{"tool", "a"}}}},
		{"/v1/chat/completions", "messages.0.content.0.type", map[string]any{"model": "inspan", "messages": []any{
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "image_url"}}},
		}}},
		{"/v1/chat/completions", "messages", map[string]any{"model": "inspan", "messages": []chatMessage{{"user", "a\x1b[2Jb"}}}},
		{"/v1/responses", "input", map[string]any{"model": "inspan"}},
		{"/v1/responses", "input.0.type", map[string]any{"model": "inspan", "input": []any{map[string]any{"type": "function_call_output"}}}},
		{"/v1/responses", "text.format", map[string]any{
			"model": "inspan", "input": "hi", "text": map[string]any{"format": map[string]any{"type": "json_schema", "name": "x", "schema": map[string]any{}}},
		}},
		{"/v1/responses", "text.format", map[string]any{"model": "inspan", "input": "hi", "text": map[string]any{"format": map[string]any{"type": "json_object"}}}},
	} {
		status, body := h.do(h.request(t.Context(), "POST", tc.path, tc.body))
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+tc.field+`"`) {
			t.Errorf("%s of %s: %d %s", tc.field, tc.path, status, body)
		}
	}
}

// TestChatTakes checks that fields which would change nothing are taken.
func TestChatTakes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	body := map[string]any{
		"model": "inspan", "messages": []chatMessage{{"user", "say: hi"}}, "tools": []any{}, "tool_choice": "none", "parallel_tool_calls": true,
		"response_format": map[string]any{"type": "text"}, "logprobs": false, "stop": nil, "service_tier": "auto", "prompt_cache_key": "k",
	}
	if status, text := h.do(h.request(t.Context(), "POST", "/v1/chat/completions", body)); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	body = map[string]any{
		"model": "inspan", "input": "say: hi", "text": map[string]any{"format": map[string]any{"type": "text"}, "verbosity": "low"}, "tools": nil,
	}
	if status, text := h.do(h.request(t.Context(), "POST", "/v1/responses", body)); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// TestUnknownModel checks that a model without a provider is refused where it is named, and that identities of a tenant
// do not learn what the operator's settings lack.
func TestUnknownModel(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) {
		s.HasModel = func(name string) error { return fmt.Errorf("no provider has %s", name) }
	})
	for path, body := range map[string]any{
		"/api/v1/tasks":        server.Spec{Prompt: "x", Model: "gpt-none"},
		"/v1/chat/completions": map[string]any{"model": "gpt-none", "messages": []chatMessage{{"user", "x"}}},
		"/v1/responses":        map[string]any{"model": "gpt-none", "input": "x"},
	} {
		status, text := h.do(h.request(t.Context(), "POST", path, body))
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"model"`) || !strings.Contains(text, "gpt-none") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	red := h.identity("ann", "red", server.Operator)
	status, text := red.do(red.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{Prompt: "x", Model: "gpt-none"}))
	if status != http.StatusBadRequest || strings.Contains(text, "no provider has") {
		t.Errorf("%d %s", status, text)
	}
}

// TestIdleTimeout checks that an open task without messages is closed.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, IdleTimeout: 1}).ID
	h.until(id, "completed")
}
