package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
)

// Object is something that a door stores in the book. The door defines its meaning for clients.
type Object struct {
	ID      string
	Tenant  string
	By      string // its last editor
	Created time.Time
	Updated time.Time
	Turn    int64 // order of creation: later objects of the kind have a greater one
	Value   json.RawMessage
	Content Content // zero means none

	place Place
}

// kept is an object in the form that the book stores.
type kept struct {
	Tenant  string          `json:"tenant,omitempty"`
	Value   json.RawMessage `json:"value"`
	Content Content         `json:"content,omitzero"`
}

// shelved returns a value of a tenant in the form that the book stores.
func shelved(tenant string, value any, content Content) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(kept{tenant, raw, content})
}

// shelf has all objects of one kind. The zero value is ready.
type shelf struct {
	all   map[string]*Object
	order []string // oldest first
	last  int64    // turn of the newest one
}

// put stores the new value of an object, or removes it, and returns its old and new state; nil means none.
func (s *shelf) put(at time.Time, r event.Recorded, place func(event.Recorded, json.RawMessage) Place) (before, now *Object) {
	before = s.all[r.ID]
	if len(r.Value) == 0 {
		if delete(s.all, r.ID); before != nil {
			i := slices.Index(s.order, r.ID)
			s.order = slices.Delete(s.order, i, i+1)
		}
		return before, nil
	}
	var k kept
	if json.Unmarshal(r.Value, &k) != nil {
		return before, before
	}
	if s.all == nil {
		s.all = map[string]*Object{}
	}
	o := &Object{ID: r.ID, Tenant: k.Tenant, By: r.By, Created: at, Updated: at, Value: k.Value, Content: k.Content, place: place(r, k.Value)}
	if before != nil {
		o.Created, o.Turn, o.place.maker = before.Created, before.Turn, before.place.maker
	} else {
		s.last = max(s.last+1, at.UnixNano())
		o.Turn, s.order = s.last, append(s.order, r.ID)
	}
	s.all[r.ID] = o
	return before, o
}

// Make stores a new object of a kind, with an id that begins with the prefix. If the visitor has sent a request
// with the same idempotency key before, it makes nothing and returns the first result. Said is the whole
// request.
func (v *Visit) Make(of, prefix string, value, said any) (Object, error) {
	return v.MakeWith(of, prefix, said, func(e *Edit, id string) error { return e.Put(of, id, v.who.tenant, value, Content{}) })
}

// MakeWith is [Visit.Make] for an object that f puts, together with related objects. It is put first.
func (v *Visit) MakeWith(of, prefix string, said any, f func(e *Edit, id string) error) (Object, error) {
	id := newID(prefix)
	id, err := v.record(of, id, said, func(e *Edit) error { return f(e, id) })
	if err != nil {
		return Object{}, err
	}
	return v.Object(of, id)
}

// MakeStored is [Visit.MakeWith] for an object whose content is stored first.
func (v *Visit) MakeStored(of, prefix string, said any, data []byte, f func(e *Edit, id string, stored Content) error) (o Object, err error) {
	err = v.Store(data, func(stored Content) error {
		o, err = v.MakeWith(of, prefix, said, func(e *Edit, id string) error { return f(e, id, stored) })
		return err
	})
	return o, err
}

// Edit changes objects atomically: all or none. Nothing else changes them meanwhile.
type Edit struct {
	v      *Visit
	bodies []event.Body
	more   map[string]int64 // further bytes that tenants use, by name
}

// Edit calls f to change objects. If f returns an error, nothing changes.
func (v *Visit) Edit(f func(*Edit) error) error {
	e := &Edit{v: v, more: map[string]int64{}}
	err := v.book.change(v, func() ([]event.Body, error) {
		if err := f(e); err != nil {
			return nil, err
		}
		return e.bodies, e.permitted()
	})
	v.sweep()
	return err
}

// permitted reports a change that the visitor may not make because it is confined.
func (e *Edit) permitted() error {
	if !e.v.who.confined() {
		return nil
	}
	var places []Place
	task := false
	for _, b := range e.bodies {
		r, is := b.(event.Recorded)
		switch {
		case !is || r.Of == ofRewind: // of a task that it sees
		case r.Of == ofTask:
			task = true // it belongs to the object next to it
		default:
			var k kept
			_ = json.Unmarshal(r.Value, &k) // nothing, if it is removed
			place := e.v.book.place(r, k.Value)
			if o := e.v.book.object(r.Of, r.ID); o != nil {
				place = o.place
			}
			places = append(places, place)
		}
	}
	if task && len(places) == 0 {
		places = []Place{{}}
	}
	for _, p := range places {
		if p.Fixed || !e.v.who.sees(e.v.who.tenant, p) {
			return e.v.Unconfined()
		}
	}
	return nil
}

// Unconfined returns an error if the visitor is confined, and so may not make or change things of its whole
// tenant.
func (v *Visit) Unconfined() error {
	if !v.who.confined() {
		return nil
	}
	return Forbidden("your identity is confined to sessions of some agents, or work of some environments, and makes or changes nothing else")
}

// Object is [Visit.Object] before the change.
func (e *Edit) Object(of, id string) (Object, error) { return e.v.object(of, id) }

// Objects is [Visit.Objects] before the change.
func (e *Edit) Objects(of string) []Object { return e.v.objects(of) }

// Put stores an object and its content.
func (e *Edit) Put(of, id, tenant string, value any, content Content) error {
	raw, err := shelved(tenant, value, content)
	if err != nil {
		return fmt.Errorf("%s %s: %w", of, id, err)
	}
	if before, err := e.Object(of, id); err != nil || before.Content.Blob != content.Blob {
		e.more[tenant] += content.Size
	}
	if err := e.v.room(tenant, e.more[tenant]); err != nil {
		return err
	}
	e.bodies = append(e.bodies, event.Recorded{Of: of, ID: id, Value: raw, By: e.v.who.name})
	return nil
}

// write stores an object of the server's own.
func (e *Edit) write(of, id string, value any) error {
	b, err := recorded(of, id, e.v.who.name, value)
	e.bodies = append(e.bodies, b)
	return err
}

// recorded returns the event that stores an object of the server's own.
func recorded(of, id, by string, value any) (event.Recorded, error) {
	raw, err := json.Marshal(value)
	return event.Recorded{Of: of, ID: id, By: by, Value: raw}, err
}

// Remove removes an object and its content.
func (e *Edit) Remove(of, id string) {
	e.bodies = append(e.bodies, event.Recorded{Of: of, ID: id, By: e.v.who.name})
}

// Object returns the object of a kind with the id, if the visitor sees it.
func (v *Visit) Object(of, id string) (Object, error) {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	return v.object(of, id)
}

// Own is [Visit.Object] limited to the visitor's own tenant, as is everything that it makes.
func (v *Visit) Own(of, id string) (Object, error) {
	o, err := v.Object(of, id)
	if err == nil && o.Tenant != v.who.tenant {
		err = Missing(of, id)
	}
	return o, err
}

// object is Object for a caller that holds the book's lock.
func (v *Visit) object(of, id string) (Object, error) {
	if s := v.book.shelves[of]; s != nil {
		if o := s.all[id]; o != nil && v.who.sees(o.Tenant, o.place) {
			return *o, nil
		}
	}
	return Object{}, Missing(of, id)
}

// Objects returns the objects of a kind that the visitor sees, oldest first.
func (v *Visit) Objects(of string) []Object {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	return v.objects(of)
}

// objects is Objects for a caller that holds the book's lock.
func (v *Visit) objects(of string) (out []Object) {
	if s := v.book.shelves[of]; s != nil {
		for _, id := range s.order {
			if o := s.all[id]; v.who.sees(o.Tenant, o.place) {
				out = append(out, *o)
			}
		}
	}
	return out
}
