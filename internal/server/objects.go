package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
)

// Object is something that a door keeps in the book: what it is to its clients is the door's to
// say.
type Object struct {
	ID      string
	Tenant  string
	By      string // who changed it last
	Created time.Time
	Updated time.Time
	Value   json.RawMessage
}

// kept is an object as it stands in the book.
type kept struct {
	Tenant string          `json:"tenant,omitempty"`
	Value  json.RawMessage `json:"value"`
}

// shelved is a value of a tenant as it stands in the book.
func shelved(tenant string, value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(kept{tenant, raw})
}

// shelf is all objects of one kind. The zero value is ready.
type shelf struct {
	all   map[string]*Object
	order []string // the oldest first
}

// put keeps an object as it is now, or forgets it.
func (s *shelf) put(at time.Time, r event.Recorded) {
	if len(r.Value) == 0 {
		if delete(s.all, r.ID); len(s.order) > 0 {
			s.order = slices.DeleteFunc(s.order, func(id string) bool { return id == r.ID })
		}
		return
	}
	var k kept
	if json.Unmarshal(r.Value, &k) != nil {
		return
	}
	if s.all == nil {
		s.all = map[string]*Object{}
	}
	o := &Object{ID: r.ID, Tenant: k.Tenant, By: r.By, Created: at, Updated: at, Value: k.Value}
	if before := s.all[r.ID]; before != nil {
		o.Created = before.Created
	} else {
		s.order = append(s.order, r.ID)
	}
	s.all[r.ID] = o
}

// Make keeps a new object of a kind, with an id that begins with the prefix. A request that was
// sent before with the same idempotency key makes nothing: it gets what it came to the first time.
// Said is the whole request.
func (v *Visit) Make(of, prefix string, value, said any) (Object, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return Object{}, err
	}
	id, err := v.record(of, newID(prefix), kept{v.who.tenant, raw}, said, nil)
	if err != nil {
		return Object{}, err
	}
	return v.Object(of, id)
}

// Object is the object of a kind with the id, if the visitor sees it.
func (v *Visit) Object(of, id string) (Object, error) {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	return v.object(of, id)
}

// object is Object. The book's lock is held.
func (v *Visit) object(of, id string) (Object, error) {
	if s := v.book.shelves[of]; s != nil {
		if o := s.all[id]; o != nil && (v.who.root || v.who.tenant == o.Tenant) {
			return *o, nil
		}
	}
	return Object{}, missing(of, id)
}

// Objects are those of a kind that the visitor sees, the oldest first.
func (v *Visit) Objects(of string) (out []Object) {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	if s := v.book.shelves[of]; s != nil {
		for _, id := range s.order {
			if o := s.all[id]; v.who.root || v.who.tenant == o.Tenant {
				out = append(out, *o)
			}
		}
	}
	return out
}

// Edit changes objects together: all or none, whatever happens. Nobody else changes any meanwhile.
type Edit struct {
	v      *Visit
	bodies []event.Body
}

// Edit has f change objects. An error of f changes nothing.
func (v *Visit) Edit(f func(*Edit) error) error {
	return v.book.change(v, func() ([]event.Body, error) {
		e := &Edit{v: v}
		err := f(e)
		return e.bodies, err
	})
}

// Object is [Visit.Object] before the change.
func (e *Edit) Object(of, id string) (Object, error) { return e.v.object(of, id) }

// Put keeps an object as it is now.
func (e *Edit) Put(of, id, tenant string, value any) error {
	raw, err := shelved(tenant, value)
	if err != nil {
		return fmt.Errorf("%s %s: %w", of, id, err)
	}
	e.bodies = append(e.bodies, event.Recorded{Of: of, ID: id, Value: raw, By: e.v.who.name})
	return nil
}

// Change makes of an object what f makes of it; nil: it is gone. Nobody else changes it meanwhile,
// and an error of f changes nothing.
func (v *Visit) Change(of, id string, f func(Object) (any, error)) (Object, error) {
	err := v.book.change(v, func() ([]event.Body, error) {
		o, err := v.object(of, id)
		if err != nil {
			return nil, err
		}
		value, err := f(o)
		if err != nil {
			return nil, err
		}
		m := event.Recorded{Of: of, ID: id, By: v.who.name}
		if value != nil {
			if m.Value, err = shelved(o.Tenant, value); err != nil {
				return nil, fmt.Errorf("%s %s: %w", of, id, err)
			}
		}
		return []event.Body{m}, nil
	})
	if err != nil {
		return Object{}, err
	}
	o, err := v.Object(of, id)
	if err != nil {
		return Object{ID: id}, nil //nolint:nilerr // it is gone, as it was to be
	}
	return o, nil
}
