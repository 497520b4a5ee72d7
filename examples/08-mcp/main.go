// Tools of an MCP server, here one inside the same program. For an external server set its Command or URL.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
)

type place struct {
	Name string `json:"name"`
}

// birds is a server made with the SDK.
func birds(ctx context.Context) (io.ReadWriteCloser, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "birds", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "seen", Description: "Birds that were seen at a place."},
		func(_ context.Context, _ *mcp.CallToolRequest, at place) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "two herons at " + at.Name}}}, nil, nil
		})
	ours, theirs := net.Pipe()
	go func() { _ = s.Run(ctx, &mcp.IOTransport{Reader: theirs, Writer: theirs}) }()
	return ours, nil
}

func main() {
	servers := mcptool.Open(tool.Env{}, nil, mcptool.Server{Name: "birds", Dial: birds})
	defer servers.Close()
	if err := servers.Wait(context.Background()); err != nil {
		log.Print(err)
		return
	}
	model, err := script.Parse([]byte("-- reply --\ncall: mcp__birds__seen {\"name\":\"the lake\"}\n-- reply --\nThere were two herons.\n"))
	if err != nil {
		log.Print(err)
		return
	}
	agent := inspan.Agent{
		Model: model, Rules: []inspan.Rule{{Action: tool.Allow, Text: "mcp__birds__*"}},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) { return servers.Tools(), nil }},
	}
	answer, err := agent.Answer(context.Background(), "What was seen at the lake?")
	fmt.Println(answer, err)
}
