package testkit

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/inspan/inspan/tool"
)

// Fill is a tool named "fill" that makes calls of another tool, one after the other, until one fails. It
// requests all of them in advance.
func Fill(name string, args ...string) tool.Tool {
	t := tool.New("fill", "makes calls", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		var held error
		for _, a := range args {
			_, err := c.Do(ctx, name, json.RawMessage(a))
			if err != nil && !errors.Is(err, tool.ErrHeld) {
				return tool.Text("not all is made"), err
			}
			if held == nil {
				held = err
			}
		}
		return tool.Text("all is made"), held
	})
	t.Calls, t.AsksAhead = true, true
	return t
}
