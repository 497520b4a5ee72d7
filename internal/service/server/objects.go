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
	Turn    int64 // in which it was made: those of its kind that were made later have a greater one
	Value   json.RawMessage
	Content Content // zero: it has none

	place Place
}

// kept is an object as it stands in the book.
type kept struct {
	Tenant  string          `json:"tenant,omitempty"`
	Value   json.RawMessage `json:"value"`
	Content Content         `json:"content,omitzero"`
}

// shelved is a value of a tenant as it stands in the book.
func shelved(tenant string, value any, content Content) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(kept{tenant, raw, content})
}

// shelf is all objects of one kind. The zero value is ready.
type shelf struct {
	all   map[string]*Object
	order []string // the oldest first
	last  int64    // turn of the last that was made
}

// put keeps an object as it is now, or forgets it, and returns what it was and is; nil: nothing.
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

// Make keeps a new object of a kind, with an id that begins with the prefix. A request that was
// sent before with the same idempotency key makes nothing: it gets what it came to the first time.
// Said is the whole request.
func (v *Visit) Make(of, prefix string, value, said any) (Object, error) {
	return v.MakeWith(of, prefix, said, func(e *Edit, id string) error { return e.Put(of, id, v.who.tenant, value, Content{}) })
}

// MakeWith is [Visit.Make] of an object that f puts, with what goes with it. It is put first.
func (v *Visit) MakeWith(of, prefix string, said any, f func(e *Edit, id string) error) (Object, error) {
	id := newID(prefix)
	id, err := v.record(of, id, said, func(e *Edit) error { return f(e, id) })
	if err != nil {
		return Object{}, err
	}
	return v.Object(of, id)
}

// Edit changes objects together: all or none, whatever happens. Nobody else changes any meanwhile.
type Edit struct {
	v      *Visit
	bodies []event.Body
	more   map[string]int64 // bytes that tenants keep more, by name
}

// Edit has f change objects. An error of f changes nothing.
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
			task = true // it is that of the object beside it
		default:
			var k kept
			_ = json.Unmarshal(r.Value, &k) // nothing, if it goes
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

// Unconfined reports that the visitor may not make or change what all of its tenant have, because it
// is confined.
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

// Put keeps an object as it is now, with its content.
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

// write keeps an object of the server's own as it is now.
func (e *Edit) write(of, id string, value any) error {
	b, err := recorded(of, id, e.v.who.name, value)
	e.bodies = append(e.bodies, b)
	return err
}

// recorded is an object of the server's own for the book.
func recorded(of, id, by string, value any) (event.Recorded, error) {
	raw, err := json.Marshal(value)
	return event.Recorded{Of: of, ID: id, By: by, Value: raw}, err
}

// Remove forgets an object and its content.
func (e *Edit) Remove(of, id string) {
	e.bodies = append(e.bodies, event.Recorded{Of: of, ID: id, By: e.v.who.name})
}

// Object is the object of a kind with the id, if the visitor sees it.
func (v *Visit) Object(of, id string) (Object, error) {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	return v.object(of, id)
}

// Own is [Visit.Object] of the visitor's own tenant: what it makes has only that.
func (v *Visit) Own(of, id string) (Object, error) {
	o, err := v.Object(of, id)
	if err == nil && o.Tenant != v.who.tenant {
		err = Missing(of, id)
	}
	return o, err
}

// object is Object. The book's lock is held.
func (v *Visit) object(of, id string) (Object, error) {
	if s := v.book.shelves[of]; s != nil {
		if o := s.all[id]; o != nil && v.who.sees(o.Tenant, o.place) {
			return *o, nil
		}
	}
	return Object{}, Missing(of, id)
}

// Objects are those of a kind that the visitor sees, the oldest first.
func (v *Visit) Objects(of string) []Object {
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	return v.objects(of)
}

// objects is Objects. The book's lock is held.
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

// Change makes of an object what f makes of it; nil: it is gone. Nobody else changes it meanwhile,
// and an error of f changes nothing.
func (v *Visit) Change(of, id string, f func(Object) (any, error)) (Object, error) {
	err := v.Edit(func(e *Edit) error {
		o, err := e.Object(of, id)
		if err != nil {
			return err
		}
		value, err := f(o)
		if err == nil && value == nil {
			e.Remove(of, id)
		}
		if err != nil || value == nil {
			return err
		}
		return e.Put(of, id, o.Tenant, value, o.Content)
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
