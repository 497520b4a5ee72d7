// Calls within calls. The tool "publish" writes a page and then pings a server, both through calls of its own. Each
// is judged like a call of the model: the page may be written, the ping asks. Nothing runs while it waits for an
// answer. After the answer the tool runs again from its beginning, and its first call returns the earlier result
// without writing the page twice.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

type page struct {
	Name string `json:"name"`
}

// does makes a tool with one declared effect, which prints and returns a text.
func does(name, says string, effect tool.Effect) tool.Tool {
	t := tool.New(name, "Does one thing.", func(_ context.Context, _ *tool.Call, in page) (tool.Result, error) {
		fmt.Printf("  %s %s\n", says, in.Name)
		return tool.Text(says + " " + in.Name), nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{effect}, nil }
	return t
}

func main() {
	publish := tool.New("publish", "Writes a page and pings the server.", func(ctx context.Context, c *tool.Call, in page) (tool.Result, error) {
		fmt.Println("publish is run")
		args, err := json.Marshal(in)
		if err != nil {
			return tool.Result{}, err
		}
		if _, err := c.Do(ctx, "write", args); err != nil {
			return tool.Result{}, err
		}
		return c.Do(ctx, "ping", args)
	})
	publish.Calls = true
	model, err := script.Parse([]byte("-- reply --\ncall: publish {\"name\":\"tides\"}\n-- reply --\nIt is published.\n"))
	if err != nil {
		log.Fatal(err)
	}
	agent := &inspan.Agent{Model: model, Mode: tool.ModeEdit, Env: tool.Env{Root: "/site"}, Tools: []tool.Tool{
		publish,
		does("write", "wrote", tool.Effect{Kind: tool.Write, Path: "/site/page"}),
		does("ping", "pinged for", tool.Effect{Kind: tool.Network, Text: "example.com"}),
	}}
	session, err := agent.Open(context.Background(), event.NewMemory("pages"))
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	c := inspan.Conductor{Session: session, Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
		fmt.Printf("may %s run? %s: yes\n", p.Call.Name, p.Reason)
		return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, By: "a person"}, nil
	}}
	if err := c.Run(context.Background(), event.Say("Publish the page about tides.")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Status().Stopped.Reason)
}
