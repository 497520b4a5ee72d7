package server

import (
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/gate"
	"github.com/inspan/inspan/tool"
)

// Role is what an identity may do. Each may do what those before it may.
type Role string

// Roles.
const (
	Viewer   Role = "viewer"   // sees what its tenant has
	Operator Role = "operator" // submits and cancels tasks, talks to them, and decides for them
	Admin    Role = "admin"    // makes identities of its tenant, and reads who did what
)

// roles are in the order of what they may.
func roles() []Role { return []Role{Viewer, Operator, Admin} }

// atLeast reports whether a role may what another may.
func (r Role) atLeast(other Role) bool {
	return slices.Index(roles(), r) >= slices.Index(roles(), other)
}

// Identity is somebody who may talk to the server: a token, of which only the digest is kept.
type Identity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant,omitempty"`
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires,omitzero"`
	Digest  string    `json:"digest"` // of the token, as tool.Digest has it
}

// Tenant is a group of identities that sees nothing of the others, and its bounds.
type Tenant struct {
	Name    string  `json:"name"`
	AtOnce  int     `json:"at_once,omitempty"`  // tasks that work at the same time; 0: as many as the server's
	Queue   int     `json:"queue,omitempty"`    // tasks that are not over; 0: any number
	Budget  float64 `json:"budget,omitempty"`   // US dollars that its tasks may have cost together; 0: no bound
	PerHour int     `json:"per_hour,omitempty"` // tasks that it may submit in an hour; 0: any number
	Disk    int64   `json:"disk,omitempty"`     // bytes that its workspaces may hold together; 0: any number
}

// visitor is who sends a request.
type visitor struct {
	name   string // in the log
	tenant string
	role   Role
	root   bool // sees all tenants
}

// tokenMark begins every token of an identity, so that scanners for secrets know it.
const tokenMark = "inspan_"

// newToken makes the token of an identity, and its digest.
func newToken(id string) (token, digest string) {
	token = tokenMark + id + "_" + gate.NewToken()
	return token, digestOf(token)
}

func digestOf(token string) string { return tool.Digest([]byte(token)) }

const owner = "owner" // principal with Server.Owner's token

// Who tells whose token it is, for [gate.Gate].
func (s *Server) Who(token string) (principal string, ok bool) {
	if _, is := gate.One(owner, s.Owner)(token); is {
		return owner, true
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(token, tokenMark), "_")
	digest := digestOf(token)
	i, known := s.identity(id)
	same := subtle.ConstantTimeCompare([]byte(digest), []byte(i.Digest)) == 1
	return id, known && same && strings.HasPrefix(token, tokenMark)
}

// identity is the identity with the id, unless its time is over.
func (s *Server) identity(id string) (Identity, bool) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	i := s.book.identities[id]
	if i == nil || !i.Expires.IsZero() && time.Now().After(i.Expires) {
		return Identity{}, false
	}
	return *i, true
}

// visitor is who a principal is; without one, where the gate wants no token, it is the owner.
func (s *Server) visitor(principal string) (visitor, bool) {
	if principal == owner || principal == "" {
		return visitor{name: owner, role: Admin, root: true}, true
	}
	i, known := s.identity(principal)
	name := i.Name
	if i.Tenant != "" {
		name = i.Tenant + "/" + name // no name holds a slash
	}
	return visitor{name: name, tenant: i.Tenant, role: i.Role, root: i.Role == Admin && i.Tenant == ""}, known
}

// sees reports whether a task is the visitor's business.
func (v visitor) sees(t *Task) bool { return v.root || v.tenant == t.Tenant }
