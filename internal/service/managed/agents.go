package managed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

const ofAgent = "managed.agent"

func agentEndpoints() []endpoint {
	k := agentKind()
	return []endpoint{
		post("agents", reading((*door).makeAgent)),
		get("agents", (*door).agents, "limit", "page", "include_archived", "created_at[gte]", "created_at[lte]"),
		get("agents/{id}", (*door).agent, "version"),
		post("agents/{id}", reading((*door).updateAgent)),
		get("agents/{id}/versions", (*door).agentVersions, "limit", "page"),
		act("agents/{id}/archive", func(d *door) (any, error) {
			return k.change(d, func(k *keptAgent) error {
				if !k.isArchived() {
					k.Archived = time.Now()
				}
				return nil
			})
		}),
	}
}

func agentKind() kind[keptAgent, agent] {
	return kind[keptAgent, agent]{ofAgent, "agent_", func(_ *door, o server.Object, k keptAgent) (agent, error) { return k.shown(o, 0) }}
}

// model is the model of an agent: only its name, or a name with settings.
type model struct {
	ID     string          `json:"id"`
	Effort json.RawMessage `json:"effort,omitempty"`
	Speed  string          `json:"speed,omitempty"`
	Geo    string          `json:"inference_geo,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *model) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &m.ID) == nil {
		return nil
	}
	type plain model
	return strict(raw, (*plain)(m))
}

// agent is one version of an agent, as clients see it, without its null fields.
type agent struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	Model       model             `json:"model"`
	System      *string           `json:"system"`
	Tools       []toolSpec        `json:"tools"`
	Servers     []mcpServer       `json:"mcp_servers"`
	Skills      []skillRef        `json:"skills"`
	Metadata    map[string]string `json:"metadata,omitzero"`
	Multiagent  *multiagent       `json:"multiagent"`
	Identity    *policy           `json:"execution_identity"`
	CreatedAt   string            `json:"created_at,omitempty"`
	UpdatedAt   string            `json:"updated_at,omitempty"`
	ArchivedAt  *string           `json:"archived_at"`
}

// multiagent says whether an agent may use subagents.
type multiagent struct {
	Type   string            `json:"type"`
	Agents []json.RawMessage `json:"agents"`
}

// keptAgent is an agent in the book: all versions, oldest first.
type keptAgent struct {
	dates

	Versions []agent `json:"versions"`
}

// agentFields are the fields of a request about an agent.
type agentFields struct {
	Name        opt[string]             `json:"name"`
	Description opt[string]             `json:"description"`
	Model       opt[model]              `json:"model"`
	System      opt[string]             `json:"system"`
	Tools       opt[[]toolSpec]         `json:"tools"`
	Servers     opt[[]mcpServer]        `json:"mcp_servers"`
	Skills      opt[[]skillRef]         `json:"skills"`
	Metadata    opt[map[string]*string] `json:"metadata"`
	Multiagent  opt[multiagent]         `json:"multiagent"`
	Identity    opt[policy]             `json:"execution_identity"`
	Version     opt[int]                `json:"version"`
}

const (
	mostName        = 256
	mostDescription = 2048
	mostSystem      = 100_000
)

// onto applies a request to an agent, for all endpoints: a confined visitor can't define agents, not even in a
// session.
func (f agentFields) onto(d *door, a agent) (agent, error) {
	if !reflect.ValueOf(f).IsZero() {
		if err := d.Unconfined(); err != nil {
			return a, err
		}
	}
	if f.Name.onto(&a.Name); f.Name.said {
		if err := named("name", a.Name, mostName); err != nil {
			return a, err
		}
	}
	f.Model.onto(&a.Model)
	f.Tools.onto(&a.Tools)
	f.Servers.onto(&a.Servers)
	if f.Skills.said { // existing ones may be deleted by now
		skills, err := d.checkSkills(f.Skills.value)
		if err != nil {
			return a, err
		}
		a.Skills = skills
	}
	if f.Description.said {
		a.Description = orNull(f.Description.value)
	}
	if f.System.said {
		a.System = orNull(f.System.value)
	}
	if f.Multiagent.said {
		a.Multiagent = &f.Multiagent.value
		if f.Multiagent.null {
			a.Multiagent = nil
		}
	}
	if f.Identity.said && !f.Identity.null && f.Identity.value.Type != "service_account" {
		return a, unserved("execution_identity", "execution identities")
	}
	a.Identity = &policy{"service_account"}
	a.Metadata = patched(a.Metadata, f.Metadata.value)
	return a, a.check(d)
}

// check reports what is wrong with an agent, and fills in the defaults of its tools.
func (a *agent) check(d *door) (err error) {
	if err := bounded("name", a.Name, 1, mostName); err != nil {
		return err
	}
	if err := bounded("model", a.Model.ID, 1, mostName); err != nil {
		return err
	}
	for field, text := range map[string]*string{"description": a.Description, "system": a.System} {
		most := map[string]int{"description": mostDescription, "system": mostSystem}[field]
		if text != nil && len(*text) > most {
			return bounded(field, *text, 0, most)
		}
	}
	if err := a.Model.check(d); err != nil {
		return err
	}
	if a.Servers == nil {
		a.Servers = []mcpServer{}
	}
	if a.Skills == nil {
		a.Skills = []skillRef{}
	}
	if err := checkServers(a.Servers); err != nil {
		return err
	}
	if a.Tools, err = settled(a.Tools, a.Servers); err != nil {
		return err
	}
	if a.Multiagent, err = a.Multiagent.of(a.ID); err != nil {
		return err
	}
	return checkMetadata(a.Metadata)
}

// check reports what is wrong with a model, or why no request can go to it.
func (m *model) check(d *door) error {
	if m.Speed != "" && m.Speed != "standard" {
		return unserved("model.speed", "speed "+m.Speed)
	}
	if m.Geo != "" {
		return unserved("model.inference_geo", "a choice of regions")
	}
	if len(m.Effort) > 0 && string(m.Effort) != "null" {
		return unserved("model.effort", "an effort for each agent; set it in the server's settings")
	}
	m.Effort = nil
	_, err := m.name(d)
	return err
}

// name returns the server's name of the model. A name that no provider here knows stands for the model with
// which the operator has started the server.
func (m *model) name(d *door) (string, error) {
	if d.HasModel == nil {
		return m.ID, nil
	}
	why := d.HasModel(m.ID)
	switch {
	case why == nil:
		return m.ID, nil
	case d.Options.Model != "":
		return d.Options.Model, nil
	}
	return "", invalid("model", why.Error(), "a model of this server, as 'inspan models' lists them, or start it with --model")
}

// of returns the multiagent configuration of the agent with the id in stored form, or an error for something
// that this server can't do: subagents are copies of the agent, in roles of the server.
func (m *multiagent) of(agent string) (*multiagent, error) {
	if m == nil {
		return nil, nil
	}
	if m.Type != "coordinator" {
		return nil, unserved("multiagent.type", "type "+m.Type)
	}
	for i, raw := range m.Agents {
		var entry reference
		if json.Unmarshal(raw, &entry) != nil || entry.Type != "self" && (entry.Type != "agent" || entry.ID != agent || agent == "") {
			return nil, unserved(fmt.Sprintf("multiagent.agents.%d", i), "other agents in a roster; use {\"type\": \"self\"}")
		}
	}
	if len(m.Agents) == 0 {
		return nil, invalid("multiagent.agents", "it is empty", "[{\"type\": \"self\"}]")
	}
	return m.listing(policy{"self"})
}

// listing returns a multiagent configuration that lists its agents, which all are the agent itself.
func (m *multiagent) listing(self any) (*multiagent, error) {
	if m == nil {
		return nil, nil
	}
	raw, err := json.Marshal(self)
	return &multiagent{Type: m.Type, Agents: slices.Repeat([]json.RawMessage{raw}, len(m.Agents))}, err
}

// delegates reports whether the agent may use subagents.
func (a *agent) delegates() bool { return a.Multiagent != nil }

func (d *door) makeAgent(in agentFields) (any, error) {
	if in.Version.said {
		return nil, invalid("version", "it is the server's to say", "")
	}
	a, err := in.onto(d, agent{Type: "agent", Version: 1})
	if err != nil {
		return nil, err
	}
	k := agentKind()
	o, err := d.Make(k.of, k.prefix, keptAgent{Versions: []agent{a}}, d.body())
	if err != nil {
		return nil, err
	}
	return k.view(d, o.ID)
}

// shown returns a version of an agent as clients see it; 0 means the latest.
func (k keptAgent) shown(o server.Object, version int) (agent, error) {
	if version == 0 {
		version = len(k.Versions)
	}
	if version < 0 || version > len(k.Versions) {
		return agent{}, missing("version of agent "+o.ID, fmt.Sprint(version))
	}
	a := k.Versions[version-1]
	a.ID, a.Version, a.CreatedAt, a.ArchivedAt = o.ID, version, stamp(o.Created), when(k.Archived)
	if a.UpdatedAt == "" {
		a.UpdatedAt = a.CreatedAt
	}
	if a.Metadata == nil {
		a.Metadata = map[string]string{}
	}
	var err error
	a.Multiagent, err = a.Multiagent.listing(reference{"agent", a.ID, a.Version})
	return a, err
}

func shownAgent(d *door, id string, version int) (agent, error) {
	o, k, err := objectOf[keptAgent](d.Object, ofAgent, id)
	if err != nil {
		return agent{}, err
	}
	return k.shown(o, version)
}

func (d *door) agent() (any, error) {
	version, err := d.number("version", 0, 1, 1<<30)
	if err != nil {
		return nil, err
	}
	return shownAgent(d, d.r.PathValue("id"), version)
}

func (d *door) agents() (any, error) {
	all, err := listed[keptAgent](d, ofAgent)
	if err != nil {
		return nil, err
	}
	return agentKind().page(d, all, 100)
}

func (d *door) agentVersions() (any, error) {
	o, k, err := objectOf[keptAgent](d.Object, ofAgent, d.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var out []agent
	for i := range slices.Backward(k.Versions) {
		a, err := k.shown(o, i+1)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return paged(d, out, 100, func(a agent) int { return -a.Version })
}

func (d *door) updateAgent(in agentFields) (any, error) {
	now := time.Now()
	return agentKind().change(d, func(k *keptAgent) error {
		last := k.Versions[len(k.Versions)-1]
		if k.isArchived() {
			return conflict("the agent is archived")
		}
		if in.Version.said && in.Version.value != len(k.Versions) {
			return conflict("version: the agent is at version %d, not %d; read it again", len(k.Versions), in.Version.value)
		}
		last.ID = d.r.PathValue("id")
		next, err := in.onto(d, last)
		if err != nil {
			return err
		}
		if same, err := alike(last, next); err != nil || same {
			return err
		}
		next.UpdatedAt, k.Updated = stamp(now), now
		k.Versions = append(k.Versions, next)
		return nil
	})
}

// alike reports whether two values have the same JSON.
func alike(a, b any) (bool, error) {
	var of [2]any
	for i, v := range []any{a, b} {
		raw, err := json.Marshal(v)
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(raw, &of[i]); err != nil {
			return false, err
		}
	}
	return reflect.DeepEqual(of[0], of[1]), nil
}
