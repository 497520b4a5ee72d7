// A workflow of a coding agent, written in Go: an agent reads, a command checks, and a person decides what is
// written. The run could be killed at any point; the same lines would continue it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// inventory returns the workflow. The prompt has the commands for the offline model.
func inventory() *workflow.Workflow {
	text := &workflow.Schema{Type: "string"}
	return &workflow.Workflow{
		Name:    "inventory",
		Inputs:  map[string]*workflow.Schema{"file": text},
		Returns: map[string]workflow.Return{"decision": {From: "ok.choice"}, "lines": {From: "count.output"}},
		Steps: []workflow.Step{
			{
				ID: "count", Kind: workflow.KindRun, Run: `wc -l < "$FILE"`, Env: map[string]any{"FILE": "${inputs.file}"},
			},
			{
				ID: "describe", Kind: workflow.KindAgent,
				Prompt: "call: return_result {\"summary\": \"Clocks, ${count.output} of them.\"}\nsay: That is all.",
				Output: &workflow.Schema{Type: "object", Properties: map[string]*workflow.Schema{"summary": text}},
				SafeOutputs: map[string]workflow.SafeOutput{
					"summary": {Kind: "file", From: "summary", To: "SUMMARY.md", After: "ok"},
				},
			},
			{ID: "ok", Kind: workflow.KindApproval, Prompt: "Write this summary?", Show: "${describe.summary}"},
		},
	}
}

func main() {
	sandbox := coding.Init()
	dir, err := os.MkdirTemp("", "inspan-workflow-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "clocks.txt"), []byte("hall clock\nkitchen clock\nsundial\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	flow := inventory()
	if err := flow.Check(); err != nil {
		log.Fatal(err)
	}
	host, err := coding.Workflow(coding.Options{
		Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: &script.Model{}, Mode: tool.ModeAuto,
	}, flow, map[string]any{"file": "clocks.txt"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	session, err := host.New(ctx, root)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	run := inspan.Conductor{
		Session: session,
		OnEvent: func(e event.Event) error {
			if end, ok := e.Body.(event.StepEnded); ok {
				fmt.Printf("%s: %s %s\n", end.Step, end.Outcome, end.Result)
			}
			return nil
		},
		Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
			fmt.Printf("asked:\n%s\n", p.Preview)
			return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, Answer: "approve", By: "the example"}, nil
		},
	}
	if err := run.Run(ctx, event.Say("take the inventory")); err != nil {
		log.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(root, "SUMMARY.md"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("SUMMARY.md: %s", written)
}
