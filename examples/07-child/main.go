// A session that delegates work to another: a tool opens a child session. The same parent and name mean the same
// child, so a repeated call finds it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func main() {
	dir, err := os.MkdirTemp("", "inspan-child-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host := &inspan.Host{Dir: dir}
	ask := tool.New("ask_another", "Has another agent do something.",
		func(ctx context.Context, c *tool.Call, in struct{ Task string }) (tool.Result, error) {
			child, err := host.Child(ctx, c.Session, c.ID, dir)
			if err != nil {
				return tool.Result{}, err
			}
			defer child.Close()
			return tool.Text("It says: " + say(ctx, child, in.Task)), nil
		})
	ask.Effects = tool.NoEffects // the child's own calls are judged
	host.Agent = func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{}, Tools: []tool.Tool{ask}}, nil // follows commands in the prompt
	}
	ctx := context.Background()
	parent, err := host.New(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer parent.Close()
	fmt.Println(say(ctx, parent, "call: ask_another {\"Task\":\"say: It is in cart.go.\"}\nsay: I have asked."))
	for info, err := range host.List(ctx) {
		fmt.Println("session:", info.Name(), err)
	}
}

// say sends a session a message and returns the model's answer.
func say(ctx context.Context, s *inspan.Session, text string) string {
	for e, err := range s.Run(ctx, event.Say(text)) {
		if err != nil {
			log.Fatal(err)
		}
		if b, ok := e.Body.(event.Replied); ok {
			text = b.Parts.Text()
		}
	}
	return text
}
