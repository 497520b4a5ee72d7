package connect

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync"

	"github.com/inspan/inspan/tool"
)

//go:embed oauth_flow.md
var oauthFlowDoc string

// flow lets a person log in to a server, in the given way or, if empty, the best one. Tell shows a text; paste
// returns the person's input.
type flow func(ctx context.Context, server, way string, tell func(string), paste func(context.Context) (string, error)) error

type oauthFlowArgs struct {
	Server string `json:"server" jsonschema:"name of the server"`
	Way    string `json:"way,omitempty" enum:"browser,paste,device"`
}

func oauthFlow(login flow) tool.Tool {
	t := tool.New("oauth_flow", oauthFlowDoc, func(ctx context.Context, c *tool.Call, in oauthFlowArgs) (tool.Result, error) {
		var mu sync.Mutex
		var told []string
		tell := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, text)
			c.Progress(text + "\n")
		}
		paste := func(ctx context.Context) (string, error) {
			if c.Ask == nil {
				return "", errors.New("no one is there to paste it")
			}
			mu.Lock()
			question := strings.Join(told, "\n")
			mu.Unlock()
			return c.Ask(ctx, question, nil)
		}
		if err := login(ctx, in.Server, in.Way, tell, paste); err != nil {
			return tool.Result{Untrusted: true}, err
		}
		return tool.Text("The person is logged in to " + in.Server + "."), nil
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[oauthFlowArgs](c)
		if err != nil {
			return nil, err
		}
		return []tool.Effect{{Kind: tool.External, Text: "have you log in to the MCP server " + in.Server}}, nil
	}
	return t
}
