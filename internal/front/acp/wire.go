package acp

import (
	"encoding/json"
	"fmt"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/internal/base/jsonrpc"
)

// Parts of the protocol that the SDK lacks: additions after its version, and fields that it does not have.

// Codes of errors.
const (
	codeAuth    = -32000
	codeMissing = -32002 // the requested object does not exist
	codeInvalid = jsonrpc.InvalidParams
	codeBusy    = jsonrpc.InvalidRequest
)

// Methods.
const (
	methodSetTitle = "session/set_title"
	methodSteer    = "_inspan/steer"
	methodQueue    = "_inspan/queue"
)

// extras are capabilities of the client that the SDK does not read.
type extras struct {
	Session *struct {
		Notices    *struct{} `json:"notices"`
		Compaction *struct{} `json:"compaction"`
		Options    *struct {
			Boolean *struct{} `json:"boolean"`
		} `json:"configOptions"`
	} `json:"session"`
	Elicitation *struct {
		Form *struct{} `json:"form"`
		URL  *struct{} `json:"url"`
	} `json:"elicitation"`
}

// notices reports whether the client shows notices outside the conversation.
func (e extras) notices() bool { return e.Session != nil && e.Session.Notices != nil }

// compactions reports whether the client shows the progress of compactions.
func (e extras) compactions() bool { return e.Session != nil && e.Session.Compaction != nil }

// forms reports whether the client can show a form to the person.
func (e extras) forms() bool { return e.Elicitation != nil && e.Elicitation.Form != nil }

// visits reports whether the client can open an address for the person.
func (e extras) visits() bool { return e.Elicitation != nil && e.Elicitation.URL != nil }

// switches reports whether the client shows options that are on or off.
func (e extras) switches() bool {
	return e.Session != nil && e.Session.Options != nil && e.Session.Options.Boolean != nil
}

// addFields adds fields that the SDK lacks to the answer of initialize.
func addFields(r wire.InitializeResponse) (any, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	if agent, ok := out["agentCapabilities"].(map[string]any); ok {
		if session, ok := agent["sessionCapabilities"].(map[string]any); ok {
			session["title"] = struct{}{}
		}
	}
	return out, nil
}

// titleRequest is the params of session/set_title.
type titleRequest struct {
	SessionID string `json:"sessionId"`
	Title     string `json:"title"`
}

// steerRequest is the params of our own methods. Prompt is a list of blocks, or a text.
type steerRequest struct {
	SessionID string          `json:"sessionId"`
	Prompt    json.RawMessage `json:"prompt"`
}

func (r steerRequest) blocks() ([]wire.ContentBlock, error) {
	var text string
	if json.Unmarshal(r.Prompt, &text) == nil {
		return []wire.ContentBlock{wire.TextBlock(text)}, nil
	}
	var blocks []wire.ContentBlock
	if err := json.Unmarshal(r.Prompt, &blocks); err != nil {
		return nil, invalid("prompt: %v", err)
	}
	return blocks, nil
}

// optionRequest is the params of session/set_config_option. The SDK refuses texts of a type that it does not know,
// which the protocol allows.
type optionRequest struct {
	SessionID string `json:"sessionId"`
	ConfigID  string `json:"configId"`
	Type      string `json:"type"`
	Value     any    `json:"value"`
}

// elicitation is the params of elicitation/create: a form for one question, or an address to visit.
type elicitation struct {
	SessionID string      `json:"sessionId"`
	CallID    string      `json:"toolCallId,omitempty"`
	Mode      string      `json:"mode"` // form or url
	Message   string      `json:"message"`
	Schema    *formSchema `json:"requestedSchema,omitempty"`
	ID        string      `json:"elicitationId,omitempty"`
	URL       string      `json:"url,omitempty"`
}

type formSchema struct {
	Type       string               `json:"type"`
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required,omitempty"`
}

type formField struct {
	Type  string   `json:"type"`
	Title string   `json:"title,omitempty"`
	Enum  []string `json:"enum,omitempty"`
}

// elicited is the answer to an elicitation.
type elicited struct {
	Action  string         `json:"action"`  // accept, decline or cancel
	Content map[string]any `json:"content"` // of a form that the person filled in
}

// notice is a session update with text outside the conversation.
type notice struct {
	SessionUpdate string `json:"sessionUpdate"`
	Severity      string `json:"severity"`
	Title         string `json:"title"`
}

// compaction is a session update about the progress of a compaction.
type compaction struct {
	SessionUpdate string              `json:"sessionUpdate"`
	ID            string              `json:"compactionId"`
	Status        string              `json:"status"` // in_progress, completed, failed or cancelled
	Summary       []wire.ContentBlock `json:"summary,omitempty"`
	Error         string              `json:"error,omitempty"`
}

// rawUpdate is a session update that the SDK lacks.
type rawUpdate struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: codeInvalid, Message: fmt.Sprintf(format, args...)}
}

func missing(id string) error {
	return &jsonrpc.Error{Code: codeMissing, Message: fmt.Sprintf("there is no session %.100q", id), Data: map[string]any{"sessionId": id}}
}

func busy(format string, args ...any) error {
	return &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf(format, args...)}
}
