package openai

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
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
}

type choice struct {
	Delta        message `json:"delta"`
	Message      message `json:"message"`
	FinishReason *string `json:"finish_reason"`
	Usage        *usage  `json:"usage"` // Moonshot puts it here
}

type message struct {
	Content          content         `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent *string         `json:"reasoning_content"`
	Reasoning        *string         `json:"reasoning"`
	ReasoningText    *string         `json:"reasoning_text"`
	Details          []detail        `json:"reasoning_details"`
	ToolCalls        toolCalls       `json:"tool_calls"`
	FunctionCall     *functionObject `json:"function_call"`
}

// content is a string, or a list of parts as Mistral sends it.
type content struct{ text, thinking string }

func (c *content) UnmarshalJSON(b []byte) error {
	var err error
	if b[0] != '[' {
		c.text, err = unquote(b)
		return err
	}
	var parts []struct {
		Text     string  `json:"text"`
		Thinking content `json:"thinking"` // a list of texts itself
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		c.thinking += p.Thinking.text
	}
	return nil
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
	Index    *int           `json:"index"`
	ID       string         `json:"id"`
	Function functionObject `json:"function"`
}

type functionObject struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

// arguments is a string of JSON, null, or the object itself.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error {
	if b[0] != '"' && b[0] != 'n' {
		*a = arguments(b)
		return nil
	}
	s, err := unquote(b)
	*a = arguments(s)
	return err
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached     int `json:"cached_tokens"`           // Moonshot
	Details    struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
