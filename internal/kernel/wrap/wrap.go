// Package wrap has the wrappers of tools. Each replaces a tool's Run. Package drive applies them in a fixed order, see
// compose.go there.
package wrap

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/tool"
)

// Wrapper returns the tool with another Run.
type Wrapper = func(tool.Tool) tool.Tool

// Recover turns a panic of the tool into an error.
func Recover(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (res tool.Result, err error) {
		defer fault.Recover("the tool", nil, &err)
		return run(ctx, c)
	}
	return t
}

// Taint marks the result of a call as untrusted if the result of one of its nested calls was.
func Taint(t tool.Tool) tool.Tool {
	if !t.Calls {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		var untrusted atomic.Bool
		own, start := *c, c.Start
		own.Start = func(ctx context.Context, name string, args json.RawMessage) func() (tool.Result, error) {
			wait := start(ctx, name, args)
			return func() (tool.Result, error) {
				res, err := wait()
				if res.Untrusted {
					untrusted.Store(true)
				}
				return res, err
			}
		}
		own.Do = func(ctx context.Context, name string, args json.RawMessage) (tool.Result, error) {
			return own.Start(ctx, name, args)()
		}
		res, err := run(ctx, &own)
		res.Untrusted = res.Untrusted || untrusted.Load()
		return res, err
	}
	return t
}
