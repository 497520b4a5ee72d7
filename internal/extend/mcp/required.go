package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tasks in revision 2025-11-25: a tool says that it must be called as a task, the request asks for a task, and
// the result is fetched by a request of its own. The SDK does not support this, and does not let anyone see or
// send fields that it does not know. So the two requests that it does know, tools/list and tools/call, are sent
// under method names of our own, which are replaced on the wire.

// ownMethod is the prefix of method names that is removed on the wire.
const ownMethod = "inspan/"

// toolParams are the parameters of both requests.
type toolParams struct {
	sdk.ParamsBase
	Cursor    string          `json:"cursor,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Task      *struct{}       `json:"task,omitempty"`
}

// listed reads a page of the server's tools, and which of them can only be called as tasks.
func (c *client) listed(ctx context.Context, cursor string) (page *sdk.ListToolsResult, required map[string]bool, _ error) {
	if c.session.InitializeResult().ProtocolVersion != lastHandshake {
		page, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		return page, nil, err
	}
	reply, err := sdk.CallCustomMethod[*toolParams, *taskReply](ctx, c.session, ownMethod+"tools/list", &toolParams{Cursor: cursor})
	if err != nil {
		return nil, nil, err
	}
	var says struct {
		Tools []*struct {
			Name      string `json:"name"`
			Execution struct {
				TaskSupport string `json:"taskSupport"`
			} `json:"execution"`
		} `json:"tools"`
	}
	if err := errors.Join(json.Unmarshal(reply.data, &page), json.Unmarshal(reply.data, &says)); err != nil || page == nil {
		return nil, nil, errors.Join(errors.New("its list can't be read"), err)
	}
	required = map[string]bool{}
	for _, t := range says.Tools {
		if t != nil && t.Execution.TaskSupport == "required" {
			required[t.Name] = true
		}
	}
	return page, required, nil
}

// asTask calls a tool as a task and follows it to its end. A server may also answer at once.
func (c caller) asTask(ctx context.Context, conn *client, by *patience,
	params *sdk.CallToolParams, tell func(string),
) (*sdk.CallToolResult, error) {
	ask := &toolParams{Name: params.Name, Arguments: params.Arguments.(json.RawMessage), Task: &struct{}{}}
	ask.SetMeta(params.GetMeta())
	reply, err := sdk.CallCustomMethod[*toolParams, *taskReply](ctx, conn.session, ownMethod+"tools/call", ask)
	if err != nil {
		return nil, err
	}
	var made struct {
		Task json.RawMessage `json:"task"`
	}
	if err := json.Unmarshal(reply.data, &made); err != nil {
		return nil, err
	}
	if len(made.Task) == 0 {
		return task{Result: reply.data}.result()
	}
	f := c.follower(conn, by, tell)
	f.fetches = true
	return f.follow(ctx, made.Task)
}

// fetched fetches the result of a task, as soon as there is one. Until then the server may ask questions.
func (f *follower) fetched(ctx context.Context) (*sdk.CallToolResult, error) {
	data, err := f.send(ctx, "tasks/result", nil)
	var answer *jsonrpc.Error
	switch {
	case err == nil:
		return task{Result: data}.result()
	case errors.As(err, &answer) && answer.Code != notSent:
		return nil, &taskError{"failed: " + phrase(answer.Message), true}
	}
	return nil, err
}

// ahead requests the result of a task that waits for input: the server asks its questions on that request. The
// result is used when it arrives.
func (f *follower) ahead(ctx context.Context) {
	if f.early != nil {
		return
	}
	early := make(chan brought, 1)
	f.early = early
	go func() {
		res, err := f.fetched(ctx)
		early <- brought{res, err}
	}()
}

// brought is the outcome of a request for a result.
type brought struct {
	result *sdk.CallToolResult
	err    error
}

// onWire replaces the method of a message by its name on the wire.
func onWire(message jsonrpc.Message) jsonrpc.Message {
	req, is := message.(*jsonrpc.Request)
	if !is || !strings.HasPrefix(req.Method, ownMethod) {
		return message
	}
	out := *req
	out.Method = strings.TrimPrefix(req.Method, ownMethod)
	return &out
}

// bodyOnWire replaces the method in the body of an HTTP request by its name on the wire.
func bodyOnWire(req *http.Request) error {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil || !bytes.Contains(data, []byte(`"`+ownMethod)) {
		return err
	}
	var message map[string]json.RawMessage
	var method string
	if json.Unmarshal(data, &message) != nil || json.Unmarshal(message["method"], &method) != nil || !strings.HasPrefix(method, ownMethod) {
		return nil // it is another message, with these letters in it
	}
	message["method"] = fmt.Appendf(nil, "%q", strings.TrimPrefix(method, ownMethod))
	if data, err = json.Marshal(message); err != nil {
		return err
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	req.Body, err = req.GetBody()
	req.ContentLength = int64(len(data))
	return err
}
