package server

import (
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// Role is the set of permissions of an identity. Each role except the first includes those of the roles before
// it.
type Role string

// Roles.
const (
	Worker   Role = "worker"   // takes work of self-hosted environments, and sees nothing else
	Viewer   Role = "viewer"   // sees the data of its tenant
	Operator Role = "operator" // submits and cancels tasks, talks to them, and decides for them
	Admin    Role = "admin"    // makes identities of its tenant, and reads the audit log
)

// roles returns the roles, from the least to the most permissions.
func roles() []Role { return []Role{Worker, Viewer, Operator, Admin} }

// atLeast reports whether a role has all permissions of another.
func (r Role) atLeast(other Role) bool {
	return slices.Index(roles(), r) >= slices.Index(roles(), other)
}

// Identity is a person or program that may talk to the server: by a token (only its digest is stored), or by claims
// that the identity provider has signed.
type Identity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant,omitempty"`
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires,omitzero"`
	Digest  string    `json:"digest,omitempty"` // of the token, in the form of tool.Digest; empty: it has none

	Claims map[string]string `json:"claims,omitempty"` // by name

	confines
}

// Tenant is a group of identities that sees nothing of the others, and its limits.
type Tenant struct {
	Name    string  `json:"name"`
	AtOnce  int     `json:"at_once,omitempty"`  // tasks that work at the same time; 0: the server's limit
	Queue   int     `json:"queue,omitempty"`    // tasks that are not over; 0: unlimited
	Budget  float64 `json:"budget,omitempty"`   // US dollars that its tasks may cost together; 0: unlimited
	PerHour int     `json:"per_hour,omitempty"` // tasks that it may submit in an hour; 0: unlimited
	Disk    int64   `json:"disk,omitempty"`     // bytes that its workspaces may take together; 0: unlimited
}

// visitor is the sender of a request.
type visitor struct {
	name   string // in the log
	tenant string
	role   Role
	root   bool // sees all tenants
	grant  *Grant

	confines
}

// confines lists the ids of the agents and environments that an identity is confined to. If there are none, it is
// confined only to its tenant.
type confines struct {
	Agents       []string `json:"agents,omitempty"`
	Environments []string `json:"environments,omitempty"`
}

// Place is the owner of something within its tenant, by ids of doors' objects. Something with the zero value
// has no owner: confined identities don't see it.
type Place struct {
	Agent       string // [Everybody]: every agent's
	Environment string // the same
	Task        string // whose agent owns it
	Private     bool   // only its maker sees it
	Fixed       bool   // confined identities can't change it

	maker string // of a private one
}

// Everybody in a [Place] means every agent, or every environment.
const Everybody = "*"

// tokenMark begins every token of an identity, so that secret scanners recognize it.
const tokenMark = "inspan_"

// newToken makes the token of an identity, and its digest.
func newToken(id string) (token, digest string) {
	token = tokenMark + id + "_" + netguard.NewToken()
	return token, digestOf(token)
}

func digestOf(token string) string { return tool.Digest([]byte(token)) }

const owner = "owner" // principal of the owner's token

// ownership is the knowledge of a server about the owner's token.
type ownership struct {
	digest string // empty means there is no owner
	key    string // signs grants: the token, or if only its digest is known, a key of this process
}

// owned returns the ownership of a server that has started.
func (s *Server) owned() ownership {
	if o := s.ownership.Load(); o != nil {
		return *o
	}
	if s.Owner == "" {
		return ownership{}
	}
	return ownership{digest: digestOf(s.Owner), key: s.Owner}
}

// Who returns the principal of a token, for [netguard.Gate].
func (s *Server) Who(token string) (principal string, ok bool) {
	if d := s.owned().digest; d != "" && subtle.ConstantTimeCompare([]byte(digestOf(token)), []byte(d)) == 1 {
		return owner, true
	}
	if s.codes.use(token) {
		return byCode, true
	}
	if s.OIDC.Issuer != "" && strings.Count(token, ".") == 2 {
		return s.claimed(token)
	}
	if principal, is := s.grantee(token); is {
		return principal, true
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(token, tokenMark), "_")
	digest := digestOf(token)
	i, known := s.identity(id)
	same := subtle.ConstantTimeCompare([]byte(digest), []byte(i.Digest)) == 1
	return id, known && same && strings.HasPrefix(token, tokenMark)
}

// identity returns the identity with the id, unless it has expired.
func (s *Server) identity(id string) (Identity, bool) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	i := s.book.identities[id]
	if i == nil || !i.Expires.IsZero() && time.Now().After(i.Expires) {
		return Identity{}, false
	}
	return *i, true
}

// visitor returns the visitor for a principal; without a principal, where the gate wants no token, it is the
// owner.
func (s *Server) visitor(principal string) (visitor, bool) {
	if principal == owner || principal == "" || principal == byCode {
		return visitor{name: owner, role: Admin, root: true}, true
	}
	if principal == byRuntime {
		return visitor{name: "runtime", role: Operator}, true
	}
	if g := grantOf(principal); g != nil {
		return visitor{name: strings.TrimPrefix(g.Tenant+"/", "/") + "holder of " + g.ID, tenant: g.Tenant, role: Worker, grant: g}, true
	}
	id, person, expires := subject(principal)
	i, known := s.identity(id)
	name := i.Name
	if person != "" {
		name, known = name+":"+person, known && time.Now().Before(expires)
	}
	if i.Tenant != "" {
		name = i.Tenant + "/" + name // names have no slash or colon
	}
	return visitor{name: name, tenant: i.Tenant, role: i.Role, root: i.Role == Admin && i.Tenant == "", confines: i.confines}, known
}

// sees reports whether the visitor may see something of a tenant. It is the one rule for everything that a
// visitor sees, does or counts, at every door.
func (v visitor) sees(tenant string, p Place) bool {
	if !v.root && v.tenant != tenant {
		return false
	}
	in := func(ids []string, id string) bool {
		return len(ids) == 0 || id == Everybody || slices.Contains(ids, id)
	}
	return in(v.Agents, p.Agent) && in(v.Environments, p.Environment) || p.Private && p.maker == v.name
}

// confined reports whether the visitor sees only a part of its tenant.
func (c confines) confined() bool { return len(c.Agents)+len(c.Environments) > 0 }
