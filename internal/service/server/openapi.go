package server

import (
	"encoding/json"
	"net/http"
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
	for _, e := range all {
		op, err := e.describe(all)
		if err != nil {
			return nil, err
		}
		if paths[e.path] == nil {
			paths[e.path] = map[string]any{}
		}
		paths[e.path][strings.ToLower(e.method)] = op
	}
	problem, err := schemaOf(reflect.TypeFor[Problem]())
	if err != nil {
		return nil, err
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
			"schemas": map[string]any{"Problem": map[string]any{
				"type": "object", "required": []string{"type", "error"},
				"properties": map[string]any{"type": map[string]any{"const": "error"}, "error": problem, "request_id": map[string]any{"type": "string"}},
			}},
		},
		"security": security(),
	}, nil
}

// security returns the two ways to send a token.
func security() []any {
	return []any{map[string]any{"token": []string{}}, map[string]any{"key": []string{}}}
}

// describe describes an endpoint; all is the list of all endpoints.
func (e endpoint) describe(all []endpoint) (map[string]any, error) {
	op := map[string]any{"summary": e.doc, "operationId": e.id()}
	if e.role == "" {
		op["security"] = append(security(), map[string]any{}) // no token needed
	} else {
		op["description"] = "Needs the role " + string(e.role) + "."
	}
	params := e.headers()
	body := false
	for i := range e.in.NumField() {
		f := e.in.Field(i)
		path, query := f.Tag.Get("path"), f.Tag.Get("query")
		switch {
		case path+query == "":
			body = body || f.Tag.Get("json") != "-"
		case path != "":
			params = append(params, parameter("path", path, bounded(e.in, f, path)))
		default:
			params = append(params, parameter("query", query, bounded(e.in, f, query)))
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	if body {
		schema, err := schemaOf(e.in)
		if err != nil {
			return nil, err
		}
		bound(e.in, schema)
		op["requestBody"] = map[string]any{
			"required": !optional(e.in), "content": map[string]any{"application/json": map[string]any{"schema": schema}},
		}
	}
	answers, err := e.answers(all)
	op["responses"] = answers
	return op, err
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
func (e endpoint) answers(all []endpoint) (map[string]any, error) {
	out := map[string]any{}
	for status, what := range e.refusals() {
		answer := map[string]any{
			"description": what,
			"content":     map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Problem"}}},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			answer["headers"] = map[string]any{"Retry-After": map[string]any{"description": "seconds", "schema": map[string]any{"type": "integer"}}}
		}
		out[strconv.Itoa(status)] = answer
	}
	for status, t := range e.good() {
		answer, err := e.answerOf(t)
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

func (e endpoint) answerOf(t reflect.Type) (map[string]any, error) {
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
		made, err := schemaOf(t)
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
	case reflect.TypeFor[shownIdentity]():
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
			out[to.id()] = map[string]any{"operationId": to.id(), "parameters": params}
		}
	}
	return out
}

// id returns the name of an endpoint: its method and the words of its path.
func (e endpoint) id() string {
	path := strings.TrimPrefix(e.path, "/api/v1")
	return strings.ToLower(e.method) + strings.NewReplacer("{", "", "}", "", "/", "_", ".", "_").Replace(path)
}

// schemaOf returns the schema of a type's JSON form.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	return jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[cost.Money]():      {Type: "number"},
	}})
}
