// Package managed is the door of a server for clients of the Managed Agents wire: the official SDKs with
// another base URL.
//
//	fold.go         the clients' view of a session, as a pure fold over its log; calls.go its calls
//	agents.go       agents and their versions; tools.go their tools
//	environments.go where they work
//	sessions.go     sessions: each is an open task of the server; view.go how clients see them
//	events.go       sent and received events; inputs.go reads the sent ones
//	threads.go      sessions of subagents
//	outcomes.go     goals of a session, and their grading
//	initial.go      the first inputs of a session
//	deployments.go  scheduled sessions; runs.go their runs
//	memorystores.go the memory of agents: memories.go changes it, and memorywire.go shows it to
//	                clients; memorytool.go is how an agent reads and writes it
//	resources.go    resources of a session; mounts.go puts them into the workspace
//	files.go        uploaded files; forms.go reads them; skills.go skills among them
//	vaults.go       credentials for MCP servers; secrets.go stores secrets, and
//	                refresh.go gets new tokens; variables.go has those of commands
//	work.go         sessions that work on workers: the queue and its leases; crew.go fills it,
//	                handed.go has the tools of workers and their permissions, worker.go is a worker
//	webhooks.go     the server's webhooks on this wire; news.go their events
//	kinds.go        objects in the book; pages.go lists them, page by page
//
// Objects are stored in the server's book, and events in the session's log. The door stores nothing of its own.
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

// Join adds the endpoints of this door to a server before its start. It also gives the server's tasks the
// resources of sessions, and its webhooks the events of this door.
func Join(s *server.Server) {
	k := &secrets{s: s}
	s.Forms = append(s.Forms, "/v1/files", "/v1/skills", "/v1/skills/*/versions")
	s.Equip, s.Furnish = k.equip, k.furnish
	s.Tells, s.Tellable, s.Whose = news, newsworthy(), whose
	s.Also = func(mux *http.ServeMux) {
		dues, c := &agenda{s, make(chan struct{}, 1)}, &crew{Server: s, polled: map[[2]string]time.Time{}}
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
}

// whose returns the agent and environment that own an object. Agents, environments and deployments can be
// changed only by unconfined visitors. Kinds that are not named here belong to the whole tenant: confined
// visitors don't see them.
func whose(of, id string, value json.RawMessage) server.Place {
	kind, at, _ := strings.Cut(of, ":")
	switch kind {
	case ofAgent:
		return server.Place{Agent: id, Environment: server.Everybody, Fixed: true}
	case ofEnvironment: // a session needs one
		return server.Place{Agent: server.Everybody, Environment: id, Fixed: true}
	case ofSession:
		var k keptSession
		_ = json.Unmarshal(value, &k) // we wrote it, like the next ones
		return server.Place{Agent: k.Agent.ID, Environment: k.Environment}
	case ofDeployment:
		var k keptDeployment
		_ = json.Unmarshal(value, &k)
		return server.Place{Agent: k.Agent.ID, Environment: k.Environment, Fixed: true}
	case ofRun:
		var k keptRun
		_ = json.Unmarshal(value, &k)
		return server.Place{Agent: k.Agent.ID}
	case strings.TrimSuffix(ofWork(""), ":"):
		var k keptWork
		_ = json.Unmarshal(value, &k)
		return server.Place{Task: k.Session, Environment: at}
	case ofFile:
		return server.Place{Private: true}
	}
	return server.Place{}
}

// endpoints returns all endpoints.
func endpoints(dues *agenda) []endpoint {
	return slices.Concat(agentEndpoints(), environmentEndpoints(), workEndpoints(), sessionEndpoints(), eventEndpoints(),
		threadEndpoints(), deploymentEndpoints(dues), memoryStoreEndpoints(), memoryEndpoints(), fileEndpoints(), resourceEndpoints(),
		vaultEndpoints(), credentialEndpoints(), skillEndpoints(), webhookEndpoints())
}

// endpoint is one method and path.
type endpoint struct {
	method, path string
	query        []string // accepted parameters, apart from "beta"
	do           func(*door) (any, error)
	who          guests
}

func get(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodGet, path, query, do, ""}
}

func post(path string, do func(*door) (any, error), query ...string) endpoint {
	return endpoint{http.MethodPost, path, query, do, ""}
}

// act returns an endpoint for a POST that needs only its path: its body is empty, or {}.
func act(path string, do func(*door) (any, error), query ...string) endpoint {
	return post(path, func(d *door) (any, error) {
		if err := d.readAny(&struct{}{}); err != nil {
			return nil, err
		}
		return do(d)
	}, query...)
}

// reading is an endpoint's function for one that needs the body, which is read strictly.
func reading[In any](do func(*door, In) (any, error)) func(*door) (any, error) {
	return func(d *door) (any, error) {
		var in In
		if err := d.read(&in); err != nil {
			return nil, err
		}
		return do(d, in)
	}
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
	raw     json.RawMessage // body, once it is read
	secrets *secrets
	crew    *crew
}

// serve serves a request. An endpoint that has responded itself returns nothing.
func serve(c *crew, k *secrets, e endpoint, w http.ResponseWriter, r *http.Request) {
	v, err := c.Visit(r, server.Worker)
	var out any
	if err == nil {
		d := &door{v, w, r, r.URL.Query(), nil, k, c}
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

// known reports a parameter that the endpoint does not accept.
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

// invalid returns the error of a field with an invalid value; want is a right value, if known.
func invalid(field, what, want string) error { return server.Wrong(field, what, want) }

// unserved returns the error for a feature of this wire that this server does not support.
func unserved(field, what string) error {
	return invalid(field, "this server does not support "+what, "")
}

func missing(what, id string) error { return server.Missing(what, id) }

// tooLarge returns the error of a field or a body with too many bytes.
func tooLarge(field string, size, most int) error {
	return &server.Problem{
		Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Field: field, Want: fmt.Sprintf("at most %d bytes", most),
		Message: fmt.Sprintf("%s: it has %d bytes; use at most %d", field, size, most),
	}
}

func conflict(format string, args ...any) error { return server.Conflict(format, args...) }

// read reads the body of the request, strictly.
func (d *door) read(into any) (err error) {
	if d.raw, err = server.ReadBody(d.r.Body); err == nil {
		err = decodedBody(d.raw, into)
	}
	return err
}

// readAny is [door.read] for an optional body.
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

// body is the body that was read, for an idempotency key: its fields are in a fixed order, so that the same request
// has the same digest.
func (d *door) body() any {
	var v any
	if json.Unmarshal(d.raw, &v) != nil {
		return string(d.raw)
	}
	return v
}

// opt is a field of an update: it may be missing, null, or have a value.
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
		*v = o.value // null clears it to the zero value
	}
}

const mostMetadata = 16

// number reads a parameter of the query that is a number within limits.
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

// flag reads a parameter that is true or false; false if it is missing.
func (d *door) flag(name string) (bool, error) {
	text, err := d.choice(name, "true", "false")
	return text == "true", err
}

// choice reads a parameter that has one of some values.
func (d *door) choice(name string, of ...string) (string, error) {
	text := d.query.Get(name)
	if text == "" || slices.Contains(of, text) {
		return text, nil
	}
	return "", invalid(name, "it is "+strconv.Quote(words.OneLine(text, 40)), strings.Join(of, " or "))
}

// list reads a repeatable parameter, as name=a&name=b or name[]=a.
func (d *door) list(name string) []string {
	return slices.Concat(d.query[name], d.query[name+"[]"])
}

// within returns a filter for the times in the created_at[...] parameters.
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

// patched returns metadata with a patch applied: null removes a key.
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

// bounded reports a text that is too long, or missing though required.
func bounded(field, text string, least, most int) error {
	switch {
	case len(text) < least:
		return invalid(field, "it is missing", "a text")
	case len(text) > most:
		return invalid(field, fmt.Sprintf("it has %d bytes", len(text)), fmt.Sprintf("at most %d", most))
	}
	return nil
}

// named reports what is wrong with a name, which must be one line without hidden characters.
func named(field, name string, most int) error {
	if err := bounded(field, name, 1, most); err != nil {
		return err
	}
	if text.Holds(name, text.Hidden) {
		return invalid(field, "it has a line break, or characters that can't be seen", "a name on one line")
	}
	return nil
}

// derived returns an id that is the same for the same parts.
func derived(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// orNull returns a text, or null for an empty one.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// when returns a time, or null for the zero time.
func when(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := stamp(t)
	return &text
}
