package server

import (
	"encoding/json"
	"fmt"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/workflow"
)

// checkWorkflow reports what is wrong with the workflow of a spec.
func (s *Server) checkWorkflow(p Spec) error {
	if p.Prompt != "" || p.Open || p.Fork != nil || p.Session != "" || p.Elsewhere {
		return Wrong("workflow", "it can't be combined with prompt, open, fork, session or elsewhere", "inputs that say what to do")
	}
	w, err := s.workflow(p.Workflow)
	if err != nil {
		return Wrong("workflow", words.OneLine(err.Error(), 300), "one of GET /api/v1/workflows")
	}
	if err := w.Fits(p.Inputs); err != nil {
		return Wrong("inputs", words.OneLine(err.Error(), 300), "those that the workflow has, by name")
	}
	return nil
}

// workflow returns a workflow that tasks may run.
func (s *Server) workflow(name string) (*workflow.Workflow, error) {
	var names []string
	for _, w := range s.workflows() {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return nil, fmt.Errorf("no workflow %q on this server%s", words.OneLine(name, 60), words.DidYouMean(name, names))
}

func (s *Server) workflows() []*workflow.Workflow {
	if s.Workflows == nil {
		return nil
	}
	return s.Workflows()
}

// Workflow is a workflow that tasks may run, as clients see it.
type Workflow struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description"`
	Inputs      map[string]json.RawMessage `json:"inputs" jsonschema:"JSON schema of each input; one with a default may be left out"`
}

type workflowList struct {
	Workflows []Workflow `json:"workflows"`
}

// flows is the endpoint that lists workflows.
func (c *call) flows(nothing) (workflowList, error) {
	out := workflowList{Workflows: []Workflow{}}
	for _, w := range c.workflows() {
		inputs := map[string]json.RawMessage{}
		for name, schema := range w.Inputs {
			raw, err := json.Marshal(schema)
			if err != nil {
				return out, err
			}
			inputs[name] = raw
		}
		out.Workflows = append(out.Workflows, Workflow{w.Name, w.Description, inputs})
	}
	return out, nil
}
