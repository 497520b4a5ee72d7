package managed

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	times "github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/service/server"
)

const ofDeployment = "managed.deployment"

func deploymentEndpoints(dues *agenda) []endpoint {
	change := func(f func(*door) (any, error)) func(*door) (any, error) {
		return func(d *door) (any, error) {
			defer dues.look()
			return f(d)
		}
	}
	k := deploymentKind()
	return []endpoint{
		post("deployments", change(reading((*door).makeDeployment))),
		get("deployments", (*door).deployments, "limit", "page", "agent_id", "status", "include_archived", "created_at[gte]", "created_at[lte]"),
		get("deployments/{id}", k.read),
		post("deployments/{id}", change(reading((*door).updateDeployment))),
		act("deployments/{id}/archive", change(func(d *door) (any, error) {
			return k.change(d, func(k *keptDeployment) error {
				if !k.isArchived() {
					k.Archived, k.Paused = d.Clock.Now(), nil
				}
				return nil
			})
		})),
		act("deployments/{id}/pause", change(func(d *door) (any, error) {
			return d.changeDeployment(func(k *keptDeployment) error {
				if k.Paused == nil {
					k.Paused, k.Updated = &pause{Type: "manual"}, d.Clock.Now()
				}
				return nil
			})
		})),
		act("deployments/{id}/unpause", change(func(d *door) (any, error) { // missed runs are not made up
			return d.changeDeployment(func(k *keptDeployment) error {
				if k.Paused != nil {
					k.Paused, k.Since, k.Updated = nil, d.Clock.Now(), d.Clock.Now()
				}
				return nil
			})
		})),
		act("deployments/{id}/run", (*door).runDeployment),
		get("deployment_runs", (*door).runs, "limit", "page", "deployment_id", "trigger_type", "has_error",
			"created_at[gt]", "created_at[gte]", "created_at[lt]", "created_at[lte]"),
		get("deployment_runs/{id}", runKind().read),
	}
}

// reference names one version of an agent.
type reference struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// keptDeployment is a deployment in the book.
type keptDeployment struct {
	dates

	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Agent       reference         `json:"agent"`
	Environment string            `json:"environment"`
	Initial     []json.RawMessage `json:"initial"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Resources   []json.RawMessage `json:"resources,omitempty"`
	Vaults      []string          `json:"vaults,omitempty"`
	Budget      *budget           `json:"budget,omitempty"`
	Schedule    *schedule         `json:"schedule,omitempty"`
	Paused      *pause            `json:"paused,omitempty"`
	By          string            `json:"by"`    // its maker, in whose name it runs
	Since       time.Time         `json:"since"` // schedule times count after this one: the last run, or the start
	Ran         time.Time         `json:"ran,omitzero"`
}

// pause is the reason why a deployment does not run on its schedule.
type pause struct {
	Type  string     `json:"type"` // manual or error
	Error *pauseKind `json:"error,omitempty"`
}

// pauseKind is the kind of an error that pauses.
type pauseKind struct {
	Type string `json:"type"`
}

// deploymentView is a deployment as clients see it.
type deploymentView struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Status      string            `json:"status"`
	Agent       reference         `json:"agent"`
	Environment string            `json:"environment_id"`
	Initial     []json.RawMessage `json:"initial_events"`
	Metadata    map[string]string `json:"metadata"`
	Resources   []json.RawMessage `json:"resources"`
	Vaults      []string          `json:"vault_ids"`
	Budget      *budget           `json:"budget"`
	Schedule    *scheduleView     `json:"schedule"`
	Paused      *pause            `json:"paused_reason"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// scheduleView is a schedule with its next and last times.
type scheduleView struct {
	schedule
	LastRunAt *string  `json:"last_run_at"`
	Upcoming  []string `json:"upcoming_runs_at"`
}

const (
	active       = "active"
	paused       = "paused"
	mostUpcoming = 5
)

func (k keptDeployment) status() string {
	if k.Paused != nil && !k.isArchived() {
		return paused
	}
	return active
}

func deploymentKind() kind[keptDeployment, deploymentView] {
	return kind[keptDeployment, deploymentView]{ofDeployment, "depl_", func(d *door, o server.Object, k keptDeployment) (deploymentView, error) {
		return k.shown(o, d.Clock.Now())
	}}
}

func (k keptDeployment) shown(o server.Object, now time.Time) (deploymentView, error) {
	v := deploymentView{
		ID: o.ID, Type: "deployment", Name: k.Name, Description: k.Description, Status: k.status(), Agent: k.Agent,
		Environment: k.Environment, Initial: k.Initial, Metadata: patched(k.Metadata, nil), Resources: k.Resources, Vaults: k.Vaults,
		Budget: k.Budget,
	}
	v.CreatedAt, v.UpdatedAt, v.ArchivedAt = k.stamps(o)
	if v.Status == paused {
		v.Paused = k.Paused
	}
	if v.Resources == nil {
		v.Resources = []json.RawMessage{}
	}
	if v.Vaults == nil {
		v.Vaults = []string{}
	}
	if k.Schedule != nil {
		v.Schedule = &scheduleView{*k.Schedule, when(k.Ran), []string{}}
		t, err := k.Schedule.read()
		if err != nil {
			return v, err
		}
		if !k.isArchived() {
			for _, at := range t.Next(now, mostUpcoming) {
				v.Schedule.Upcoming = append(v.Schedule.Upcoming, stamp(at))
			}
		}
	}
	return v, nil
}

// deploymentFields are the fields of a request about a deployment.
type deploymentFields struct {
	Name        opt[string]             `json:"name"`
	Description opt[string]             `json:"description"`
	Agent       opt[agentRef]           `json:"agent"`
	Environment opt[string]             `json:"environment_id"`
	Initial     opt[[]json.RawMessage]  `json:"initial_events"`
	Metadata    opt[map[string]*string] `json:"metadata"`
	Resources   opt[[]json.RawMessage]  `json:"resources"`
	Vaults      opt[[]string]           `json:"vault_ids"`
	Budget      opt[*budget]            `json:"budget"`
	Schedule    opt[*schedule]          `json:"schedule"`
}

// onto applies a request to a deployment, at a time.
func (f deploymentFields) onto(d *door, k *keptDeployment, now time.Time) error {
	f.Name.onto(&k.Name)
	f.Description.onto(&k.Description)
	f.Environment.onto(&k.Environment)
	f.Initial.onto(&k.Initial)
	f.Resources.onto(&k.Resources)
	f.Vaults.onto(&k.Vaults)
	f.Budget.onto(&k.Budget)
	k.Metadata = patched(k.Metadata, f.Metadata.value)
	if f.Agent.said {
		a, err := f.Agent.value.resolved(d)
		switch {
		case err != nil:
			return err
		case f.Agent.value.Type != "agent":
			return invalid("agent.type", "a deployment has no overrides", "agent")
		}
		k.Agent = reference{"agent", a.ID, a.Version}
	}
	if f.Schedule.said {
		if k.Schedule = f.Schedule.value; k.Schedule != nil {
			if _, err := k.Schedule.read(); err != nil {
				return err
			}
		}
		k.Since = now
	}
	return k.check(d)
}

// check reports what is wrong with a deployment, including problems that its sessions would have.
func (k *keptDeployment) check(d *door) error {
	if err := named("name", k.Name, mostName); err != nil {
		return err
	}
	if err := bounded("description", k.Description, 0, mostDescription); err != nil {
		return err
	}
	if k.Agent.ID == "" {
		return invalid("agent", "it is missing", "the id of an agent")
	}
	if len(k.Initial) == 0 {
		return invalid("initial_events", "it is empty", "an event at least")
	}
	if err := d.initial(k.Initial, "user.message", "user.define_outcome", "system.message"); err != nil {
		return err
	}
	if err := checkMetadata(k.Metadata); err != nil {
		return err
	}
	for i, raw := range k.Resources {
		var r struct {
			Token *string `json:"authorization_token"`
		}
		if json.Unmarshal(raw, &r) == nil && r.Token != nil {
			return unserved(fmt.Sprintf("resources.%d.authorization_token", i), "tokens in deployments, which would be stored")
		}
	}
	_, _, err := k.session().settle(d)
	return err
}

// session returns a request for a session of the deployment.
func (k keptDeployment) session() newSession {
	return newSession{
		Agent: agentRef{Type: "agent", ID: k.Agent.ID, Version: k.Agent.Version}, Environment: k.Environment,
		Title: opt[string]{value: k.Name}, Budget: k.Budget, Initial: k.Initial, Resources: k.Resources, Vaults: k.Vaults,
	}
}

func (d *door) makeDeployment(in deploymentFields) (any, error) {
	now := d.Clock.Now()
	k := keptDeployment{By: d.Name(), Since: now}
	if err := in.onto(d, &k, now); err != nil {
		return nil, err
	}
	o, err := d.Make(ofDeployment, "depl_", k, d.body())
	if err != nil {
		return nil, err
	}
	return deploymentKind().view(d, o.ID)
}

func (d *door) deployments() (any, error) {
	all, err := listed[keptDeployment](d, ofDeployment)
	if err != nil {
		return nil, err
	}
	status, err := d.choice("status", active, paused)
	switch {
	case err != nil:
		return nil, err
	case status != "" && d.query.Get("include_archived") == "true":
		return nil, invalid("status", "include_archived is set too", "one of the two")
	}
	agent := d.query.Get("agent_id")
	all = slices.DeleteFunc(all, func(e entry[keptDeployment]) bool {
		return agent != "" && e.kept.Agent.ID != agent || status != "" && e.kept.status() != status
	})
	return deploymentKind().page(d, all, 100)
}

func (d *door) updateDeployment(in deploymentFields) (any, error) {
	id := d.r.PathValue("id")
	_, before, err := objectOf[keptDeployment](d.Object, ofDeployment, id)
	if err != nil {
		return nil, err
	}
	now, after := d.Clock.Now(), before
	if err := in.onto(d, &after, now); err != nil {
		return nil, err
	}
	return d.changeDeployment(func(k *keptDeployment) error {
		if k.Updated != before.Updated {
			return conflict("the deployment was changed meanwhile; read it again")
		}
		if !in.Schedule.said {
			after.Since = k.Since
		}
		after.Ran, after.Paused, after.Updated = k.Ran, k.Paused, now
		*k = after
		return nil
	})
}

// changeDeployment changes a deployment that is not archived.
func (d *door) changeDeployment(f func(*keptDeployment) error) (any, error) {
	return deploymentKind().change(d, func(k *keptDeployment) error {
		if k.isArchived() {
			return conflict("the deployment is archived")
		}
		return f(k)
	})
}

// schedule is when a deployment runs.
type schedule struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
	Timezone   string `json:"timezone"`
}

const wantSchedule = `five fields such as "0 9 * * 1-5": minute, hour, day of the month, month, day of the week`

// read parses a schedule.
func (s schedule) read() (times.Cron, error) {
	if s.Type != "cron" {
		return times.Cron{}, invalid("schedule.type", "it is unknown", "cron")
	}
	c, err := times.ParseCron(s.Expression, s.Timezone)
	switch {
	case errors.Is(err, times.ErrZone):
		return c, invalid("schedule.timezone", err.Error(), "a name such as UTC or Europe/Berlin")
	case err != nil:
		return c, invalid("schedule.expression", err.Error(), wantSchedule)
	}
	return c, nil
}
