package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/inspan/inspan/tool"
)

//go:embed call_tool.md
var callToolDoc string

type callToolArgs struct {
	Name      string         `json:"name" jsonschema:"tool"`
	Arguments map[string]any `json:"arguments,omitempty" jsonschema:"its arguments"`
}

// callTool calls a tool that is not in the model's list, or only in a message.
func callTool() tool.Tool {
	t := tool.New("call_tool", callToolDoc, func(context.Context, *tool.Call, callToolArgs) (tool.Result, error) {
		return tool.Result{}, errors.New("no tool was named")
	})
	t.Resolve = func(_ context.Context, c *tool.Call) (string, json.RawMessage, error) {
		in, err := tool.Args[callToolArgs](c)
		if err != nil {
			return "", nil, err
		}
		if in.Arguments == nil {
			in.Arguments = map[string]any{}
		}
		args, err := json.Marshal(in.Arguments)
		return in.Name, args, err
	}
	return t
}
