package server

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// bounds are those of a tenant with what it has used.
type bounds struct {
	Name string `json:"-" path:"name"`
	Tenant
	Open  int     `json:"open" jsonschema:"unfinished tasks"`
	Spent float64 `json:"spent" jsonschema:"US dollars spent by finished tasks"`
	Held  int64   `json:"held" jsonschema:"bytes that its workspaces hold, as of the last look; 0 without a limit of them"`
}

// newBounds are those that a tenant is to have.
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
		return bounds{}, forbidden("only an admin without a tenant can set limits")
	}
	if err := checkName("name", in.ID); err != nil {
		return bounds{}, err
	}
	for field, n := range map[string]float64{
		"at_once": float64(in.AtOnce), "queue": float64(in.Queue), "budget": in.Budget, "per_hour": float64(in.PerHour), "disk": float64(in.Disk),
	} {
		if n < 0 {
			return bounds{}, wrong(field, "it is below 0", "0 for no bound, or more")
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
		return bounds{}, missing("tenant", in.ID)
	}
	out := bounds{Name: in.ID, Tenant: c.book.tenant(in.ID), Held: c.quota.held(in.ID)}
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	used := c.book.usage(in.ID)
	out.Open, out.Spent = used.open, used.spent
	return out, nil
}

// checkName reports what is wrong with a name that somebody has chosen.
func checkName(field, name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return wrong(field, "not a valid name", "1 to 64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// newIdentity is an identity that is to be made.
type newIdentity struct {
	Name    string    `json:"name" jsonschema:"name in logs and in the audit log"`
	Tenant  string    `json:"tenant,omitempty" jsonschema:"default: your own tenant"`
	Role    Role      `json:"role" jsonschema:"viewer, operator or admin"`
	Expires time.Time `json:"expires,omitzero"`
}

// shownIdentity is an identity without its digest.
type shownIdentity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant,omitempty"`
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires,omitzero"`
	Token   string    `json:"token,omitempty" jsonschema:"only in the response that creates it"`
}

func (c *call) makeIdentity(in newIdentity) (shownIdentity, error) {
	if !c.who.root && in.Tenant != "" && in.Tenant != c.who.tenant {
		return shownIdentity{}, missing("tenant", in.Tenant)
	}
	if !c.who.root {
		in.Tenant = c.who.tenant
	}
	if err := checkName("name", in.Name); err != nil {
		return shownIdentity{}, err
	}
	if in.Tenant != "" {
		if err := checkName("tenant", in.Tenant); err != nil {
			return shownIdentity{}, err
		}
	}
	if in.Name == owner {
		return shownIdentity{}, wrong("name", "owner is reserved", "another name")
	}
	if !slices.Contains(roles(), in.Role) {
		return shownIdentity{}, wrong("role", fmt.Sprintf("it is %q", in.Role), "viewer, operator or admin")
	}
	if !in.Expires.IsZero() && in.Expires.Before(time.Now()) {
		return shownIdentity{}, wrong("expires", "it is in the past", "a future time")
	}
	id := strings.ToLower(rand.Text())[:12]
	token, digest := newToken(id)
	made, err := c.record(ofIdentity, id, in, func(e *Edit) error {
		for _, i := range c.book.identities {
			if i.Name == in.Name && i.Tenant == in.Tenant {
				return conflict("there is an identity %s in this tenant already; the audit log could not tell them apart", in.Name)
			}
		}
		return e.write(ofIdentity, id, Identity{id, in.Name, in.Tenant, in.Role, in.Expires, digest})
	})
	switch {
	case err != nil:
		return shownIdentity{}, err
	case made != id:
		return shownIdentity{}, conflict("this request has created identity %s; its token can't be shown again", made)
	}
	return shownIdentity{id, in.Name, in.Tenant, in.Role, in.Expires, token}, nil
}

// identityList is all identities that a visitor may know of.
type identityList struct {
	Identities []shownIdentity `json:"identities"`
}

func (c *call) identities(nothing) (identityList, error) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	out := identityList{Identities: []shownIdentity{}}
	for _, i := range c.book.identities {
		if c.who.root || i.Tenant == c.who.tenant {
			out.Identities = append(out.Identities, shownIdentity{i.ID, i.Name, i.Tenant, i.Role, i.Expires, ""})
		}
	}
	slices.SortFunc(out.Identities, func(a, b shownIdentity) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (c *call) removeIdentity(in one) (nothing, error) {
	i, known := c.identity(in.ID)
	if !known || !c.who.root && i.Tenant != c.who.tenant {
		return nothing{}, missing("identity", in.ID)
	}
	return nothing{}, c.book.change(c, func() ([]event.Body, error) {
		return []event.Body{event.Recorded{Of: ofIdentity, ID: in.ID, By: c.who.name}}, nil
	})
}

// auditPage asks for a part of what was done.
type auditPage struct {
	After int  `json:"-" query:"after"`
	Limit *int `json:"-" query:"limit"`
}

// deed is something that somebody did.
type deed struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	By   string    `json:"by"`
	What string    `json:"what" jsonschema:"task, cancel, identity, tenant, or a stage"`
	ID   string    `json:"id"`
	Gone bool      `json:"gone,omitempty" jsonschema:"the object was removed"`
}

// deeds is a part of what was done.
type deeds struct {
	Deeds []deed `json:"deeds"`
}

func (c *call) audit(in auditPage) (deeds, error) {
	if !c.who.root {
		return deeds{}, forbidden("only an admin without a tenant can read the audit log")
	}
	limit, err := most(in.Limit, mostListed)
	switch {
	case err != nil:
		return deeds{}, err
	case in.After < 0:
		return deeds{}, wrong("after", fmt.Sprintf("it is %d", in.After), "0 or more")
	}
	out := deeds{Deeds: []deed{}}
	for e, err := range c.book.log.Read(c, uint64(in.After)) {
		if err != nil {
			return deeds{}, err
		}
		switch b := e.Body.(type) {
		case event.Recorded:
			out.Deeds = append(out.Deeds, deed{e.Seq, e.Time, b.By, b.Of, b.ID, len(b.Value) == 0 && b.Of != ofCancel})
		case event.Staged:
			out.Deeds = append(out.Deeds, deed{e.Seq, e.Time, b.By, string(b.Stage), b.Task, false})
		}
		if len(out.Deeds) == limit {
			break
		}
	}
	return out, nil
}
