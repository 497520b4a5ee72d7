package acp

import (
	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/internal/extend/mcp"
)

// servers converts the MCP servers that the client names for a session.
func servers(list []wire.McpServer) ([]mcp.Server, error) {
	var out []mcp.Server
	for _, s := range list {
		switch {
		case s.Stdio != nil:
			env := map[string]string{}
			for _, v := range s.Stdio.Env {
				env[v.Name] = v.Value
			}
			command := append([]string{s.Stdio.Command}, s.Stdio.Args...)
			out = append(out, mcp.Server{Name: s.Stdio.Name, Command: command, Env: env, Source: mcp.Client})
		case s.Http != nil:
			out = append(out, mcp.Server{Name: s.Http.Name, Kind: mcp.HTTP, URL: s.Http.Url, Headers: headers(s.Http.Headers), Source: mcp.Client})
		case s.Sse != nil:
			out = append(out, mcp.Server{Name: s.Sse.Name, Kind: mcp.SSE, URL: s.Sse.Url, Headers: headers(s.Sse.Headers), Source: mcp.Client})
		default:
			return nil, invalid("mcpServers: a server is reached by stdio, http or sse")
		}
	}
	return out, nil
}

func headers(list []wire.HttpHeader) map[string]string {
	out := map[string]string{}
	for _, h := range list {
		out[h.Name] = h.Value
	}
	return out
}
