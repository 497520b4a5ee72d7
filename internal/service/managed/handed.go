package managed

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/tool"
)

// Tools that run on workers: to the server they are tools of a client, and to clients those of the agent
// toolset.

// handedTools are the tools of the toolset that workers have, in the form that the worker of the official SDKs
// accepts.
//
//go:embed toolset.json
var handedTools []byte

const resultType = "user.tool_result"

// handedSpecs returns the tools of the toolset that workers have, as the server offers them to a model.
func handedSpecs() (out []server.ClientTool, err error) {
	err = json.Unmarshal(handedTools, &out)
	return out, err
}

// handed returns the policies of the enabled tools of the set that workers have.
func (t toolSpec) handed() map[string]string {
	list, err := handedSpecs()
	out := map[string]string{}
	for _, s := range list {
		if c := t.of(s.Name); err == nil && *c.Enabled {
			out[s.Name] = c.Policy.Type
		}
	}
	return out
}

// handOver sets the spec of a task so that the tools of the agent's set run on workers.
func (a *agent) handOver(p *server.Spec) error {
	list, err := handedSpecs()
	if err != nil {
		return err
	}
	for _, t := range toolset() { // rules are for tools of the server
		if slices.ContainsFunc(list, func(s server.ClientTool) bool { return s.Name == t.name }) {
			ours := func(rule string) bool { return slices.Contains(t.shown, rule) || slices.Contains(t.also, rule) }
			p.Ask, p.Deny = slices.DeleteFunc(p.Ask, ours), slices.DeleteFunc(p.Deny, ours)
		}
	}
	for _, t := range a.Tools {
		if t.Type != toolsetType {
			continue
		}
		on := t.handed()
		for _, s := range list {
			if _, is := on[s.Name]; is {
				p.Tools = append(p.Tools, s)
			}
		}
	}
	seen := map[string]bool{}
	for _, t := range p.Tools {
		if seen[t.Name] {
			return invalid("tools", "a custom tool is called "+t.Name+" as one of the toolset is", "another name")
		}
		seen[t.Name] = true
	}
	return nil
}

// fits reports settings that a session with tools on workers can't have: everything that is on the server.
func (k keptSession) fits(d *door) error {
	switch {
	case !k.Elsewhere:
		return nil
	case len(k.Resources) > 0:
		return unserved("resources", "resources of sessions in self-hosted environments; put files where the worker runs")
	case len(k.Agent.Skills) > 0:
		return unserved("agent", "skills in self-hosted environments")
	case k.Agent.delegates():
		return unserved("agent", "subagents in self-hosted environments")
	}
	if _, err := d.Own(ofEnvironment, k.Environment); err != nil {
		return missing("environment", k.Environment) // its workers are of that tenant
	}
	list, err := d.inputs("initial_events", k.Initial)
	if err != nil {
		return err
	}
	return d.fit(k, list)
}

// fit reports inputs that a session does not accept, or not from this visitor.
func (d *door) fit(k keptSession, inputs []input) error {
	for _, in := range inputs {
		switch {
		case in.kind == resultType && !k.Elsewhere:
			return unserved("events", resultType+" outside of self-hosted environments")
		case in.kind == "user.define_outcome" && k.Elsewhere:
			return unserved("events", "outcomes in self-hosted environments: a grader reads the workspace")
		case in.kind != resultType && d.Grant() != nil:
			return server.Forbidden("a worker sends " + resultType + " only")
		}
	}
	return nil
}

// holds returns an error if a grant does not let its holder work for a session.
func (d *door) holds(g *server.Grant, session string) error {
	_, k, err := objectOf[keptWork](d.Object, g.Of, g.ID)
	switch {
	case err != nil || k.Nth != g.Nth || !k.Stopped.IsZero():
		return server.Forbidden("the lease is lost: another worker has the item, or it is stopped")
	case k.Session != session:
		return missing("session", session)
	}
	return nil
}

// whileHeld ends the visit when the visitor's grant of a session ends, if it has one. Holding reports whether
// it is still valid; the caller calls leave when the visit is over.
func (d *door) whileHeld(session string) (holding func() bool, leave func()) {
	g := d.Grant()
	if g == nil {
		return func() bool { return true }, func() {}
	}
	holding = func() bool { return d.holds(g, session) == nil }
	other := *d.Visit
	watch := &door{Visit: &other}
	d.Context, leave = context.WithCancel(d.Context)
	over := d.Done()
	go func() {
		for news := watch.News(); watch.holds(g, session) == nil; news = watch.News() {
			select {
			case <-news:
			case <-over:
				return
			}
		}
		leave()
	}()
	return holding, leave
}

// handled returns the decision in an input that answers the question of a worker's call.
func (q question) handled(task string, in input) (a server.Decision, err error) {
	a = server.Decision{Task: task, Question: q.ID, Seq: q.Seq, Decision: "deny", Reason: in.reason}
	switch {
	case in.kind == resultType && q.worker && q.asks:
		err = invalid("tool_use_id", "event "+q.Event+" is not confirmed", "user.tool_confirmation first")
	case in.kind == resultType && q.worker:
		a.Decision, a.Reason, a.Answer, a.Failed = "allow", "", in.parts.Text(), in.failed
	case in.kind == resultType:
		err = invalid("type", "no worker makes the call of event "+q.Event, "user.tool_confirmation or user.custom_tool_result")
	case in.kind != "user.tool_confirmation":
		err = invalid("type", "event "+q.Event+" is agent.tool_use", "user.tool_confirmation or "+resultType)
	case !q.asks:
		err = conflict("event %s waits for no confirmation", q.Event)
	}
	return a, err
}

// confirmation is this door's note that a worker may make a call that asks.
type confirmation struct {
	Call string `json:"call"`
	Seq  uint64 `json:"seq"` // of the question
	Key  string `json:"key,omitempty"`
}

// hand decides whether a worker answers a question, and how its call is emitted.
func (f *Fold) hand(q *question) tool.Action {
	policy, is := f.handed[q.Call.Call.Name]
	if !is {
		return tool.Ask
	}
	if q.worker, q.asks = true, policy == alwaysAsk; q.asks {
		return tool.Ask
	}
	return tool.Allow
}

// allowed folds the permission for a worker's call.
func (f *Fold) allowed(b event.Recorded) {
	var c confirmation
	if json.Unmarshal(b.Value, &c) != nil {
		return
	}
	i := slices.IndexFunc(f.open, func(q question) bool { return q.ID == c.Call && q.Seq == c.Seq && q.asks })
	if i < 0 {
		return
	}
	f.open[i].asks = false
	f.confirmed[c.Key] = f.seq
	f.add("user.tool_confirmation", map[string]any{"tool_use_id": f.open[i].Event, "result": "allow"})
}

// guests are visitors that may call an endpoint without a role for it.
type guests string

const (
	workers guests = "workers" // of self-hosted environments
	holders guests = "holders" // workers that hold an item, for its session
)

func (e endpoint) by(who guests) endpoint {
	e.who = who
	return e
}

// may returns an error if the visitor may not call the endpoint.
func (d *door) may(e endpoint) error {
	g := d.Grant()
	switch {
	case e.who == holders && g != nil:
		return d.holds(g, d.r.PathValue("id"))
	case e.who == holders || e.who == "":
		if e.method == http.MethodGet {
			return d.Needs(server.Viewer)
		}
		return d.Needs(server.Operator)
	case g != nil && g.ID != d.r.PathValue("work"):
		return missing("work", d.r.PathValue("work"))
	}
	return d.NeedsWorker()
}
