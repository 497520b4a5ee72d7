package inspan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/internal/text"
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
		t := trial{driver: d, judged: event.Judged{Call: c.ID}}
		out = append(out, t.hold(watched, c.Call)...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return d.record(ctx, out...)
}

// trial is the judging of one call.
type trial struct {
	*driver
	tool     tool.Tool
	call     *tool.Call // as judges see it
	judged   event.Judged
	findings []policy.Finding // of the policy, without secrets
	pieces   secret.Pieces    // of those that the call is given
	unknown  bool             // a command is given a placeholder that stands for nothing
	also     []tool.Effect    // beside those that the tool tells
	approved bool             // a person was there to say yes
}

// hold checks the arguments, works out the effects and asks the judges, again for arguments
// that one of them has rewritten.
func (t *trial) hold(ctx context.Context, c llm.Call) []event.Body {
	written, as, problem := c.Args, "", ""
	named := c.Name
	if _, known := t.tools[named]; !known {
		if _, known = t.tools[bare(named)]; known {
			c.Name = bare(named)
		}
	}
	if t.tool, problem = t.fit(c); problem == "" && t.tool.Stands != nil {
		problem = t.stand(ctx, &c)
	}
	if c.Name != named {
		as, t.judged.Tool = named, c.Name
	}
	if problem != "" {
		return unfit(c, problem)
	}
	t.judged.Caller = t.tool.Calls
	args := c.Args
	for range maxRewrites {
		checked, err := fitted(t.tool, args)
		if err != nil {
			return unfit(c, err.Error())
		}
		t.call = t.driver.call(c, checked)
		t.call.As, t.call.Parent = as, t.judged.Parent
		t.judged.Ways = nil
		first, err := t.examine(ctx)
		if err != nil {
			return unfit(c, t.shown(c.Name+" was not run, "+err.Error()))
		}
		v, rules, offers := t.verdict(ctx, first)
		t.judged.Action, t.judged.By, t.judged.Reason, t.judged.Text = v.Action, v.By, v.Reason, v.Text
		if t.unknown && v.Action != tool.Deny {
			t.judged.Text = strings.TrimPrefix(v.Text+"\n\n"+unknownSecret, "\n\n")
		}
		t.judged.Cost += v.Cost
		t.judged.Consulted = append(t.judged.Consulted, v.Consulted...)
		t.judged.Route = cmp.Or(v.Route, t.judged.Route)
		if t.judged.Args = nil; !sameJSON(checked, written) {
			t.judged.Args = checked
		}
		if v.Args == nil {
			return t.withPreview(ctx, event.Waiting{Call: t.call.ID, Rules: rules, Offers: offers})
		}
		args = v.Args
	}
	t.judged.Action, t.judged.Reason = tool.Deny, "its arguments were rewritten again and again"
	return []event.Body{t.judged}
}

// unknownSecret tells the model that what it sees may be wrong.
const unknownSecret = "[inspan says; it is not the person:]\nA placeholder in this command stands for no secret that is known here, " +
	"so the command gets it as it is written. A shell reads its brackets as a pattern: what the command brings may be wrong."

// examine finds what the call would do, what the policy says of it, and a first verdict: that
// of what leaves with a secret. An error is [tool.ErrInvalid].
func (t *trial) examine(ctx context.Context) (first tool.Verdict, err error) {
	call := t.known()
	given := !bytes.Equal(call.Args, t.call.Args)
	t.pieces = t.vault.Pieces(string(t.call.Args))
	does, err := effects(ctx, t.tool, call)
	if err != nil {
		return first, err
	}
	does = append(does, t.also...)
	runs := slices.ContainsFunc(does, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	t.unknown = runs && secret.Holds(string(call.Args))
	findings := t.rules().Findings(t.call, t.judgeable(does))
	if secret.Holds(string(t.call.Args)) {
		whole := policy.Judged(clearFindings(findings, t.vault.Redact))
		t.note(call.ID, known{args: call.Args, effects: whole, stored: t.vault.Redact})
	}
	t.judged.Private = t.rules().Private(policy.Judged(findings)) || given
	t.findings = clearFindings(findings, t.shown)
	t.judged.Effects = policy.Judged(t.findings)
	return policy.Hand(given, t.vault.Named(string(t.call.Args)), t.call.Mode, t.call.Env.Walls, t.judged.Effects), nil
}

// shown takes secrets out of a text for people and the log, and parts of those that the call is
// given: what it runs may have taken them apart.
func (t *trial) shown(text string) string { return t.pieces.Hide(t.vault.Redact(text)) }

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

// withPreview is the verdict, with what a person needs to see where a person must decide.
func (t *trial) withPreview(ctx context.Context, waiting event.Waiting) []event.Body {
	if t.judged.Action != tool.Ask {
		return []event.Body{t.judged}
	}
	if t.agent.AskTimeout > 0 {
		waiting.Until = time.Now().Add(t.agent.AskTimeout).Round(time.Second)
	}
	if t.tool.Preview != nil {
		call := t.known()
		waiting.Shown = t.standing(ctx, call.Env.Files) // a change in between then counts as one
		waiting.Preview = t.preview(ctx, call)
	}
	return []event.Body{t.judged, waiting}
}

// mostCompared bounds a file of which is known whether it is what was shown. The tools change none that is larger.
const mostCompared = 64 << 20

// standing are the files that the call would change, as they are now. What can't be read is left out: no
// preview shows it either.
func (t *trial) standing(ctx context.Context, files tool.Files) (out []tool.File) {
	for i, e := range mappedEffects(t.judged.Effects, t.vault.Resolve) {
		if files == nil || e.Kind != tool.Write {
			continue
		}
		if digest, err := digestOf(ctx, files, e.Path); err == nil {
			out = append(out, tool.File{Path: t.judged.Effects[i].Path, Digest: digest})
		}
	}
	return out
}

// digestOf is the digest of a file; empty: there is none.
func digestOf(ctx context.Context, files tool.Files, path string) (string, error) {
	f, err := files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > mostCompared {
		return "", errors.Join(err, errors.New("it is no file that can be compared"))
	}
	data, err := io.ReadAll(io.LimitReader(f, mostCompared))
	return tool.Digest(data), err
}

// preview is what the tool shows a person. If it fails the arguments must do; if it crashes they
// are told that they do not see what they might.
func (t *trial) preview(ctx context.Context, call *tool.Call) string {
	text, err := func() (text string, err error) {
		defer caught("the preview", nil, &err)
		return t.tool.Preview(ctx, call)
	}()
	if c, crashed := errors.AsType[*crash](err); crashed {
		text = "(there is no preview of what this call would do: " + c.brief() + ")"
	}
	return t.shown(text)
}

// fitted are arguments that fit a tool. An error is for the model.
func fitted(t tool.Tool, args json.RawMessage) (out json.RawMessage, err error) {
	defer caught(t.Name+" was not run, the check of its arguments", nil, &err)
	return t.Check(args)
}

// bare is the name of a tool without the namespace that some models are trained to write before it, such as
// functions.bash.
func bare(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

// mostNamed is how many tools are named to a model that calls one that is not there.
const mostNamed = 60

// fit finds the tool of a call, or says why there is nothing to judge.
func (t *trial) fit(c llm.Call) (found tool.Tool, problem string) {
	found, ok := t.tools[c.Name]
	if !ok {
		var names []string
		for _, spec := range t.specs {
			names = append(names, spec.Name)
		}
		more := ""
		if left := len(names) - mostNamed; left > 0 {
			names, more = names[:mostNamed], fmt.Sprintf(" and %d more", left)
		}
		return found, fmt.Sprintf("There is no tool %q. The tools are: %s%s.", c.Name, strings.Join(names, ", "), more)
	}
	if c.Invalid != "" {
		return found, fmt.Sprintf("The arguments are not a JSON object: %.300s", c.Invalid)
	}
	return found, ""
}

// mostStands is how often a call may stand for another.
const mostStands = 3

// stand makes a call of a tool that stands for others the call that it is, and finds its
// tool, or says why there is none.
func (t *trial) stand(ctx context.Context, c *llm.Call) (problem string) {
	for range mostStands {
		checked, err := fitted(t.tool, c.Args)
		if err != nil {
			return err.Error()
		}
		name, args, err := t.stood(ctx, t.driver.call(*c, checked))
		switch {
		case err != nil:
			return err.Error()
		case name == "":
			return ""
		}
		c.Name, c.Args = name, args
		if t.tool, problem = t.fit(*c); problem != "" || t.tool.Stands == nil {
			return problem
		}
	}
	return c.Name + " can't be called in this way"
}

// stood is the call that a call stands for. An error is for the model.
func (t *trial) stood(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	defer caught(c.Name+" was not run, its Stands", nil, &err)
	return t.tool.Stands(ctx, c)
}

func unfit(c llm.Call, why string) []event.Body {
	return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Class: event.ErrorArguments, Parts: llm.Say(why)}}
}

// call is a call as tools and judges see it.
func (d *driver) call(c llm.Call, args json.RawMessage) *tool.Call {
	env := d.agent.Env
	if d.state.Mode == tool.ModeYolo {
		env = env.Unwalled()
	}
	env.Clean, env.History = d.clean, history{d.log}
	key := ""
	if made, ok := d.state.Call(c.ID); ok {
		key = tool.Key(d.state.Session, made.Seq, c.ID)
	}
	return &tool.Call{
		ID: c.ID, Key: key, Name: c.Name, Args: args, Session: d.state.Session, Who: d.actor(),
		Env: env, Cwd: d.state.Cwd, Mode: d.state.Mode, Task: d.state.Asked(), Led: d.state.TaskBy == event.OriginLead, Seen: d.seen.asStored,
		Untrusted: d.state.Untrusted, Todo: d.state.Todo,
		Progress: func(string) {},
	}
}

// known is the call with the secrets that its placeholders stand for, as it will
// run. Judges see it without.
func (t *trial) known() *tool.Call {
	known := *t.call
	known.Args, known.Cwd, known.Seen = t.revealed(t.call.Args), t.cwd(), t.seen.now()
	return &known
}

// effects asks the tool what the call would do. What it can't say could be
// anything. An error is [tool.ErrInvalid], or a crash: there is nothing to judge then.
func effects(ctx context.Context, t tool.Tool, c *tool.Call) (list []tool.Effect, err error) {
	defer caught("its Effects", nil, &err)
	unknown := []tool.Effect{{Kind: tool.External}}
	if t.Calls {
		return nil, nil // it has none of its own
	}
	if t.Effects == nil {
		return unknown, nil
	}
	list, err = t.Effects(ctx, c)
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
func (t *trial) verdict(ctx context.Context, first tool.Verdict) (v tool.Verdict, rules []string, offers []event.Offer) {
	all, why := []tool.Verdict{}, []string{}
	for _, f := range t.findings {
		all = append(all, f.Verdict)
		if f.Verdict.Action == tool.Allow && f.Verdict.Reason != "" {
			why = append(why, f.Verdict.Reason)
		}
	}
	rules, offers = policy.Proposals(t.findings), policy.Offers(t.findings)
	leaving := policy.Leave(t.state.Untrusted, t.state.Private || t.judged.Private, t.call.Mode, t.judged.Effects)
	for _, v := range []tool.Verdict{first, leaving} {
		if v.Action == tool.Ask {
			all, rules, offers = append(all, v), nil, nil
		}
	}
	spent, on, granted, texts := 0.0, "", tool.Verdict{}, []string{}
	var consulted []llm.Consulted
	for _, j := range t.agent.judges() {
		so := policy.Combine(all).Action
		if so == tool.Deny {
			break // nothing can change that any more
		}
		v, err := t.ask(ctx, j, so)
		if err != nil {
			v = tool.Verdict{Action: tool.Deny, By: "a judge that failed", Reason: err.Error()}
		}
		if v.Text != "" {
			texts = append(texts, v.Text)
		}
		if v.Args != nil && sameJSON(v.Args, t.call.Args) {
			v.Args = nil
		}
		if v.Cost > 0 {
			on = v.Route
		}
		consulted = append(consulted, v.Consulted...)
		if spent += v.Cost; v.Args != nil && v.Action != tool.Deny {
			v.Cost, v.Route, v.Text, v.Consulted = spent, on, "", consulted
			return v, nil, nil
		}
		if v.Action == tool.Allow && v.Reason != "" {
			why = append(why, v.By+": "+v.Reason)
		}
		if v.Action == tool.Allow && v.Grant {
			granted = v
		}
		if v.Action == tool.Ask {
			rules, offers = nil, nil // no rule answers for this judge
		}
		all = append(all, v)
	}
	for i, f := range t.findings {
		if f.Mode && granted.Grant {
			all[i] = granted
		}
	}
	v = policy.Combine(all)
	v.Cost, v.Route, v.Text, v.Consulted = spent, on, strings.Join(texts, "\n\n"), consulted
	if v.Action == tool.Allow && len(why) > 0 {
		v.Reason = strings.Join(why, "; ") // what was thought about it is worth keeping
	}
	if v.Action == tool.Ask && t.agent.Unattended && !t.approved {
		v.Action = tool.Deny
		v.Reason = strings.TrimPrefix(v.Reason+"; this needs a person's approval, and nobody is here"+t.allowing(rules), "; ")
		if asks(t.judged.Effects) {
			v.Reason = "nobody is here to answer; decide yourself, and say what you decided"
		}
	}
	return v, rules, offers
}

// ask asks a judge about a call that so comes of so far. One that would be paid for what will not
// run abstains.
func (t *trial) ask(ctx context.Context, j tool.Judge, so tool.Action) (v tool.Verdict, err error) {
	defer caught("the judge", nil, &err)
	if g, ok := j.(interface{ Grants() bool }); ok && so == tool.Ask && t.agent.Unattended && !g.Grants() {
		return v, nil
	}
	return j.Judge(ctx, t.call, t.judged.Effects)
}

// allowing says how a person can allow beforehand what asks, and takes note of the flags.
func (t *trial) allowing(rules []string) string {
	folder, outside, fetch := "", "", ""
	runs := slices.ContainsFunc(t.judged.Effects, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	for _, f := range t.findings {
		if f.Verdict.Action == tool.Ask && f.Folder != "" {
			folder = ", or --add-dir " + text.ShellWord(f.Folder) + ", which opens the folder"
		}
		if f.Effect.Kind == tool.Network && f.Mode && runs && policy.IsRegistry(f.Effect.Text) {
			fetch = ", or --allow registries, which lets commands fetch from package registries"
		}
		if f.Effect.Kind == tool.Write && f.Mode && strings.HasSuffix(f.Verdict.Reason, policy.Outside) {
			outside = "; on a throwaway machine --preset container opens all"
		}
	}
	if len(rules) == 0 {
		return "; no rule can allow it, only a person or a mode that lets it run" + outside
	}
	for _, r := range rules {
		t.judged.Ways = append(t.judged.Ways, "--allow "+text.ShellQuote(r))
	}
	return ": " + strings.Join(t.judged.Ways, " ") + " (allow in the settings) would let it run" + folder + fetch + outside
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

// Judge says what the mode, the rules and the sensitive places say of a call of a step, in the form of
// a tool's, which reaches the hosts too. A tool that the session lacks could do anything. The steps
// speak for the person who has begun them: where only the mode asks, that is allowed. Judges are not
// asked.
func (st *Steps) Judge(ctx context.Context, call llm.Call, hosts []string) tool.Verdict {
	st.open.Lock()
	defer st.open.Unlock()
	t := trial{driver: st.driver, judged: event.Judged{Call: call.ID}, tool: tool.Tool{Name: call.Name}}
	args := call.Args
	if found, problem := t.fit(call); problem == "" {
		checked, err := fitted(found, args)
		if err != nil {
			return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
		}
		t.tool, args = found, checked
	}
	t.call = st.driver.call(call, args)
	for _, host := range hosts {
		t.also = append(t.also, tool.Effect{Kind: tool.Network, Text: host, Asked: true})
	}
	first, err := t.examine(ctx)
	if err != nil {
		return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
	}
	all := []tool.Verdict{{Action: tool.Allow}, first}
	if len(hosts) > 0 {
		all = append(all, policy.Leave(t.state.Untrusted, t.state.Private || t.judged.Private, t.call.Mode, t.judged.Effects))
	}
	for _, f := range t.findings {
		if !f.Mode || f.Verdict.Action != tool.Ask {
			all = append(all, f.Verdict)
		}
	}
	return policy.Combine(all)
}
