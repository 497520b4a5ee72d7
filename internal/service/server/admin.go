package server

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// bounds are the limits of a tenant and its usage.
type bounds struct {
	Tenant
	Open  int     `json:"open" jsonschema:"unfinished tasks"`
	Spent float64 `json:"spent" jsonschema:"US dollars spent by finished tasks"`
	Held  int64   `json:"held" jsonschema:"bytes that its workspaces hold, as of the last look; 0 without a limit of them"`
}

// newBounds is a request to set the limits of a tenant.
type newBounds struct {
	ID      string  `json:"-" path:"name"`
	AtOnce  int     `json:"at_once,omitempty"`
	Queue   int     `json:"queue,omitempty"`
	Budget  float64 `json:"budget,omitempty"`
	PerHour int     `json:"per_hour,omitempty"`
	Disk    int64   `json:"disk,omitempty" jsonschema:"bytes that its workspaces may hold together"`
}

func (c *call) setTenant(in newBounds) (bounds, error) {
	if !c.who.root {
		return bounds{}, Forbidden("only an admin without a tenant can set limits")
	}
	if err := checkName("name", in.ID); err != nil {
		return bounds{}, err
	}
	for field, n := range map[string]float64{
		"at_once": float64(in.AtOnce), "queue": float64(in.Queue), "budget": in.Budget, "per_hour": float64(in.PerHour), "disk": float64(in.Disk),
	} {
		if n < 0 {
			return bounds{}, Wrong(field, "it is below 0", "0 for no bound, or more")
		}
	}
	if _, err := c.record(ofTenant, in.ID, in, func(e *Edit) error {
		return e.write(ofTenant, in.ID, Tenant{in.ID, in.AtOnce, in.Queue, in.Budget, in.PerHour, in.Disk})
	}); err != nil {
		return bounds{}, err
	}
	c.stir()
	return c.tenantOf(struct {
		ID string `json:"-" path:"name"`
	}{in.ID})
}

func (c *call) tenantOf(in struct {
	ID string `json:"-" path:"name"`
},
) (bounds, error) {
	if !c.who.root && in.ID != c.who.tenant {
		return bounds{}, Missing("tenant", in.ID)
	}
	if c.who.confined() {
		return bounds{}, Forbidden("your identity is confined to some agents, so it can't read the usage of the whole tenant")
	}
	out := bounds{Tenant: c.book.tenant(in.ID), Held: c.quota.held(in.ID)}
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	used := c.book.usage(in.ID)
	out.Open, out.Spent = used.open, used.spent
	return out, nil
}

// checkName reports an invalid name of an identity, a tenant or the like.
func checkName(field, name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return Wrong(field, "not a valid name", "1 to 64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// newIdentity is a request to make an identity.
type newIdentity struct {
	Name    string    `json:"name" jsonschema:"name in logs and in the audit log"`
	Tenant  string    `json:"tenant,omitempty" jsonschema:"default: your own tenant"`
	Role    Role      `json:"role" jsonschema:"worker, viewer, operator or admin"`
	Expires time.Time `json:"expires,omitzero"`

	Claims map[string]string `json:"claims,omitempty" jsonschema:"admit tokens of the identity provider with these claims, instead of a token of its own"`

	Agents       []string `json:"agents,omitempty" jsonschema:"ids of Managed Agents agents: a viewer or operator has only their sessions"`
	Environments []string `json:"environments,omitempty" jsonschema:"ids of self-hosted environments: a worker has only their work"`
}

// identityInfo is an identity without its digest.
type identityInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant,omitempty"`
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires,omitzero"`
	Token   string    `json:"token,omitempty" jsonschema:"only in the response that creates it"`

	Claims map[string]string `json:"claims,omitempty"`

	Agents       []string `json:"agents,omitempty"`
	Environments []string `json:"environments,omitempty"`
}

// shown returns an identity without its digest.
func (i Identity) shown() identityInfo {
	return identityInfo{
		ID: i.ID, Name: i.Name, Tenant: i.Tenant, Role: i.Role, Expires: i.Expires, Claims: i.Claims,
		Agents: i.Agents, Environments: i.Environments,
	}
}

func (c *call) makeIdentity(in newIdentity) (identityInfo, error) {
	if !c.who.root && in.Tenant != "" && in.Tenant != c.who.tenant {
		return identityInfo{}, Missing("tenant", in.Tenant)
	}
	if !c.who.root {
		in.Tenant = c.who.tenant
	}
	if err := checkName("name", in.Name); err != nil {
		return identityInfo{}, err
	}
	if in.Tenant != "" {
		if err := checkName("tenant", in.Tenant); err != nil {
			return identityInfo{}, err
		}
	}
	if in.Name == owner {
		return identityInfo{}, Wrong("name", "owner is reserved", "another name")
	}
	if !slices.Contains(roles(), in.Role) {
		return identityInfo{}, Wrong("role", fmt.Sprintf("it is %q", in.Role), "worker, viewer, operator or admin")
	}
	if len(in.Claims) > 0 && !c.who.root { // they could belong to a person of another tenant
		return identityInfo{}, Forbidden("only an admin without a tenant can create identities with claims")
	}
	if in.Claims != nil && len(in.Claims) == 0 {
		return identityInfo{}, Wrong("claims", "it is empty", "one claim or more, or no claims for an identity with a token")
	}
	if err := c.checkClaims(in.Claims); err != nil {
		return identityInfo{}, err
	}
	if !in.Expires.IsZero() && in.Expires.Before(time.Now()) {
		return identityInfo{}, Wrong("expires", "it is in the past", "a future time")
	}
	id := strings.ToLower(rand.Text())[:12]
	token, digest := newToken(id)
	if len(in.Claims) > 0 {
		token, digest = "", ""
	}
	i := Identity{id, in.Name, in.Tenant, in.Role, in.Expires, digest, in.Claims, confines{in.Agents, in.Environments}}
	made, err := c.record(ofIdentity, id, in, func(e *Edit) error {
		for _, i := range c.book.identities {
			if i.Name == in.Name && i.Tenant == in.Tenant {
				return Conflict("identity %s already exists in this tenant; the audit log could not tell them apart", in.Name)
			}
		}
		if err := i.check(c.book); err != nil {
			return err
		}
		return e.write(ofIdentity, id, i)
	})
	switch {
	case err != nil:
		return identityInfo{}, err
	case made != id:
		return identityInfo{}, Conflict("this request has created identity %s; its token can't be shown again", made)
	}
	out := i.shown()
	out.Token = token
	return out, nil
}

// check reports an invalid object, tenant or role in the limits of an identity. The caller holds the book's lock.
func (i Identity) check(b *book) error {
	for field, ids := range map[string][]string{"agents": i.Agents, "environments": i.Environments} {
		switch {
		case ids != nil && len(ids) == 0:
			return Wrong(field, "it is empty", "one id or more, or no "+field)
		case len(ids) > maxConfines:
			return Wrong(field, fmt.Sprintf("there are %d", len(ids)), fmt.Sprintf("at most %d", maxConfines))
		case len(ids) > 0 && field == "agents" && i.Role != Viewer && i.Role != Operator:
			return Wrong(field, "an identity with role "+string(i.Role)+" can't be confined to agents", "role viewer or operator")
		case len(ids) > 0 && field == "environments" && i.Role != Worker:
			return Wrong(field, "an identity with role "+string(i.Role)+" can't be confined to environments", "role worker")
		}
		for _, id := range ids {
			if !b.confines(field, i.Tenant, id) {
				return Wrong(field, "the tenant has no "+words.OneLine(strconv.Quote(id), 80), "ids of its "+field)
			}
		}
	}
	return nil
}

// confines reports whether an identity of a tenant can be confined to an object.
func (b *book) confines(field, tenant, id string) bool {
	for _, s := range b.shelves {
		if o := s.all[id]; o != nil && o.Tenant == tenant {
			return id == map[string]string{"agents": o.place.Agent, "environments": o.place.Environment}[field]
		}
	}
	return false
}

// identityList lists the identities that a visitor may see.
type identityList struct {
	Identities []identityInfo `json:"identities"`
}

func (c *call) identities(nothing) (identityList, error) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	out := identityList{Identities: []identityInfo{}}
	for _, i := range c.book.identities {
		if c.who.root || i.Tenant == c.who.tenant {
			out.Identities = append(out.Identities, i.shown())
		}
	}
	slices.SortStableFunc(out.Identities, func(a, b identityInfo) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (c *call) removeIdentity(in one) (nothing, error) {
	i, known := c.identity(in.ID)
	if !known || !c.who.root && i.Tenant != c.who.tenant {
		return nothing{}, Missing("identity", in.ID)
	}
	return nothing{}, c.book.add(c, event.Recorded{Of: ofIdentity, ID: in.ID, By: c.who.name})
}

// auditPage is a request for a page of the audit log.
type auditPage struct {
	After int  `json:"-" query:"after"`
	Limit *int `json:"-" query:"limit"`
}

// auditEntry is one entry of the audit log.
type auditEntry struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	By   string    `json:"by"`
	What string    `json:"what" jsonschema:"task, cancel, identity, tenant, or a stage"`
	ID   string    `json:"id"`
	Gone bool      `json:"gone,omitempty" jsonschema:"the object was removed"`
}

// auditList is a page of the audit log.
type auditList struct {
	Deeds []auditEntry `json:"deeds"`
}

func (c *call) audit(in auditPage) (auditList, error) {
	if !c.who.root {
		return auditList{}, Forbidden("only an admin without a tenant can read the audit log")
	}
	limit, err := most(in.Limit, mostListed)
	switch {
	case err != nil:
		return auditList{}, err
	case in.After < 0:
		return auditList{}, Wrong("after", fmt.Sprintf("it is %d", in.After), "0 or more")
	}
	out := auditList{Deeds: []auditEntry{}}
	for e, err := range c.book.log.Read(c, uint64(in.After)) {
		if err != nil {
			return auditList{}, err
		}
		switch b := e.Body.(type) {
		case event.Recorded:
			if b.Of == ofCursor {
				continue // not an act of an identity
			}
			gone := len(b.Value) == 0 && !slices.Contains([]string{ofCancel, ofClose, ofRewind}, b.Of)
			out.Deeds = append(out.Deeds, auditEntry{e.Seq, e.Time, b.By, b.Of, b.ID, gone})
		case event.Staged:
			out.Deeds = append(out.Deeds, auditEntry{e.Seq, e.Time, b.By, string(b.Stage), b.Task, false})
		}
		if len(out.Deeds) == limit {
			break
		}
	}
	return out, nil
}
