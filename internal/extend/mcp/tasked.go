package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK does not know tasks: of a response that is one it keeps nothing but _meta, so the task is moved there
// before the SDK reads it.

// taskKey is where a task is kept in the _meta of a response.
const taskKey = "inspan/task"

// mayTask reports whether data could contain a task. It is cheap.
func mayTask(data []byte) bool { return bytes.Contains(data, []byte(`"task"`)) }

// taskedMessage moves the task in a message to _meta. Other messages are returned unchanged.
func taskedMessage(data []byte) (_ []byte, is bool) {
	if !mayTask(data) {
		return data, false
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(data, &message) != nil || message["id"] == nil || message["method"] != nil {
		return data, false
	}
	if message["result"], is = taskedResult(message["result"]); !is {
		return data, false
	}
	out, err := json.Marshal(message)
	if err != nil {
		return data, false
	}
	return out, true
}

// taskedResult does the same for the result of a response.
func taskedResult(data json.RawMessage) (_ json.RawMessage, is bool) {
	if !mayTask(data) {
		return data, false
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(data, &result) != nil || string(result["resultType"]) != `"task"` {
		return data, false
	}
	out, err := json.Marshal(map[string]any{
		"resultType": "complete", "content": []any{}, "_meta": map[string]json.RawMessage{taskKey: data},
	})
	if err != nil {
		return data, false
	}
	return out, true
}

// taskedConn applies this to a connection over a stream. [remote] does so over HTTP, where the SDK needs its
// own connection type.
type taskedConn struct{ sdk.Connection }

// Read implements [sdk.Connection].
func (c taskedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if answer, is := message.(*jsonrpc.Response); is && err == nil {
		answer.Result, _ = taskedResult(answer.Result)
	}
	return message, err
}

// Write implements [sdk.Connection].
func (c taskedConn) Write(ctx context.Context, message jsonrpc.Message) error {
	return c.Connection.Write(ctx, onWire(message))
}

var errNoTask = errors.New("it answered with a task, which this request does not allow")

// onlyCalls limits tasks to tool calls in the revision that has them: handshakes don't mention them, and no
// other response may be one.
func onlyCalls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, is := req.GetParams().(*sdk.InitializeParams); is && p.Capabilities != nil {
			p.Capabilities.Extensions = nil // a copy that the SDK has made for this request
		}
		res, err := next(ctx, method, req)
		_, last, _ := strings.Cut(method, "/")
		// The SDK does not expose the _meta of results that are always empty.
		if err != nil || method == "tools/call" || last != "list" && last != "get" && last != "read" && last != "templates/list" {
			return res, err
		}
		if _, is := res.GetMeta()[taskKey]; is {
			return nil, errNoTask
		}
		return res, nil
	}
}
