package server

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/view/cost"
)

// openAPI returns the description of all endpoints, made from the types that they read and write, and the
// server's further limits (bounds.go).
func (c *call) openAPI(nothing) (map[string]any, error) {
	paths := map[string]map[string]any{}
	all := c.endpoints()
	types := schemasOf(all)
	for _, e := range all {
		op, err := e.describe(all, types)
		if err != nil {
			return nil, err
		}
		if paths[e.path] == nil {
			paths[e.path] = map[string]any{}
		}
		paths[e.path][strings.ToLower(e.method)] = op
	}
	problem, err := types.build(reflect.TypeFor[Problem]())
	if err != nil {
		return nil, err
	}
	components, err := types.components()
	if err != nil {
		return nil, err
	}
	components["Problem"] = map[string]any{
		"type": "object", "required": []string{"type", "error"},
		"properties": map[string]any{"type": map[string]any{"const": "error"}, "error": problem, "request_id": map[string]any{"type": "string"}},
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "inspan serve", "version": inspan.Version, "description": "Runs agents as tasks. Most endpoints need a token, " +
				"as a bearer token or as an API key. docs/MANAGED.md describes the endpoints of Managed Agents clients.",
		},
		"paths": paths,
		"components": map[string]any{
			"securitySchemes": map[string]any{
				"token": map[string]any{"type": "http", "scheme": "bearer"},
				"key":   map[string]any{"type": "apiKey", "in": "header", "name": "X-Api-Key"},
			},
			"schemas": components,
		},
		"security": security(),
	}, nil
}

// security returns the two ways to send a token.
func security() []any {
	return []any{map[string]any{"token": []string{}}, map[string]any{"key": []string{}}}
}

// describe describes an endpoint; all is the list of all endpoints.
func (e endpoint) describe(all []endpoint, types schemas) (map[string]any, error) {
	op := map[string]any{"summary": e.doc, "operationId": e.name}
	if e.role == "" {
		op["security"] = append(security(), map[string]any{}) // no token needed
	} else {
		op["description"] = "Needs the role " + string(e.role) + "."
	}
	params := e.headers()
	for f := range e.in.Fields() {
		if path := f.Tag.Get("path"); path != "" {
			params = append(params, parameter("path", path, bounded(e.in, f, path)))
		} else if query := f.Tag.Get("query"); query != "" {
			params = append(params, parameter("query", query, bounded(e.in, f, query)))
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	if e.hasBody() {
		schema, err := types.of(e.in)
		if err != nil {
			return nil, err
		}
		op["requestBody"] = map[string]any{
			"required": !optional(e.in), "content": map[string]any{"application/json": map[string]any{"schema": schema}},
		}
	}
	answers, err := e.answers(all, types)
	op["responses"] = answers
	return op, err
}

// hasBody reports whether an endpoint reads a body.
func (e endpoint) hasBody() bool {
	for f := range e.in.Fields() {
		if f.Tag.Get("path")+f.Tag.Get("query") == "" && f.Tag.Get("json") != "-" {
			return true
		}
	}
	return false
}

func parameter(in, name string, schema *jsonschema.Schema) map[string]any {
	out := map[string]any{"name": name, "in": in, "schema": schema}
	if in == "path" {
		out["required"] = true
	}
	return out
}

// headers returns the request headers that an endpoint reads.
func (e endpoint) headers() (out []any) {
	if e.method == http.MethodPost || e.method == http.MethodPut {
		key := &jsonschema.Schema{Type: "string", MaxLength: new(mostKey), Description: "a request that is sent twice with it counts once"}
		out = append(out, parameter("header", "Idempotency-Key", key))
	}
	if _, follows := e.in.FieldByName("After"); follows && e.in != reflect.TypeFor[page]() && e.in != reflect.TypeFor[auditPage]() {
		number := &jsonschema.Schema{Type: "string", Pattern: aNumber, Description: "number of the last event that you have; it wins over after"}
		out = append(out, parameter("header", "Last-Event-ID", number))
	}
	return out
}

// answers returns the responses of an endpoint. A response that names a new object links to the endpoints that
// take it.
func (e endpoint) answers(all []endpoint, types schemas) (map[string]any, error) {
	out := map[string]any{}
	for status, what := range e.refusals() {
		answer := map[string]any{
			"description": what,
			"content":     map[string]any{"application/json": map[string]any{"schema": refersTo("Problem")}},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			answer["headers"] = map[string]any{"Retry-After": map[string]any{"description": "seconds", "schema": map[string]any{"type": "integer"}}}
		}
		out[strconv.Itoa(status)] = answer
	}
	for status, t := range e.good() {
		answer, err := e.answerOf(t, types)
		if err != nil {
			return nil, err
		}
		if links := links(t, all); status/100 == 2 && links != nil {
			answer["links"] = links
		}
		out[strconv.Itoa(status)] = answer
	}
	return out, nil
}

// good returns the responses that are not a [Problem], by status.
func (e endpoint) good() map[int]reflect.Type {
	switch {
	case e.says != nil:
		return e.says
	case e.stream:
		return map[int]reflect.Type{http.StatusOK: e.out}
	}
	return map[int]reflect.Type{status(e.method, e.path, reflect.New(e.out).Elem().Interface()): e.out}
}

func (e endpoint) answerOf(t reflect.Type, types schemas) (map[string]any, error) {
	field := map[string]any{"type": "string"}
	text := map[string]any{"schema": map[string]any{
		"type": "object", "description": "each event of the stream, by its fields",
		"properties": map[string]any{"id": field, "event": field, "data": field},
	}}
	switch {
	case e.stream:
		return map[string]any{"description": "server-sent events", "content": map[string]any{"text/event-stream": text}}, nil
	case t == reflect.TypeFor[nothing]():
		return map[string]any{"description": "done"}, nil
	case t == reflect.TypeFor[plainText]():
		return map[string]any{"description": "done", "content": map[string]any{"text/plain": map[string]any{"schema": field}}}, nil
	}
	var schema any = map[string]any{"type": "object"}
	if t.Kind() != reflect.Map {
		made, err := types.of(t)
		if err != nil {
			return nil, err
		}
		schema = made
	}
	content := map[string]any{"application/json": map[string]any{"schema": schema}}
	if e.live {
		content["text/event-stream"] = text
	}
	return map[string]any{"description": "done", "content": content}, nil
}

// refusals returns the problems that an endpoint responds with, by status.
func (e endpoint) refusals() map[int]string {
	none := map[int]string{
		http.StatusForbidden: "not sent to this server by its name", http.StatusRequestEntityTooLarge: "the body is too large",
		http.StatusUnsupportedMediaType: "the body is not JSON",
	}
	switch {
	case e.role == "" && e.method == http.MethodPost:
		none[http.StatusBadRequest], none[http.StatusUnauthorized] = "invalid request", "not signed as it must be"
		none[http.StatusServiceUnavailable] = "too many calls wait, or no room on the disk"
		return none
	case e.role == "":
		return none
	}
	out := map[int]string{
		http.StatusBadRequest: "invalid request", http.StatusUnauthorized: "missing or unknown token",
		http.StatusForbidden: "the role does not permit it", http.StatusNotFound: "not found, or of another tenant",
		http.StatusMethodNotAllowed: "no such method here", http.StatusRequestTimeout: "the body did not arrive in time",
		http.StatusConflict: "conflict with the current state", http.StatusRequestEntityTooLarge: "the body is too large",
		http.StatusUnsupportedMediaType: "the body is not JSON", http.StatusTooManyRequests: "a limit of the tenant is reached",
		http.StatusServiceUnavailable: "shutting down, or no room on the disk",
	}
	if e.live {
		out[http.StatusBadGateway] = "the agent could not answer"
	}
	if _, switches := e.says[http.StatusSwitchingProtocols]; switches {
		out[http.StatusUpgradeRequired] = "not a WebSocket handshake"
	}
	return out
}

// links returns the endpoints that take ids from a response.
func links(answer reflect.Type, all []endpoint) map[string]any {
	leads := map[string][]string{} // where the response has the parameters of a path, by its beginning
	switch answer {
	case reflect.TypeFor[Task]():
		leads["/api/v1/tasks/{"] = []string{"/id"}
	case reflect.TypeFor[sessionList]():
		leads["/api/v1/sessions/{"] = []string{"/sessions/0/id"}
	case reflect.TypeFor[identityInfo]():
		leads["/api/v1/identities/{"] = []string{"/id"}
	case reflect.TypeFor[Webhook]():
		leads["/api/v1/webhooks/{"] = []string{"/id"}
	case reflect.TypeFor[approvalList]():
		leads["/api/v1/approvals/{"] = []string{"/approvals/0/task", "/approvals/0/id"}
	}
	var out map[string]any
	for _, to := range all {
		for beginning, at := range leads {
			names := strings.Split(to.path, "{")[1:]
			if !strings.HasPrefix(to.path, beginning) || len(names) != len(at) {
				continue
			}
			params := map[string]any{}
			for i, name := range names {
				name, _, _ = strings.Cut(name, "}")
				params[name] = "$response.body#" + at[i]
			}
			if out == nil {
				out = map[string]any{}
			}
			out[to.name] = map[string]any{"operationId": to.name, "parameters": params}
		}
	}
	return out
}

// schemas makes the schemas of an API. Each of our structs has one by its name, to which the others refer.
type schemas struct {
	names map[reflect.Type]string
	sent  map[reflect.Type]bool // in requests, whose fields have limits
}

// schemasOf collects the structs of endpoints.
func schemasOf(all []endpoint) schemas {
	s := schemas{names: map[reflect.Type]string{}, sent: map[reflect.Type]bool{}}
	for _, e := range all {
		if e.hasBody() {
			s.collect(e.in, true)
		}
		for _, t := range e.good() {
			s.collect(t, false)
		}
	}
	return s
}

// special returns the types whose JSON form does not follow from their fields.
func special() map[reflect.Type]*jsonschema.Schema {
	anything := &jsonschema.Schema{Description: "any JSON"} // generators do not read "true", which is an empty schema
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): anything,
		reflect.TypeFor[any]():             anything,
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[cost.Money]():      {Type: "number"},
	}
}

// collect names a type and those of its fields.
func (s schemas) collect(t reflect.Type, sent bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		s.collect(t.Elem(), sent)
		return
	case reflect.Struct:
	default:
		return
	}
	_, known := s.names[t]
	if special()[t] != nil || t.NumField() == 0 || known && (s.sent[t] || !sent) {
		return
	}
	if t.Name() != "" {
		s.sent[t] = s.sent[t] || sent
		s.name(t)
	}
	for f := range t.Fields() {
		if f.Anonymous && f.Type.Kind() == reflect.Struct { // its fields are those of t
			for inner := range f.Type.Fields() {
				s.collect(inner.Type, sent)
			}
		} else if f.IsExported() && f.Tag.Get("json") != "-" {
			s.collect(f.Type, sent)
		}
	}
}

// name gives a type its name, after that of its package if another type has it.
func (s schemas) name(t reflect.Type) {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	for of, taken := range s.names {
		if taken == name && of != t {
			name = strings.ToUpper(path.Base(t.PkgPath())[:1]) + path.Base(t.PkgPath())[1:] + name
		}
	}
	s.names[t] = name
}

// components returns the schemas of all named types.
func (s schemas) components() (map[string]any, error) {
	out := map[string]any{}
	for t, name := range s.names {
		schema, err := s.build(t)
		if err != nil {
			return nil, err
		}
		if s.sent[t] {
			bound(t, schema)
		}
		out[name] = schema
	}
	return out, nil
}

// of returns the schema of a type's JSON form: a reference, if the type has a name.
func (s schemas) of(t reflect.Type) (*jsonschema.Schema, error) {
	if name, named := s.names[t]; named {
		return refersTo(name), nil
	}
	return s.build(t)
}

func refersTo(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}
}

// build makes a schema that refers to those of other types.
func (s schemas) build(t reflect.Type) (*jsonschema.Schema, error) {
	known := special()
	for other, name := range s.names {
		if other != t {
			known[other] = refersTo(name)
		}
	}
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			if f.Anonymous {
				delete(known, f.Type)
			}
		}
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err == nil {
		nullable(schema)
	}
	return schema, err
}

// nullable mends references that may be null: a reference has no types of its own.
func nullable(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Ref != "" && s.Types != nil {
		s.AnyOf, s.Ref, s.Types = []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}, "", nil
	}
	for _, p := range s.Properties {
		nullable(p)
	}
	nullable(s.Items)
	nullable(s.AdditionalProperties)
}
