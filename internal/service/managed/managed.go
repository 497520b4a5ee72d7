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
//	resources.go    what a session has beside its agent: mounts.go puts it into the workspace
//	files.go        what clients upload; forms.go reads it; skills.go is what of it agents know
//	vaults.go       credentials for MCP servers; secrets.go keeps what clients never get back, and
//	                refresh.go gets new tokens; variables.go is about those of commands
//	work.go         sessions that work where workers are: the queue and its leases; crew.go fills it,
//	                handed.go has the tools of workers and what these may, worker.go is one
//	webhooks.go     the server's webhooks on this wire; news.go what they are told of all this
//	pages.go        lists, page by page
//	whose.go        to which agent and environment all this belongs
//
// Objects are kept in the server's book, and what happens in the session's log. The door keeps
// nothing of its own.
package managed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

// handle adds the endpoints to a mux.
func handle(s *server.Server, k *secrets, mux *http.ServeMux) {
	dues, c := newAgenda(s), newCrew(s)
	for _, e := range endpoints(dues) {
		mux.HandleFunc(e.method+" /v1/"+e.path, func(w http.ResponseWriter, r *http.Request) { serve(c, k, e, w, r) })
	}
	tendAll(s)
	k.tend()
	s.Go(dues.follow)
	s.Go(c.follow)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		server.RefuseWith(w, &server.Problem{
			Status: http.StatusNotFound, Type: "not_found_error",
			Message: fmt.Sprintf("no endpoint %s %s; docs/MANAGED.md lists those that are served", r.Method, words.OneLine(r.URL.Path, 200)),
		})
	})
}

// endpoints are all that there are.
func endpoints(dues *agenda) []endpoint {
	return slices.Concat(agentEndpoints(), environmentEndpoints(), workEndpoints(), sessionEndpoints(), eventEndpoints(),
		threadEndpoints(), deploymentEndpoints(dues), memoryStoreEndpoints(), memoryEndpoints(), fileEndpoints(), resourceEndpoints(),
		vaultEndpoints(), credentialEndpoints(), skillEndpoints(), webhookEndpoints())
}

// endpoint is one thing that clients can ask for.
type endpoint struct {
	method, path string
	query        []string // parameters that it takes, apart from "beta"
	do           func(*door) (any, error)
	who          guests
}

func get(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodGet, path, query, do, ""}
}

func post(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodPost, path, query, do, ""}
}

// act is a POST that says all by its path: its body is empty, or {}.
func act(path string, do func(*door) (any, error), query ...string) endpoint {
	return post(path, func(d *door) (any, error) {
		if err := d.readAny(&struct{}{}); err != nil {
			return nil, err
		}
		return do(d)
	}, query...)
}

func del(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodDelete, path, query, do, ""}
}

// door is one request.
type door struct {
	*server.Visit

	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	secrets *secrets
	crew    *crew
}

// serve serves a request. An endpoint that has answered itself returns nothing.
func serve(c *crew, k *secrets, e endpoint, w http.ResponseWriter, r *http.Request) {
	v, err := c.Visit(r, server.Worker)
	var out any
	if err == nil {
		d := &door{v, w, r, r.URL.Query(), k, c}
		if err = d.may(e); err == nil {
			err = d.known(e.query)
		}
		if err == nil {
			out, err = e.do(d)
		}
	}
	switch {
	case err != nil:
		server.RefuseWith(w, err)
	case out != nil:
		server.Reply(w, http.StatusOK, out)
	}
}

// known reports a parameter that the endpoint does not take.
func (d *door) known(query []string) error {
	for name, values := range d.query {
		switch {
		case name != "beta" && !slices.Contains(query, name):
			return invalid(words.OneLine(name, 80), "unknown parameter", strings.Join(query, ", "))
		case len(values) > 1 && !strings.HasSuffix(name, "[]") && !slices.Contains(query, name+"[]"):
			return invalid(name, "it is set more than once", "one value")
		}
	}
	return nil
}

// invalid is a field that can't be as it is; want is what would be right, if that can be said.
func invalid(field, what, want string) error { return server.Wrong(field, what, want) }

// unserved is a wish that can be said on this wire, and that this server does not grant.
func unserved(field, what string) error {
	return invalid(field, "this server does not support "+what, "")
}

func missing(what, id string) error { return server.Missing(what, id) }

// tooLarge is a field, or a body, with more bytes than it may have.
func tooLarge(field string, size, most int) error {
	return &server.Problem{
		Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Field: field, Want: fmt.Sprintf("at most %d bytes", most),
		Message: fmt.Sprintf("%s: it has %d bytes; use at most %d", field, size, most),
	}
}

func conflict(format string, args ...any) error { return server.Conflict(format, args...) }

// read reads the body of the request, strictly. The raw body is what an idempotency key counts for.
func (d *door) read(into any) (raw json.RawMessage, err error) {
	if raw, err = server.ReadBody(d.r.Body); err == nil {
		err = decodedBody(raw, into)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// readAny is [door.read] of a body that need not be there.
func (d *door) readAny(into any) error {
	raw, err := server.ReadBody(d.r.Body)
	if err != nil || len(raw) == 0 {
		return err
	}
	return decodedBody(raw, into)
}

func decodedBody(raw []byte, into any) error {
	if string(bytes.TrimSpace(raw)) == "null" {
		return invalid("body", "it is null", "one JSON object")
	}
	return strict(raw, into)
}

// strict decodes a part of a body as strictly as the whole.
func strict(raw []byte, into any) error { return server.DecodeRaw(raw, into) }

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
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *opt[T]) UnmarshalJSON(raw []byte) error {
	o.said = true
	if string(raw) == "null" {
		o.null = true
		return nil
	}
	return strict(raw, &o.value)
}

// onto changes a value as the field says.
func (o opt[T]) onto(v *T) {
	if o.said {
		*v = o.value // the zero value, where null clears it
	}
}

const mostMetadata = 16

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

// flag is a parameter that is true or false; false if it is not there.
func (d *door) flag(name string) (bool, error) {
	text, err := d.choice(name, "true", "false")
	return text == "true", err
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

// named reports what is wrong with a name, which is one line and shows all that is in it.
func named(field, name string, most int) error {
	if err := bounded(field, name, 1, most); err != nil {
		return err
	}
	if text.Holds(name, text.Hidden) {
		return invalid(field, "it has a line break, or characters that can't be seen", "a name on one line")
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

// entries are the objects of a kind, the newest first.
func entries[T any](d *door, of string) (out []entry[T]) {
	for _, o := range slices.Backward(d.Objects(of)) {
		if e := (entry[T]{Object: o}); json.Unmarshal(o.Value, &e.kept) == nil {
			out = append(out, e)
		}
	}
	return out
}

// listed are the objects of a kind that a list is to have by the parameters of all lists, the newest
// first.
func listed[T interface{ isArchived() bool }](d *door, of string) ([]entry[T], error) {
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	archived, err := d.flag("include_archived")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries[T](d, of), func(e entry[T]) bool {
		return !within(e.Created) || !archived && e.kept.isArchived()
	}), nil
}

// keptAs is an object of a kind as it is kept.
func (d *door) keptAs(of, id string) (server.Object, error) {
	o, err := d.Object(of, id)
	if err != nil {
		kind, _, _ := strings.Cut(strings.TrimPrefix(of, "managed."), ":")
		return o, missing(strings.ReplaceAll(kind, "_", " "), id)
	}
	return o, nil
}

// objectOf is an object of a kind as this door keeps it.
func objectOf[T any](d *door, of, id string) (server.Object, T, error) {
	var v T
	o, err := d.keptAs(of, id)
	if err != nil {
		return o, v, err
	}
	return o, v, json.Unmarshal(o.Value, &v)
}

// changed is an object after f has changed it.
func changed[T any](d *door, of, id string, f func(*T) error) (server.Object, T, error) {
	var v T
	if _, err := d.keptAs(of, id); err != nil {
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
	if _, err := d.keptAs(of, id); err != nil {
		return nil, err
	}
	_, err := d.Change(of, id, func(server.Object) (any, error) { return nil, nil })
	return map[string]any{"id": id, "type": kind}, err
}
