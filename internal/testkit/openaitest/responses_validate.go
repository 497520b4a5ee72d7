package openaitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// responseRequest has the checked fields of a request.
type responseRequest struct {
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	Store     *bool           `json:"store"`
	Include   []string        `json:"include"`
	CacheKey  string          `json:"prompt_cache_key"`
	Limit     *int            `json:"max_output_tokens"`
	Input     json.RawMessage `json:"input"`
	Tools     []responseTool  `json:"tools"`
	Choice    any             `json:"tool_choice"`
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
}

type responseTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Strict     *bool           `json:"strict"`
}

type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// ValidateResponses returns the vendor's objection to a request, nil if there
// is none.
func ValidateResponses(body []byte) error { return checkResponses(body, &responseRequest{}) }

func checkResponses(body []byte, r *responseRequest) error {
	if err := knownFields(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, r); err != nil {
		return refuse("Invalid type: %v", err)
	}
	switch {
	case r.Model == "":
		return refuse("Missing required parameter: 'model'.")
	case len(r.CacheKey) > 64:
		return refuse("Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d "+
			"instead.", len(r.CacheKey))
	case r.Limit != nil && *r.Limit < 16:
		return refuse("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *r.Limit)
	}
	if err := checkResponseTools(r); err != nil {
		return fake.Violation{Why: err}
	}
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		return nil
	}
	var items []inputItem
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return refuse("Invalid type for 'input': %v", err)
	}
	if len(items) == 0 {
		return refuse("Missing required parameter: 'input'.")
	}
	switch images := bytes.Count(body, []byte(`"type":"input_image"`)); {
	case images > mostImages:
		return fake.Violation{Why: refuse("Too many images: %d, at most %d", images, mostImages)}
	case images > 0 && len(body) > mostImageBytes+4<<20: // 4 MB of it may be text
		return fake.Violation{Why: refuse("The total size of the images exceeds the limit of 50MB.")}
	}
	for i, it := range items {
		if err := checkItem(i, it); err != nil {
			return fake.Violation{Why: err}
		}
	}
	if err := checkSequence(items); err != nil {
		return fake.Violation{Why: err}
	}
	return nil
}

func knownFields(body []byte) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return refuse("We could not parse the JSON body of your request.")
	}
	for field := range top {
		switch field {
		case "model", "stream", "store", "include", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens",
			"reasoning", "prompt_cache_key", "temperature", "top_p", "metadata", "text", "truncation", "previous_response_id":
		default:
			return refuse("Unknown parameter: '%s'.", field)
		}
	}
	return nil
}

func checkItem(i int, it inputItem) error {
	switch it.Type {
	case "", "message":
		return checkResponseMessage(i, it)
	case "reasoning":
		return checkThought(i, it)
	case "function_call":
		switch {
		case it.CallID == "" || it.Name == "":
			return refuse("Missing required parameter: 'input[%d].call_id'.", i)
		case len(it.CallID) > 64:
			return refuse("Invalid 'input[%d].call_id': string too long. Expected a string with maximum length 64, but got a string with length "+
				"%d instead.", i, len(it.CallID))
		case it.ID != "" && !strings.HasPrefix(it.ID, "fc_"):
			return refuse("Invalid 'input[%d].id': '%s'. Expected an ID that begins with 'fc'.", i, it.ID)
		case !strings.HasPrefix(it.Arguments, "{") || !json.Valid([]byte(it.Arguments)):
			return refuse("Invalid 'input[%d].arguments': not a JSON object.", i)
		}
		return nil
	case "function_call_output":
		switch {
		case it.CallID == "" || len(it.Output) == 0:
			return refuse("Missing required parameter: 'input[%d].output'.", i)
		case it.Output[0] == '"':
			return nil
		}
		return checkInput(i, it.Output)
	}
	return refuse("Invalid value: '%s'. Supported values are: 'message', 'reasoning', 'function_call', 'function_call_output', ... "+
		"(input[%d].type)", it.Type, i)
}

func checkResponseMessage(i int, it inputItem) error {
	switch {
	case it.ID != "" && !strings.HasPrefix(it.ID, "msg_"):
		return refuse("Invalid 'input[%d].id': '%s'. Expected an ID that begins with 'msg'.", i, it.ID)
	case it.Phase != "" && it.Role != "assistant":
		return refuse("Unknown parameter: 'input[%d].phase'.", i)
	case it.Phase != "" && it.Phase != "commentary" && it.Phase != "final_answer":
		return refuse("Invalid value: '%s'. Supported values are: 'commentary' and 'final_answer'.", it.Phase)
	case len(it.Content) == 0:
		return refuse("Missing required parameter: 'input[%d].content'.", i)
	case it.Content[0] == '"' && it.ID == "":
		return nil
	}
	switch it.Role {
	case "user", "system", "developer":
		return checkInput(i, it.Content)
	case "assistant":
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(it.Content, &parts) != nil {
			return refuse("Invalid type for 'input[%d].content': expected an array.", i)
		}
		for _, p := range parts {
			if p.Type != "output_text" && p.Type != "refusal" {
				return refuse("Invalid value: '%s'. Supported values are: 'output_text' and 'refusal'. (input[%d])", p.Type, i)
			}
		}
		return nil
	}
	return refuse("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
}

// checkInput checks a list of texts and images.
func checkInput(i int, raw json.RawMessage) error {
	var parts []struct {
		Type     string `json:"type"`
		ImageURL string `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return refuse("Invalid type for 'input[%d].content'", i)
	}
	for j, p := range parts {
		switch p.Type {
		case "input_text":
		case "input_image":
			data := dataURL.FindStringSubmatch(p.ImageURL)
			if data == nil {
				return refuse("Invalid 'input[%d].content[%d].image_url'. Expected a valid URL", i, j)
			}
			if _, err := base64.StdEncoding.DecodeString(data[1]); err != nil {
				return refuse("Invalid 'input[%d].content[%d].image_url'. Expected a base64-encoded data URL", i, j)
			}
		default:
			return refuse("Invalid value: '%s'. Supported values are: 'input_text', 'input_image', and 'input_file'.", p.Type)
		}
	}
	return nil
}

// checkThought refuses modified reasoning.
func checkThought(i int, it inputItem) error {
	var summary bytes.Buffer
	switch {
	case !strings.HasPrefix(it.ID, "rs_"):
		return refuse("Invalid 'input[%d].id': '%s'. Expected an ID that begins with 'rs'.", i, it.ID)
	case len(it.Summary) == 0:
		return refuse("Missing required parameter: 'input[%d].summary'.", i)
	case it.Encrypted == "":
		return refuse("Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)
	case json.Compact(&summary, it.Summary) != nil || it.Encrypted != seal(it.ID, summary.String()):
		return refuse("The encrypted content for item %s could not be verified.", it.ID)
	}
	return nil
}

// checkSequence checks the rules between items: a call has one output after it, reasoning is before an item of the
// model, and an item that came with reasoning has it before it.
func checkSequence(items []inputItem) error {
	open, thoughts := map[string]bool{}, map[string]bool{}
	for i, it := range items {
		switch it.Type {
		case "reasoning":
			thoughts[it.ID] = true
			if i+1 == len(items) || !ofModel(items[i+1]) {
				return refuse("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
			}
		case "function_call":
			if open[it.CallID] {
				return refuse("Duplicate item found with call_id %s.", it.CallID)
			}
			open[it.CallID] = true
		case "function_call_output":
			if !open[it.CallID] {
				return refuse("No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
		default:
			if len(open) > 0 && it.Role != "assistant" {
				return unansweredCall(open)
			}
		}
		if with := companion(it.ID); with != "" && !thoughts[with] {
			return refuse("Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", it.ID, it.Type, with)
		}
	}
	return unansweredCall(open)
}

func unansweredCall(open map[string]bool) error {
	for id := range open {
		return refuse("No tool output found for function call %s.", id)
	}
	return nil
}

func ofModel(it inputItem) bool {
	return it.Type == "reasoning" || it.Type == "function_call" || it.Type == "message" && it.Role == "assistant"
}

var ownID = regexp.MustCompile(`^(?:msg|fc)_([0-9a-f]{24})\d\d(\d\d)$`)

// companion returns the id of the reasoning item that an item of the fake came
// with, "" if it came with none.
func companion(id string) string {
	m := ownID.FindStringSubmatch(id)
	if m == nil {
		return ""
	}
	return "rs_" + m[1] + m[2] + "xx"
}
