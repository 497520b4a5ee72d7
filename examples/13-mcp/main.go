// MCP servers of a coding agent. The server is a separate program, here this one with an argument; the agent starts
// it in its sandbox, and restarts it if it ends. A rule allows one of its tools, the other one would ask. For an
// agent without the coding tools see 08-mcp.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/mcptool"
)

// task makes two calls in one reply.
const task = `call: mcp__clocks__read {"name":"the clock in the hall"}
+ call: mcp__clocks__wind {"name":"the clock in the hall"}`

type clock struct {
	Name string `json:"name"`
}

// serve runs the server, which is made with the SDK.
func serve() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "clocks", Version: "1"}, nil)
	for name, said := range map[string]string{"read": "%s shows a quarter past ten", "wind": "%s is wound up"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, c clock) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(said, c.Name)}}}, nil, nil
		})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

func main() {
	sandbox := coding.Init()
	if len(os.Args) > 1 {
		log.Fatal(serve())
	}
	dir, err := os.MkdirTemp("", "inspan-mcp-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	host, err := coding.Agent(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{},
		Servers: []mcptool.Server{{Name: "clocks", Command: []string{self, "serve"}}},
		Allow:   []string{"mcp__clocks__read"},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.New(context.Background(), root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for e, err := range session.Run(context.Background(), event.Say(task)) {
		if err != nil {
			log.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Served:
			for _, s := range b.Servers {
				fmt.Println("server", s.Name, s.State, s.Tools, s.Why)
			}
		case event.Ended:
			fmt.Println("result:", b.Parts.Text())
		}
	}
	for _, p := range session.Status().Waiting {
		fmt.Println("question:", p.Reason)
	}
}
