package inspan

import (
	"cmp"
	"fmt"

	"github.com/inspan/inspan/internal/guard"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The three places where behaviour is composed, and the only ones. Observing
// is done by reading events; changing is done here, in this order.

// judges decide whether a call may happen, beside the policy, which is asked
// first; see policy.Combine for how their verdicts make one.
func (a *Agent) judges() []tool.Judge {
	judges := a.Judges
	for _, h := range a.Hooks {
		judges = append(judges[:len(judges):len(judges)], hookJudge{h})
	}
	return judges
}

// model wraps the model, the outermost wrapper last.
func (a *Agent) model() llm.Model {
	m := a.asks()
	for _, wrap := range []func(llm.Model) llm.Model{
		steadied,
		a.retrying,
	} {
		m = wrap(m)
	}
	return m
}

// tool wraps a tool, the outermost wrapper last.
func (a *Agent) tool(t tool.Tool, marker *guard.Marker, vault *secret.Vault) tool.Tool {
	for _, wrap := range []func(tool.Tool) tool.Tool{
		gathering,
		catching, // the tool, which has a goroutine of its own
		limiting(a.CallTimeout),
		redacting(vault), // before what is hidden in a secret is spelled out
		marker.Wrap,
		redacting(vault), // and after that, as what was hidden may be a secret
		hooked(a.Hooks, vault),
		spilling(resultSize(a.asks().Info().Window)),
		catching, // hooks and blobs
	} {
		t = wrap(t)
	}
	return t
}

// rules is the policy of the agent: mode, rules and sensitive places.
func (a *Agent) rules() (policy.Policy, error) {
	var p policy.Policy
	m := &p.Map
	m.Root, m.Also, m.State, m.Shared, m.Open = a.Env.Root, a.Folders, a.Private, a.Shared, a.Public
	m.Apart = a.Apart
	m.Home, m.Programs, m.Moved = keep.Home(), keep.Programs(), keep.Moved()
	if looker, ok := a.Env.Files.(tool.Looker); ok {
		m.Look = looker.Look
	}
	p.Map = m.Indexed()
	var names []string
	for _, t := range a.Tools {
		names = append(names, t.Name)
	}
	for _, rule := range a.Rules {
		read, err := policy.Read(rule.Action, rule.Text, rule.Scope, names...)
		if err != nil {
			return p, fmt.Errorf("%s %w", rule.Action, err)
		}
		for _, r := range read {
			r.Reason, r.Written = rule.Reason, cmp.Or(rule.Written, r.Written)
			p.Rules = append(p.Rules, r)
		}
	}
	p.Map = policy.Close(p.Map, p.Rules)
	return p, nil
}
