// A session is its events. Here two readers fold the same log: one counts
// what the run cost, one lists what happened.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

func main() {
	ctx := context.Background()
	events := event.NewMemory("example")
	agent := inspan.Agent{Model: &script.Model{Steps: []script.Step{{
		Parts: llm.Say("Done."), Usage: llm.Usage{Input: 1000, CacheRead: 9000, Output: 50},
	}}}}
	session, err := agent.Open(ctx, events)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, err := range session.Run(ctx, event.Say("Do it.")) {
		if err != nil {
			log.Fatal(err)
		}
	}

	price, cost := llm.Price{Input: 3, CacheRead: 0.3, Output: 15}, 0.0
	for e, err := range events.Read(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Seq, e.Body.Kind())
		if r, ok := e.Body.(event.Replied); ok {
			cost += price.Cost(r.Usage)
		}
	}
	fmt.Printf("at $3/$0.30/$15 a million tokens this would cost $%.5f\n", cost)
}
