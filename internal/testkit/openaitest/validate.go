package openaitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// request has the checked fields of a request.
type request struct {
	Model         string    `json:"model"`
	Stream        bool      `json:"stream"`
	Messages      []message `json:"messages"`
	Tools         *[]tool   `json:"tools"`
	ToolChoice    any       `json:"tool_choice"`
	MaxTokens     *int      `json:"max_tokens"`
	NewLimit      *int      `json:"max_completion_tokens"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Details []struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	} `json:"reasoning_details"`

	fields map[string]json.RawMessage // all of them
}

func (m *message) UnmarshalJSON(b []byte) error {
	type plain message
	if err := json.Unmarshal(b, (*plain)(m)); err != nil {
		return err
	}
	return json.Unmarshal(b, &m.fields)
}

// text returns the content if it is a text.
func (m message) text() (s string) {
	_ = json.Unmarshal(m.Content, &s) // a list is none
	return s
}

// parts returns the content if it is a list.
func (m message) parts() (list []part) {
	_ = json.Unmarshal(m.Content, &list) // a text is none
	return list
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

var (
	goodName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	dataURL  = regexp.MustCompile(`^data:image/(?:png|jpeg|gif|webp);base64,(.+)$`)
)

// objection is the reason why a request is refused, in the vendor's words.
type objection string

func (o objection) Error() string { return string(o) }

func refuse(format string, args ...any) error { return objection(fmt.Sprintf(format, args...)) }

// Validate returns the vendor's objection to a request, nil if there is none.
func Validate(body []byte) error { return ValidateAs("", body) }

func (rules rules) validate(body []byte, r *request) error {
	if err := rules.decode(body, r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return refuse("you must provide a model parameter")
	case len(r.Messages) == 0:
		return refuse("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case r.MaxTokens != nil && r.NewLimit != nil:
		return refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if err := rules.checkTools(r); err != nil {
		return fake.Violation{Why: err}
	}
	for i, m := range r.Messages {
		if err := checkMessage(i, m); err != nil {
			return fake.Violation{Why: err}
		}
	}
	if err := checkPairs(r.Messages); err != nil {
		return fake.Violation{Why: err}
	}
	if err := rules.history(r); err != nil {
		return fake.Violation{Why: err}
	}
	return nil
}

func (rules rules) decode(body []byte, r *request) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return refuse("We could not parse the JSON body of your request.")
	}
	for field := range top {
		if !rules.takes(field) {
			return refuse("Unrecognized request argument supplied: %s", field)
		}
	}
	return json.Unmarshal(body, r)
}

func checkMessage(i int, m message) error {
	switch m.Role {
	case "system", "developer", "user", "tool":
		if len(m.Content) == 0 || string(m.Content) == "null" {
			return refuse("Invalid value for 'content': expected a string, got null. (messages[%d])", i)
		}
	case "assistant":
		if (len(m.Content) == 0 || string(m.Content) == "null") && len(m.ToolCalls) == 0 {
			return refuse("Invalid value for 'content': expected a string, got null. (messages[%d])", i)
		}
	default:
		return refuse("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	if raw, has := m.fields["tool_calls"]; has && len(m.ToolCalls) == 0 {
		return refuse("Invalid 'messages[%d].tool_calls': empty array. Expected an array with minimum length 1, but got %s instead.", i, raw)
	}
	for j, c := range m.ToolCalls {
		switch {
		case m.Role != "assistant":
			return refuse("Additional properties are not allowed ('tool_calls' was unexpected) - 'messages[%d]'", i)
		case c.ID == "" || c.Type != "function" || c.Function.Name == "":
			return refuse("Missing required parameter: 'messages[%d].tool_calls[%d]'.", i, j)
		case len(c.ID) > 40:
			return refuse("Invalid 'messages[%d].tool_calls[%d].id': string too long. Expected a string with maximum length 40, but got a string "+
				"with length %d instead.", i, j, len(c.ID))
		case !strings.HasPrefix(c.Function.Arguments, "{") || !json.Valid([]byte(c.Function.Arguments)):
			return refuse("Invalid 'messages[%d].tool_calls[%d].function.arguments': not a JSON object.", i, j)
		}
	}
	if n := len(m.Details); n > 0 && m.Details[0].Signature != Sign(m.Details[0].Text) {
		return refuse("messages[%d].reasoning_details: thought signature is not valid", i)
	}
	return checkContent(i, m)
}

func checkContent(i int, m message) error {
	if len(m.Content) == 0 || m.Content[0] != '[' {
		return nil
	}
	var parts []part
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		return refuse("Invalid type for 'messages[%d].content'", i)
	}
	for j, p := range parts {
		switch {
		case p.Type == "text":
		case p.Type == "thinking" && m.Role == "assistant":
		case p.Type != "image_url":
			return refuse("Invalid value: '%s'. Supported values are: 'text' and 'image_url'.", p.Type)
		case m.Role != "user":
			return refuse("Invalid 'messages[%d]'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' "+
				"contains an image URL.", i, m.Role)
		default:
			data := dataURL.FindStringSubmatch(p.ImageURL.URL)
			if data == nil {
				return refuse("Invalid 'messages[%d].content[%d].image_url.url'", i, j)
			}
			if _, err := base64.StdEncoding.DecodeString(data[1]); err != nil {
				return refuse("Invalid base64 image_url. (messages[%d].content[%d])", i, j)
			}
		}
	}
	return nil
}

// checkPairs checks calls and results: every call is answered once, in the messages right after it.
func checkPairs(messages []message) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return refuse("Invalid parameter: messages with role 'tool' must be a response to a earlier message with 'tool_calls'. (messages[%d])",
					i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if err := unanswered(open); err != nil {
			return err
		}
		for _, c := range m.ToolCalls {
			if open[c.ID] {
				return refuse("Duplicate value for 'tool_call_id' of '%s' in message[%d].", c.ID, i)
			}
			open[c.ID] = true
		}
	}
	return unanswered(open)
}

func unanswered(open map[string]bool) error {
	for id := range open {
		return refuse("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "+
			"following tool_call_ids did not have response messages: %s", id)
	}
	return nil
}
