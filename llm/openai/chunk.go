package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf8"

	"github.com/inspan/inspan/llm/internal/wire"
)

// completion is a chunk of a stream or a whole reply.
type completion struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Tier    string          `json:"service_tier"`
	ID      string          `json:"id"`
	Error   json.RawMessage `json:"error"`
	// Some servers send an error without a wrapper.
	Object string          `json:"object"`
	Detail json.RawMessage `json:"detail"`
	Groq   struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Delta        message         `json:"delta"`
	Message      message         `json:"message"`
	FinishReason *string         `json:"finish_reason"`
	Usage        *usage          `json:"usage"` // Moonshot puts it here
	Error        json.RawMessage `json:"error"` // so does OpenRouter with the error of a provider
}

type message struct {
	Content          content         `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent *content        `json:"reasoning_content"`
	Reasoning        *content        `json:"reasoning"`
	ReasoningText    *content        `json:"reasoning_text"`
	Thinking         *content        `json:"thinking"`
	Details          []detail        `json:"reasoning_details"`
	ToolCalls        toolCalls       `json:"tool_calls"`
	FunctionCall     *functionObject `json:"function_call"`
}

// content is a string, or a part or a list of parts as Mistral and gateways send it.
type content struct{ text, thinking string }

func (c *content) UnmarshalJSON(b []byte) error {
	var err error
	switch b[0] {
	case '[':
		var parts []content
		err = json.Unmarshal(b, &parts)
		for _, p := range parts {
			c.text += p.text
			c.thinking += p.thinking
		}
	case '{':
		var part struct {
			Text     content `json:"text"`
			Content  content `json:"content"`
			Summary  content `json:"summary"`
			Thinking content `json:"thinking"`
		}
		err = json.Unmarshal(b, &part)
		c.text, c.thinking = part.Text.text+part.Content.text+part.Summary.text, part.Thinking.text
	default:
		c.text, err = unquote(b)
	}
	return err
}

// words returns all of the text, whatever its kind; "" for nil.
func (c *content) words() string {
	if c == nil {
		return ""
	}
	return c.text + c.thinking
}

// unquote returns a JSON string, "" for null. Most deltas have no escapes and are returned without decoding, which
// pays off in a stream of many.
func unquote(b []byte) (string, error) {
	if b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b[1 : len(b)-1]), nil
	}
	var s *string
	err := json.Unmarshal(b, &s)
	return value(s), err
}

// toolCalls is a list, or a single call as old versions of TGI send it.
type toolCalls []toolCall

func (t *toolCalls) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		*t = make(toolCalls, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]toolCall)(t))
}

type toolCall struct {
	Index    *wire.Count    `json:"index"`
	ID       label          `json:"id"`
	Function functionObject `json:"function"`
}

// UnmarshalJSON reads a call, whose function some bridges write without a wrapper.
func (t *toolCall) UnmarshalJSON(b []byte) error {
	type plain toolCall
	var bare functionObject
	err := json.Unmarshal(b, (*plain)(t))
	if err == nil && t.Function == (functionObject{}) {
		err = json.Unmarshal(b, &bare)
		t.Function = bare
	}
	return err
}

type functionObject struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
	// Other names of the arguments.
	Parameters arguments `json:"parameters"`
	Input      arguments `json:"input"`
}

func (f functionObject) args() string { return string(cmp.Or(f.Arguments, f.Parameters, f.Input)) }

// label is a string, or a number as a string.
type label string

func (l *label) UnmarshalJSON(b []byte) error { return loosely(b, l) }

// arguments is a string of JSON, null, or the object itself.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error { return loosely(b, a) }

// loosely sets a text to a string, null, or the JSON of another value.
func loosely[T ~string](b []byte, text *T) error {
	if b[0] != '"' && b[0] != 'n' {
		*text = T(b)
		return nil
	}
	s, err := unquote(b)
	*text = T(s)
	return err
}

type usage struct {
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	CacheHit   wire.Count `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached     wire.Count `json:"cached_tokens"`           // Moonshot
	Details    struct {
		Cached wire.Count `json:"cached_tokens"`
		Write  wire.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	// Names of the Responses API and of Anthropic, which gateways pass on.
	Input wire.Count `json:"input_tokens"`
	Wrote wire.Count `json:"output_tokens"`
}
