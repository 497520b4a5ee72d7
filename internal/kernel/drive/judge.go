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
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// judging decides whether calls may happen. It is the only place that does:
//
//	a call of the model         judge, from the loop
//	a call that a call makes    calls.judgeNested, from nested.go
//	a waiting call, once more   reconsider, in another mode; takeUp, for nested calls
//	a call of a step            Driver.JudgeStep
//
// Each runs a [trial], unless a limit has already denied the call. The verdict is stored before the call runs.
type judging struct {
	cfg     *Config
	journal *journal
	tools   *toolbox
	seen    *seenFiles
}

// who returns the agent of the session. A copy of another agent's session keeps its kind.
func (j *judging) who() tool.Actor {
	return Actor(j.journal.state.Session, cmp.Or(j.cfg.Kind, j.journal.state.Agent))
}

// Actor returns the agent of a session from the session's id and the kind of agent. If a person copies the
// session of an agent, the copy is a lead.
func Actor(session, kind string) tool.Actor {
	who := tool.Actor{Kind: kind, Parent: store.Parent(session), Lead: store.Lead(session)}
	if who.Parent == "" {
		who.Kind = ""
	}
	return who
}

// rules returns the agent's policy together with the rules allowed for this session.
func (j *judging) rules() policy.Policy {
	p := j.cfg.Policy
	for _, text := range j.journal.state.Granted {
		// Unreadable rules come from another version and grant nothing.
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
		key = tool.Key(state.Session, made.Seq, c.ID)
	}
	return &tool.Call{
		ID: c.ID, Key: key, Name: c.Name, Args: args, Session: state.Session, Who: j.who(),
		Env: env, Cwd: state.Cwd, Mode: state.Mode, Task: state.Asked(), Led: state.TaskBy == event.OriginLead, Seen: j.seen.stored,
		Untrusted: state.Untrusted, Todo: state.Todo,
		Progress: func(string) {},
	}
}

// judge judges the calls of a reply. All verdicts are stored before any of the calls runs.
func (j *judging) judge(ctx context.Context, calls []loop.Call) error {
	var out []event.Body
	watched, done := j.journal.interruptible(ctx)
	defer done()
	settled := true // no call before may change what the next one finds
	for _, c := range calls {
		t := trial{judging: j, judged: event.Judged{Call: c.ID}, settled: settled, edited: c.Edited}
		bodies := t.run(watched, c.Call)
		out = append(out, bodies...)
		_, fit := bodies[0].(event.Judged)
		settled = settled && (!fit || t.judged.Action == tool.Deny || onlyReads(t.judged.Effects))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return j.journal.record(ctx, out...)
}

// trial is the judging of one call.
type trial struct {
	*judging
	tool     tool.Tool
	call     *tool.Call // in the form that judges see
	judged   event.Judged
	findings []policy.Finding // findings of the policy, without secrets
	pieces   secret.Pieces    // parts of the secrets that the call receives
	unknown  bool             // a command contains a placeholder that stands for nothing
	also     []tool.Effect    // effects beyond those that the tool states
	approved bool             // a person was there to approve
	edited   bool             // the arguments are a person's
	settled  bool             // nothing that is still to run may change what the call would do
}

// onlyReads reports whether all effects are reads, or commands proven to only read.
func onlyReads(effects []tool.Effect) bool {
	return !slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind != tool.Read && (e.Kind != tool.Execute || e.Class != tool.ProvenRead)
	})
}

// maxRewrites is how often judges may rewrite the arguments of one call.
const maxRewrites = 3

// run finds the tool, checks the arguments, works out the effects and asks the judges. If a judge rewrites the
// arguments, it starts over. It returns the events to store: the verdict, and the question if a person must
// decide, or the end of a call that can't run.
func (t *trial) run(ctx context.Context, c llm.Call) []event.Body {
	written, as, problem := c.Args, "", ""
	named := c.Name
	if _, known := t.tools.byName[named]; !known {
		if _, known = t.tools.byName[bare(named)]; known {
			c.Name = bare(named)
		}
	}
	if t.tool, problem = t.find(c); problem == "" && t.tool.Resolve != nil {
		problem = t.standFor(ctx, &c)
	}
	if c.Name != named {
		as, t.judged.Tool = named, c.Name
	}
	if problem != "" && t.tool.Name == "" {
		return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Class: event.ErrorUnknown, Parts: llm.Say(problem)}}
	}
	if problem != "" {
		return unfit(c, problem)
	}
	t.judged.Caller = t.tool.Calls
	args := c.Args
	for range maxRewrites {
		checked, err := checkArgs(t.tool, args)
		if err != nil {
			return unfit(c, err.Error())
		}
		t.call = t.judging.call(c, checked)
		t.call.As, t.call.Parent = as, t.judged.Parent
		t.judged.Ways = nil
		first, err := t.examine(ctx)
		if err != nil {
			return unfit(c, t.hide(c.Name+" was not run, "+err.Error()))
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
	t.judged.Action, t.judged.Reason = tool.Deny, "its arguments were rewritten again and again"
	return []event.Body{t.judged}
}

// editedCall tells the model, before the arguments, that they are not its own.
const editedCall = "[inspan says; it is not the person:]\nThe user changed the arguments of your call before it ran. They are now: "

// unknownSecret tells the model that what it sees may be wrong.
const unknownSecret = "[inspan says; it is not the person:]\nA placeholder in this command stands for no secret that is known here, " +
	"so the command gets it as it is written. A shell reads its brackets as a pattern: what the command brings may be wrong."

// examine works out what the call would do, the policy's findings, and a first verdict in case a secret leaves.
// The error is [tool.ErrInvalid], or a panic of the tool.
func (t *trial) examine(ctx context.Context) (first tool.Verdict, err error) {
	vault := t.cfg.Secrets.Vault
	call := t.revealed()
	given := !bytes.Equal(call.Args, t.call.Args)
	t.pieces = vault.Pieces(string(t.call.Args))
	does, err := effects(ctx, t.tool, call)
	if err != nil {
		return first, err
	}
	does = append(does, t.also...)
	runs := slices.ContainsFunc(does, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	t.unknown = runs && secret.Holds(string(call.Args))
	findings := t.rules().Findings(t.call, t.cfg.Secrets.ForPolicy(does))
	if secret.Holds(string(t.call.Args)) {
		whole := policy.Judged(redact.Findings(findings, vault.Redact))
		t.cfg.Secrets.Keep(call.ID, redact.Resolved{Args: call.Args, Effects: whole, Hide: vault.Redact})
	}
	t.judged.Private = t.rules().Private(policy.Judged(findings)) || given
	t.findings = redact.Findings(findings, t.hide)
	t.judged.Effects = policy.Judged(t.findings)
	return policy.AskBeforeSecret(given, vault.Named(string(t.call.Args)), t.call.Mode, t.call.Env.Walls, t.judged.Effects), nil
}

// revealed returns the call as it will run, with the secrets in place of placeholders. Judges see it without
// them.
func (t *trial) revealed() *tool.Call {
	c := *t.call
	c.Args, c.Cwd, c.Seen = t.cfg.Secrets.Reveal(t.call.Args), t.cwd(), t.seen.now()
	return &c
}

// cwd returns the folder that calls start from.
func (j *judging) cwd() string {
	return j.cfg.Secrets.Folder(j.journal.state.Cwd, j.journal.state.Root)
}

// hide removes secrets from a text for people and the log, including parts of secrets that the call receives,
// since the tool may have taken them apart.
func (t *trial) hide(text string) string { return t.pieces.Hide(t.cfg.Secrets.Vault.Redact(text)) }

// SameJSON reports whether two texts encode the same value, so that arguments that only differ in order are not
// stored twice.
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

// withPreview returns the verdict and, if a person must decide, what the person needs to see.
func (t *trial) withPreview(ctx context.Context, waiting event.Waiting) []event.Body {
	if t.judged.Action != tool.Ask {
		return []event.Body{t.judged}
	}
	if t.cfg.AskTimeout > 0 {
		waiting.Until = time.Now().Add(t.cfg.AskTimeout).Round(time.Second)
	}
	if t.tool.Preview != nil {
		call := t.revealed()
		waiting.Shown = t.current(ctx, call.Env.Files) // so that a change in between counts as one
		shown, err := t.preview(ctx, call)
		if errors.Is(err, tool.ErrInvalid) && t.settled && t.mayRead() {
			return unfit(llm.Call{ID: t.call.ID}, t.hide(err.Error()))
		}
		waiting.Preview = shown
	}
	return []event.Body{t.judged, waiting}
}

// mayRead reports whether the agent may read, without asking, all files that the call would change: why a change
// can't be made may repeat what is in them.
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

// maxCompared is the size of the largest file that is compared with what was shown. Tools don't change larger
// files.
const maxCompared = 64 << 20

// current returns the files that the call would change, in their present state. Files that can't be read are
// left out; no preview shows them either.
func (t *trial) current(ctx context.Context, files tool.Files) (out []tool.File) {
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
		return "", errors.Join(err, errors.New("it is no file that can be compared"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCompared))
	return tool.Digest(data), err
}

// preview returns what the tool shows a person. If it fails, the person sees the arguments; if it panics, the
// person is told that something may be missing.
func (t *trial) preview(ctx context.Context, call *tool.Call) (string, error) {
	text, err := func() (text string, err error) {
		defer fault.Recover("the preview", nil, &err)
		return t.tool.Preview(ctx, call)
	}()
	if c, crashed := errors.AsType[*fault.Panic](err); crashed {
		text = "(there is no preview of what this call would do: " + c.Brief() + ")"
	}
	return t.hide(text), err
}

// checkArgs returns arguments that fit a tool. An error is for the model.
func checkArgs(t tool.Tool, args json.RawMessage) (out json.RawMessage, err error) {
	defer fault.Recover(t.Name+" was not run, the check of its arguments", nil, &err)
	return t.Check(args)
}

// bare returns the name of a tool without the namespace that some models write before it, as in functions.bash.
func bare(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

// maxNamed is how many tools are named to a model that calls one that does not exist.
const maxNamed = 60

// find returns the tool of a call, or why the call can't be judged.
func (t *trial) find(c llm.Call) (found tool.Tool, problem string) {
	found, ok := t.tools.byName[c.Name]
	if !ok {
		var names []string
		for _, spec := range t.tools.specs {
			names = append(names, spec.Name)
		}
		more := ""
		if left := len(names) - maxNamed; left > 0 {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", left)
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

// standFor replaces a call of a tool that stands for others by the call that it means, and finds that tool, or
// returns why there is none.
func (t *trial) standFor(ctx context.Context, c *llm.Call) (problem string) {
	for range maxResolves {
		checked, err := checkArgs(t.tool, c.Args)
		if err != nil {
			return err.Error()
		}
		name, args, err := t.meant(ctx, t.judging.call(*c, checked))
		switch {
		case err != nil:
			return err.Error()
		case name == "":
			return ""
		}
		c.Name, c.Args = name, args
		if t.tool, problem = t.find(*c); problem != "" || t.tool.Resolve == nil {
			return problem
		}
	}
	return c.Name + " can't be called in this way"
}

// meant returns the call that a call stands for. An error is for the model.
func (t *trial) meant(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	defer fault.Recover(c.Name+" was not run, its Resolve", nil, &err)
	return t.tool.Resolve(ctx, c)
}

// unfit returns the end of a call that is not judged.
func unfit(c llm.Call, why string) []event.Body {
	return []event.Body{event.Ended{Call: c.ID, Outcome: event.OutcomeInvalid, Class: event.ErrorArguments, Parts: llm.Say(why)}}
}

// effects asks the tool what the call would do. If the tool can't say, the call could do anything. The error is
// [tool.ErrInvalid] or a panic; then there is nothing to judge.
func effects(ctx context.Context, t tool.Tool, c *tool.Call) (list []tool.Effect, err error) {
	defer fault.Recover("its Effects", nil, &err)
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
		return unknown, nil //nolint:nilerr // the error means that
	}
	return list, nil
}

// verdict combines the findings of the policy, the judges and the first verdict. It also returns the rules that
// would allow a call that asks. A judge that fails denies.
func (t *trial) verdict(ctx context.Context, first tool.Verdict) (v tool.Verdict, rules []string, offers []event.Offer) {
	all, why := []tool.Verdict{}, []string{}
	for _, f := range t.findings {
		all = append(all, f.Verdict)
		if f.Verdict.Action == tool.Allow && f.Verdict.Reason != "" {
			why = append(why, f.Verdict.Reason)
		}
	}
	rules, offers = policy.Proposals(t.findings), policy.Offers(t.findings)
	for _, v := range []tool.Verdict{first, t.leaving()} {
		if v.Action == tool.Ask {
			all, rules, offers = append(all, v), nil, nil
		}
	}
	spent, on, granted, texts := 0.0, "", tool.Verdict{}, []string{}
	var consulted []llm.Consulted
	for _, j := range t.cfg.judges() {
		so := policy.Combine(all).Action
		if so == tool.Deny {
			break // nothing can change the verdict any more
		}
		v, err := t.ask(ctx, j, so)
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
			rules, offers = nil, nil // no rule overrides this judge
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
		v.Reason = strings.Join(why, "; ") // the reasons are worth keeping
	}
	if v.Action == tool.Ask && t.cfg.Unattended && !t.approved {
		v.Action = tool.Deny
		v.Reason = strings.TrimPrefix(v.Reason+"; this needs a person's approval, and nobody is here"+t.allowing(rules), "; ")
		if AsksPerson(t.judged.Effects) {
			v.Reason = "nobody is here to answer; decide yourself, and say what you decided"
		}
	}
	return v, rules, offers
}

// leaving asks if private data could leave and text by strangers may have requested it.
func (t *trial) leaving() tool.Verdict {
	state := t.journal.state
	return policy.AskBeforeLeak(state.Untrusted, state.Private || t.judged.Private, t.call.Mode, t.judged.Effects)
}

// ask asks one judge, given the verdict so far. A judge that can't allow anything is skipped if the call will be
// denied anyway.
func (t *trial) ask(ctx context.Context, j tool.Judge, so tool.Action) (v tool.Verdict, err error) {
	defer fault.Recover("the judge", nil, &err)
	if g, ok := j.(interface{ Grants() bool }); ok && so == tool.Ask && t.cfg.Unattended && !g.Grants() {
		return v, nil
	}
	return j.Judge(ctx, t.call, t.judged.Effects)
}

// allowing says how a person can allow the call beforehand, and records the flags.
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

// AsksPerson reports whether a call asks the person something.
func AsksPerson(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Question })
}

// JudgeStep returns the verdict of mode, rules and sensitive places on a call of a step, which may reach hosts.
// A tool that the session lacks is assumed to be able to do anything. Steps act for the person who started
// them, so calls that only the mode would ask about are allowed. Judges are not asked.
func (d *Driver) JudgeStep(ctx context.Context, call llm.Call, hosts []string) tool.Verdict {
	t := trial{judging: d.judging, judged: event.Judged{Call: call.ID}, tool: tool.Tool{Name: call.Name}}
	args := call.Args
	if found, problem := t.find(call); problem == "" {
		checked, err := checkArgs(found, args)
		if err != nil {
			return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
		}
		t.tool, args = found, checked
	}
	t.call = t.judging.call(call, args)
	for _, host := range hosts {
		t.also = append(t.also, tool.Effect{Kind: tool.Network, Text: host, Asked: true})
	}
	first, err := t.examine(ctx)
	if err != nil {
		return tool.Verdict{Action: tool.Deny, Reason: err.Error()}
	}
	all := []tool.Verdict{{Action: tool.Allow}, first}
	if len(hosts) > 0 {
		all = append(all, t.leaving())
	}
	for _, f := range t.findings {
		if !f.Mode || f.Verdict.Action != tool.Ask {
			all = append(all, f.Verdict)
		}
	}
	return policy.Combine(all)
}

// reconsider answers waiting calls that need no question in a mode that was just switched to. The others keep
// waiting: calls that the new mode would ask about or deny, and calls that would do something else in it than
// the person was asked about.
func (j *judging) reconsider(ctx context.Context) error {
	watched, done := j.journal.interruptible(ctx)
	defer done()
	var out []event.Body
	for _, c := range j.journal.state.Waiting() {
		if AsksPerson(c.Effects) {
			continue
		}
		t, first, err := j.again(watched, c)
		if err != nil {
			continue // the question stands
		}
		v, _, _ := t.verdict(watched, first)
		if v.Cost > 0 {
			t.judged.Action, t.judged.By, t.judged.Reason = v.Action, v.By, v.Reason
			t.judged.Cost, t.judged.Route, t.judged.Consulted = v.Cost, v.Route, v.Consulted
			out = append(out, t.judged)
		}
		if v.Action == tool.Allow && v.Args == nil && !t.unknown && t.same(c.Effects) {
			out = append(out, event.Decided{Call: c.ID, Question: c.WaitingSeq, Allow: true, By: "the user", Rule: v.By})
		}
	}
	if err := ctx.Err(); err != nil || len(out) == 0 {
		return err
	}
	return j.journal.record(ctx, out...)
}

// again judges a call once more, as far as [trial.examine] goes.
func (j *judging) again(ctx context.Context, c loop.Call) (t *trial, first tool.Verdict, err error) {
	name := cmp.Or(c.Tool, c.Name)
	found, ok := j.tools.byName[name]
	if !ok {
		return nil, first, fmt.Errorf("there is no tool %q", name)
	}
	t = &trial{judging: j, tool: found, judged: event.Judged{Call: c.ID, Caller: found.Calls}}
	t.call = j.call(llm.Call{ID: c.ID, Name: name, Args: c.Args}, c.Args)
	if t.call.Parent = c.Parent; name != c.Name {
		t.call.As = c.Name
	}
	first, err = t.examine(ctx)
	return t, first, err
}

// same reports whether the call still does what it was judged by.
func (t *trial) same(before []tool.Effect) bool {
	now := t.cfg.Secrets.Body(event.Judged{Effects: t.judged.Effects}).(event.Judged).Effects
	return sameEffects(before, now)
}

// whyMoved tells the model why a call is not run: it was judged for another directory than it would run in now,
// and would do something else there. If empty, the call may run. Nothing else needs to be judged again, since a
// running call is confined to its verdict.
func (j *judging) whyMoved(ctx context.Context, c loop.Call) string {
	cwd := j.journal.state.Cwd
	if c.Caller || c.Cwd == "" || c.Cwd == cwd {
		return ""
	}
	if t, _, err := j.again(ctx, c); err == nil && t.same(c.Effects) {
		return ""
	}
	return fmt.Sprintf("Not run: it was judged for the directory %s, and a call beside it has changed that to %s since, "+
		"where it would do something else. If that is what you want, call it again.", c.Cwd, cwd)
}

// sameEffects reports whether effects are equal in their stored form.
func sameEffects(a, b []tool.Effect) bool {
	was, err := json.Marshal(a)
	is, failed := json.Marshal(b)
	return err == nil && failed == nil && len(a) == len(b) && (len(a) == 0 || bytes.Equal(was, is))
}
