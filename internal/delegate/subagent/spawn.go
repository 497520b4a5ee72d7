package subagent

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed spawn_agent.md
var spawnDoc string

const spawnTool = "spawn_agent"

type spawnArgs struct {
	Task       string         `json:"task" jsonschema:"what to do, with all it needs to know"`
	Agent      string         `json:"agent,omitempty" jsonschema:"kind; worker if not given"`
	Name       string         `json:"name,omitempty" jsonschema:"of a team member; messages and tasks wake it"`
	Tools      []string       `json:"tools,omitempty" jsonschema:"some of your tools; those of its kind if not given"`
	Model      string         `json:"model,omitempty" jsonschema:"provider/model, or small"`
	Mode       tool.Mode      `json:"mode,omitempty" enum:"plan,ask,edit,auto" jsonschema:"never wider than yours"`
	Budget     float64        `json:"budget,omitempty" jsonschema:"share of the money left, up to 1"`
	Deadline   int            `json:"deadline,omitempty" jsonschema:"seconds; 1800 if not given"`
	Turns      int            `json:"max_turns,omitempty" jsonschema:"40 if not given"`
	Result     map[string]any `json:"result_schema,omitempty" jsonschema:"JSON Schema (object) of its result"`
	Isolation  string         `json:"isolation,omitempty" enum:"none,worktree,sandbox" jsonschema:"worktree: its own copy; sandbox: that, without network"`
	Plan       string         `json:"plan,omitempty" enum:"lead,person" jsonschema:"who must approve its plan first"`
	Background bool           `json:"background,omitempty" jsonschema:"go on at once; its report is told later"`
	Count      int            `json:"count,omitempty" jsonschema:"agents that do the same task, at most 8"`
	Reduce     string         `json:"reduce,omitempty" enum:"collect,vote,best" jsonschema:"of a count: all results, the one most have, or the tree that does best in check"`
	Check      string         `json:"check,omitempty" jsonschema:"for best: a bash command; exit code 0 passes, then the larger number in its last line wins"`

	approved bool // its plan is
}

// argsOf returns the arguments of a child at its start, for it to continue.
func argsOf(c event.Spawned) (in spawnArgs, err error) {
	err = json.Unmarshal(c.Args, &in)
	in.Name, in.Background, in.approved = c.Name, c.Background, c.Mode != tool.ModePlan
	return in, err
}

// Tools returns the tools that let a model use agents.
func (t *Team) Tools() []tool.Tool {
	spawn := tool.New(spawnTool, spawnDoc+"\n"+t.kinds(), t.spawn)
	spawn.Effects, spawn.Delegates = noEffects, true
	manage := tool.New("manage_agents", manageDoc, t.manage)
	manage.Effects, manage.Preview, manage.Delegates = t.mergeEffects, t.mergePreview, true
	list := []tool.Tool{spawn, manage}
	if t.up == nil { // a child always gets it, see wireMate
		list = append(list, newTeamTool(t, nil), newFinishTool(t, nil))
	}
	return list
}

// noEffects returns the effects of a call that does nothing by itself: the calls of a child are judged one by one.
func noEffects(context.Context, *tool.Call) ([]tool.Effect, error) { return nil, nil }

// kinds lists the kinds of agents for the model.
func (t *Team) kinds() string {
	var b strings.Builder
	b.WriteString("Kinds of agents:\n")
	seen := map[string]bool{}
	for _, r := range t.Roles() {
		if name := strings.ToLower(r.Name); !seen[name] {
			seen[name] = true
			line := fmt.Sprintf("- %s: %s\n", r.Name, text.Short(r.Description, 200))
			if b.Len()+len(line) > mostKinds {
				line = "- " + r.Name + "\n"
			}
			if b.Len()+len(line) <= 2*mostKinds {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// spawn runs the tool spawn_agent.
func (t *Team) spawn(ctx context.Context, c *tool.Call, in spawnArgs) (tool.Result, error) {
	n, err := in.count()
	if err != nil {
		return tool.Result{}, err
	}
	if !t.runs() {
		return tool.Result{}, errors.New("agents can't be spawned here")
	}
	// A model may reuse the id of a call after the conversation was rewound; a call that is repeated after a
	// crash is still of the same turn.
	c.ID = fmt.Sprintf("%s@%d", c.ID, t.session.Status().Turns)
	if n > 1 {
		return t.spawnMany(ctx, c, in, n)
	}
	if who, yes := t.childOfCall(c.ID); yes {
		return tool.Text(backgroundText(who)), nil
	}
	k, err := t.launch(ctx, c.ID, in, c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if k.order.background {
		return t.background(k, nil)
	}
	return t.foreground(ctx, k, nil, c.Progress)
}

// foreground waits for a child, and returns its result.
func (t *Team) foreground(ctx context.Context, k *child, inputs []event.Body, progress func(string)) (tool.Result, error) {
	r := t.waitFor(ctx, k, inputs, progress)
	res := tool.Text(k.outcomeText(r))
	if r.Reason != event.ReasonDone {
		return res, errors.New("the agent did not come to its end")
	}
	return res, nil
}

// waitFor waits for a child. Anything that stops the call stops the child, in order if possible.
func (t *Team) waitFor(ctx context.Context, k *child, inputs []event.Body, progress func(string)) event.Returned {
	k.progress = progress
	unwatch := context.AfterFunc(ctx, func() { k.stop("the call that it works for was stopped") })
	defer unwatch()
	return t.work(k, inputs)
}

// background runs a child while its parent continues.
func (t *Team) background(k *child, inputs []event.Body) (tool.Result, error) {
	if !t.goUnlessClosed(func() { t.work(k, inputs) }) {
		return tool.Result{}, errors.Join(errClosed, k.session.Close())
	}
	return tool.Text(backgroundText(k.label())), nil
}

// backgroundText tells the model about a child in the background.
func backgroundText(who string) string {
	return fmt.Sprintf("Agent %s works in the background. What it brings is told to you when it is there; do not wait for it with calls. "+
		"manage_agents shows how far it is.", who)
}

// childOfCall finds the child that a call has begun in the background, if the program ended before the call did: the
// child continues by itself, and the repeated call has nothing to do.
func (t *Team) childOfCall(call string) (who string, yes bool) {
	for _, c := range t.session.Status().Children {
		if c.Call == call && c.Background {
			return labelOf(c.Spawned), true
		}
	}
	return "", false
}

// goUnlessClosed runs f in the background, unless the team is closed.
func (t *Team) goUnlessClosed(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.wg.Go(f)
	}
	return !t.closed
}

// continueChild continues a child that the previous program left in the background.
func (t *Team) continueChild(ctx context.Context, c inspan.Child) {
	in, err := argsOf(c.Spawned)
	var k *child
	if err == nil {
		k, err = t.open(ctx, c.Call, in, c.Args)
	}
	if errors.Is(err, errWorks) || errors.Is(err, errClosed) {
		return // a message was faster and continues it, or the next program does
	}
	if err != nil {
		_ = t.session.Send(ctx, event.Returned{
			Child: c.Child, Detail: err.Error(),
			Parts: llm.Say("[agent " + cmp.Or(c.Name, short(c.Child)) + " can't go on: " + err.Error() + "]"),
		})
		t.mu.Lock()
		delete(t.idle, c.Child)
		t.mu.Unlock()
		return
	}
	t.work(k, nil)
}

// order turns the model's request into an order within the permissions.
func (t *Team) order(in spawnArgs) (Order, error) {
	r, err := t.role(in.Agent)
	if err != nil {
		return Order{}, err
	}
	st := t.session.Status()
	o := Order{Role: r, Name: in.Name, Task: strings.TrimSpace(in.Task), Tools: in.Tools, Model: in.Model, Route: st.Route, Rules: st.Granted}
	switch {
	case o.Task == "":
		return o, errors.New("task is empty")
	case checkName(in.Name) != nil:
		return o, checkName(in.Name)
	case in.Budget < 0 || in.Budget > 1:
		return o, fmt.Errorf("budget is %v; it is a share between 0 and 1", in.Budget)
	case in.Deadline < 0 || in.Turns < 0 || in.Deadline > mostSeconds:
		return o, fmt.Errorf("deadline is 0 to %d seconds, and max_turns can't be negative", mostSeconds)
	}
	if o.Mode, err = narrowestMode(st.Mode, in.Mode, r.Mode); err != nil {
		return o, err
	}
	if in.Plan != "" && !in.approved && o.Mode != tool.ModePlan {
		o.Mode, o.planner = tool.ModePlan, in.Plan
	}
	t.limit(&o, in, st)
	o.background, o.Limited = in.Background || r.Background && !in.choosesOne(), t.limited()
	if in.Result != nil {
		if o.result, err = newResult(in.Result); err != nil {
			err = fmt.Errorf("result_schema: %w", err)
			return o, err
		}
	}
	if in.Reduce == reduceBest {
		o.check = &check{command: strings.TrimSpace(in.Check)}
		o.Task += "\n\n" + o.check.instruction()
	}
	o.WithLimits = t.WithLimits
	if t.depth+1 < cmp.Or(t.MaxDepth, usualDepth) {
		o.Team = &Team{
			Sessions: t.Sessions, Roles: t.Roles, Make: t.Make, Trees: t.Trees,
			Hooks: t.Hooks, MaxDepth: t.MaxDepth, MaxOpen: t.MaxOpen, up: t, depth: t.depth + 1,
		}
		o.WithLimits = o.Team.WithLimits
	}
	return o, nil
}

// launch opens a child that begins, as soon as the tree may continue. One that has begun need not wait here:
// its requests wait themselves.
func (t *Team) launch(ctx context.Context, call string, in spawnArgs, args json.RawMessage) (*child, error) {
	if err := t.awaitPause(ctx, t.patience); err != nil {
		return nil, fmt.Errorf("no agent may begin: %w", err)
	}
	return t.open(ctx, call, in, args)
}

// open makes or finds the session of the child for a call, and records it in the session's log.
func (t *Team) open(ctx context.Context, call string, in spawnArgs, args json.RawMessage) (*child, error) {
	if !t.runs() {
		return nil, errors.New("agents can't be spawned here")
	}
	o, err := t.order(in)
	if err != nil {
		return nil, err
	}
	return t.openAs(ctx, call, in, o, args)
}

// openAs is open with a given order.
func (t *Team) openAs(ctx context.Context, call string, in spawnArgs, o Order, args json.RawMessage) (_ *child, err error) {
	parent, isolation := t.session.Status(), stricter(in.isolation(), o.Role.Isolation)
	if err := o.confine(isolation, t.walls); err != nil {
		return nil, err
	}
	if o.Copy, err = t.makeCopy(ctx, isolation, parent, call); err != nil {
		return nil, err
	}
	root := parent.Root
	if o.Copy != nil {
		root = o.Copy.Root
	}
	var files tool.Files
	host := inspan.Host{Store: t.Sessions, Agent: func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		a, err := t.makeAgent(ctx, o, at)
		if err == nil {
			files = a.Env.Files
		}
		return a, err
	}}
	var s *inspan.Session
	if o.fork == "" {
		s, err = host.Child(ctx, parent.Session, call, root)
	} else {
		s, err = host.Branch(ctx, o.fork, parent.Session, call)
	}
	if err != nil {
		return nil, err
	}
	k := newChild(s, o, call)
	k.files = files
	if o.Copy != nil && o.Copy.Ready { // output of that command is not the child's work
		err = t.begin(ctx, parent, call)
	}
	if err == nil {
		err = t.waitForSlot(ctx, k)
	}
	if err == nil {
		k.spawned = event.Spawned{
			Child: k.id, Call: call, Agent: o.Role.Name, Name: o.Name, Task: text.Short(o.Task, 200), Route: s.Status().Route, Mode: o.Mode,
			Root: strings.TrimPrefix(root, parent.Root), Background: o.background, Args: args,
		}
		err = t.session.Send(ctx, k.spawned)
	}
	if err != nil {
		t.freeSlot(k, false)
		return nil, errors.Join(err, s.Close())
	}
	return k, nil
}

// begin makes the current state of a copy its starting point.
func (t *Team) begin(ctx context.Context, parent inspan.Status, call string) error {
	tree, found, err := t.Trees.Find(ctx, parent.Root, copyName(parent.Session, call))
	if err != nil || !found {
		return err
	}
	_, now, err := t.Trees.Changes(ctx, tree)
	if err == nil {
		err = t.Trees.Rebase(ctx, tree, now)
	}
	return err
}

// confine keeps an isolated agent in its copy, in mode yolo too, where commands have no sandbox: it gets mode
// auto, whose sandbox is the copy, and the network unless that is closed.
func (o *Order) confine(isolation string, walls tool.Walls) error {
	switch {
	case isolation != "worktree" && isolation != "sandbox" || o.Mode != tool.ModeYolo:
	case walls.Workspace:
		if o.Mode = tool.ModeAuto; isolation == "worktree" {
			o.Rules = append(o.Rules[:len(o.Rules):len(o.Rules)], string(tool.Network))
		}
	case isolation == "sandbox":
		return fmt.Errorf("isolation sandbox: there is no sandbox on this machine: %s", walls.Why)
	}
	return nil
}

// runs reports whether the team has a running session.
func (t *Team) runs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session != nil && !t.closed
}

// makeCopy makes the copy of the workspace for an isolation; nil if none is needed.
func (t *Team) makeCopy(ctx context.Context, isolation string, parent inspan.Status, call string) (*Copy, error) {
	switch isolation {
	case "", "none":
		return nil, nil
	case "worktree", "sandbox":
	default:
		return nil, fmt.Errorf("there is no isolation %q; there are none, worktree, sandbox", isolation)
	}
	if t.Trees == nil {
		return nil, errors.New("agents can't work apart here; leave isolation out")
	}
	tree, err := t.Trees.Make(ctx, parent.Root, copyName(parent.Session, call))
	if err != nil {
		return nil, fmt.Errorf("isolation %s: %w", isolation, err)
	}
	return &Copy{Root: tree.Root, Of: parent.Root, Closed: isolation == "sandbox", Left: tree.Left, Lent: tree.Lent, Missing: tree.Missing}, nil
}

// stricter returns the isolation that applies if a call asks for one and the kind of agent has another.
func stricter(asked, kind string) string {
	order := []string{"", "none", "worktree", "sandbox"}
	if slices.Contains(order, asked) && slices.Index(order, kind) > slices.Index(order, asked) {
		return kind
	}
	return asked
}

// copyName returns the name of the copy for the child of a session that a call made.
func copyName(session, call string) string { return session + "/" + call }

// makeAgent makes the agent of a child, and limits it to its order whatever Make did.
func (t *Team) makeAgent(ctx context.Context, o Order, at inspan.SessionSpec) (*inspan.Agent, error) {
	a, err := t.Make(ctx, o, at)
	if err != nil {
		return nil, err
	}
	has := t.restrictTools(a, o.Tools)
	if o.Tools != nil {
		names := has(ctx)
		for _, name := range o.Tools {
			if !slices.Contains(names, name) {
				return nil, errors.Join(fmt.Errorf("there is no tool %q that it could get", name), closeUnused(a))
			}
		}
	}
	if o.Team != nil {
		o.Team.mayGive = has
	}
	t.wireMate(a, o)
	a.Opening.Kind, a.Mode, a.Limits.Turns, a.Limits.Cost, a.Limits.Time = o.Role.Name, o.Mode, o.Limits.Turns, o.Limits.Cost, o.Limits.Time
	if o.result != nil {
		a.Tools = append(a.Tools[:len(a.Tools):len(a.Tools)], o.result.tool())
		a.Hooks = append(a.Hooks[:len(a.Hooks):len(a.Hooks)], o.result)
	}
	if o.check != nil {
		a.Hooks = append(a.Hooks[:len(a.Hooks):len(a.Hooks)], o.check)
	}
	if o.call != nil {
		a.Model = o.call.model()
	}
	if o.Team == nil || !o.Team.holds {
		t.limitModel(a)
	}
	a.ShareSecrets(t.session)
	st := t.session.Status()
	a.Opening.Traceparent = text.SpanContext(st.Traceparent, st.Session, transcript.ChildSpan(at.ID))
	return a, nil
}

// closeUnused closes an agent that is not used.
func closeUnused(a *inspan.Agent) error {
	if a.Lifecycle.Close == nil {
		return nil
	}
	return a.Lifecycle.Close()
}

// waitForSlot adds a child to those that work. If the limit is reached, it waits until one of them has returned.
func (t *Team) waitForSlot(ctx context.Context, k *child) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.closed && t.children[k.id] == nil && len(t.children) >= cmp.Or(t.MaxOpen, usualOpen) {
		if t.room == nil {
			t.room = make(chan struct{})
		}
		room := t.room
		t.mu.Unlock()
		var err error
		select {
		case <-room:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-t.life.Done():
		}
		t.mu.Lock()
		if err != nil {
			return err
		}
	}
	switch {
	case t.closed:
		return errClosed
	case t.children[k.id] != nil:
		return fmt.Errorf("%w: agent %s", errWorks, k.label())
	}
	if err := t.isTaken(k.order.Name, k.id); err != nil {
		return err
	}
	for _, c := range t.session.Status().Children {
		if c.Child == k.id {
			k.counted, k.used = k.counted+c.Cost, k.used.Add(c.Usage)
		}
	}
	delete(t.left, k.id)
	delete(t.idle, k.id)
	t.children[k.id] = k
	return nil
}

// freeSlot removes a child from those that work. With idle, it is a member of the team that can be woken.
func (t *Team) freeSlot(k *child, idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.children[k.id] != k {
		return
	}
	delete(t.children, k.id)
	if idle {
		t.idle[k.id] = &resting{Spawned: k.spawned}
	}
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
	t.left[k.id] = k.spent()
	maps.DeleteFunc(t.questions, func(name questionKey, _ *question) bool { return name.child == k.id })
}

// work drives an open child until it has returned, and records that in the session's log, unless the program
// ends: then it continues with the next one.
func (t *Team) work(k *child, inputs []event.Body) event.Returned {
	defer k.cancel(nil)
	err := t.perform(k, inputs)
	r := k.returned(err)
	k.mu.Lock()
	k.open = t.unfinished(k.id)
	k.mu.Unlock()
	if k.order.background {
		r.Parts = llm.Say(t.marker.Text(k.outcomeText(r), "an agent"))
	}
	if !errors.Is(err, errClosed) {
		ctx, cancel := context.WithTimeout(t.life, mostDelivery)
		_ = deliver(ctx, t.session, r) // or the child returns again in the next program
		cancel()
	}
	t.freeSlot(k, r.Idle)
	close(k.gone)
	_ = k.session.Close()
	if r.Idle {
		t.goUnlessClosed(func() { t.watchMailbox(k.id) })
	}
	return r
}

// perform makes a child follow its inputs, or continue interrupted work. A finished one is not asked again.
func (t *Team) perform(k *child, inputs []event.Body) error {
	st := k.session.Status()
	more, waits := t.unread(k.ctx, k)
	switch {
	case inputs != nil || st.Active:
	case st.Stopped != nil && waits:
		inputs = more
	case st.Stopped != nil && !k.copied:
		return nil
	default:
		text := k.order.Task
		out, err := t.hook(k, tool.Point{Moment: tool.AgentStart, Text: text})
		if err != nil {
			return err
		}
		if out != "" {
			text += "\n\n" + out
		}
		taint := t.taint()
		taint.Untrusted = taint.Untrusted || k.untrusted
		inputs = []event.Body{said(text, taint), event.Steered{By: "the session it works for", Origin: event.OriginHarness, Parts: llm.Say(t.brief(k))}}
	}
	for range maxRounds {
		if err := t.drive(k, inputs); err != nil {
			return err
		}
		if s := k.session.Status().Stopped; s == nil || s.Reason != event.ReasonDone {
			return nil
		}
		more, err := t.hook(k, tool.Point{Moment: tool.AgentStop, Text: k.lastWords(), Why: string(event.ReasonDone)})
		if err != nil {
			return err
		}
		inputs, waits = t.unread(k.ctx, k)
		if more == "" && !waits && k.order.Name != "" && !k.hasLeft() {
			if more, err = t.hook(k, tool.Point{Moment: tool.TeammateIdle, Text: k.lastWords()}); err != nil {
				return err
			}
		}
		switch {
		case more != "":
			inputs = []event.Body{said(more, event.Taint{})}
		case !waits:
			return nil
		}
	}
	return nil
}

// brief tells a child who it is, where it works, for whom and with whom. The text follows the task, so that the
// prompts of all children of a kind begin with the same bytes.
func (t *Team) brief(k *child) string {
	up, lead := t.session.Status(), "the lead agent"
	if up.Who.Parent != "" {
		lead = "agent " + label(up.Who.Kind, up.Session)
	}
	gets := "It gets your last message, and nothing else of what you say."
	if k.order.result != nil {
		gets = "It gets your result, and nothing else of what you say."
	}
	if k.order.step {
		lead = "a step of a workflow"
	}
	lines := []string{fmt.Sprintf("You are agent %s, of the kind %s, and work for %s. %s", cmp.Or(k.order.Name, short(k.id)), k.order.Role.Name, lead, gets)}
	if k.order.Name != "" {
		lines = append(lines, "You are a member of a team. When you have said your last you are idle, and a message or a task for you lets you go on.")
	}
	if k.order.planner != "" {
		lines = append(lines, "Plan first: you can change nothing until your plan is approved. End with it.")
	}
	if c := k.order.Copy; c != nil {
		lines = append(lines, c.brief()...)
	}
	var beside []string
	for _, o := range t.othersInFolder(k) {
		beside = append(beside, o.label())
	}
	for _, o := range t.upcoming() {
		if o.Child != k.id {
			beside = append(beside, labelOf(o))
		}
	}
	if slices.Sort(beside); beside != nil && !k.order.step {
		lines = append(lines, "Agents that work beside you now, as the tool team knows them: "+strings.Join(beside, ", ")+".")
	}
	return "[" + strings.Join(lines, "\n") + "]"
}

// lacks lists what is missing in a copy, for the child and its parent.
func (c *Copy) lacks() (lines []string) {
	if len(c.Left) > 0 {
		lines = append(lines, "Not in the copy, as they are too large or repositories of their own: "+files("", c.Left)+".")
	}
	if len(c.Missing) > 0 {
		lines = append(lines, "Not in the copy, though tests may need it: "+files("", c.Missing)+". A person can list it in "+worktree.Included+".")
	}
	if c.Setup != "" {
		lines = append(lines, "The command that makes a copy ready (agents.setup) failed: "+c.Setup)
	}
	return lines
}

// brief tells a child about the copy in which it works.
func (c *Copy) brief() []string {
	lines := []string{fmt.Sprintf("You work in a copy of the workspace %s. What you change comes back only if it is merged when you have ended.", text.Line(c.Of))}
	if len(c.Lent) > 0 {
		lines = append(lines, "Of what git ignores there it has, to use and not to be merged: "+files("", c.Lent)+".")
	} else {
		lines = append(lines, "Files that git ignores there, such as what was installed or built, are not in it.")
	}
	lines = append(lines, c.lacks()...)
	if c.Closed {
		lines = append(lines, "You have no network.")
	}
	return lines
}

func (t *Team) taint() event.Taint {
	st := t.session.Status()
	return event.Taint{Untrusted: st.Untrusted, Private: st.Private}
}

// hook calls the hooks at a moment of a child, and returns their text for it. The error is that of a hook that
// denies.
func (t *Team) hook(k *child, p tool.Point) (string, error) {
	p.Who.Name = k.order.Name
	return t.hookOf(k.ctx, k.session.Status(), p)
}

// hookOf is hook for the state of any session of the team.
func (t *Team) hookOf(ctx context.Context, st inspan.Status, p tool.Point) (string, error) {
	name := p.Who.Name
	p.Session, p.Who, p.Root, p.Mode = st.Session, st.Who, st.Root, st.Mode
	p.Who.Name = name
	var texts []string
	for _, h := range t.Hooks {
		guarded := hook.Set{Funcs: []hook.Func{{Run: h.At}}} // no call around a child would catch a panic
		out, err := guarded.At(ctx, p)
		switch {
		case err != nil:
			_ = t.session.Send(ctx, event.Steered{
				By: "a hook", Origin: event.OriginHook,
				Parts: llm.Say("[a hook at " + string(p.Moment) + " failed: " + err.Error() + "]"),
			})
		case out.Action == tool.Deny:
			return "", fmt.Errorf("%s does not allow it: %s", cmp.Or(out.By, "a hook"), out.Reason)
		case out.Text != "":
			texts = append(texts, "["+cmp.Or(out.By, "a hook")+" says:]\n"+strings.TrimSpace(out.Text))
		}
	}
	return strings.Join(texts, "\n\n"), nil
}
