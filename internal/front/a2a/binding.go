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

// What the SDK's binding of JSON-RPC says otherwise than the protocol, or does not say.

// contentType is the code of the error for content that is not taken.
const contentType = -32005

// Refuse answers a request that does not come through a [gate.Gate], as its Refuse: in the
// words of JSON-RPC, as clients of the protocol read nothing else.
func Refuse(w http.ResponseWriter, status int, why string) {
	code := -32600
	if status == http.StatusUnsupportedMediaType {
		code = contentType
	}
	w.WriteHeader(status)
	// whoever has gone need not know
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
}

// request is a request as far as it is looked at before the SDK reads it.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// peek reads the body of a request and puts it back, with the names of params as the SDK
// reads them.
func peek(r *http.Request) (req request, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return req, err
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) == nil && whole["params"] != nil {
		if params, changed := renamed(whole["params"]); changed {
			whole["params"] = params
			if body, err = json.Marshal(whole); err != nil {
				return req, err
			}
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_ = json.Unmarshal(body, &req) // what can't be read is told by who reads it next
	return req, nil
}

// renamed is params with the names as JSON has them: the protocol lets clients write those
// of its definition too, history_length for historyLength. What is in the params is left
// alone.
func renamed(params json.RawMessage) (_ json.RawMessage, changed bool) {
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

// wrong is what is wrong with the params of a request, which the SDK takes for JSON that
// can't be read if a value has the right type and means nothing, such as a date.
func (r request) wrong() error {
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
		return length(p.HistoryLength)
	case *sdk.SendMessageRequest:
		if p.Config != nil {
			return length(p.Config.HistoryLength)
		}
	case *sdk.ListTasksRequest:
		if !isState(p.Status) {
			return fmt.Errorf("%w: status is not a state of a task", sdk.ErrInvalidParams)
		}
		return length(p.HistoryLength)
	}
	return nil
}

// length is what is wrong with how many messages are wanted.
func length(n *int) error {
	if n != nil && *n < 0 {
		return fmt.Errorf("%w: historyLength is negative", sdk.ErrInvalidParams)
	}
	return nil
}

// isState reports whether tasks can be asked for by a state; empty: by any.
func isState(s sdk.TaskState) bool {
	return s == "" || slices.Contains([]sdk.TaskState{
		sdk.TaskStateSubmitted, sdk.TaskStateWorking, sdk.TaskStateInputRequired, sdk.TaskStateAuthRequired, sdk.TaskStateCompleted,
		sdk.TaskStateFailed, sdk.TaskStateCanceled, sdk.TaskStateRejected, sdk.TaskStateUnspecified,
	}, s)
}

// empty is the request without what is wrong with it.
func (r request) empty() string {
	id := r.ID
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, id, r.Method)
}

// streams reports whether the answer is a stream of events.
func (r request) streams() bool {
	return r.Method == "SendStreamingMessage" || r.Method == "SubscribeToTask"
}

// early answers with an error in the place of a stream whose first event would be one, as
// clients expect of a stream that never begins. Until then nothing is sent.
type early struct {
	http.ResponseWriter
	begun  bool
	status int
	line   []byte // what comes before the first data
}

// WriteHeader implements [http.ResponseWriter].
func (e *early) WriteHeader(status int) { e.status = status }

// Write implements [http.ResponseWriter].
func (e *early) Write(p []byte) (int, error) {
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
		e.ResponseWriter.WriteHeader(http.StatusBadRequest) // clients that look for events in any other would find none
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
func (e *early) Flush() {
	if f, ok := e.ResponseWriter.(http.Flusher); ok && e.begun {
		f.Flush()
	}
}
