// The agent of the inspan command in your own program. It asks before it changes anything: a Conductor asks the
// questions and continues with the answers. If there is no one to ask, Answer returns an error that names the
// waiting calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
)

// task is for the offline model, which follows commands in the prompt.
const task = "bash: echo 'The museum opens at ten.' > hours.txt\nsay: I wrote it down."

func main() {
	sandbox := coding.Init() // before anything else: the sandbox starts this program again
	dir, err := os.MkdirTemp("", "inspan-approve-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	host, err := coding.Agent(coding.Options{Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	agent, err := host.Agent(ctx, inspan.SessionSpec{New: true}) // for a session in memory
	if err != nil {
		log.Fatal(err)
	}
	_, err = agent.Answer(ctx, task)
	var waiting *inspan.WaitingError
	if errors.As(err, &waiting) {
		fmt.Println(err)
		fmt.Printf("its arguments: %s\n", waiting.Waiting[0].Call.Args)
	}

	session, err := host.New(ctx, root) // on disk
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	c := inspan.Conductor{Session: session, Ask: allow}
	if err := c.Run(ctx, event.Say(task)); err != nil {
		log.Fatal(err)
	}
	hours, err := os.ReadFile(filepath.Join(root, "hours.txt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("hours.txt: %s", hours)
}

// allow shows a question and answers it, as a person at a terminal would.
func allow(_ context.Context, p inspan.Pending) (event.Body, error) {
	fmt.Printf("may it run? %s\n", p.Reason)
	return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, By: "the example"}, nil
}
