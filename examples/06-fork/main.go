// Two continuations from one point: a fork is a session of its own that starts as a copy, so both can continue
// independently.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "inspan-fork-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host := inspan.Host{Dir: dir, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{}}, nil // follows commands in the prompt
	}}

	trunk, err := host.New(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer trunk.Close()
	fmt.Println("trunk: ", say(trunk, "say: We could use a map or a slice."))

	branch, err := host.Fork(ctx, trunk.ID(), 0)
	if err != nil {
		log.Fatal(err)
	}
	defer branch.Close()
	fmt.Println("trunk: ", say(trunk, "say: The map it is."))
	fmt.Println("branch:", say(branch, "say: The slice it is."))
	fmt.Println("two sessions:", trunk.ID() != branch.ID())
}

// say sends a session a message and returns the answer.
func say(s *inspan.Session, text string) string {
	var answer string
	for e, err := range s.Run(context.Background(), event.Say(text)) {
		if err != nil {
			log.Fatal(err)
		}
		if r, ok := e.Body.(event.Replied); ok {
			answer = strings.TrimSpace(r.Parts.Text())
		}
	}
	return answer
}
