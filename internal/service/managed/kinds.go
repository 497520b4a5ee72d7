package managed

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

// dates are when an object was last changed and archived, as stored in the book; zero means never.
type dates struct {
	Updated  time.Time `json:"updated,omitzero"`
	Archived time.Time `json:"archived,omitzero"`
}

func (t *dates) times() *dates   { return t }
func (t dates) isArchived() bool { return !t.Archived.IsZero() }

// stamps returns the times of an object as clients see them.
func (t dates) stamps(o server.Object) (created, updated string, archived *string) {
	created = stamp(o.Created)
	if updated = created; !t.Updated.IsZero() {
		updated = stamp(t.Updated)
	}
	return created, updated, when(t.Archived)
}

// entry is an object of a kind, with its value decoded.
type entry[T any] struct {
	server.Object
	kept T
}

// entries returns the objects of a kind that can be decoded, oldest first. Objects is a method of a visit or an edit.
func entries[T any](objects func(of string) []server.Object, of string) (out []entry[T]) {
	for _, o := range objects(of) {
		if e := (entry[T]{Object: o}); json.Unmarshal(o.Value, &e.kept) == nil {
			out = append(out, e)
		}
	}
	return out
}

// newest returns the objects of a kind that a visitor sees, newest first.
func newest[T any](d *door, of string) []entry[T] {
	all := entries[T](d.Objects, of)
	slices.Reverse(all)
	return all
}

// listed is newest, limited to those that match the common list parameters.
func listed[T interface{ isArchived() bool }](d *door, of string) ([]entry[T], error) {
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	archived, err := d.flag("include_archived")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(newest[T](d, of), func(e entry[T]) bool {
		return !within(e.Created) || !archived && e.kept.isArchived()
	}), nil
}

// objectOf returns an object of a kind, with its value decoded. From is a method of a visit or an edit.
func objectOf[T any](from func(of, id string) (server.Object, error), of, id string) (server.Object, T, error) {
	var v T
	o, err := from(of, id)
	if err != nil {
		kind, _, _ := strings.Cut(strings.TrimPrefix(of, "managed."), ":")
		return o, v, missing(strings.ReplaceAll(kind, "_", " "), id)
	}
	return o, v, json.Unmarshal(o.Value, &v)
}

// changed returns an object after f has changed it.
func changed[T any](d *door, of, id string, f func(*T) error) (o server.Object, v T, err error) {
	err = d.Edit(func(e *server.Edit) (err error) {
		if o, v, err = objectOf[T](e.Object, of, id); err == nil {
			err = f(&v)
		}
		if err != nil {
			return err
		}
		return e.Put(of, id, o.Tenant, v, o.Content)
	})
	return o, v, err
}

// gone removes an object.
func gone(d *door, of, id, kind string) (any, error) {
	return map[string]any{"id": id, "type": kind}, d.Edit(func(e *server.Edit) error {
		if _, _, err := objectOf[json.RawMessage](e.Object, of, id); err != nil {
			return err
		}
		e.Remove(of, id)
		return nil
	})
}

// kind is a kind of objects in the book with values K, which clients see as V.
type kind[K, V any] struct {
	of     string // name in the book
	prefix string // of ids
	shown  func(d *door, o server.Object, k K) (V, error)
}

// view returns an object as clients see it.
func (k kind[K, V]) view(d *door, id string) (any, error) {
	o, v, err := objectOf[K](d.Object, k.of, id)
	if err != nil {
		return nil, err
	}
	return k.shown(d, o, v)
}

// read returns the object that the request names.
func (k kind[K, V]) read(d *door) (any, error) { return k.view(d, d.r.PathValue("id")) }

// page returns a page of objects, newest first.
func (k kind[K, V]) page(d *door, all []entry[K], most int) (any, error) {
	return shownPage(d, all, most, func(e entry[K]) (V, error) { return k.shown(d, e.Object, e.kept) })
}

// change changes the object that the request names, and returns it.
func (k kind[K, V]) change(d *door, f func(*K) error) (any, error) {
	o, v, err := changed(d, k.of, d.r.PathValue("id"), f)
	if err != nil {
		return nil, err
	}
	return k.shown(d, o, v)
}

// crud returns the endpoints that make, list, read and change the objects of a kind at a path. The fields of a
// request, In, are applied to a new or an old value.
func crud[In interface{ onto(*door, *K) error }, K interface{ isArchived() bool }, V any, P interface {
	*K
	times() *dates
}](path string, k kind[K, V], query ...string) []endpoint {
	return []endpoint{
		post(path, reading(func(d *door, in In) (any, error) {
			var v K
			if err := in.onto(d, &v); err != nil {
				return nil, err
			}
			o, err := d.Make(k.of, k.prefix, v, d.body())
			if err != nil {
				return nil, err
			}
			return k.view(d, o.ID)
		})),
		get(path, func(d *door) (any, error) {
			all, err := listed[K](d, k.of)
			if err != nil {
				return nil, err
			}
			return k.page(d, all, 100)
		}, append([]string{"limit", "page", "include_archived"}, query...)...),
		get(path+"/{id}", k.read),
		post(path+"/{id}", reading(func(d *door, in In) (any, error) {
			return k.change(d, func(v *K) error {
				if (*v).isArchived() {
					return conflict("the %s is archived", strings.ReplaceAll(strings.TrimPrefix(k.of, "managed."), "_", " "))
				}
				P(v).times().Updated = time.Now()
				return in.onto(d, v)
			})
		})),
	}
}
