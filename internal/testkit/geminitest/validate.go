package geminitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// request has the allowed fields of a request; any other field is refused.
type request struct {
	SystemInstruction *content  `json:"systemInstruction"`
	Contents          []content `json:"contents"`
	Tools             []struct {
		FunctionDeclarations []declaration `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig *struct {
		FunctionCallingConfig struct {
			Mode string `json:"mode"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	GenerationConfig generation `json:"generationConfig"`
}

type generation struct {
	MaxOutputTokens *int `json:"maxOutputTokens"`
	ThinkingConfig  *struct {
		IncludeThoughts bool    `json:"includeThoughts"`
		ThinkingBudget  *int    `json:"thinkingBudget"`
		ThinkingLevel   *string `json:"thinkingLevel"`
	} `json:"thinkingConfig"`
}

type declaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Parameters           json.RawMessage `json:"parameters"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             *string   `json:"text"`
	Thought          bool      `json:"thought"`
	ThoughtSignature string    `json:"thoughtSignature"`
	InlineData       *blob     `json:"inlineData"`
	FunctionCall     *call     `json:"functionCall"`
	FunctionResponse *response `json:"functionResponse"`
}

type blob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type response struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []struct {
		InlineData *blob `json:"inlineData"`
	} `json:"parts"`
}

var goodName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$`)

// sentinel is a value that the vendor accepts as the signature of a call that it did not write.
const sentinel = "skip_thought_signature_validator"

// objection is the reason why a request is refused, in the vendor's words.
type objection string

func (o objection) Error() string { return string(o) }

func refuse(format string, args ...any) error { return objection(fmt.Sprintf(format, args...)) }

// Validate returns the vendor's objection to a request to a model, nil if
// there is none.
func Validate(model string, body []byte) error {
	if len(body) > mostBody {
		return fake.Violation{Why: refuse("Request payload size exceeds the limit: %d bytes.", mostBody)}
	}
	var r request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return refuse("Invalid JSON payload received. %v", err)
	}
	if len(r.Contents) == 0 {
		return refuse("GenerateContentRequest.contents: contents is not specified")
	}
	v := validator{request: r, model: model, modern: modern(model)}
	for _, check := range []func() error{v.thinking, v.declarations, v.roles, v.parts, v.pairs, v.signatures} {
		if err := check(); err != nil {
			return fake.Violation{Why: err}
		}
	}
	return nil
}

// mostBody is the size of a request with inline data: ai.google.dev/gemini-api/docs/image-understanding. Newer models
// take more.
const mostBody = 20 << 20

type validator struct {
	request
	model  string
	modern bool
}

func (v *validator) thinking() error {
	t := v.GenerationConfig.ThinkingConfig
	if n := v.GenerationConfig.MaxOutputTokens; n != nil && *n < 1 {
		return refuse("max_output_tokens must be positive.")
	}
	if t == nil {
		return nil
	}
	switch {
	case t.ThinkingBudget != nil && t.ThinkingLevel != nil:
		return refuse("You can only set only one of thinking budget and thinking level.")
	case t.ThinkingLevel != nil && !v.modern:
		return refuse("Thinking level is not supported for this model.")
	case t.ThinkingLevel != nil && !slices.Contains([]string{"LOW", "MEDIUM", "HIGH"}, *t.ThinkingLevel):
		return refuse("Invalid value at 'generation_config.thinking_config.thinking_level': %q", *t.ThinkingLevel)
	case t.ThinkingBudget != nil && strings.HasPrefix(v.model, "gemini-4"):
		return refuse("Thinking budget is not supported for this model.")
	case t.ThinkingBudget != nil && (*t.ThinkingBudget < 512 || *t.ThinkingBudget > 24576):
		return refuse("The thinking budget %d is invalid. Please choose a value between 512 and 24576.", *t.ThinkingBudget)
	}
	return nil
}

func (v *validator) roles() error {
	before := "model"
	for _, c := range v.Contents {
		switch {
		case c.Role != "user" && c.Role != "model":
			return refuse("Please use a valid role: user, model.")
		case c.Role == before:
			return refuse("Please ensure that multiturn requests alternate between user and model.")
		case len(c.Parts) == 0:
			return refuse("GenerateContentRequest.contents: contents.parts must not be empty.")
		}
		before = c.Role
	}
	return nil
}

func (v *validator) parts() error {
	if s := v.SystemInstruction; s != nil && len(s.Parts) == 0 {
		return refuse("system_instruction.parts must not be empty.")
	}
	for i, c := range v.Contents {
		for j, p := range c.Parts {
			if err := v.part(p, c.Role); err != nil {
				return refuse("contents[%d].parts[%d]: %v", i, j, err)
			}
		}
	}
	return nil
}

func (v *validator) part(p part, role string) error {
	data := 0
	for _, has := range []bool{p.Text != nil, p.InlineData != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if has {
			data++
		}
	}
	switch {
	case data != 1:
		return refuse("required oneof field 'data' must have one initialized field")
	case role == "user" && (p.Thought || p.ThoughtSignature != "" || p.FunctionCall != nil):
		return refuse("a user's part can't hold a thought, a signature or a call")
	case role == "model" && p.FunctionResponse != nil:
		return refuse("a model's part can't hold a function response")
	case p.Text != nil && *p.Text == "" && p.ThoughtSignature == "":
		return refuse("Unable to submit request because it must have a text parameter.")
	case p.InlineData != nil:
		return p.InlineData.check()
	case p.FunctionCall != nil:
		if c := p.FunctionCall; !goodName.MatchString(c.Name) || c.Args != nil && !isObject(c.Args) {
			return refuse("function_call: invalid name or args")
		}
	case p.FunctionResponse != nil:
		return v.response(p.FunctionResponse)
	}
	return nil
}

func (v *validator) response(r *response) error {
	if !isObject(r.Response) {
		return refuse("function_response.response: want an object")
	}
	if len(r.Parts) > 0 && !v.modern {
		return refuse("Unable to submit request because `function_response.parts` is not supported for this model.")
	}
	for _, p := range r.Parts {
		if p.InlineData == nil {
			return refuse("function_response.parts: want inline_data")
		}
		if err := p.InlineData.check(); err != nil {
			return err
		}
	}
	return nil
}

func (b *blob) check() error {
	switch b.MimeType {
	case "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif":
	default:
		return refuse("Unsupported MIME type: %s", b.MimeType)
	}
	if raw, err := base64.StdEncoding.DecodeString(b.Data); err != nil || len(raw) == 0 {
		return refuse("Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed")
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// pairs checks calls and responses: as many responses as calls, in their order, right after them and before
// anything else.
func (v *validator) pairs() error {
	var open []*call
	for i, c := range v.Contents {
		var responses []*response
		var calls []*call
		for j, p := range c.Parts {
			if p.FunctionCall != nil {
				calls = append(calls, p.FunctionCall)
			}
			if p.FunctionResponse != nil {
				if j != len(responses) {
					return refuse("contents[%d]: function responses must come first", i)
				}
				responses = append(responses, p.FunctionResponse)
			}
		}
		if len(responses) != len(open) {
			return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function " +
				"call turn.")
		}
		for k, r := range responses {
			if r.Name != open[k].Name || r.ID != open[k].ID || v.modern && r.ID == "" {
				return refuse("contents[%d].parts[%d]: function response %q (%q) does not match function call %q (%q)",
					i, k, r.Name, r.ID, open[k].Name, open[k].ID)
			}
		}
		open = calls
	}
	if len(open) > 0 {
		return refuse("Please ensure that function response turn comes immediately after a function call turn.")
	}
	return nil
}

// signatures checks that every signature is on the part with which it came, and from generation 3 on that the
// first call of every step has one.
func (v *validator) signatures() error {
	for i, c := range v.Contents {
		called := false
		for j, p := range c.Parts {
			if p.ThoughtSignature != "" && !signed(p) {
				return refuse("contents[%d].parts[%d]: Thought signature is not valid.", i, j)
			}
			if f := p.FunctionCall; f != nil {
				if !called && v.modern && p.ThoughtSignature == "" {
					return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. "+
						"Additional data, function call `default_api:%s`, position %d.", f.Name, i+1)
				}
				called = true
			}
		}
	}
	return nil
}

func signed(p part) bool {
	switch {
	case p.FunctionCall != nil:
		return p.ThoughtSignature == sentinel || p.ThoughtSignature == Sign(p.FunctionCall.Name, string(p.FunctionCall.Args))
	case p.Text != nil && !p.Thought:
		return p.ThoughtSignature == Sign("text", *p.Text)
	}
	return false
}
