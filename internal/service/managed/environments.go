package managed

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
)

const ofEnvironment = "managed.environment"

func environmentEndpoints() []endpoint {
	k := kind[keptEnvironment, environment]{ofEnvironment, "env_", func(_ *door, o server.Object, k keptEnvironment) (environment, error) {
		e := k.environment
		e.ID, e.Type = o.ID, "environment"
		e.CreatedAt, e.UpdatedAt, e.ArchivedAt = k.stamps(o)
		return e, nil
	}}
	return append(crud[environmentFields]("environments", k),
		act("environments/{id}/archive", func(d *door) (any, error) {
			return k.change(d, func(k *keptEnvironment) error {
				if !k.isArchived() {
					k.Archived = time.Now()
				}
				return nil
			})
		}),
		del("environments/{id}", (*door).deleteEnvironment))
}

// environment is where sessions work: in the server's own sandbox, or on workers.
type environment struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Config      hosting           `json:"config"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// keptEnvironment is an environment in the book.
type keptEnvironment struct {
	environment
	dates
}

// hosting is the configuration of an environment: the server's sandbox, or workers.
type hosting struct {
	Type       string     `json:"type"`
	Networking networking `json:"networking"`
	Packages   packages   `json:"packages"`
}

const selfHosted = "self_hosted"

func (h hosting) elsewhere() bool { return h.Type == selfHosted }

// MarshalJSON implements [json.Marshaler]: it omits the settings of machines that are not the server's.
func (h hosting) MarshalJSON() ([]byte, error) {
	if h.elsewhere() {
		return json.Marshal(map[string]string{"type": h.Type})
	}
	type plain hosting
	return json.Marshal(plain(h))
}

// networking sets the hosts that commands may reach.
type networking struct {
	Type     string   `json:"type"`
	Hosts    []string `json:"allowed_hosts"`
	Servers  bool     `json:"allow_mcp_servers"`
	Managers bool     `json:"allow_package_managers"`
}

// MarshalJSON implements [json.Marshaler]: a limited network has all its fields, an unrestricted one only its type.
func (n networking) MarshalJSON() ([]byte, error) {
	if n.Type != "limited" {
		return json.Marshal(map[string]string{"type": n.Type})
	}
	n.Hosts = append([]string{}, n.Hosts...)
	type plain networking
	return json.Marshal(plain(n))
}

// denied returns the rule that denies hosts in the environment; empty means there is none. For other hosts the
// server's rules apply.
func (n networking) denied() string {
	hosts := slices.Clone(n.Hosts)
	if n.Managers {
		hosts = append(hosts, netguard.Registries()...)
	}
	switch {
	case n.Type != "limited":
		return ""
	case len(hosts) == 0:
		return "network"
	}
	return "network(!" + strings.Join(hosts, " ") + ")"
}

// packages are the packages to install.
type packages struct {
	Type  string   `json:"type,omitempty"`
	Apt   []string `json:"apt"`
	Cargo []string `json:"cargo"`
	Gem   []string `json:"gem"`
	Go    []string `json:"go"`
	NPM   []string `json:"npm"`
	Pip   []string `json:"pip"`
}

// settle checks a configuration and fills in its defaults.
func (h *hosting) settle() error {
	switch h.Type {
	case "cloud":
	case "":
		h.Type = "cloud"
	case selfHosted:
		if !reflect.DeepEqual(*h, hosting{Type: selfHosted}) {
			return invalid("config", "networking and packages are up to the workers", `{"type": "self_hosted"}`)
		}
		return nil
	default:
		return invalid("config.type", "it is unknown", "cloud or self_hosted")
	}
	if h.Networking.Type == "" {
		h.Networking.Type = "unrestricted"
	}
	if h.Networking.Type != "unrestricted" && h.Networking.Type != "limited" {
		return invalid("config.networking.type", "it is unknown", "unrestricted or limited")
	}
	if n := h.Networking; n.Type == "unrestricted" && (len(n.Hosts) > 0 || n.Managers) {
		return invalid("config.networking", "hosts are only for a limited network", `{"type": "limited", "allowed_hosts": [...]}`)
	}
	if hosts := h.Networking.Hosts; len(hosts) > 0 {
		if err := checkHosts("config.networking.allowed_hosts", hosts); err != nil {
			return err
		}
	}
	for _, list := range []*[]string{&h.Packages.Apt, &h.Packages.Cargo, &h.Packages.Gem, &h.Packages.Go, &h.Packages.NPM, &h.Packages.Pip} {
		if len(*list) > 0 {
			return unserved("config.packages", "packages for each environment; install them where the server runs")
		}
		*list = []string{}
	}
	return nil
}

// environmentFields are the fields of a request about an environment.
type environmentFields struct {
	Name        opt[string]             `json:"name"`
	Description opt[string]             `json:"description"`
	Config      opt[hosting]            `json:"config"`
	Metadata    opt[map[string]*string] `json:"metadata"`
	Scope       opt[string]             `json:"scope"`
}

// onto applies a request to an environment.
func (f environmentFields) onto(_ *door, k *keptEnvironment) error {
	e := &k.environment
	f.Name.onto(&e.Name)
	f.Description.onto(&e.Description)
	was := e.Config.Type
	f.Config.onto(&e.Config)
	e.Metadata = patched(e.Metadata, f.Metadata.value)
	if f.Scope.said && f.Scope.value != "organization" {
		return unserved("scope", "scope "+f.Scope.value)
	}
	if err := named("name", e.Name, mostName); err != nil {
		return err
	}
	if err := bounded("description", e.Description, 0, mostDescription); err != nil {
		return err
	}
	if err := e.Config.settle(); err != nil {
		return err
	}
	if was != "" && was != e.Config.Type {
		return conflict("the environment is %s; make another one for %s", was, e.Config.Type)
	}
	return checkMetadata(e.Metadata)
}

// deleteEnvironment deletes an environment, unless a session that is not over needs its workers.
func (d *door) deleteEnvironment() (any, error) {
	id := d.r.PathValue("id")
	if _, _, err := objectOf[keptEnvironment](d.Object, ofEnvironment, id); err != nil {
		return nil, err
	}
	if err := d.Unconfined(); err != nil {
		return nil, err
	}
	over := map[string]bool{}
	for _, o := range d.Objects(ofSession) {
		t, err := d.Find(o.ID)
		over[o.ID] = err != nil || isOver(t)
	}
	err := d.Edit(func(e *server.Edit) error {
		for _, s := range entries[keptSession](e.Objects, ofSession) {
			if k := s.kept; k.Elsewhere && k.Environment == id && !k.isArchived() && !over[s.ID] {
				return conflict("session %s needs the environment's workers; archive or delete it first, or archive the environment", s.ID)
			}
		}
		e.Remove(ofEnvironment, id)
		return nil
	})
	return map[string]any{"id": id, "type": "environment_deleted"}, err
}

// placed returns an error if the environment of a new session has been deleted meanwhile.
func (k keptSession) placed(e *server.Edit) error {
	if _, err := e.Object(ofEnvironment, k.Environment); err != nil {
		return missing("environment", k.Environment)
	}
	return nil
}
