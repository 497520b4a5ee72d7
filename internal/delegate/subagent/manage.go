package subagent

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/team"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

//go:embed manage_agents.md
var manageDoc string

type manageArgs struct {
	Action     string   `json:"action" enum:"list,inspect,message,approve,stop,shutdown,merge,discard"`
	Agent      string   `json:"agent,omitempty" jsonschema:"the agent's name as spawn_agent gave it, such as k3f9a2; for all actions but list"`
	Text       string   `json:"text,omitempty" jsonschema:"for message and approve: what to tell it"`
	Background bool     `json:"background,omitempty" jsonschema:"for message to one that has come back: do not wait for it"`
	Paths      []string `json:"paths,omitempty" jsonschema:"for merge: the files and folders to merge; all if not given"`
	Discard    bool     `json:"discard,omitempty" jsonschema:"for merge: remove its copy of the workspace once all is merged"`
}

// manage runs the tool manage_agents.
func (t *Team) manage(ctx context.Context, c *tool.Call, in manageArgs) (tool.Result, error) {
	if in.Action == "list" {
		return tool.Text(t.list()), nil
	}
	child, err := t.child(in.Agent)
	if err != nil {
		return tool.Result{}, err
	}
	t.mu.Lock()
	k := t.children[child.Child]
	t.mu.Unlock()
	switch in.Action {
	case "inspect":
		return t.inspect(ctx, child)
	case "message":
		return t.message(ctx, c, child, k, in)
	case "approve":
		return t.approve(ctx, c, child, k, in)
	case "shutdown":
		m := event.Steered{
			By: "the agent it works for", Origin: event.OriginLead, Message: c.Session + " " + c.Key,
			Parts: llm.Say("You are asked to shut down. If your work can end here, call team with action leave and end; else send parent the reason."),
		}
		if err := t.post(ctx, child.Child, m); err != nil {
			return tool.Result{}, err
		}
		return tool.Text("Asked. It agrees by leaving the team, or tells why not."), nil
	case "merge":
		return t.merge(ctx, c, child, k, in)
	case "discard":
		return t.discard(ctx, child, k)
	case "stop":
		if k == nil {
			return tool.Text("It does not work any more."), nil
		}
		k.stop("its parent wants it to stop")
		<-k.gone
		return tool.Text("Agent " + k.label() + " has stopped. What it did stands; message lets it go on."), nil
	}
	return tool.Result{}, fmt.Errorf("there is no action %q; there are list, inspect, message, approve, stop, shutdown, merge, discard", in.Action)
}

// child finds a child by its id or the short form of it.
func (t *Team) child(name string) (inspan.Child, error) {
	if t.session == nil || name == "" {
		return inspan.Child{}, errors.New("agent is missing; list shows them")
	}
	for _, c := range slices.Backward(t.session.Status().Children) {
		if mine := strings.HasPrefix(c.Child, t.session.ID()+"."); mine && (c.Child == name || short(c.Child) == name || c.Name != "" && strings.EqualFold(c.Name, name)) {
			return c, nil
		}
	}
	return inspan.Child{}, fmt.Errorf("there is no agent %q of this session; list shows them", name)
}

func (t *Team) list() string {
	if t.session == nil || len(t.session.Status().Children) == 0 {
		return "There are no agents."
	}
	var b strings.Builder
	for _, c := range t.session.Status().Children {
		fmt.Fprintf(&b, "%s: %s · $%.4f · %s\n", label(c.Agent, cmp.Or(c.Name, c.Child)), stateOf(c), t.cost(c), text.Short(c.Task, 120))
	}
	return b.String()
}

// stateOf returns the state of a child.
func stateOf(c inspan.Child) string {
	if c.Open && c.Background {
		return team.State(c) + " in the background"
	}
	return team.State(c)
}

// cost returns the cost of a child so far.
func (t *Team) cost(c inspan.Child) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.children[c.Child]; k != nil {
		return k.spent().cost
	}
	return c.Cost
}

// lastSteps is the number of a child's calls that are shown.
const lastSteps = 10

// inspect shows the latest work of a child.
func (t *Team) inspect(ctx context.Context, c inspan.Child) (tool.Result, error) {
	var steps []string
	seen := false // its words may have text from an untrusted source
	for e, err := range store.Events(ctx, t.Sessions, c.Child) {
		if err != nil {
			return tool.Result{}, err
		}
		seen = seen || loop.Outside(e.Body)
		if r, ok := e.Body.(event.Replied); ok {
			if text := text.Short(r.Parts.Text(), 300); text != "" {
				steps = append(steps, "says: "+text)
			}
			for _, call := range r.Parts.Calls() {
				steps = append(steps, "calls "+call.Name+" "+text.Short(string(call.Args), 200))
			}
		}
	}
	left := max(0, len(steps)-lastSteps)
	text := fmt.Sprintf("%s: %s · $%.4f\nTask: %s\n", label(c.Agent, cmp.Or(c.Name, c.Child)), stateOf(c), t.cost(c), c.Task)
	if left > 0 {
		text += fmt.Sprintf("(%d steps before)\n", left)
	}
	res := tool.Text(text + strings.Join(steps[left:], "\n"))
	res.Untrusted = seen
	return res, nil
}

// message sends a message to a child: a running one gets it at once, one that has returned continues with it.
func (t *Team) message(ctx context.Context, c *tool.Call, child inspan.Child, k *child, in manageArgs) (tool.Result, error) {
	if strings.TrimSpace(in.Text) == "" {
		return tool.Result{}, errors.New("text is empty")
	}
	if k != nil {
		err := k.session.Send(ctx, event.Steered{
			Parts: llm.Say(in.Text),
			By:    "the agent it works for", Origin: event.OriginLead, Taint: t.taint(),
		})
		return tool.Text("Told. It sees that before its next step."), err
	}
	args, err := argsOf(child.Spawned)
	if err != nil {
		return tool.Result{}, fmt.Errorf("how it began is not known any more: %w", err)
	}
	return t.continueWith(ctx, c, child, args, in)
}

// approve approves the plan of a child that has ended with one, and lets it carry it out. If the plan is for the person,
// the person is asked.
func (t *Team) approve(ctx context.Context, c *tool.Call, child inspan.Child, k *child, in manageArgs) (tool.Result, error) {
	args, err := argsOf(child.Spawned)
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("how it began is not known any more: %w", err)
	case k != nil:
		return tool.Result{}, errors.New("it has not ended with a plan yet")
	case args.Plan == "" || args.approved:
		return tool.Result{}, errors.New("it has no plan to approve; message lets it go on")
	}
	if args.Plan == "person" {
		if c.Ask == nil {
			return tool.Result{}, errors.New("the person approves its plan, and nobody can be asked here")
		}
		plan, err := t.lastWords(ctx, child.Child)
		if err != nil {
			return tool.Result{}, err
		}
		answer, err := c.Ask(ctx, "The plan of "+labelOf(child.Spawned)+":\n"+plan, []string{approves, "Reject"})
		if err != nil {
			return tool.Result{}, err
		}
		if answer != approves {
			return tool.Text("The person does not approve the plan: " + cmp.Or(answer, "no answer")), nil
		}
	}
	args.approved = true
	in.Text = strings.TrimSpace("Your plan is approved: carry it out. " + in.Text)
	return t.continueWith(ctx, c, child, args, in)
}

// approves is the person's answer to a plan that may be carried out.
const approves = "Approve"

// lastWords returns the last text of a child's model.
func (t *Team) lastWords(ctx context.Context, id string) (last string, err error) {
	for e, err := range store.Events(ctx, t.Sessions, id) {
		if err != nil {
			return "", err
		}
		if r, ok := e.Body.(event.Replied); ok {
			last = cmp.Or(r.Parts.Text(), last)
		}
	}
	return last, nil
}

// continueWith lets a child that does not work continue with a message.
func (t *Team) continueWith(ctx context.Context, c *tool.Call, child inspan.Child, args spawnArgs, in manageArgs) (tool.Result, error) {
	args.Background = in.Background
	k, err := t.open(ctx, child.Call, args, child.Args)
	if err != nil {
		return tool.Result{}, err
	}
	inputs := []event.Body{said(in.Text, t.taint())}
	if in.Background {
		return t.background(k, inputs)
	}
	return t.foreground(ctx, k, inputs, c.Progress)
}
