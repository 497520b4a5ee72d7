package server

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan"
)

// openAPI is the description of all endpoints, made from the types that they read and write.
func (c *call) openAPI(nothing) (map[string]any, error) {
	paths := map[string]map[string]any{}
	for _, e := range c.endpoints() {
		op, err := e.describe()
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
			"title": "inspan serve", "version": inspan.Version, "description": "Runs agents as tasks. Every endpoint needs a bearer token.",
		},
		"paths": paths,
		"components": map[string]any{
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
			"schemas": map[string]any{"Problem": map[string]any{
				"type": "object", "required": []string{"type", "error"},
				"properties": map[string]any{"type": map[string]any{"const": "error"}, "error": problem},
			}},
		},
		"security": []any{map[string]any{"token": []string{}}},
	}, nil
}

// describe describes an endpoint.
func (e endpoint) describe() (map[string]any, error) {
	op := map[string]any{"summary": e.doc, "description": "Needs the role " + string(e.role) + ".", "operationId": e.id()}
	var params []any
	body := false
	for i := range e.in.NumField() {
		f := e.in.Field(i)
		path, query := f.Tag.Get("path"), f.Tag.Get("query")
		switch {
		case path != "":
			params = append(params, map[string]any{"name": path, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		case query != "":
			params = append(params, map[string]any{"name": query, "in": "query", "schema": map[string]any{"type": kindOf(f.Type)}})
		default:
			body = true
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
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
	}
	answers, err := e.answers()
	op["responses"] = answers
	return op, err
}

func (e endpoint) answers() (map[string]any, error) {
	problem := map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Problem"}}}
	out := map[string]any{}
	for status, what := range map[string]string{
		"400": "invalid request", "401": "missing or unknown token", "403": "the role does not permit it",
		"404": "not found, or of another tenant", "409": "conflict with the current state",
		"413": "the body is too large", "415": "the body is not JSON", "429": "a limit of the tenant is reached", "503": "shutting down",
	} {
		out[status] = map[string]any{"description": what, "content": problem}
	}
	switch {
	case e.stream:
		text := map[string]any{"schema": map[string]any{"type": "string"}}
		out["200"] = map[string]any{"description": "server-sent events", "content": map[string]any{"text/event-stream": text}}
	case e.out == reflect.TypeFor[nothing]():
		out["204"] = map[string]any{"description": "done"}
	case e.out.Kind() == reflect.Map:
		out["200"] = map[string]any{
			"description": "done", "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object"}}},
		}
	default:
		schema, err := schemaOf(e.out)
		if err != nil {
			return nil, err
		}
		key := "200"
		if status(e.method, e.path, reflect.New(e.out).Elem().Interface()) == 201 {
			key = "201"
		}
		content := map[string]any{"application/json": map[string]any{"schema": schema}}
		if e.live {
			content["text/event-stream"] = map[string]any{"schema": map[string]any{"type": "string"}}
		}
		out[key] = map[string]any{"description": "done", "content": content}
	}
	return out, nil
}

// id names an endpoint: its method and the words of its path.
func (e endpoint) id() string {
	path := strings.TrimPrefix(e.path, "/api/v1")
	return strings.ToLower(e.method) + strings.NewReplacer("{", "", "}", "", "/", "_", ".", "_").Replace(path)
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int:
		return "integer"
	}
	return "string"
}

// schemaOf is the schema of a type as it is written in JSON.
func schemaOf(t reflect.Type) (any, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		return nil, err
	}
	return s, nil
}
