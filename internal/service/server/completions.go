package server

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// completionRequest asks for a chat completion. Fields that matter only to a model are accepted and have no
// effect.
type completionRequest struct {
	Model         string    `json:"model" jsonschema:"inspan for the server's own choice, or provider/model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream,omitempty"`
	StreamOptions struct {
		IncludeUsage       bool `json:"include_usage,omitempty"`
		IncludeObfuscation bool `json:"include_obfuscation,omitempty"`
	} `json:"stream_options,omitempty"`
	Count int `json:"n,omitempty" jsonschema:"1"`

	Temperature         json.RawMessage `json:"temperature,omitempty" jsonschema:"has no effect, like the next ones"`
	TopP                json.RawMessage `json:"top_p,omitempty"`
	MaxTokens           json.RawMessage `json:"max_tokens,omitempty"`
	MaxCompletionTokens json.RawMessage `json:"max_completion_tokens,omitempty"`
	PresencePenalty     json.RawMessage `json:"presence_penalty,omitempty"`
	FrequencyPenalty    json.RawMessage `json:"frequency_penalty,omitempty"`
	ReasoningEffort     json.RawMessage `json:"reasoning_effort,omitempty"`
	Verbosity           json.RawMessage `json:"verbosity,omitempty"`
	Seed                json.RawMessage `json:"seed,omitempty"`
	User                json.RawMessage `json:"user,omitempty"`
	Metadata            json.RawMessage `json:"metadata,omitempty"`
	Store               json.RawMessage `json:"store,omitempty"`
	LogitBias           json.RawMessage `json:"logit_bias,omitempty"`
	ServiceTier         json.RawMessage `json:"service_tier,omitempty"`
	ParallelToolCalls   json.RawMessage `json:"parallel_tool_calls,omitempty"`
	PromptCacheKey      json.RawMessage `json:"prompt_cache_key,omitempty"`
	SafetyIdentifier    json.RawMessage `json:"safety_identifier,omitempty"`

	Tools          json.RawMessage `json:"tools,omitempty" jsonschema:"none: an agent uses its own tools"`
	ToolChoice     json.RawMessage `json:"tool_choice,omitempty" jsonschema:"none or auto"`
	ResponseFormat json.RawMessage `json:"response_format,omitempty" jsonschema:"type text"`
	Logprobs       json.RawMessage `json:"logprobs,omitempty" jsonschema:"false"`
	Stop           json.RawMessage `json:"stop,omitempty" jsonschema:"none"`
	Modalities     json.RawMessage `json:"modalities,omitempty" jsonschema:"text"`
}

// plain reports a field that asks for something that an agent can't do: fields that would change the reply are
// accepted only with values that change nothing.
func (in completionRequest) plain() error {
	return cmp.Or(
		neutral("tools", in.Tools, `[]`), neutral("tool_choice", in.ToolChoice, `"auto"`, `"none"`),
		neutral("response_format", in.ResponseFormat, `{"type":"text"}`), neutral("logprobs", in.Logprobs, `false`),
		neutral("stop", in.Stop, `[]`), neutral("modalities", in.Modalities, `["text"]`),
	)
}

// completion is a chat completion, or a chunk of one.
type completion struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Choices []choice         `json:"choices"`
	Usage   *completionUsage `json:"usage,omitempty"`
}

type choice struct {
	Index   int                `json:"index"`
	Message *completionMessage `json:"message,omitempty"`
	Delta   *completionMessage `json:"delta,omitempty"`
	Finish  any                `json:"finish_reason"`
}

type completionMessage struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type completionUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func usageOf(u llm.Usage) *completionUsage {
	return &completionUsage{u.Prompt(), u.Output, u.Prompt() + u.Output}
}

// complete answers the last message of a conversation. If a client sends the same conversation with the reply
// and a new message, the same agent continues.
func (c *call) complete(in completionRequest) (*completion, error) {
	x := exchange{field: "messages", model: in.Model}
	if err := in.plain(); err != nil {
		return nil, err
	}
	switch err := x.read(in.Messages); {
	case err != nil:
		return nil, err
	case in.Model == "":
		return nil, Wrong("model", "it is missing", chatName)
	case in.Count > 1:
		return nil, Wrong("n", "an agent gives one answer", "1")
	}
	x.key = x.so(c.who.name)
	task, after, err := c.begin(x)
	if err != nil {
		return nil, err
	}
	out := &completion{ID: "chatcmpl-" + task + "-" + strconv.FormatUint(after, 10), Created: time.Now().Unix(), Model: in.Model}
	if in.Stream {
		c.completeLive(x, task, after, out, in.StreamOptions.IncludeUsage)
		return nil, nil //nolint:nilnil // the reply was streamed
	}
	a, err := c.reply(x, task, after, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	out.Object, out.Usage = "chat.completion", usageOf(a.usage)
	out.Choices = []choice{{Message: &completionMessage{"assistant", a.text}, Finish: finish(a)}}
	return out, nil
}

// reply returns the agent's reply, after which the client may continue.
func (c *call) reply(x exchange, task string, after uint64, say func(string) error) (answered, error) {
	a, err := c.hear(task, after, say)
	if err == nil {
		err = a.failure()
	}
	if err == nil {
		err = c.keepChat(x.after(c.who.name, a.text), task)
	}
	return a, err
}

// completeLive is complete as a stream.
func (c *call) completeLive(x exchange, task string, after uint64, chunk *completion, usage bool) {
	out := chunked{NewSSE(c.w)}
	chunk.Object = "chat.completion.chunk"
	role := "assistant"
	say := func(text string) error {
		chunk.Choices = []choice{{Delta: &completionMessage{role, text}}}
		role = ""
		return out.object("", chunk)
	}
	if say("") != nil {
		return // the client has disconnected
	}
	a, err := c.reply(x, task, after, say)
	if err != nil {
		out.refuse(err)
		return
	}
	chunk.Choices = []choice{{Delta: &completionMessage{}, Finish: finish(a)}}
	err = out.object("", chunk)
	if usage && err == nil {
		chunk.Choices, chunk.Usage = []choice{}, usageOf(a.usage)
		err = out.object("", chunk)
	}
	if err == nil {
		_ = out.write("data: [DONE]\n\n") // the client may have disconnected
	}
}

// finish returns the reason why a reply ended.
func finish(a answered) string {
	switch {
	case a.cut():
		return "length"
	case a.stop.Reason == event.ReasonRefused:
		return "content_filter"
	}
	return "stop"
}
