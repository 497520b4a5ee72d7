package inspan

import (
	"fmt"

	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The three places where behaviour is composed, and the only ones. Observing
// is done by reading events; changing is done here, in this order.

// judges decide whether a call may happen; see policy.Combine for how their
// verdicts make one.
func (a *Agent) judges() ([]tool.Judge, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	return append([]tool.Judge{
		rules, // what a person denied
		policy.Granted{Rules: rules, Inner: policy.Mode{}}, // the mode, and what a person allowed beyond it
	}, a.Judges...), nil
}

// model wraps the model, the outermost wrapper last.
func (a *Agent) model() llm.Model {
	m := a.Model
	for _, wrap := range []func(llm.Model) llm.Model{
		retrying(a.RetryFor, a.Unattended),
	} {
		m = wrap(m)
	}
	return m
}

// tool wraps a tool, the outermost wrapper last.
func (a *Agent) tool(t tool.Tool) tool.Tool {
	for _, wrap := range []func(tool.Tool) tool.Tool{
		catching,
		limiting(a.CallTimeout),
		spilling,
	} {
		t = wrap(t)
	}
	return t
}

func (a *Agent) rules() (policy.Rules, error) {
	var rules policy.Rules
	for _, list := range []struct {
		action tool.Action
		texts  []string
	}{{tool.Deny, a.Deny}, {tool.Allow, a.Allow}} {
		for _, text := range list.texts {
			r, err := policy.ParseRule(list.action, text)
			if err != nil {
				return nil, fmt.Errorf("%s %w", list.action, err)
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}
