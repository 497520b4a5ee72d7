package managed

import (
	"time"

	"github.com/inspan/inspan/internal/server"
)

const ofEnvironment = "managed.environment"

func environmentEndpoints() []endpoint {
	return []endpoint{
		post("environments", (*door).makeEnvironment),
		get("environments", (*door).environments, "limit", "page", "include_archived"),
		get("environments/{id}", (*door).environment),
		post("environments/{id}", (*door).updateEnvironment),
		post("environments/{id}/archive", (*door).archiveEnvironment),
		del("environments/{id}", func(d *door) (any, error) { return gone(d, ofEnvironment, d.r.PathValue("id"), "environment_deleted") }),
	}
}

// environment is where sessions work. Here that is always the server's own machine and sandbox, so
// there is little to say of it.
type environment struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Config      cloud             `json:"config"`
	Metadata    map[string]string `json:"metadata"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	ArchivedAt  *string           `json:"archived_at"`
}

// keptEnvironment is one in the book.
type keptEnvironment struct {
	environment
	dates
}

// cloud is the configuration of an environment.
type cloud struct {
	Type       string     `json:"type"`
	Networking networking `json:"networking"`
	Packages   packages   `json:"packages"`
}

// networking says what commands may reach.
type networking struct {
	Type     string   `json:"type"`
	Hosts    []string `json:"allowed_hosts,omitempty"`
	Servers  bool     `json:"allow_mcp_servers,omitempty"`
	Managers bool     `json:"allow_package_managers,omitempty"`
}

// packages are those that are to be there.
type packages struct {
	Type  string   `json:"type,omitempty"`
	Apt   []string `json:"apt"`
	Cargo []string `json:"cargo"`
	Gem   []string `json:"gem"`
	Go    []string `json:"go"`
	NPM   []string `json:"npm"`
	Pip   []string `json:"pip"`
}

// settle checks a configuration and writes out its defaults.
func (c *cloud) settle() error {
	switch c.Type {
	case "cloud":
	case "", "self_hosted":
		if c.Type != "" {
			return unserved("config.type", "self-hosted workers; agents work on the server's machine: use cloud")
		}
		c.Type = "cloud"
	default:
		return invalid("config.type", "it is unknown", "cloud")
	}
	if c.Networking.Type == "" {
		c.Networking.Type = "unrestricted"
	}
	if c.Networking.Type != "unrestricted" && c.Networking.Type != "limited" {
		return invalid("config.networking.type", "it is unknown", "unrestricted or limited")
	}
	if len(c.Networking.Hosts) > 0 || c.Networking.Managers {
		return unserved("config.networking", "hosts for each environment; allow them in the server's rules, network(HOST)")
	}
	for _, list := range []*[]string{&c.Packages.Apt, &c.Packages.Cargo, &c.Packages.Gem, &c.Packages.Go, &c.Packages.NPM, &c.Packages.Pip} {
		if len(*list) > 0 {
			return unserved("config.packages", "packages for each environment; install them where the server runs")
		}
		*list = []string{}
	}
	return nil
}

// environmentFields are what a request says of an environment.
type environmentFields struct {
	Name        opt[string]             `json:"name"`
	Description opt[string]             `json:"description"`
	Config      opt[cloud]              `json:"config"`
	Metadata    opt[map[string]*string] `json:"metadata"`
	Scope       opt[string]             `json:"scope"`
}

// onto changes an environment as a request says.
func (f environmentFields) onto(e *environment) error {
	f.Name.onto(&e.Name)
	f.Description.onto(&e.Description)
	f.Config.onto(&e.Config)
	e.Metadata = patched(e.Metadata, f.Metadata.value)
	if f.Scope.said && f.Scope.value != "organization" {
		return unserved("scope", "scope "+f.Scope.value)
	}
	if err := bounded("name", e.Name, 1, mostName); err != nil {
		return err
	}
	if err := bounded("description", e.Description, 0, mostDescription); err != nil {
		return err
	}
	if err := e.Config.settle(); err != nil {
		return err
	}
	return checkMetadata(e.Metadata)
}

// shown is an environment as clients see it.
func (k keptEnvironment) shown(o server.Object) environment {
	e := k.environment
	e.ID, e.Type = o.ID, "environment"
	e.CreatedAt, e.UpdatedAt, e.ArchivedAt = k.stamps(o)
	return e
}

func (d *door) makeEnvironment() (any, error) {
	var in environmentFields
	raw, err := d.read(&in)
	if err != nil {
		return nil, err
	}
	var k keptEnvironment
	if err := in.onto(&k.environment); err != nil {
		return nil, err
	}
	o, err := d.Make(ofEnvironment, "env_", k, fixed(raw))
	if err != nil {
		return nil, err
	}
	return d.shownEnvironment(o.ID)
}

func (d *door) shownEnvironment(id string) (any, error) {
	o, k, err := objectOf[keptEnvironment](d, ofEnvironment, id)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}

func (d *door) environment() (any, error) { return d.shownEnvironment(d.r.PathValue("id")) }

func (d *door) environments() (any, error) {
	all, err := listed[keptEnvironment](d, ofEnvironment)
	if err != nil {
		return nil, err
	}
	out := []environment{}
	for _, e := range all {
		out = append(out, e.kept.shown(e.Object))
	}
	return paged(d, out, 100, func(e environment) string { return e.ID })
}

func (d *door) updateEnvironment() (any, error) {
	var in environmentFields
	if _, err := d.read(&in); err != nil {
		return nil, err
	}
	return d.changeEnvironment(func(k *keptEnvironment) error {
		if !k.Archived.IsZero() {
			return conflict("the environment is archived")
		}
		k.Updated = time.Now()
		return in.onto(&k.environment)
	})
}

func (d *door) archiveEnvironment() (any, error) {
	return d.changeEnvironment(func(k *keptEnvironment) error {
		if k.Archived.IsZero() {
			k.Archived = time.Now()
		}
		return nil
	})
}

func (d *door) changeEnvironment(f func(*keptEnvironment) error) (any, error) {
	o, k, err := changed(d, ofEnvironment, d.r.PathValue("id"), f)
	if err != nil {
		return nil, err
	}
	return k.shown(o), nil
}
