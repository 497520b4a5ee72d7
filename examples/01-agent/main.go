// An agent on one page: two tools (one asks first), streaming, a budget, and a session that the next start resumes.
// The model is the offline one, which follows commands in the prompt, so this runs without a key.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func main() {
	add := tool.New("add", "Adds two numbers.", func(_ context.Context, _ *tool.Call, in struct{ A, B int }) (tool.Result, error) {
		return tool.Text(fmt.Sprint(in.A + in.B)), nil
	})
	add.Effects = tool.NoEffects // a tool without declared effects asks a person
	send := tool.New("send", "Sends a message.", func(_ context.Context, _ *tool.Call, in struct{ Text string }) (tool.Result, error) {
		return tool.Text("sent: " + in.Text), nil
	})
	host := inspan.Host{Dir: filepath.Join(os.TempDir(), "agent"), Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{
			Model: &script.Model{}, Tools: []tool.Tool{add, send}, Limits: inspan.Limits{Cost: 0.50}, // US dollars
			Approve: func(_ context.Context, call inspan.Pending) (bool, error) {
				fmt.Printf("may %s run with %s? yes\n", call.Call.Name, call.Call.Args)
				return true, nil
			},
		}, nil
	}}
	ctx := context.Background()
	s, err := host.Open(ctx, "last") // of an earlier run of this program
	if errors.Is(err, fs.ErrNotExist) {
		s, err = host.New(ctx, ".")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Run(ctx, event.Say(`call: add {"A":20,"B":22}`+"\n"+`call: send {"Text":"42"}`+"\nsay: Sent.")) {
		if err != nil {
			log.Fatal(err) // the harness can't continue; a failing tool or model is an event
		}
		switch b := e.Body.(type) {
		case event.Delta:
			fmt.Print(b.Text)
		case event.Stopped:
			fmt.Println("\nthe run ended:", b.Reason, b.Detail) // done, or which limit
		}
	}
	fmt.Println()
}
