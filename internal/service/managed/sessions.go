package managed

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
)

const ofSession = "managed.session"

func sessionEndpoints() []endpoint {
	return []endpoint{
		post("sessions", reading((*door).makeSession)),
		get("sessions", (*door).sessions, "limit", "page", "order", "include_archived", "agent_id", "agent_version", "deployment_id",
			"memory_store_id", "statuses", "statuses[]", "created_at[gt]", "created_at[gte]", "created_at[lt]", "created_at[lte]"),
		get("sessions/{id}", func(d *door) (any, error) { return d.session(d.r.PathValue("id")) }).by(holders),
		post("sessions/{id}", reading((*door).updateSession)),
		act("sessions/{id}/archive", (*door).archiveSession),
		del("sessions/{id}", (*door).deleteSession),
	}
}

// keptSession is a session in the book. The task with the same id does the work.
type keptSession struct {
	dates

	Title       string               `json:"title,omitempty"`
	Metadata    map[string]string    `json:"metadata,omitempty"`
	Agent       agent                `json:"agent"`
	First       *agent               `json:"first,omitempty"` // the original, if it was changed
	Environment string               `json:"environment"`
	Budget      *budget              `json:"budget,omitempty"`
	Resources   []resource           `json:"resources,omitempty"`
	Vaults      []string             `json:"vaults,omitempty"`
	Outcomes    bool                 `json:"outcomes,omitempty"` // it has had some
	Threads     map[string]time.Time `json:"threads,omitempty"`  // archived ones, by session
	Deployment  string               `json:"deployment,omitempty"`
	Elsewhere   bool                 `json:"elsewhere,omitempty"` // its tools run on workers
	Work        string               `json:"work,omitempty"`      // the last work item
	Works       int                  `json:"works,omitempty"`     // number of items so far
	Initial     []json.RawMessage    `json:"initial,omitempty"`   // unsent initial inputs
}

// budget limits the cost of a session.
type budget struct {
	Type string `json:"type"`
	Most money  `json:"max_list_cost"`
}

// money is an amount in cents.
type money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func dollars(usd float64) money { return money{strconv.Itoa(int(math.Round(usd * 100))), "USD"} }

// usd returns the budget in dollars.
func (b *budget) usd() (float64, error) {
	if b == nil {
		return 0, nil
	}
	cents, err := strconv.Atoi(b.Most.Amount)
	if err != nil || cents < 1 || b.Type != "limit" || b.Most.Currency != "USD" {
		return 0, invalid("budget", "it can't be read", `{"type": "limit", "max_list_cost": {"amount": "2500", "currency": "USD"}}`)
	}
	return float64(cents) / 100, nil
}

// agentRef names the agent of a session: by its id, pinned to a version, or with overrides.
type agentRef struct {
	Type    string           `json:"type"`
	ID      string           `json:"id"`
	Version int              `json:"version"`
	Model   opt[model]       `json:"model"`
	System  opt[string]      `json:"system"`
	Tools   opt[[]toolSpec]  `json:"tools"`
	Servers opt[[]mcpServer] `json:"mcp_servers"`
	Skills  opt[[]skillRef]  `json:"skills"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *agentRef) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &r.ID) == nil {
		r.Type = "agent"
		return nil
	}
	type plain agentRef
	return strict(raw, (*plain)(r))
}

// resolved returns the agent as the session has it.
func (r agentRef) resolved(d *door) (agent, error) {
	over := r.Model.said || r.System.said || r.Tools.said || r.Servers.said || r.Skills.said
	switch {
	case r.Type != "agent" && r.Type != "agent_with_overrides":
		return agent{}, invalid("agent.type", fmt.Sprintf("it is %q", r.Type), "agent or agent_with_overrides")
	case over && r.Type == "agent":
		return agent{}, invalid("agent.type", "there are overrides", "agent_with_overrides")
	}
	a, err := shownAgent(d, r.ID, r.Version)
	if err != nil {
		return a, err
	}
	if a.ArchivedAt != nil {
		return a, conflict("agent %s is archived", r.ID)
	}
	return agentFields{Model: r.Model, System: r.System, Tools: r.Tools, Servers: r.Servers, Skills: r.Skills}.onto(d, a)
}

// snapshot returns the agent for a session: without the fields that only a stored agent has.
func (a agent) snapshot() agent {
	a.Metadata, a.CreatedAt, a.UpdatedAt, a.ArchivedAt = nil, "", "", nil
	return a
}

// sessionAgent is the agent of a session as clients see it. The field hides that of the agent and is never set:
// an agent in a session has no such date.
type sessionAgent struct {
	agent
	ArchivedAt *string `json:"archived_at,omitempty"`
}

// threadAgent is the agent of a thread as clients see it, which also has no roster.
type threadAgent struct {
	sessionAgent
	Multiagent *multiagent `json:"multiagent,omitempty"`
}

// inSession returns the agent of a session as clients see it, with its subagents in full.
func (a agent) inSession() (out sessionAgent, err error) {
	out = sessionAgent{agent: a}
	out.Multiagent, err = a.Multiagent.listing(threadAgent{sessionAgent: out})
	return out, err
}

// newSession is a request for a session.
type newSession struct {
	Agent       agentRef          `json:"agent"`
	Environment string            `json:"environment_id"`
	Title       opt[string]       `json:"title"`
	Metadata    map[string]string `json:"metadata"`
	Budget      *budget           `json:"budget"`
	Initial     []json.RawMessage `json:"initial_events"`
	Resources   []json.RawMessage `json:"resources"`
	Vaults      []string          `json:"vault_ids"`
}

func (d *door) makeSession(in newSession) (any, error) {
	k, spec, err := in.settle(d)
	if err != nil {
		return nil, err
	}
	if err := d.initial(in.Initial, "user.message", "user.define_outcome"); err != nil {
		return nil, err
	}
	for _, r := range k.Resources { // their tokens, until the repositories are cloned
		if r.Secret {
			if err := d.KeepSecret(d, r.secretName(), r.token); err != nil {
				return nil, err
			}
		}
	}
	t, err := d.SubmitAs(ofSession, "sesn_", k, d.body(), spec, func(e *server.Edit, _ string) error { return k.placed(e) })
	d.secrets.settle(t.ID, k.Resources)
	if err != nil {
		return nil, err
	}
	select {
	case err = <-begin(d.Server, t.ID):
	case <-d.Done():
		err = d.Err()
	}
	if err != nil {
		return nil, err
	}
	return d.session(t.ID)
}

// settle returns the requested session, and the task that does its work.
func (in newSession) settle(d *door) (k keptSession, spec server.Spec, err error) {
	if in.Environment == "" {
		return k, spec, invalid("environment_id", "it is missing", "the id of an environment")
	}
	_, env, err := objectOf[keptEnvironment](d.Object, ofEnvironment, in.Environment)
	if err != nil {
		return k, spec, err
	}
	if env.isArchived() {
		return k, spec, conflict("environment %s is archived", in.Environment)
	}
	a, err := in.Agent.resolved(d)
	if err != nil {
		return k, spec, err
	}
	if err := bounded("title", in.Title.value, 0, 500); err != nil {
		return k, spec, err
	}
	if err := checkMetadata(in.Metadata); err != nil {
		return k, spec, err
	}
	resources, err := d.resources(in.Resources)
	if err != nil {
		return k, spec, err
	}
	own := &door{Visit: d.Behalf(d, d.Name(), d.Tenant(), "")} // the agent has its skills, no matter who begins the session
	if a.Skills, err = own.pinned(a.Skills); err != nil {
		return k, spec, err
	}
	vaults, err := d.vaultsOf(in.Vaults)
	if err != nil {
		return k, spec, err
	}
	k = keptSession{
		Title: in.Title.value, Metadata: in.Metadata, Agent: a.snapshot(), Environment: in.Environment, Budget: in.Budget, Initial: in.Initial,
		Resources: resources, Vaults: vaults, Elsewhere: env.Config.elsewhere(),
	}
	if err := k.fits(d); err != nil {
		return k, spec, err
	}
	spec = server.Spec{Open: true, Title: in.Title.value}
	if spec.MaxCost, err = in.Budget.usd(); err != nil {
		return k, spec, err
	}
	return k, spec, k.equip(d, env, &spec)
}

// equip sets the agent and the workplace of the session in the spec of its task.
func (k keptSession) equip(d *door, env keptEnvironment, spec *server.Spec) (err error) {
	if k.Agent.System != nil {
		spec.System = *k.Agent.System
	}
	k.Agent.equip(spec)
	if rule := env.Config.Networking.denied(); rule != "" {
		spec.Deny = append(spec.Deny, rule)
	}
	if spec.Elsewhere = k.Elsewhere; k.Elsewhere {
		if err := k.Agent.handOver(spec); err != nil {
			return err
		}
	}
	spec.Model, err = k.Agent.Model.name(d)
	return err
}

func (d *door) session(id string) (sessionView, error) {
	o, k, err := objectOf[keptSession](d.Object, ofSession, id)
	if err != nil {
		return sessionView{}, err
	}
	return d.shownSession(o, k)
}

func (d *door) sessions() (any, error) {
	all, err := listed[keptSession](d, ofSession)
	if err != nil {
		return nil, err
	}
	order, err := d.choice("order", "asc", "desc")
	if err != nil {
		return nil, err
	}
	version, err := d.number("agent_version", 0, 1, 1<<30)
	if err != nil {
		return nil, err
	}
	wanted := d.list("statuses")
	for _, s := range wanted {
		if !slices.Contains([]string{idle, running, terminated, "rescheduling"}, s) {
			return nil, invalid("statuses", "one is unknown", "idle, running, rescheduling or terminated")
		}
	}
	at := func(e entry[keptSession]) int64 { return -e.Turn }
	if order == "asc" {
		slices.Reverse(all)
		at = func(e entry[keptSession]) int64 { return e.Turn }
	}
	agent, deployment, store := d.query.Get("agent_id"), d.query.Get("deployment_id"), d.query.Get("memory_store_id")
	var found []entry[keptSession]
	for _, e := range all {
		k := e.kept
		if agent != "" && k.Agent.ID != agent || version != 0 && k.Agent.Version != version || deployment != "" && k.Deployment != deployment ||
			store != "" && !slices.ContainsFunc(k.Resources, func(r resource) bool { return r.Store == store }) || len(wanted) > 0 && !slices.Contains(wanted, d.statusNow(e.ID)) {
			continue
		}
		found = append(found, e)
	}
	return pageOf(d, found, 100, at, func(e entry[keptSession]) (sessionView, error) { return d.shownSession(e.Object, e.kept) })
}

// statusNow returns the status of a session; empty means unknown.
func (d *door) statusNow(id string) string {
	v, err := d.session(id)
	if err != nil {
		return ""
	}
	return v.Status
}

// sessionFields are the fields of a request to change a session.
type sessionFields struct {
	Title    opt[string]             `json:"title"`
	Metadata opt[map[string]*string] `json:"metadata"`
	Budget   opt[*budget]            `json:"budget"`
	Vaults   opt[[]string]           `json:"vault_ids"`
	Agent    opt[struct {
		Tools   opt[[]toolSpec]  `json:"tools"`
		Servers opt[[]mcpServer] `json:"mcp_servers"`
	}] `json:"agent"`
}

func (d *door) updateSession(in sessionFields) (any, error) {
	id := d.r.PathValue("id")
	_, before, err := objectOf[keptSession](d.Object, ofSession, id)
	switch {
	case err != nil:
		return nil, err
	case in.Vaults.said:
		return nil, unserved("vault_ids", "other vaults for a session that is there")
	case in.Budget.said:
		return nil, unserved("budget", "another budget for a session that is there")
	case before.isArchived():
		return nil, conflict("the session is archived")
	}
	if err := bounded("title", in.Title.value, 0, 500); err != nil {
		return nil, err
	}
	var refitted agent
	if in.Agent.said {
		if refitted, err = d.refit(id, before, in); err != nil {
			return nil, err
		}
	}
	var fields map[string]any
	if _, _, err = changed(d, ofSession, id, func(k *keptSession) error {
		fields, err = in.onto(k, refitted)
		return err
	}); err != nil {
		return nil, err
	}
	if len(fields) > 0 {
		if _, err := d.Note(id, ofUpdate, id, fields); err != nil {
			return nil, err
		}
	}
	return d.session(id)
}

// onto applies a request to a session, and returns the changed fields. Refitted is the new agent, if the
// request changes it.
func (in sessionFields) onto(k *keptSession, refitted agent) (fields map[string]any, err error) {
	fields = map[string]any{}
	title, metadata := k.Title, patched(k.Metadata, nil)
	in.Title.onto(&k.Title)
	k.Metadata = patched(k.Metadata, in.Metadata.value)
	if err := checkMetadata(k.Metadata); err != nil {
		return nil, err
	}
	if in.Agent.said {
		if k.First == nil {
			first := k.Agent
			k.First = &first
		}
		k.Agent = refitted
		if fields["agent"], err = refitted.inSession(); err != nil {
			return nil, err
		}
	}
	if k.Title != title {
		fields["title"] = orNull(k.Title)
	}
	if !maps.Equal(metadata, k.Metadata) {
		fields["metadata"] = k.Metadata
	}
	if len(fields) > 0 {
		k.Updated = time.Now()
	}
	return fields, nil
}

// refit gives the agent of a session other tools, from its next run on.
func (d *door) refit(id string, k keptSession, in sessionFields) (agent, error) {
	a, err := agentFields{Tools: in.Agent.value.Tools, Servers: in.Agent.value.Servers}.onto(d, k.Agent)
	if err != nil {
		return a, err
	}
	if k.Agent = a.snapshot(); d.statusNow(id) == running {
		return a, conflict("the session runs; its agent can be changed while it is idle")
	}
	_, env, err := objectOf[keptEnvironment](d.Object, ofEnvironment, k.Environment)
	if err != nil {
		return a, err
	}
	if _, err := d.Wait(id, func(t server.Task) bool { // a new session has no workspace yet
		return !slices.Contains([]event.Stage{server.StageSubmitted, server.StageQueued, server.StageHydrating}, t.Stage) &&
			(t.Stage != server.StageRunning || d.statusNow(id) == running)
	}); err != nil {
		return a, err
	}
	var fit error
	err = d.Respec(id, func(spec *server.Spec) { fit = k.equip(d, env, spec) })
	if fit != nil {
		err = fit
	}
	return k.Agent, err
}

// restingSession returns the session that the request names, if it does not run.
func (d *door) restingSession() (id string, err error) {
	id = d.r.PathValue("id")
	if _, _, err = objectOf[keptSession](d.Object, ofSession, id); err == nil && d.statusNow(id) == running {
		err = conflict("the session runs; interrupt it first")
	}
	return id, err
}

func (d *door) archiveSession() (any, error) {
	id, err := d.restingSession()
	if err == nil {
		_, err = d.Finish(id)
	}
	if err != nil {
		return nil, err
	}
	_, _, err = changed(d, ofSession, id, func(k *keptSession) error {
		if !k.isArchived() {
			k.Archived = time.Now()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.session(id)
}

// deleteSession ends a session, and hides it from all.
func (d *door) deleteSession() (any, error) {
	id, err := d.restingSession()
	if err == nil {
		_, err = d.Cancel(id)
	}
	if err != nil {
		return nil, err
	}
	return gone(d, ofSession, id, "session_deleted")
}
