package inspan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// maxRewrites is how often judges may rewrite the arguments of one call.
const maxRewrites = 3

// judgeCalls is the one place where it is decided whether calls may happen.
// All verdicts of a reply are stored before any of its calls runs.
func (d *driver) judgeCalls(ctx context.Context, calls []loop.Call) error {
	var out []event.Body
	watched, done := d.interruptible(ctx)
	defer done()
	for _, c := range calls {
		out = append(out, d.judgeCall(watched, c.Call)...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return d.record(ctx, out...)
}

// judgeCall checks the arguments, works out the effects and asks the judges.
func (d *driver) judgeCall(ctx context.Context, c llm.Call) []event.Body {
	written, judged := c.Args, event.Judged{Call: c.ID}
	t, problem := d.fit(c)
	as := ""
	if problem == "" && t.Stands != nil {
		as = c.Name
		t, problem = d.meant(ctx, t, &c)
		judged.Tool = c.Name
	}
	if problem != "" {
		return unfit(c, problem)
	}
	args, call := c.Args, (*tool.Call)(nil)
	for range maxRewrites {
		checked, err := t.Check(args)
		if err != nil {
			return unfit(c, err.Error())
		}
		call = d.call(c, checked)
		call.As = as
		known, does, err := d.given(ctx, t, call)
		if err != nil {
			return unfit(c, c.Name+" was not run, "+err.Error())
		}
		findings := d.rules().Findings(call, d.judgeable(does))
		secret := d.note(known, checked)
		judged.Private = d.rules().Private(policy.Judged(findings)) || secret
		findings = d.clearFindings(findings)
		judged.Effects = policy.Judged(findings)
		v, rules := d.verdict(ctx, call, judged, findings, policy.Hand(secret, call.Mode, judged.Effects))
		judged.Action, judged.By, judged.Reason = v.Action, v.By, v.Reason
		judged.Text = v.Text
		judged.Cost += v.Cost
		judged.Route = cmp.Or(v.Route, judged.Route)
		if judged.Args = nil; !sameJSON(checked, written) {
			judged.Args = checked
		}
		if v.Args == nil {
			return d.withPreview(ctx, t, call, judged, rules)
		}
		args = v.Args
	}
	judged.Action, judged.Reason = tool.Deny, "its arguments were rewritten again and again"
	return []event.Body{judged}
}

// sameJSON reports whether two texts are the same value, so that arguments
// which only came in another order are not stored twice.
func sameJSON(a, b json.RawMessage) bool {
	var v [2]any
	for i, raw := range []json.RawMessage{a, b} {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}

// withPreview adds what a person needs to see, where a person must decide.
func (d *driver) withPreview(ctx context.Context, t tool.Tool, call *tool.Call, judged event.Judged, rules []string) []event.Body {
	if judged.Action != tool.Ask {
		return []event.Body{judged}
	}
	waiting := event.Waiting{Call: call.ID, Rules: rules}
	if d.agent.AskTimeout > 0 {
		waiting.Until = time.Now().Add(d.agent.AskTimeout).Round(time.Second)
	}
	if t.Preview != nil {
		// Without a preview the arguments must do.
		waiting.Preview, _ = t.Preview(ctx, d.known(call))
	}
	return []event.Body{judged, waiting}
}

// mostNamed is how many tools are named to a model that calls one that is not there.
const mostNamed = 60

// fit finds the tool of a call, or says why there is nothing to judge.
func (d *driver) fit(c llm.Call) (t tool.Tool, problem string) {
	t, ok := d.tools[c.Name]
	if !ok {
		var names []string
		for _, spec := range d.specs {
			names = append(names, spec.Name)
		}
		more := ""
		if left := len(names) - mostNamed; left > 0 {
			names, more = names[:mostNamed], fmt.Sprintf(" and %d more", left)
		}
		return t, fmt.Sprintf("There is no tool %q. The tools are: %s%s.", c.Name, strings.Join(names, ", "), more)
	}
	if c.Invalid != "" {
		return t, fmt.Sprintf("The arguments are not a JSON object: %.300s", c.Invalid)
	}
	return t, ""
}

// mostStands is how often a call may stand for another.
const mostStands = 3

// meant makes a call of a tool that stands for others the call that it is, and
// finds its tool, or says why there is none.
func (d *driver) meant(ctx context.Context, t tool.Tool, c *llm.Call) (meant tool.Tool, problem string) {
	for range mostStands {
		checked, err := t.Check(c.Args)
		if err == nil {
			c.Name, c.Args, err = t.Stands(ctx, d.call(*c, checked))
		}
		if err != nil {
			return t, err.Error()
		}
		if t, problem = d.fit(*c); problem != "" || t.Stands == nil {
			return t, problem
		}
	}
	return t, c.Name + " can't be called in this way"
}

func unfit(c llm.Call, why string) []event.Body {
	return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Parts: llm.Say(why)}}
}

// call is a call as tools and judges see it.
func (d *driver) call(c llm.Call, args json.RawMessage) *tool.Call {
	env := d.agent.Env
	if d.state.Mode == policy.ModeYolo {
		env = env.Unwalled()
	}
	env.Clean, env.History = d.clean, history{d.log}
	return &tool.Call{
		ID: c.ID, Key: d.key(c.ID), Name: c.Name, Args: args, Session: d.state.Session,
		Env: env, Cwd: d.state.Cwd, Mode: d.state.Mode, Task: d.state.Asked(), Led: d.state.TaskBy == event.OriginLead, Seen: d.state.Seen, Untrusted: d.state.Untrusted,
		Progress: func(string) {},
	}
}

// key is the idempotency key of a call of the last reply.
func (d *driver) key(id string) string {
	if c, ok := d.state.Call(id); ok {
		return tool.Key(d.state.Session, c.Seq, id)
	}
	return ""
}

// given is the call with what it will run with, and its effects. A command that only reads
// asks nobody, and could print a secret in other letters: it gets the placeholder. An error
// is [tool.ErrInvalid].
func (d *driver) given(ctx context.Context, t tool.Tool, call *tool.Call) (*tool.Call, []tool.Effect, error) {
	known := d.known(call)
	list, err := effects(ctx, t, known)
	runs := slices.ContainsFunc(list, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	if runs && call.Mode != policy.ModeYolo && tool.ReadOnly(list) && !bytes.Equal(known.Args, call.Args) {
		known.Args = call.Args
		list, err = effects(ctx, t, known)
	}
	return known, list, err
}

// known is the call with the secrets that its placeholders stand for, as it will
// run. Judges see it without.
func (d *driver) known(c *tool.Call) *tool.Call {
	known := *c
	known.Args, known.Cwd, known.Seen = d.revealed(c.Args), d.cwd(), mapKeys(d.state.Seen, d.vault.Resolve)
	return &known
}

// effects asks the tool what the call would do. What it can't say could be
// anything. An error is [tool.ErrInvalid].
func effects(ctx context.Context, t tool.Tool, c *tool.Call) ([]tool.Effect, error) {
	unknown := []tool.Effect{{Kind: tool.External}}
	if t.Effects == nil {
		return unknown, nil
	}
	list, err := t.Effects(ctx, c)
	switch {
	case errors.Is(err, tool.ErrInvalid):
		return nil, err
	case err != nil:
		return unknown, nil //nolint:nilerr // that is what the error means
	}
	return list, nil
}

// verdict combines what the policy and the judges say with a first verdict, and the
// rules that would allow what asks. A judge that fails denies.
func (d *driver) verdict(ctx context.Context, c *tool.Call, judged event.Judged, findings []policy.Finding, first tool.Verdict) (v tool.Verdict, rules []string) {
	all, why := []tool.Verdict{}, []string{}
	for _, f := range findings {
		all = append(all, f.Verdict)
		if f.Verdict.Action == tool.Allow && f.Verdict.Reason != "" {
			why = append(why, f.Verdict.Reason)
		}
	}
	rules = policy.Proposals(findings)
	for _, v := range []tool.Verdict{first, policy.Leave(d.state.Untrusted, d.state.Private || judged.Private, c.Mode, judged.Effects)} {
		if v.Action == tool.Ask {
			all, rules = append(all, v), nil
		}
	}
	spent, on, granted, texts := 0.0, "", tool.Verdict{}, []string{}
	for _, j := range d.agent.judges() {
		so := policy.Combine(all).Action
		if so == tool.Deny {
			break // nothing can change that any more
		}
		if g, ok := j.(interface{ Grants() bool }); ok && so == tool.Ask && d.agent.Unattended && !g.Grants() {
			continue // it would be paid for what will not run
		}
		v, err := j.Judge(ctx, c, judged.Effects)
		if err != nil {
			v = tool.Verdict{Action: tool.Deny, By: "a judge that failed", Reason: err.Error()}
		}
		if v.Text != "" {
			texts = append(texts, v.Text)
		}
		if v.Args != nil && sameJSON(v.Args, c.Args) {
			v.Args = nil
		}
		if v.Cost > 0 {
			on = v.Route
		}
		if spent += v.Cost; v.Args != nil && v.Action != tool.Deny {
			v.Cost, v.Route, v.Text = spent, on, ""
			return v, nil
		}
		if v.Action == tool.Allow && v.Reason != "" {
			why = append(why, v.By+": "+v.Reason)
		}
		if v.Action == tool.Allow && v.Grant {
			granted = v
		}
		if v.Action == tool.Ask {
			rules = nil // no rule answers for this judge
		}
		all = append(all, v)
	}
	for i, f := range findings {
		if f.Mode && granted.Grant {
			all[i] = granted
		}
	}
	v = policy.Combine(all)
	v.Cost, v.Route, v.Text = spent, on, strings.Join(texts, "\n\n")
	if v.Action == tool.Allow && len(why) > 0 {
		v.Reason = strings.Join(why, "; ") // what was thought about it is worth keeping
	}
	if v.Action == tool.Ask && d.agent.Unattended {
		v.Action = tool.Deny
		v.Reason = strings.TrimPrefix(v.Reason+"; it needs approval, and nobody is here to give it"+allowing(rules), "; ")
		if asks(judged.Effects) {
			v.Reason = "nobody is here to answer; decide yourself, and say what you decided"
		}
	}
	return v, rules
}

// allowing says how a person can allow beforehand what asks.
func allowing(rules []string) string {
	if len(rules) == 0 {
		return ": no rule could allow it; a person who is asked can, or mode yolo"
	}
	var quoted []string
	for _, r := range rules {
		quoted = append(quoted, strconv.Quote(r))
	}
	return ": allow = [" + strings.Join(quoted, ", ") + "] in the settings, or --allow, would let it run"
}

// asks reports whether a call asks the person something.
func asks(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Question })
}

// rules is the agent's policy with what was allowed for this session.
func (d *driver) rules() policy.Policy {
	p := d.policy
	for _, text := range d.state.Granted {
		// What can't be read was written by another version; it grants nothing.
		if r, err := policy.ParseRule(tool.Allow, text, "session"); err == nil {
			p.Rules = append(p.Rules[:len(p.Rules):len(p.Rules)], r)
		}
	}
	return p
}
