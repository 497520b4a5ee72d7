package equipment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// List lists the tools of an agent that a person can call: permanent and dynamic ones. It waits a while for
// servers that were never connected before.
func List(ctx context.Context, agent *inspan.Agent, warn func(string)) []tool.Tool {
	shown, _ := offered(ctx, agent, warn)
	return shown
}

// offered returns the tools of an agent, and those that stand for them under other names.
func offered(ctx context.Context, agent *inspan.Agent, warn func(string)) (shown, stand []tool.Tool) {
	if agent.Dynamic.Servers != nil {
		for _, s := range agent.Dynamic.Servers(ctx, warn) {
			if s.Why != "" {
				warn("the MCP server " + s.Name + " is " + s.State + ": " + s.Why)
			}
		}
	}
	come, stand := agent.Dynamic.Tools(ctx)
	return slices.Concat(agent.Tools, come), stand
}

// Call runs one tool of an agent for a person, and returns the output that the model would see. It closes the
// agent. Rules and modes that deny apply as in a run. A call that would ask is approved once, because the person
// typed it. Questions that the tool itself asks are not answered.
func Call(ctx context.Context, agent *inspan.Agent, name string, args json.RawMessage, warn func(string)) (string, error) {
	shown, stand := offered(ctx, agent, warn)
	if err := isOne(shown, stand, name); err != nil {
		return "", errors.Join(err, closed(agent))
	}
	agent.Model = &script.Model{Steps: []script.Step{{Parts: llm.Parts{llm.Call{Name: name, Args: args}}}}}
	s, err := agent.Open(ctx, event.NewMemory("by hand"))
	if err != nil {
		return "", errors.Join(err, closed(agent))
	}
	defer s.Close()
	inputs := []event.Body{event.Say("call " + name)}
	for inputs != nil {
		ended, err := untilEnded(ctx, s, inputs)
		switch {
		case err != nil:
			return "", err
		case ended != nil && ended.Outcome == event.OutcomeOK:
			return ended.Parts.Text(), nil
		case ended != nil:
			return "", errors.New(words.Result(ended.Parts.Text()))
		}
		inputs = nil
		for _, p := range s.Status().Waiting {
			d := words.Dismissed(p.Call.ID)
			d.Question, d.Allow = p.Question, !p.IsQuestion
			inputs = append(inputs, d)
		}
	}
	return "", fmt.Errorf("%s was not called", name)
}

// closed closes an agent that no session has closed.
func closed(agent *inspan.Agent) error {
	if agent.Lifecycle.Close == nil {
		return nil
	}
	return agent.Lifecycle.Close()
}

// untilEnded runs a session until its call has ended; nil means it waits for decisions.
func untilEnded(ctx context.Context, s *inspan.Session, inputs []event.Body) (*event.Ended, error) {
	for e, err := range s.Run(ctx, inputs...) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case event.Ended:
			if b.Parent == "" {
				return &b, nil
			}
		case event.Raised:
			d := words.Dismissed(b.ID)
			d.Question = e.Seq
			if err := s.Send(ctx, d); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// isOne returns an error unless a name is that of a tool.
func isOne(shown, stand []tool.Tool, name string) error {
	var names []string
	for _, t := range shown {
		names = append(names, t.Name)
	}
	if slices.Contains(names, name) || slices.ContainsFunc(stand, func(t tool.Tool) bool { return t.Name == name }) {
		return nil
	}
	if near := text.Nearest(name, names); near != "" {
		return fmt.Errorf("no tool %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("no tool %q; see 'inspan tools list'", name)
}
