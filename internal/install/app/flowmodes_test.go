package app_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// TestCommandsOfWorkflowsAreJudged checks that modes and rules hold for the commands of a workflow: a denial of a call
// of bash denies them, and a question of a rule asks. Only if the mode alone asks does the workflow speak for the
// person who runs it.
func TestCommandsOfWorkflowsAreJudged(t *testing.T) {
	needsBoxes(t)
	const writes = "name: flow\nsteps: [{id: a, kind: run, run: touch written}]\n"
	reaches := strings.Replace(writes, "written}", "written, network: [example.com]}", 1)
	for name, c := range map[string]struct {
		o       app.Options
		file    string
		answers []string
		runs    bool
	}{
		"ask":                 {app.Options{Mode: "ask"}, writes, nil, true},
		"plan":                {app.Options{Mode: "plan"}, writes, nil, false},
		"plan, a check":       {app.Options{Mode: "plan"}, "name: flow\nsteps: [{id: a, kind: check, run: touch written}]\n", nil, false},
		"a rule that denies":  {app.Options{Mode: "yolo", Deny: []string{"bash(touch *)"}}, writes, nil, false},
		"a rule that asks":    {app.Options{Mode: "auto", Ask: []string{"bash(touch *)"}}, writes, []string{"don't"}, false},
		"which is answered":   {app.Options{Mode: "auto", Ask: []string{"bash(touch *)"}}, writes, []string{"run it"}, true},
		"a rule for hosts":    {app.Options{Mode: "auto", Deny: []string{"network(example.com)"}}, reaches, nil, false},
		"another rule's call": {app.Options{Mode: "auto", Deny: []string{"bash(rm *)"}}, writes, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t, nil)
			_, _, err := flows(t, played(nil), root, file(t, c.file), nil, c.o, c.answers...)
			if _, there := os.Stat(filepath.Join(root, "written")); (there == nil) != c.runs {
				t.Errorf("it ran: %t (%v)", there == nil, err)
			}
		})
	}
}

// TestFilesOfTheProjectNeedTrust checks that a file which inspan reads in the workspace by itself runs only if it is
// trusted, however it is named.
func TestFilesOfTheProjectNeedTrust(t *testing.T) {
	const text = "name: flow\nsteps: [{id: a, kind: run, run: touch written}]\n"
	root := repository(t, map[string]string{
		".inspan/workflows/flow.yaml": text, ".inspan/workflows/flow.yml": text, ".inspan/flow.yaml": text,
	})
	if err := os.Symlink(filepath.Join(root, ".inspan", "workflows", "flow.yaml"), filepath.Join(root, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	a := load(t, "")
	flows := app.Workflows(a, root, "")
	for _, name := range []string{"flow", ".inspan/workflows/flow.yaml", ".inspan/workflows/flow.yml", ".inspan/flow.yaml", "link.yaml"} {
		if name != "flow" {
			name = filepath.Join(root, name)
		}
		if _, err := flows.Find(name); err == nil {
			t.Errorf("%s can be run", name)
		}
	}
	if _, err := flows.Find(file(t, text)); err != nil {
		t.Error(err)
	}
}

// asked is a model whose answers a function makes of the request.
type asked func(llm.Request) llm.Parts

func (asked) Info() llm.Info { return played(nil).Info() }

func (a asked) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	one := &script.Model{Steps: []script.Step{{Parts: a(req)}}}
	return one.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("go")}}})
}

// TestAgentsOfStepsWorkAlone checks that the agent of a step exchanges no messages with others: its only output is its
// result.
func TestAgentsOfStepsWorkAlone(t *testing.T) {
	needsBoxes(t)
	var tools []string
	model := asked(func(req llm.Request) llm.Parts {
		for _, tool := range req.Tools {
			tools = append(tools, tool.Name)
		}
		return llm.Say("done")
	})
	flow := file(t, "name: flow\nsteps: [{id: a, kind: agent, prompt: go}]\n")
	if _, _, err := flows(t, model, repository(t, nil), flow, nil, app.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(tools) == 0 || slices.Contains(tools, "team") {
		t.Errorf("tools: %v", tools)
	}
}
