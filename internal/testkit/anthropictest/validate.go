package anthropictest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // the vendor reads these
	_ "image/jpeg"
	_ "image/png"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// request has the checked fields of a request.
type request struct {
	Model     string    `json:"model"`
	Version   string    `json:"anthropic_version"`
	Stream    bool      `json:"stream"`
	MaxTokens int       `json:"max_tokens"`
	System    contents  `json:"system"`
	Tools     []tool    `json:"tools"`
	Choice    any       `json:"tool_choice"`
	Messages  []message `json:"messages"`
	Thinking  *thinking `json:"thinking"`
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
}

type tool struct {
	Name         string          `json:"name"`
	CacheControl json.RawMessage `json:"cache_control"`
	InputSchema  json.RawMessage `json:"input_schema"`

	fields map[string]json.RawMessage // all of them
}

func (t *tool) UnmarshalJSON(b []byte) error {
	type plain tool
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	return json.Unmarshal(b, &t.fields)
}

type message struct {
	Role    string   `json:"role"`
	Content contents `json:"content"`
}

// contents is a list of blocks; a string stands for one text block.
type contents []content

func (c *contents) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*c = contents{{Type: "text", Text: &s}}
		return nil
	}
	return json.Unmarshal(b, (*[]content)(c))
}

type content struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      contents        `json:"content"`
	CacheControl json.RawMessage `json:"cache_control"`
	Source       *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

var (
	goodID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	goodName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) // 128 on the vendor's own API
)

// objection is the reason why a request is refused, in the vendor's words.
type objection string

func (o objection) Error() string { return string(o) }

func refuse(format string, args ...any) error { return objection(fmt.Sprintf(format, args...)) }

// Validate returns the vendor's objection to a request, nil if there is none.
func Validate(body []byte) error { return validate("", body) }

// Sizes of requests: platform.claude.com/docs/en/api/overview (request size limits) and .../build-with-claude/vision.
const (
	mostBody   = 32 << 20
	mostImages = 100
)

func validate(dialect string, body []byte) error {
	if len(body) > mostBody {
		return fake.Violation{Why: refuse("Request exceeds the maximum allowed number of bytes.")}
	}
	var r request
	if err := decodeStrict(dialect, body, &r); err != nil {
		return err
	}
	switch {
	case dialect == "" && r.Model == "":
		return refuse("model: Field required")
	case dialect == "bedrock" && r.Version != "bedrock-2023-05-31", dialect == "vertex" && r.Version != "vertex-2023-10-16":
		return refuse("anthropic_version: Field required")
	case dialect != "bedrock" && !r.Stream:
		return refuse("stream: the fake answers streams only")
	case r.MaxTokens < 1:
		return refuse("max_tokens: Input should be greater than or equal to 1")
	case len(r.Messages) == 0:
		return refuse("messages: at least one message is required")
	}
	for _, check := range []func(*request) error{
		checkThinking, checkTools, checkRoles, checkBlocks, checkImages, checkPairs, checkMarkers,
	} {
		if err := check(&r); err != nil {
			return fake.Violation{Why: err}
		}
	}
	return nil
}

// fields returns the allowed fields of a request in addition to those of every dialect.
func fields(dialect string) []string {
	switch dialect {
	case "bedrock":
		return []string{"anthropic_version", "anthropic_beta"}
	case "vertex":
		return []string{"anthropic_version", "stream"}
	}
	return []string{"model", "stream"}
}

func decodeStrict(dialect string, body []byte, into *request) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return refuse("the request body is not valid JSON: %v", err)
	}
	for field := range top {
		switch field {
		case "max_tokens", "system", "tools", "messages", "thinking", "output_config",
			"stop_sequences", "tool_choice", "temperature", "top_k", "top_p", "metadata", "service_tier":
		default:
			if slices.Contains(fields(dialect), field) {
				continue
			}
			return refuse("%s: Extra inputs are not permitted", field)
		}
	}
	return json.Unmarshal(body, into)
}

func checkThinking(r *request) error {
	t := r.Thinking
	if t == nil {
		return nil
	}
	switch t.Type {
	case "enabled":
		if t.BudgetTokens < 1024 {
			return refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		}
		if t.BudgetTokens >= r.MaxTokens {
			return refuse("`max_tokens` must be greater than `thinking.budget_tokens`")
		}
	case "adaptive", "disabled":
		if t.BudgetTokens != 0 {
			return refuse("thinking.adaptive.budget_tokens: Extra inputs are not permitted")
		}
	default:
		return refuse("thinking: Input tag does not match any of the expected tags")
	}
	return nil
}

func checkRoles(r *request) error {
	before := ""
	for i, m := range r.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return refuse("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case i == 0 && m.Role != "user":
			return refuse("messages: first message must use the \"user\" role")
		case m.Role == before:
			return refuse("messages: roles must alternate between \"user\" and \"assistant\", but found multiple %q roles in a row", m.Role)
		case len(m.Content) == 0:
			return refuse("messages.%d: all messages must have non-empty content", i)
		}
		before = m.Role
	}
	last := r.Messages[len(r.Messages)-1]
	end := last.Content[len(last.Content)-1]
	if last.Role == "assistant" && end.Text != nil && *end.Text != strings.TrimRight(*end.Text, " \t\r\n") {
		return refuse("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

func checkBlocks(r *request) error {
	for i, b := range r.System {
		if err := checkBlock(fmt.Sprintf("system.%d", i), b, "system"); err != nil {
			return err
		}
	}
	for i, m := range r.Messages {
		for j, b := range m.Content {
			if err := checkBlock(fmt.Sprintf("messages.%d.content.%d", i, j), b, m.Role); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkBlock(at string, b content, role string) error {
	switch b.Type {
	case "text":
		if b.Text == nil || strings.TrimSpace(*b.Text) == "" {
			return refuse("%s: text content blocks must contain non-whitespace text", at)
		}
		return nil
	case "image":
		return checkImage(at, b)
	case "thinking", "redacted_thinking":
		return checkSignature(at, b, role)
	case "tool_use":
		switch {
		case role != "assistant":
			return refuse("%s: `tool_use` blocks can only be in `assistant` messages", at)
		case !goodID.MatchString(b.ID):
			return refuse("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
		case !goodName.MatchString(b.Name):
			return refuse("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", at)
		case len(b.Input) == 0 || b.Input[0] != '{':
			return refuse("%s.tool_use.input: Input should be a valid dictionary", at)
		}
		return nil
	case "tool_result":
		if role != "user" {
			return refuse("%s: `tool_result` blocks can only be in `user` messages", at)
		}
		for k, inner := range b.Content {
			if err := checkBlock(fmt.Sprintf("%s.tool_result.content.%d", at, k), inner, "result"); err != nil {
				return err
			}
		}
		return nil
	}
	return refuse("%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type)
}

func checkImage(at string, b content) error {
	if b.Source == nil || b.Source.Type != "base64" {
		return refuse("%s.image.source: Field required", at)
	}
	switch b.Source.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return refuse("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
	}
	if raw, err := base64.StdEncoding.DecodeString(b.Source.Data); err != nil || len(raw) == 0 {
		return refuse("%s.image.source.base64: invalid base64 data", at)
	}
	return nil
}

// checkImages checks the limits of one image and of many.
func checkImages(r *request) error {
	var all []content
	for _, m := range r.Messages {
		for _, b := range m.Content {
			all = append(append(all, b), b.Content...)
		}
	}
	all = slices.DeleteFunc(all, func(b content) bool { return b.Type != "image" })
	if len(all) > mostImages {
		return refuse("messages: too many images: %d > %d", len(all), mostImages)
	}
	limit := 8000
	if len(all) > 20 {
		limit = 2000
	}
	for _, b := range all {
		if len(b.Source.Data) > 5<<20 {
			return refuse("image exceeds 5 MB maximum: %d bytes > 5242880 bytes", len(b.Source.Data))
		}
		raw, _ := base64.StdEncoding.DecodeString(b.Source.Data) // checked before
		if c, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil && max(c.Width, c.Height) > limit {
			return refuse("At least one of the image dimensions exceed max allowed size: %d pixels", limit)
		}
	}
	return nil
}

func checkSignature(at string, b content, role string) error {
	ok := role == "assistant" && b.CacheControl == nil
	if b.Type == "thinking" {
		ok = ok && b.Signature == Sign(b.Thinking)
	} else {
		raw, err := base64.StdEncoding.DecodeString(b.Data)
		ok = ok && err == nil && len(raw) == 32
	}
	if !ok {
		return refuse("%s: Invalid `signature` in `thinking` block", at)
	}
	return nil
}

// checkPairs checks calls and results: every call is answered once, in the next message, before anything else.
func checkPairs(r *request) error {
	open, seen := map[string]bool{}, map[string]bool{}
	used := false
	for i, m := range r.Messages {
		others := false
		for j, b := range m.Content {
			if b.Type != "tool_result" {
				others = true
				continue
			}
			if others && len(open) > 0 {
				return refuse("messages.%d.content.%d: `tool_result` blocks must come first", i, j)
			}
			if !open[b.ToolUseID] {
				return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must "+
					"have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
			}
			delete(open, b.ToolUseID)
		}
		for id := range open {
			return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must "+
				"have a corresponding `tool_result` block in the next message.", i-1, id)
		}
		for _, b := range m.Content {
			if b.Type != "tool_use" {
				continue
			}
			if seen[b.ID] {
				return refuse("messages: `tool_use` ids must be unique")
			}
			open[b.ID], seen[b.ID], used = true, true, true
		}
	}
	for id := range open {
		return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", len(r.Messages)-1, id)
	}
	if used && len(r.Tools) == 0 {
		return refuse("requests which include `tool_use` or `tool_result` blocks must define tools")
	}
	return nil
}

func checkMarkers(r *request) error {
	n := 0
	count := func(raw json.RawMessage) {
		if raw != nil {
			n++
		}
	}
	for _, b := range r.System {
		count(b.CacheControl)
	}
	for _, t := range r.Tools {
		count(t.CacheControl)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			count(b.CacheControl)
		}
	}
	if n > 4 {
		return refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}
