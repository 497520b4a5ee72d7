package server

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// responseRequest asks for a response. Fields that matter only to a model are accepted and have no effect.
type responseRequest struct {
	Model        string          `json:"model" jsonschema:"inspan for the server's own choice, or provider/model"`
	Input        json.RawMessage `json:"input" jsonschema:"a text, or a list of messages"`
	Instructions string          `json:"instructions,omitempty" jsonschema:"text to add to the system prompt"`
	Previous     string          `json:"previous_response_id,omitempty" jsonschema:"response that the input follows"`
	Stream       bool            `json:"stream,omitempty"`
	Store        *bool           `json:"store,omitempty" jsonschema:"false: no response can follow this one"`

	Temperature     json.RawMessage `json:"temperature,omitempty" jsonschema:"has no effect, like the next ones"`
	TopP            json.RawMessage `json:"top_p,omitempty"`
	MaxOutputTokens json.RawMessage `json:"max_output_tokens,omitempty"`
	Reasoning       json.RawMessage `json:"reasoning,omitempty"`
	Truncation      json.RawMessage `json:"truncation,omitempty"`
	User            json.RawMessage `json:"user,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	Include         json.RawMessage `json:"include,omitempty"`

	ServiceTier       json.RawMessage `json:"service_tier,omitempty"`
	ParallelToolCalls json.RawMessage `json:"parallel_tool_calls,omitempty"`
	PromptCacheKey    json.RawMessage `json:"prompt_cache_key,omitempty"`
	SafetyIdentifier  json.RawMessage `json:"safety_identifier,omitempty"`

	Text       responseText    `json:"text,omitzero"`
	Tools      json.RawMessage `json:"tools,omitempty" jsonschema:"none: an agent uses its own tools"`
	ToolChoice json.RawMessage `json:"tool_choice,omitempty" jsonschema:"none or auto"`
	Background json.RawMessage `json:"background,omitempty" jsonschema:"false"`
}

// responseText is the requested form of the reply.
type responseText struct {
	Format    json.RawMessage `json:"format,omitempty" jsonschema:"type text"`
	Verbosity json.RawMessage `json:"verbosity,omitempty" jsonschema:"has no effect"`
}

// plain is like the method of a [completionRequest].
func (in responseRequest) plain() error {
	return cmp.Or(neutral("tools", in.Tools, `[]`), neutral("tool_choice", in.ToolChoice, `"auto"`, `"none"`),
		neutral("background", in.Background, `false`), neutral("text.format", in.Text.Format, `{"type":"text"}`))
}

// modelResponse is a response as clients read it.
type modelResponse struct {
	ID         string         `json:"id"`
	Object     string         `json:"object"`
	Created    int64          `json:"created_at"`
	Status     string         `json:"status" jsonschema:"in_progress, completed, incomplete or failed"`
	Model      string         `json:"model"`
	Output     []responseItem `json:"output"`
	Previous   *string        `json:"previous_response_id"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Usage    *responseUsage `json:"usage,omitempty"`
	Tools    []any          `json:"tools"`
	Parallel bool           `json:"parallel_tool_calls"`
	Choice   string         `json:"tool_choice"`
}

type responseItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Role    string         `json:"role"`
	Content []responsePart `json:"content"`
}

type responsePart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

type responseUsage struct {
	Input         int            `json:"input_tokens"`
	InputDetails  map[string]int `json:"input_tokens_details"`
	Output        int            `json:"output_tokens"`
	OutputDetails map[string]int `json:"output_tokens_details"`
	Total         int            `json:"total_tokens"`
}

// exchange returns the message to answer, and its context.
func (in responseRequest) exchange() (x exchange, err error) {
	x = exchange{field: "input", model: in.Model, system: in.Instructions, key: in.Previous}
	if err := in.plain(); err != nil {
		return x, err
	}
	if in.Model == "" {
		return x, Wrong("model", "it is missing", chatName)
	}
	if json.Unmarshal(in.Input, &x.text) == nil {
		return x, nil
	}
	var list []message
	if err := json.Unmarshal(in.Input, &list); err != nil {
		return x, Wrong("input", "not a text or a list of messages", "a text")
	}
	for i, m := range list {
		if m.Type != "" && m.Type != "message" {
			return x, Wrong("input."+strconv.Itoa(i)+".type", "items of type "+strconv.Quote(m.Type)+" are not supported", "message")
		}
	}
	return x, x.read(list)
}

// respond answers an input. To continue with the same agent, a client names the previous response.
func (c *call) respond(in responseRequest) (*modelResponse, error) {
	x, err := in.exchange()
	if err != nil {
		return nil, err
	}
	if in.Previous != "" {
		if _, err := c.Object(ofChat, in.Previous); err != nil {
			return nil, Wrong("previous_response_id", "no such response, or it was followed already", "the id of the last response")
		}
	}
	task, after, err := c.begin(x)
	if err != nil {
		return nil, err
	}
	id := tool.Digest([]byte(task + strconv.FormatUint(after, 10)))[:32]
	out := &modelResponse{
		ID: "resp_" + id, Object: "response", Created: time.Now().Unix(), Status: "in_progress", Model: in.Model, Output: []responseItem{},
		Tools: []any{}, Choice: "auto",
	}
	if in.Previous != "" {
		out.Previous = &in.Previous
	}
	w := &responseStream{modelResponse: out, item: "msg_" + id}
	if in.Stream {
		w.out = &chunked{NewSSE(c.w)}
	}
	w.begin()
	a, err := c.hear(task, after, w.say)
	if err == nil && (in.Store == nil || *in.Store) {
		err = c.keepChat(out.ID, task)
	}
	if in.Stream {
		w.end(a, err)
		return nil, nil //nolint:nilnil // the reply was streamed
	}
	if err == nil {
		err = a.failure()
	}
	w.end(a, err)
	return out, err
}

// responseStream is a response in progress, whether the client streams it or not.
type responseStream struct {
	*modelResponse
	item string
	out  *chunked // nil means the client waits for the end
	seq  int
	err  error // the client has disconnected
}

// tell sends an event.
func (w *responseStream) tell(name string, fields map[string]any) {
	if w.out == nil || w.err != nil {
		return
	}
	fields["type"], fields["sequence_number"] = name, w.seq
	w.seq++
	w.err = w.out.object(name, fields)
}

func (w *responseStream) begin() {
	w.tell("response.created", map[string]any{"response": w.modelResponse})
	w.tell("response.in_progress", map[string]any{"response": w.modelResponse})
	w.tell("response.output_item.added", map[string]any{
		"output_index": 0, "item": responseItem{w.item, "message", "in_progress", "assistant", []responsePart{}},
	})
	w.tell("response.content_part.added", w.at(map[string]any{"part": responsePart{"output_text", "", []any{}}}))
}

// at adds the position in the response to fields.
func (w *responseStream) at(fields map[string]any) map[string]any {
	fields["item_id"], fields["output_index"], fields["content_index"] = w.item, 0, 0
	return fields
}

func (w *responseStream) say(text string) error {
	if text != "" {
		w.tell("response.output_text.delta", w.at(map[string]any{"delta": text, "logprobs": []any{}}))
	}
	return w.err
}

func (w *responseStream) end(a answered, err error) {
	if err == nil {
		err = a.failure()
	}
	part := responsePart{"output_text", a.text, []any{}}
	item := responseItem{w.item, "message", "completed", "assistant", []responsePart{part}}
	w.Output = []responseItem{item}
	w.Usage = &responseUsage{
		a.usage.Prompt(),
		map[string]int{"cached_tokens": a.usage.CacheRead},
		a.usage.Output,
		map[string]int{"reasoning_tokens": a.usage.Reasoning},
		a.usage.Prompt() + a.usage.Output,
	}
	w.Status = "completed"
	switch {
	case err != nil:
		w.Status = "failed"
		w.Error = &struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}{"server_error", err.Error()}
	case a.cut(), a.stop.Reason == event.ReasonCancelled, a.stop.Reason == event.ReasonRefused:
		w.Status = "incomplete"
		w.Incomplete = &struct {
			Reason string `json:"reason"`
		}{map[bool]string{true: "content_filter", false: "max_output_tokens"}[a.stop.Reason == event.ReasonRefused]}
	}
	w.tell("response.output_text.done", w.at(map[string]any{"text": a.text, "logprobs": []any{}}))
	w.tell("response.content_part.done", w.at(map[string]any{"part": part}))
	w.tell("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	w.tell("response."+w.Status, map[string]any{"response": w.modelResponse})
}
