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

// The SDK knows no tasks: of an answer that is one it keeps nothing but _meta. So
// the task is moved there before the SDK reads it.

// taskKey is where the task is in the _meta of an answer.
const taskKey = "inspan/task"

// mayTask reports whether data can have an answer in it that is a task. It is cheap.
func mayTask(data []byte) bool { return bytes.Contains(data, []byte(`"task"`)) }

// taskedMessage moves the task in a message to where it is kept. What is no answer
// with a task is returned as it is.
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

// taskedResult does so with the result of an answer.
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

// taskedConn is a connection over a stream whose answers are read so. Those over
// HTTP are read so by [remote], as the SDK wants its own connection there.
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

var errNoTask = errors.New("it answered with a task where there can be none")

// onlyCalls keeps tasks to calls of tools in the revision that has them: a server is
// not told of them in a handshake, and no other answer may be one.
func onlyCalls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, is := req.GetParams().(*sdk.InitializeParams); is && p.Capabilities != nil {
			p.Capabilities.Extensions = nil // a copy that the SDK has made for this request
		}
		res, err := next(ctx, method, req)
		_, last, _ := strings.Cut(method, "/")
		// The SDK lets nobody ask answers that are always empty for their _meta.
		if err != nil || method == "tools/call" || last != "list" && last != "get" && last != "read" && last != "templates/list" {
			return res, err
		}
		if _, is := res.GetMeta()[taskKey]; is {
			return nil, errNoTask
		}
		return res, nil
	}
}
