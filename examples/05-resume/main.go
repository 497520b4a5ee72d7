// A session on disk outlives its process. The first life stops between two calls, as a crash would; the second
// continues, and no call runs twice.
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
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "inspan-resume-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	work := tool.New("work", "Does one step.", func(_ context.Context, _ *tool.Call, in struct{ Name string }) (tool.Result, error) {
		fmt.Println("  working on", in.Name)
		return tool.Text("finished " + in.Name), nil
	})
	// It has no effect, so it need not ask.
	work.Effects = tool.NoEffects
	host := inspan.Host{Dir: dir, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		model, err := script.Parse([]byte("-- reply --\ncall: work {\"Name\":\"one\"}\n-- reply --\ncall: work {\"Name\":\"two\"}\n" +
			"-- reply --\nBoth done.\n"))
		return &inspan.Agent{Model: model, Tools: []tool.Tool{work}, Mode: "auto"}, err
	}}
	first, err := host.New(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	run(first, "ended", event.Say("Do both steps."))

	second, err := host.Open(ctx, first.ID())
	if err != nil {
		log.Fatal(err)
	}
	run(second, "")
	fmt.Println("stopped:", second.Status().Stopped.Reason)
}

// run drives a session until an event of the kind, or to its end.
func run(s *inspan.Session, until string, inputs ...event.Body) {
	defer s.Close()
	fmt.Println("a life")
	for e, err := range s.Run(context.Background(), inputs...) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Body.Kind() == until {
			return
		}
	}
}
