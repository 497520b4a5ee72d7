package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// Tools lists the built-in tools. They belong to no session.
func Tools() []tool.Tool { return tools.Core(&tools.Shell{}, "") }

// CallTool runs one tool for a person, in the folder cwd, and returns what the
// model would see. Nobody is asked: the person has typed the call.
func CallTool(ctx context.Context, cwd, name string, args json.RawMessage) (text string, err error) {
	env, err := sandbox.Local(cwd, nil, sandbox.Options{})
	if err != nil {
		return "", err
	}
	shell := &tools.Shell{}
	defer shell.Close()
	var names []string
	for _, t := range tools.Core(shell, "") {
		names = append(names, t.Name)
		if t.Name != name {
			continue
		}
		checked, err := t.Check(args)
		if err != nil {
			return "", err
		}
		res, err := t.Run(ctx, &tool.Call{ID: "call", Name: name, Args: checked, Env: env, Cwd: env.Root, Progress: func(string) {}})
		return res.Parts.Text(), err
	}
	if near := tool.Nearest(name, names); near != "" {
		return "", fmt.Errorf("no tool %q; did you mean %q?", name, near)
	}
	return "", fmt.Errorf("no tool %q; see 'inspan tools list'", name)
}
