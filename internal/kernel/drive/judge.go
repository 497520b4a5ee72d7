package drive

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
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// judging decides whether calls may happen. It is the only place that does:
//
//	a call of the model         judge, from the loop
//	a nested call               calls.judgeNested, from nested.go
//	a waiting call, once more   reconsider, after a change of mode; calls.reachCall, for nested calls
//	a call of a step            Driver.JudgeStep
//
// Each runs a [trial], unless a limit has already denied the call. The verdict is stored before the call runs.
type judging struct {
	cfg     *Config
	journal *journal
	tools   *toolbox
	seen    *seenFiles
}

// who returns the agent of the session.
func (j *judging) who() tool.Actor {
	return Actor(j.journal.state.Session, cmp.Or(j.cfg.Kind, j.journal.state.Agent))
}

// Actor returns the agent of a session, given the session's id and the kind of agent. Without a parent it has no kind:
// if a person copies the session of a subagent, the copy is a lead.
func Actor(session, kind string) tool.Actor {
	who := tool.Actor{Kind: kind, Parent: kin.Parent(session), Lead: kin.Lead(session)}
	if who.Parent == "" {
		who.Kind = ""
	}
	return who
}

// rules returns the agent's policy together with the rules allowed for this session.
func (j *judging) rules() policy.Policy {
	p := j.cfg.Policy
	for _, text := range j.journal.state.Granted {
		// An invalid rule comes from another version and grants nothing.
		if r, err := policy.ParseRule(tool.Allow, text, "session"); err == nil {
			p.Rules = append(p.Rules[:len(p.Rules):len(p.Rules)], r)
		}
	}
	return p
}

// call returns a call in the form that judges see.
func (j *judging) call(c llm.Call, args json.RawMessage) *tool.Call {
	state, env := j.journal.state, j.cfg.Env
	if state.Mode == tool.ModeYolo {
		env = env.Unwalled()
	}
	env.Clean, env.History = j.cfg.Secrets.Reader, history{j.journal.log}
	key := ""
	if made, ok := state.Call(c.ID); ok {
		key = hold.Key(state.Session, made.Seq, c.ID)
	}
	return &tool.Call{
		ID: c.ID, Key: key, Name: c.Name, Args: args, Session: state.Session, Who: j.who(),
		Env: env, Cwd: state.Cwd, Mode: state.Mode, Task: state.Asked(), FromLead: state.TaskBy == event.OriginLead, Seen: j.seen.stored,
		Untrusted: state.Untrusted, Todo: state.Todo,
		Progress: func(string) {},
	}
}

// judge judges the calls of a reply. All verdicts are stored before any of the calls runs.
func (j *judging) judge(ctx context.Context, calls []loop.Call) error {
	var out []event.Body
	watched, done := j.journal.interruptible(ctx)
	defer done()
	settled := true // no earlier call of the reply may change the workspace
	for _, c := range calls {
		t := trial{judging: j, judged: event.Judged{Call: c.ID}, settled: settled, edited: c.Edited}
		bodies := t.run(watched, c.Call)
		out = append(out, bodies...)
		_, valid := bodies[0].(event.Judged)
		settled = settled && (!valid || t.judged.Action == tool.Deny || onlyReads(t.judged.Effects))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return j.journal.record(ctx, out...)
}

// trial is the judging of one call.
type trial struct {
	*judging
	tool         tool.Tool
	call         *tool.Call // in the form that judges see
	judged       event.Judged
	findings     []policy.Finding // of the policy, with secrets removed
	pieces       secret.Pieces    // parts of the secrets that the call receives
	unknown      bool             // a command contains a placeholder of an unknown secret
	extraEffects []tool.Effect    // effects that the tool does not state
	approved     bool             // a person already approved the call
	edited       bool             // a person changed the arguments
	settled      bool             // no earlier call of the reply may change the workspace before this one runs
}

// onlyReads reports whether all effects are reads, or commands proven to only read.
func onlyReads(effects []tool.Effect) bool {
	return !slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind != tool.Read && (e.Kind != tool.Execute || e.Class != tool.ProvenRead)
	})
}

// maxRewrites is how often judges may rewrite the arguments of one call.
const maxRewrites = 3

// run finds the tool, checks the arguments, determines the effects and asks the judges. If a judge rewrites the
// arguments, it starts over. It returns the events to store: the verdict, with a Waiting event if a person must decide;
// or the end of a call that can't run.
func (t *trial) run(ctx context.Context, c llm.Call) []event.Body {
	written, as, problem := c.Args, "", ""
	named := c.Name
	if _, known := t.tools.byName[named]; !known {
		if _, known = t.tools.byName[withoutNamespace(named)]; known {
			c.Name = withoutNamespace(named)
		}
	}
	if t.tool, problem = t.findTool(c); problem == "" && t.tool.Resolve != nil {
		problem = t.resolve(ctx, &c)
	}
	if c.Name != named {
		as, t.judged.Tool = named, c.Name
	}
	if problem != "" && t.tool.Name == "" {
		return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Class: fault.ErrorUnknown, Parts: llm.Say(problem)}}
	}
	if problem != "" {
		return invalidCall(c, problem)
	}
	t.judged.Caller = t.tool.Calls
	args := c.Args
	for range maxRewrites {
		checked, err := checkArgs(t.tool, args)
		if err != nil {
			return invalidCall(c, err.Error())
		}
		t.call = t.judging.call(c, checked)
		t.call.CalledAs, t.call.Parent = as, t.judged.Parent
		t.judged.Ways = nil
		first, err := t.examine(ctx)
		if err != nil {
			return invalidCall(c, t.hide(c.Name+" was not run, "+err.Error()))
		}
		v, rules, offers := t.verdict(ctx, first)
		t.judged.Action, t.judged.By, t.judged.Reason, t.judged.Text = v.Action, v.By, v.Reason, v.Text
		if t.unknown && v.Action != tool.Deny {
			t.judged.Text = strings.TrimPrefix(v.Text+"\n\n"+unknownSecret, "\n\n")
		}
		t.judged.Cost += v.Cost
		t.judged.Consulted = append(t.judged.Consulted, v.Consulted...)
		t.judged.Route = cmp.Or(v.Route, t.judged.Route)
		if t.judged.Args = nil; t.edited || !SameJSON(checked, written) {
			t.judged.Args = checked
		}
		if t.edited {
			t.judged.Text = strings.TrimPrefix(t.judged.Text+"\n\n"+editedCall+t.hide(string(checked)), "\n\n")
		}
		if v.Args == nil {
			return t.withPreview(ctx, event.Waiting{Call: t.call.ID, Rules: rules, Offers: offers})
		}
		args = v.Args
	}
	t.judged.Action, t.judged.Reason = tool.Deny, fmt.Sprintf("judges rewrote its arguments more than %d times", maxRewrites-1)
	return []event.Body{t.judged}
}

// editedCall introduces the arguments for the model if a person changed them.
const editedCall = "[inspan says; it is not the person:]\nThe user changed the arguments of your call before it ran. They are now: "

// unknownSecret tells the model that the command gets a placeholder instead of a secret.
const unknownSecret = "[inspan says; it is not the person:]\nThis command contains a placeholder for a secret that is not known here, " +
	"so the command gets the placeholder itself. A shell reads its brackets as a pattern, so the result may be wrong."

// examine determines the effects of the call and the policy's findings. It returns the first of the verdicts to combine,
// which asks if the call would give away a secret. The error is [tool.ErrInvalid] or a panic of the tool.
func (t *trial) examine(ctx context.Context) (first tool.Verdict, err error) {
	vault := t.cfg.Secrets.Vault
	call := t.revealed()
	hasSecret := !bytes.Equal(call.Args, t.call.Args)
	t.pieces = vault.Pieces(string(t.call.Args))
	list, err := effects(ctx, t.tool, call)
	if err != nil {
		return first, err
	}
	list = append(list, t.extraEffects...)
	runs := slices.ContainsFunc(list, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	t.unknown = runs && secret.Holds(string(call.Args))
	findings := t.rules().Findings(t.call, t.cfg.Secrets.ForPolicy(list))
	if secret.Holds(string(t.call.Args)) {
		whole := policy.Judged(redact.Findings(findings, vault.Redact))
		t.cfg.Secrets.Keep(call.ID, redact.Resolved{Args: call.Args, Effects: whole, Hide: vault.Redact})
	}
	t.judged.Private = t.rules().Private(policy.Judged(findings)) || hasSecret
	t.findings = redact.Findings(findings, t.hide)
	t.judged.Effects = policy.Judged(t.findings)
	return policy.AskBeforeSecret(hasSecret, vault.Named(string(t.call.Args)), t.call.Mode, t.call.Env.Walls, t.judged.Effects), nil
}

// revealed returns the call as it will run, with secrets instead of their placeholders. Judges see the placeholders.
func (t *trial) revealed() *tool.Call {
	c := *t.call
	c.Args, c.Cwd, c.Seen = t.cfg.Secrets.Reveal(t.call.Args), t.cwd(), t.seen.snapshot()
	return &c
}

// cwd returns the current directory of calls.
func (j *judging) cwd() string {
	return j.cfg.Secrets.Folder(j.journal.state.Cwd, j.journal.state.Root)
}

// hide removes secrets from a text for people and the log. It also removes parts of the secrets that the call receives,
// because the tool may have split them.
func (t *trial) hide(text string) string { return t.pieces.Hide(t.cfg.Secrets.Vault.Redact(text)) }

// SameJSON reports whether two JSON texts encode the same value.
func SameJSON(a, b json.RawMessage) bool {
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

// withPreview returns the verdict and, if a person must decide, the Waiting event with a preview.
func (t *trial) withPreview(ctx context.Context, waiting event.Waiting) []event.Body {
	if t.judged.Action != tool.Ask {
		return []event.Body{t.judged}
	}
	if t.cfg.AskTimeout > 0 {
		waiting.Until = time.Now().Add(t.cfg.AskTimeout).Round(time.Second)
	}
	if t.tool.Preview != nil {
		call := t.revealed()
		waiting.Shown = t.currentFiles(ctx, call.Env.Files) // before the preview, so that a change in between is noticed
		shown, err := t.preview(ctx, call)
		if errors.Is(err, tool.ErrInvalid) && t.settled && t.mayRead() {
			return invalidCall(llm.Call{ID: t.call.ID}, t.hide(err.Error()))
		}
		waiting.Preview = shown
	}
	return []event.Body{t.judged, waiting}
}

// mayRead reports whether the agent may read, without asking, all files that the call would change. Only then may it
// learn why a change is impossible, because that reason may quote the files.
func (t *trial) mayRead() bool {
	var reads []tool.Effect
	for _, e := range t.judged.Effects {
		if e.Kind == tool.Write {
			reads = append(reads, tool.Effect{Kind: tool.Read, Path: e.Path})
		}
	}
	for _, f := range t.rules().Findings(t.call, reads) {
		if f.Verdict.Action != tool.Allow {
			return false
		}
	}
	return true
}

// maxCompared is the size of the largest file that is compared with the preview. Tools don't change larger files.
const maxCompared = 64 << 20

// currentFiles returns the files that the call would change, with their current digests. It omits files that can't be
// read, which a preview can't show either.
func (t *trial) currentFiles(ctx context.Context, files tool.Files) (out []tool.File) {
	for i, e := range redact.Effects(t.judged.Effects, t.cfg.Secrets.Vault.Resolve) {
		if files == nil || e.Kind != tool.Write {
			continue
		}
		if digest, err := digestOf(ctx, files, e.Path); err == nil {
			out = append(out, tool.File{Path: t.judged.Effects[i].Path, Digest: digest})
		}
	}
	return out
}

// digestOf returns the digest of a file, or "" if there is none.
func digestOf(ctx context.Context, files tool.Files, path string) (string, error) {
	f, err := files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxCompared {
		return "", errors.Join(err, errors.New("not a regular file, or too large to compare"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCompared))
	return tool.Digest(data), err
}

// preview returns the tool's preview for a person. If it is empty, front ends show the arguments. If the tool panics,
// the preview says so.
func (t *trial) preview(ctx context.Context, call *tool.Call) (string, error) {
	text, err := func() (text string, err error) {
		defer fault.Recover("the preview", nil, &err)
		return t.tool.Preview(ctx, call)
	}()
	if c, crashed := errors.AsType[*fault.Panic](err); crashed {
		text = "(no preview of this call: " + c.Brief() + ")"
	}
	return t.hide(text), err
}

// checkArgs returns the arguments as the tool accepts them. An error is for the model.
func checkArgs(t tool.Tool, args json.RawMessage) (out json.RawMessage, err error) {
	defer fault.Recover(t.Name+" was not run, the check of its arguments", nil, &err)
	return t.Check(args)
}

// withoutNamespace returns the name of a tool without a namespace, which some models add, as in functions.bash.
func withoutNamespace(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

// maxListedTools bounds the list of tools for a model that calls an unknown one.
const maxListedTools = 60

// findTool returns the tool of a call, or the reason for the model why the call can't be judged.
func (t *trial) findTool(c llm.Call) (found tool.Tool, problem string) {
	found, ok := t.tools.byName[c.Name]
	if !ok {
		var names []string
		for _, spec := range t.tools.specs {
			names = append(names, spec.Name)
		}
		more := ""
		if extra := len(names) - maxListedTools; extra > 0 {
			names, more = names[:maxListedTools], fmt.Sprintf(" and %d more", extra)
		}
		if slices.Contains(names, "tool_search") {
			more += "; tool_search finds the others"
		}
		return found, fmt.Sprintf("There is no tool %q. The tools are: %s%s.", c.Name, strings.Join(names, ", "), more)
	}
	if c.Invalid != "" {
		return found, fmt.Sprintf("The arguments are not a JSON object: %.300s", c.Invalid)
	}
	return found, ""
}

// maxResolves is how many times a call may be resolved into another.
const maxResolves = 3

// resolve replaces the call of a tool that represents others, such as call_tool, with the call that it represents. The
// problem, if any, is for the model.
func (t *trial) resolve(ctx context.Context, c *llm.Call) (problem string) {
	for range maxResolves {
		checked, err := checkArgs(t.tool, c.Args)
		if err != nil {
			return err.Error()
		}
		name, args, err := t.resolveOnce(ctx, t.judging.call(*c, checked))
		switch {
		case err != nil:
			return err.Error()
		case name == "":
			return ""
		}
		c.Name, c.Args = name, args
		if t.tool, problem = t.findTool(*c); problem != "" || t.tool.Resolve == nil {
			return problem
		}
	}
	return c.Name + " can't be called through another tool like this"
}

// resolveOnce returns the call that a call represents. An error is for the model.
func (t *trial) resolveOnce(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	defer fault.Recover(c.Name+" was not run, its Resolve", nil, &err)
	return t.tool.Resolve(ctx, c)
}

// invalidCall returns the end of a call that can't be judged.
func invalidCall(c llm.Call, why string) []event.Body {
	return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Class: fault.ErrorArguments, Parts: llm.Say(why)}}
}

// effects asks the tool for the effects of a call. If the tool can't tell, the call counts as external. The error is
// [tool.ErrInvalid] or a panic, and the call can't be judged.
func effects(ctx context.Context, t tool.Tool, c *tool.Call) (list []tool.Effect, err error) {
	defer fault.Recover("its Effects", nil, &err)
	unknown := []tool.Effect{{Kind: tool.External}}
	if t.Calls {
		return nil, nil // only its nested calls have effects
	}
	if t.Effects == nil {
		return unknown, nil
	}
	list, err = t.Effects(ctx, c)
	switch {
	case errors.Is(err, tool.ErrInvalid):
		return nil, err
	case err != nil:
		return unknown, nil //nolint:nilerr // the error means that the effects are unknown
	}
	return list, nil
}

// verdict combines the first verdict, the findings of the policy and the judges. If the call must be asked about, it
// also returns rules that would allow it, and offers. A judge that fails denies.
func (t *trial) verdict(ctx context.Context, first tool.Verdict) (v tool.Verdict, rules []string, offers []event.Offer) {
	all, reasons := []tool.Verdict{}, []string{}
	for _, f := range t.findings {
		all = append(all, f.Verdict)
		if f.Verdict.Action == tool.Allow && f.Verdict.Reason != "" {
			reasons = append(reasons, f.Verdict.Reason)
		}
	}
	rules, offers = policy.Proposals(t.findings), policy.Offers(t.findings)
	for _, v := range []tool.Verdict{first, t.leakVerdict()} {
		if v.Action == tool.Ask {
			all, rules, offers = append(all, v), nil, nil
		}
	}
	cost, route, granted, texts := 0.0, "", tool.Verdict{}, []string{}
	var consulted []llm.Consulted
	for _, j := range t.cfg.judges() {
		soFar := policy.Combine(all).Action
		if soFar == tool.Deny {
			break // no judge can change that
		}
		v, err := t.askJudge(ctx, j, soFar)
		if err != nil {
			v = tool.Verdict{Action: tool.Deny, By: "a judge that failed", Reason: err.Error()}
		}
		if v.Text != "" {
			texts = append(texts, v.Text)
		}
		if v.Args != nil && SameJSON(v.Args, t.call.Args) {
			v.Args = nil
		}
		if v.Cost > 0 {
			route = v.Route
		}
		consulted = append(consulted, v.Consulted...)
		if cost += v.Cost; v.Args != nil && v.Action != tool.Deny {
			v.Cost, v.Route, v.Text, v.Consulted = cost, route, "", consulted
			return v, nil, nil
		}
		if v.Action == tool.Allow && v.Reason != "" {
			reasons = append(reasons, v.By+": "+v.Reason)
		}
		if v.Action == tool.Allow && v.Grant {
			granted = v
		}
		if v.Action == tool.Ask {
			rules, offers = nil, nil // no rule overrides a judge
		}
		all = append(all, v)
	}
	for i, f := range t.findings {
		if f.Mode && granted.Grant {
			all[i] = granted
		}
	}
	v = policy.Combine(all)
	v.Cost, v.Route, v.Text, v.Consulted = cost, route, strings.Join(texts, "\n\n"), consulted
	if v.Action == tool.Allow && len(reasons) > 0 {
		v.Reason = strings.Join(reasons, "; ")
	}
	if v.Action == tool.Ask && t.cfg.Unattended && !t.approved {
		v.Action = tool.Deny
		v.Reason = strings.TrimPrefix(v.Reason+"; this needs a person's approval, and nobody is here"+t.waysToAllow(rules), "; ")
		if AsksPerson(t.judged.Effects) {
			v.Reason = "nobody is here to answer; decide yourself, and say what you decided"
		}
	}
	return v, rules, offers
}

// leakVerdict asks if untrusted text may make the call send out private data.
func (t *trial) leakVerdict() tool.Verdict {
	state := t.journal.state
	return policy.AskBeforeLeak(state.Untrusted, state.Private || t.judged.Private, t.call.Mode, t.judged.Effects)
}

// askJudge asks one judge, given the verdict so far. It skips a judge that can't allow anything if the call will be
// denied anyway because it is unattended.
func (t *trial) askJudge(ctx context.Context, j tool.Judge, soFar tool.Action) (v tool.Verdict, err error) {
	defer fault.Recover("the judge", nil, &err)
	if g, ok := j.(interface{ Grants() bool }); ok && soFar == tool.Ask && t.cfg.Unattended && !g.Grants() {
		return v, nil
	}
	return j.Judge(ctx, t.call, t.judged.Effects)
}

// waysToAllow says how a person can allow the call in advance, and records the flags in the verdict.
func (t *trial) waysToAllow(rules []string) string {
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

// AsksPerson reports whether a call puts a question to the person.
func AsksPerson(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Question })
}

// JudgeStep returns the verdict of mode, rules and sensitive places on a call of a step. The call may also reach hosts.
// A tool that the session lacks counts as external. Steps act for the person who started them, so calls that only the
// mode would ask about are allowed. Judges are not asked.
func (d *Driver) JudgeStep(ctx context.Context, call llm.Call, hosts []string) tool.Verdict {
	t := trial{judging: d.judging, judged: event.Judged{Call: call.ID}, tool: tool.Tool{Name: call.Name}}
	args := call.Args
	if found, problem := t.findTool(call); problem == "" {
		checked, err := checkArgs(found, args)
		if err != nil {
			return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
		}
		t.tool, args = found, checked
	}
	t.call = t.judging.call(call, args)
	for _, host := range hosts {
		t.extraEffects = append(t.extraEffects, tool.Effect{Kind: tool.Network, Text: host, FromArgument: true})
	}
	first, err := t.examine(ctx)
	if err != nil {
		return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
	}
	all := []tool.Verdict{{Action: tool.Allow}, first}
	if len(hosts) > 0 {
		all = append(all, t.leakVerdict())
	}
	for _, f := range t.findings {
		if !f.Mode || f.Verdict.Action != tool.Ask {
			all = append(all, f.Verdict)
		}
	}
	return policy.Combine(all)
}

// reconsider allows waiting calls that the new mode allows without asking. Other calls keep waiting. So do calls with
// different effects in the new mode, because the person was asked about the old ones.
func (j *judging) reconsider(ctx context.Context) error {
	watched, done := j.journal.interruptible(ctx)
	defer done()
	var out []event.Body
	for _, c := range j.journal.state.Waiting() {
		if AsksPerson(c.Effects) {
			continue
		}
		t, first, err := j.rejudge(watched, c)
		if err != nil {
			continue // it keeps waiting
		}
		v, _, _ := t.verdict(watched, first)
		if v.Cost > 0 {
			t.judged.Action, t.judged.By, t.judged.Reason = v.Action, v.By, v.Reason
			t.judged.Cost, t.judged.Route, t.judged.Consulted = v.Cost, v.Route, v.Consulted
			out = append(out, t.judged)
		}
		if v.Action == tool.Allow && v.Args == nil && !t.unknown && t.hasEffects(c.Effects) {
			out = append(out, event.Decided{Call: c.ID, Question: c.WaitingSeq, Allow: true, By: "the user", Rule: v.By})
		}
	}
	if err := ctx.Err(); err != nil || len(out) == 0 {
		return err
	}
	return j.journal.record(ctx, out...)
}

// rejudge examines a call once more and returns its trial, with the first verdict of [trial.examine].
func (j *judging) rejudge(ctx context.Context, c loop.Call) (t *trial, first tool.Verdict, err error) {
	name := cmp.Or(c.Tool, c.Name)
	found, ok := j.tools.byName[name]
	if !ok {
		return nil, first, fmt.Errorf("there is no tool %q", name)
	}
	t = &trial{judging: j, tool: found, judged: event.Judged{Call: c.ID, Caller: found.Calls}}
	t.call = j.call(llm.Call{ID: c.ID, Name: name, Args: c.Args}, c.Args)
	if t.call.Parent = c.Parent; name != c.Name {
		t.call.CalledAs = c.Name
	}
	first, err = t.examine(ctx)
	return t, first, err
}

// hasEffects reports whether the call still has the effects that were judged.
func (t *trial) hasEffects(before []tool.Effect) bool {
	now := t.cfg.Secrets.Body(event.Judged{Effects: t.judged.Effects}).(event.Judged).Effects
	return sameEffects(before, now)
}

// movedReason tells the model that a call is not run because it was judged for another directory, and has other effects
// in the current one. If empty, the call may run. Other changes need no check, because a running call is confined to
// its verdict.
func (j *judging) movedReason(ctx context.Context, c loop.Call) string {
	cwd := j.journal.state.Cwd
	if c.Caller || c.Cwd == "" || c.Cwd == cwd {
		return ""
	}
	if t, _, err := j.rejudge(ctx, c); err == nil && t.hasEffects(c.Effects) {
		return ""
	}
	return fmt.Sprintf("Not run: it was judged for the directory %s. Another call has since changed the directory to %s, "+
		"where this call has other effects. If you want those, make the call again.", c.Cwd, cwd)
}

// sameEffects reports whether effects are equal in their stored form.
func sameEffects(a, b []tool.Effect) bool {
	rawA, errA := json.Marshal(a)
	rawB, errB := json.Marshal(b)
	return errA == nil && errB == nil && len(a) == len(b) && (len(a) == 0 || bytes.Equal(rawA, rawB))
}
