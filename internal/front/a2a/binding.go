package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// Corrections and additions to the SDK's JSON-RPC binding.

// contentType is the code of the error for unsupported content.
const contentType = -32005

// Refuse answers a request that a [gate.Gate] rejects, as its Refuse. It answers in the form of JSON-RPC, since
// clients of the protocol read nothing else.
func Refuse(w http.ResponseWriter, _ *http.Request, status int, why string) {
	code := -32600
	if status == http.StatusUnsupportedMediaType {
		code = contentType
	}
	w.WriteHeader(status)
	// the client may be gone
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
}

// request holds the fields of a request that are read before the SDK reads it.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// peekRequest reads the body of a request and puts it back, with the names of params in the form that the SDK reads.
func peekRequest(r *http.Request) (req request, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return req, err
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) == nil && whole["params"] != nil {
		if params, changed := jsonNames(whole["params"]); changed {
			whole["params"] = params
			if body, err = json.Marshal(whole); err != nil {
				return req, err
			}
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_ = json.Unmarshal(body, &req) // the SDK reports what can't be read
	return req, nil
}

// jsonNames returns params with JSON names: the protocol also allows the names of its definition, such as
// history_length for historyLength. The values are unchanged.
func jsonNames(params json.RawMessage) (_ json.RawMessage, changed bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return params, false
	}
	out := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		words := strings.Split(name, "_")
		for i := range words[1:] {
			if w := words[i+1]; w != "" {
				words[i+1] = strings.ToUpper(w[:1]) + w[1:]
			}
		}
		camel := strings.Join(words, "")
		if _, twice := fields[camel]; camel != name && !twice {
			name, changed = camel, true
		}
		out[name] = value
	}
	if !changed {
		return params, false
	}
	raw, err := json.Marshal(out)
	return raw, err == nil
}

// paramError returns the fault of the params of a request. The SDK reports a value of the right type without a
// meaning, such as an invalid date, as unreadable JSON.
func (r request) paramError() error {
	into := map[string]any{
		"SendMessage": &sdk.SendMessageRequest{}, "SendStreamingMessage": &sdk.SendMessageRequest{}, "GetTask": &sdk.GetTaskRequest{},
		"ListTasks": &sdk.ListTasksRequest{}, "CancelTask": &sdk.CancelTaskRequest{}, "SubscribeToTask": &sdk.SubscribeToTaskRequest{},
	}[r.Method]
	if into == nil || len(r.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Params, into); err != nil {
		return fmt.Errorf("%w: %w", sdk.ErrInvalidParams, err)
	}
	switch p := into.(type) {
	case *sdk.GetTaskRequest:
		return lengthError(p.HistoryLength)
	case *sdk.SendMessageRequest:
		if p.Config != nil {
			return lengthError(p.Config.HistoryLength)
		}
	case *sdk.ListTasksRequest:
		if !isState(p.Status) {
			return fmt.Errorf("%w: status is not a state of a task", sdk.ErrInvalidParams)
		}
		return lengthError(p.HistoryLength)
	}
	return nil
}

// lengthError returns the fault of the number of messages requested.
func lengthError(n *int) error {
	if n != nil && *n < 0 {
		return fmt.Errorf("%w: historyLength is negative", sdk.ErrInvalidParams)
	}
	return nil
}

// isState reports whether tasks can be filtered by a state; empty means any.
func isState(s sdk.TaskState) bool {
	return s == "" || slices.Contains([]sdk.TaskState{
		sdk.TaskStateSubmitted, sdk.TaskStateWorking, sdk.TaskStateInputRequired, sdk.TaskStateAuthRequired, sdk.TaskStateCompleted,
		sdk.TaskStateFailed, sdk.TaskStateCanceled, sdk.TaskStateRejected, sdk.TaskStateUnspecified,
	}, s)
}

// earlyError replaces a stream whose first event would be an error by a plain error response, which clients expect
// of a stream that never begins. It sends nothing until then.
type earlyError struct {
	http.ResponseWriter
	begun  bool
	status int
	line   []byte // what comes before the first data
}

// WriteHeader implements [http.ResponseWriter].
func (e *earlyError) WriteHeader(status int) { e.status = status }

// Write implements [http.ResponseWriter].
func (e *earlyError) Write(p []byte) (int, error) {
	if e.begun {
		return e.ResponseWriter.Write(p)
	}
	data, is := bytes.CutPrefix(p, []byte("data:"))
	if !is && e.status == http.StatusOK && e.Header().Get("Content-Type") == "text/event-stream" {
		e.line = append(e.line, p...)
		return len(p), nil
	}
	e.begun = true
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if is && json.Unmarshal(data, &answer) == nil && answer.Error != nil {
		e.Header().Set("Content-Type", "application/json")
		e.ResponseWriter.WriteHeader(http.StatusBadRequest) // clients that look for events would not find them under any other status
		_, err := e.ResponseWriter.Write(bytes.TrimSpace(data))
		return len(p), err
	}
	if e.status != 0 {
		e.ResponseWriter.WriteHeader(e.status)
	}
	if _, err := e.ResponseWriter.Write(e.line); err != nil {
		return 0, err
	}
	return e.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (e *earlyError) Flush() {
	if f, ok := e.ResponseWriter.(http.Flusher); ok && e.begun {
		f.Flush()
	}
}
