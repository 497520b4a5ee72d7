// Package managed is the door of a server for clients of the Managed Agents wire: the official SDKs
// with another base URL.
//
//	fold.go         what they see of a session, as a pure fold over its log; calls.go its calls
//	agents.go       agents and their versions; tools.go what these may use
//	environments.go where they work
//	sessions.go     sessions: each is a task of the server that stays open; view.go how they look
//	events.go       what is said to them, and what comes of it; inputs.go reads the former
//	threads.go      sessions of subagents
//	outcomes.go     what a session is to bring, and the grading of that
//	initial.go      what a session begins with
//	deployments.go  sessions that begin by themselves; schedule.go when, runs.go what came of it
//	memorystores.go what agents remember: memories.go changes it, and memorywire.go shows it to
//	                clients; memorytool.go is how an agent reads and writes it
//	resources.go    what a session has beside its agent
//
// Objects are kept in the server's book, and what happens in the session's log. The door keeps
// nothing of its own.
package managed

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/server"
	"github.com/inspan/inspan/internal/words"
)

// handle adds the endpoints to a mux.
func handle(s *server.Server, mux *http.ServeMux) {
	dues := newAgenda(s)
	for _, e := range slices.Concat(agentEndpoints(), environmentEndpoints(), sessionEndpoints(), eventEndpoints(), threadEndpoints(),
		deploymentEndpoints(dues), memoryStoreEndpoints(), memoryEndpoints()) {
		mux.HandleFunc(e.method+" /v1/"+e.path, func(w http.ResponseWriter, r *http.Request) { serve(s, e, w, r) })
	}
	tendAll(s)
	s.Go(dues.follow)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &server.Problem{
			Status: http.StatusNotFound, Type: "not_found_error",
			Message: fmt.Sprintf("no endpoint %s %s; docs/MANAGED.md lists those that are served", r.Method, words.OneLine(r.URL.Path, 200)),
		})
	})
}

// endpoint is one thing that clients can ask for.
type endpoint struct {
	method, path string
	query        []string // parameters that it takes, apart from "beta"
	do           func(*door) (any, error)
}

func get(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodGet, path, query, do}
}

func post(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodPost, path, query, do}
}

func del(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodDelete, path, query, do}
}

// door is one request.
type door struct {
	*server.Visit

	w     http.ResponseWriter
	r     *http.Request
	query url.Values
}

// serve serves a request. An endpoint that has answered itself returns nothing.
func serve(s *server.Server, e endpoint, w http.ResponseWriter, r *http.Request) {
	role := server.Operator
	if e.method == http.MethodGet {
		role = server.Viewer
	}
	v, err := s.Visit(r, role)
	var out any
	if err == nil {
		d := &door{v, w, r, r.URL.Query()}
		if err = d.known(e.query); err == nil {
			out, err = e.do(d)
		}
	}
	switch {
	case err != nil:
		refuse(w, err)
	case out != nil:
		server.Reply(w, http.StatusOK, out)
	}
}

// known reports a parameter that the endpoint does not take.
func (d *door) known(query []string) error {
	for name := range d.query {
		if name != "beta" && !slices.Contains(query, name) {
			return invalid(name, "unknown parameter", strings.Join(query, ", "))
		}
	}
	return nil
}

// refuse answers with what an error is, in the shape that the SDKs read.
func refuse(w http.ResponseWriter, err error) {
	p, id := server.ProblemOf(err), "req_"+strings.ToLower(rand.Text())
	if p.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.Retry))
	}
	w.Header().Set("Request-Id", id)
	server.Reply(w, p.Status, map[string]any{"type": "error", "error": p, "request_id": id})
}

// invalid is a field that can't be as it is; want is what would be right, if that can be said.
func invalid(field, what, want string) error {
	p := &server.Problem{Status: http.StatusBadRequest, Type: "invalid_request_error", Field: field, Want: want, Message: field + ": " + what}
	if want != "" {
		p.Message += "; use " + want
	}
	return p
}

// unserved is a wish that can be said on this wire, and that this server does not grant.
func unserved(field, what string) error {
	return invalid(field, "this server does not support "+what, "")
}

func missing(what, id string) error {
	why := fmt.Sprintf("%s %q not found", what, words.OneLine(id, 80))
	return &server.Problem{Status: http.StatusNotFound, Type: "not_found_error", Message: why}
}

// tooLarge is a field, or a body, with more bytes than it may have.
func tooLarge(field string, size, most int) error {
	return &server.Problem{
		Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Field: field, Want: fmt.Sprintf("at most %d bytes", most),
		Message: fmt.Sprintf("%s: it has %d bytes; use at most %d", field, size, most),
	}
}

func conflict(format string, args ...any) error {
	return &server.Problem{Status: http.StatusConflict, Type: "conflict_error", Message: fmt.Sprintf(format, args...)}
}

// read reads the body of the request, strictly. The raw body is what an idempotency key counts for.
func (d *door) read(into any) (raw json.RawMessage, err error) {
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(d.r.Body); err != nil {
		if _, big := errors.AsType[*http.MaxBytesError](err); big {
			return nil, &server.Problem{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "the body is too large"}
		}
		return nil, invalid("body", "it can't be read", "one JSON object")
	}
	err = server.Decode(bytes.NewReader(buf.Bytes()), into)
	if err == nil {
		err = faults("", reflect.ValueOf(into).Elem())
	}
	if err != nil {
		return nil, err
	}
	return json.RawMessage(buf.Bytes()), nil
}

// strict decodes a part of a body as strictly as the whole.
func strict(raw []byte, into any) error { return server.Decode(bytes.NewReader(raw), into) }

// fixed keeps the order of what a request says, so that the same request has the same digest.
func fixed(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return v
}

// opt is a field of an update: it may be missing, null, or say something.
type opt[T any] struct {
	said, null bool
	value      T
	err        error // why it can't be read
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *opt[T]) UnmarshalJSON(raw []byte) error {
	o.said = true
	if string(raw) == "null" {
		o.null = true
		return nil
	}
	o.err = strict(raw, &o.value)
	return nil
}

func (o opt[T]) fault() (value any, err error) { return o.value, o.err }

// faults reports the first field of a request that could not be read, by its name.
func faults(at string, v reflect.Value) error {
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		o, is := v.Field(i).Interface().(interface{ fault() (any, error) })
		if !is {
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value, err := o.fault()
		if p, told := errors.AsType[*server.Problem](err); told {
			what := *p
			if what.Field == "body" {
				what.Message = at + name + strings.TrimPrefix(what.Message, "body")
			}
			what.Field = at + name
			return &what
		}
		if err := faults(at+name+".", reflect.ValueOf(value)); err != nil {
			return err
		}
	}
	return nil
}

// onto changes a value as the field says.
func (o opt[T]) onto(v *T) {
	if o.said {
		*v = o.value // the zero value, where null clears it
	}
}

const (
	usualPage    = 20
	mostMetadata = 16
)

// page is a part of a list.
type page[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_page"`
}

// paged cuts out of a list what the request wants. Id tells where a page begins.
func paged[T any](d *door, all []T, most int, id func(T) string) (page[T], error) {
	return pagedUpTo(d, all, most, most, id)
}

// pagedUpTo is paged of pages that are never longer than so much, whatever the request wants.
func pagedUpTo[T any](d *door, all []T, most, longest int, id func(T) string) (page[T], error) {
	limit, err := d.number("limit", min(usualPage, most), 1, most)
	if err != nil {
		return page[T]{}, err
	}
	limit = min(limit, longest)
	if after := d.query.Get("page"); after != "" {
		i := slices.IndexFunc(all, func(v T) bool { return id(v) == after })
		if i < 0 {
			return page[T]{}, invalid("page", "there is no such page", "next_page of the page before")
		}
		all = all[i:]
	}
	out := page[T]{Data: all[:min(limit, len(all))]}
	if out.Data == nil {
		out.Data = []T{}
	}
	if len(all) > limit {
		next := id(all[limit])
		out.Next = &next
	}
	return out, nil
}

// number is a parameter of the query within bounds.
func (d *door) number(name string, usual, least, most int) (int, error) {
	text := d.query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, invalid(name, "it is "+strconv.Quote(words.OneLine(text, 40)), fmt.Sprintf("%d to %d", least, most))
	}
	return n, nil
}

const includeArchived = "include_archived"

// archived reports whether a list is to hold what is archived, too.
func (d *door) archived() (bool, error) {
	switch text := d.query.Get(includeArchived); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid(includeArchived, "it is "+strconv.Quote(words.OneLine(text, 40)), "true or false")
	}
}

// choice is a parameter that is one of some.
func (d *door) choice(name string, of ...string) (string, error) {
	text := d.query.Get(name)
	if text == "" || slices.Contains(of, text) {
		return text, nil
	}
	return "", invalid(name, "it is "+strconv.Quote(words.OneLine(text, 40)), strings.Join(of, " or "))
}

// list is a parameter that is there any number of times, as name=a&name=b or name[]=a.
func (d *door) list(name string) []string {
	return slices.Concat(d.query[name], d.query[name+"[]"])
}

// within reports which times the request wants, by its created_at[...] parameters.
func (d *door) within() (func(time.Time) bool, error) {
	type bound struct {
		at   time.Time
		keep func(t, at time.Time) bool
	}
	var bounds []bound
	for name, keep := range map[string]func(t, at time.Time) bool{
		"gt": time.Time.After, "lt": time.Time.Before,
		"gte": func(t, at time.Time) bool { return !t.Before(at) },
		"lte": func(t, at time.Time) bool { return !t.After(at) },
	} {
		text := d.query.Get("created_at[" + name + "]")
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, invalid("created_at["+name+"]", "it is not a time", "a time such as 2027-01-31T12:00:00Z")
		}
		bounds = append(bounds, bound{at, keep})
	}
	return func(t time.Time) bool {
		return !slices.ContainsFunc(bounds, func(b bound) bool { return !b.keep(t, b.at) })
	}, nil
}

// checkMetadata reports what is wrong with metadata.
func checkMetadata(m map[string]string) error {
	if len(m) > mostMetadata {
		return invalid("metadata", fmt.Sprintf("it has %d pairs", len(m)), fmt.Sprintf("at most %d", mostMetadata))
	}
	for key, value := range m {
		if key == "" || len(key) > 64 || len(value) > 512 {
			return invalid("metadata", "a key or value is empty or too long", "keys of 1 to 64 and values of at most 512 bytes")
		}
	}
	return nil
}

// patched are metadata with a patch: null takes a key away.
func patched(m map[string]string, patch map[string]*string) map[string]string {
	out := map[string]string{}
	for key, value := range m {
		out[key] = value
	}
	for key, value := range patch {
		if delete(out, key); value != nil {
			out[key] = *value
		}
	}
	return out
}

// bounded reports a text that is too long, or missing where it must not be.
func bounded(field, text string, least, most int) error {
	switch {
	case len(text) < least:
		return invalid(field, "it is missing", "a text")
	case len(text) > most:
		return invalid(field, fmt.Sprintf("it has %d bytes", len(text)), fmt.Sprintf("at most %d", most))
	}
	return nil
}

// derived is an id that the same parts always have.
func derived(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// orNull is a text, or null where there is none.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// when is a time, or null where it never was.
func when(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := stamp(t)
	return &text
}

// dates are when an object was changed last and archived, as the book has it; zero: never.
type dates struct {
	Updated  time.Time `json:"updated,omitzero"`
	Archived time.Time `json:"archived,omitzero"`
}

func (t dates) isArchived() bool { return !t.Archived.IsZero() }

// stamps are the times of an object as clients see them.
func (t dates) stamps(o server.Object) (created, updated string, archived *string) {
	created = stamp(o.Created)
	if updated = created; !t.Updated.IsZero() {
		updated = stamp(t.Updated)
	}
	return created, updated, when(t.Archived)
}

// entry is an object of a kind as this door keeps it.
type entry[T any] struct {
	server.Object
	kept T
}

// listed are the objects of a kind that a list is to have by the parameters of all lists, the newest
// first.
func listed[T interface{ isArchived() bool }](d *door, of string) ([]entry[T], error) {
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	archived, err := d.archived()
	if err != nil {
		return nil, err
	}
	var out []entry[T]
	for _, o := range slices.Backward(d.Objects(of)) {
		e := entry[T]{Object: o}
		if json.Unmarshal(o.Value, &e.kept) == nil && within(o.Created) && (archived || !e.kept.isArchived()) {
			out = append(out, e)
		}
	}
	return out, nil
}

// objectOf is an object of a kind as this door keeps it.
func objectOf[T any](d *door, of, id string) (server.Object, T, error) {
	var v T
	o, err := d.Object(of, id)
	if err != nil {
		kind, _, _ := strings.Cut(strings.TrimPrefix(of, "managed."), ":")
		return o, v, missing(strings.ReplaceAll(kind, "_", " "), id)
	}
	return o, v, json.Unmarshal(o.Value, &v)
}

// changed is an object after f has changed it.
func changed[T any](d *door, of, id string, f func(*T) error) (server.Object, T, error) {
	var v T
	if _, _, err := objectOf[T](d, of, id); err != nil {
		return server.Object{}, v, err
	}
	o, err := d.Change(of, id, func(o server.Object) (any, error) {
		v = *new(T)
		if err := json.Unmarshal(o.Value, &v); err != nil {
			return nil, err
		}
		return &v, f(&v)
	})
	return o, v, err
}

// gone takes an object away.
func gone(d *door, of, id, kind string) (any, error) {
	if _, _, err := objectOf[json.RawMessage](d, of, id); err != nil {
		return nil, err
	}
	_, err := d.Change(of, id, func(server.Object) (any, error) { return nil, nil })
	return map[string]any{"id": id, "type": kind}, err
}
