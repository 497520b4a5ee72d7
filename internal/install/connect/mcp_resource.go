package connect

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/tool"
)

//go:embed mcp_resource.md
var mcpResourceDoc string

type mcpResourceArgs struct {
	Server string `json:"server" jsonschema:"name of the server"`
	URI    string `json:"uri,omitempty" jsonschema:"what to read; not given: list what there is"`
}

// mcpResource returns the tool that reads a server's resources. A server could do anything to respond.
func mcpResource(m *mcp.Manager) tool.Tool {
	t := tool.New("mcp_resource", mcpResourceDoc, func(ctx context.Context, _ *tool.Call, in mcpResourceArgs) (tool.Result, error) {
		if in.URI != "" {
			parts, err := m.Read(ctx, in.Server, in.URI)
			return tool.Result{Parts: parts, Untrusted: true}, err
		}
		list, err := m.Resources(ctx, in.Server)
		if err != nil {
			return tool.Result{}, err
		}
		var b strings.Builder
		for _, r := range list {
			fmt.Fprintf(&b, "%s %s %s %s\n", r.URI, r.Type, r.Name, r.Doc)
		}
		if len(list) == 0 {
			b.WriteString("The server has nothing to read.")
		}
		out := tool.Text(b.String())
		out.Untrusted = true
		return out, nil
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[mcpResourceArgs](c)
		if err != nil {
			return nil, err
		}
		return []tool.Effect{{Kind: tool.External, Text: "read " + in.URI + " from the MCP server " + in.Server}}, nil
	}
	return t
}
