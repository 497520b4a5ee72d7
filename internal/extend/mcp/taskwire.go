package mcp

import (
	"cmp"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
)

// taskExtension is the name of the task extension in capabilities.
const taskExtension = "io.modelcontextprotocol/tasks"

const (
	maxTaskID   = 4 << 10 // bytes
	longestTask = 24 * time.Hour
)

// task is a task as the server describes it.
type task struct {
	ID      string                     `json:"taskId"`
	State   string                     `json:"status"`
	Said    string                     `json:"statusMessage"`
	Updated string                     `json:"lastUpdatedAt"`
	Keep    *float64                   `json:"ttlMs"`          // from its beginning; nil: for ever
	Poll    *float64                   `json:"pollIntervalMs"` // nil: the server does not say
	OldKeep *float64                   `json:"ttl"`            // the same in revision 2025-11-25
	OldPoll *float64                   `json:"pollInterval"`
	Asks    map[string]json.RawMessage `json:"inputRequests"`
	Result  json.RawMessage            `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// taskParams are the parameters of requests about a task.
type taskParams struct {
	sdk.ParamsBase
	ID      string               `json:"taskId"`
	Answers sdk.InputResponseMap `json:"inputResponses,omitempty"`
}

// taskReply is a response, unparsed.
type taskReply struct {
	sdk.ResultBase
	data json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *taskReply) UnmarshalJSON(data []byte) error {
	r.data = append(r.data[:0], data...)
	return nil
}

// taskMethods lets a client send the requests about tasks.
func taskMethods(peer *sdk.Client) error {
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/result"} {
		if err := sdk.AddSendingCustomMethod[*taskParams, *taskReply](peer, method); err != nil {
			return err
		}
	}
	for _, method := range []string{"tools/list", "tools/call"} {
		if err := sdk.AddSendingCustomMethod[*toolParams, *taskReply](peer, ownMethod+method); err != nil {
			return err
		}
	}
	peer.AddSendingMiddleware(onlyCalls)
	return nil
}

// taskError says how a task without a result ended. It follows the name of the tool.
type taskError struct {
	text string
	over bool // there is nothing to cancel
}

func (e *taskError) Error() string { return e.text }

// life is how long the server keeps the task.
func (t task) life() time.Duration {
	keep := cmp.Or(t.Keep, t.OldKeep)
	if keep == nil || *keep < 0 || *keep >= float64(longestTask/time.Millisecond) {
		return longestTask
	}
	return time.Duration(*keep) * time.Millisecond
}

// result returns the result of a completed task.
func (t task) result() (*sdk.CallToolResult, error) {
	var out sdk.CallToolResult
	if len(t.Result) == 0 || string(t.Result) == "null" || json.Unmarshal(t.Result, &out) != nil {
		return nil, &taskError{"is done, but its result can't be read", true}
	}
	return &out, nil
}

// failure describes the end of a task without a result.
func (t task) failure() error {
	text := "was cancelled by its server; its effects until then are unknown"
	if t.State == "failed" {
		text = "failed"
		if t.Error != nil && t.Error.Message != "" {
			return &taskError{text + ": " + phrase(t.Error.Message), true}
		}
	}
	if t.Said != "" {
		text += ": " + phrase(t.Said)
	}
	return &taskError{text, true}
}

// phrase cleans a server's text for an error.
func phrase(s string) string { return text.Cut(text.Printed(s), 4000) }
