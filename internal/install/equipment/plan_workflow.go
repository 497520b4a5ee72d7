package equipment

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

//go:embed plan_workflow.md
var planWorkflowDoc string

type planArgs struct {
	Text   string         `json:"text" jsonschema:"all of the file"`
	File   string         `json:"file" jsonschema:"its name, such as fix-all.js"`
	Inputs map[string]any `json:"inputs,omitempty" jsonschema:"to plan with"`
}

// planWorkflow returns the tool that shows a person the plan of a workflow that a model wrote.
func planWorkflow(self string) tool.Tool {
	t := tool.New("plan_workflow", strings.TrimSpace(planWorkflowDoc), func(ctx context.Context, c *tool.Call, in planArgs) (tool.Result, error) {
		return plan(ctx, workflow.Options{Self: self, Env: c.Env, Unboxed: c.Mode == tool.ModeYolo}, in)
	})
	t.Effects = tool.NoEffects
	return t
}

func plan(ctx context.Context, o workflow.Options, in planArgs) (tool.Result, error) {
	flow, err := workflow.Parse(in.File, []byte(in.Text), nil)
	if err != nil {
		return tool.Result{}, err
	}
	plan, err := flow.Plan(ctx, in.Inputs, o)
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Text(plan.Tree())
	r.Show = fmt.Sprintf("```\n%s```", strings.ReplaceAll(plan.Tree(), "```", "'''"))
	return r, nil
}
