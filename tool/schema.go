package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// A compiled schema is ready to check arguments. Immutable.
type compiled struct {
	text     []byte // what it was made of
	schema   *jsonschema.Schema
	resolved func() (*jsonschema.Resolved, error) // computed once, when it is first asked for
	offered  func() (json.RawMessage, string)     // the same; as [offered] has it
}

// compile returns the compiled schema of t: made by New, or on the spot for tools with a schema from elsewhere.
func (t Tool) compile() (*compiled, error) {
	if t.compiled != nil && bytes.Equal(t.compiled.text, t.Schema) {
		return t.compiled, nil
	}
	text := []byte(t.Schema)
	if v, err := parseOrdered(t.Schema); err == nil {
		if root, is := v.(*ordered); is {
			modern(root)
			text = []byte(inJSON(root))
		}
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, err
	}
	// Marshalled again, as the library understood it: it accepts keywords in any case, so "$Ref" is "$ref".
	understood, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	if err := refuseRings(understood); err != nil {
		return nil, err
	}
	c := compileSchema(schema, t.Schema)
	_, err = c.resolved()
	return c, err
}

// compileSchema does not resolve the schema yet: a program makes many tools whose arguments it never checks.
func compileSchema(schema *jsonschema.Schema, text []byte) *compiled {
	resolve := func() (*jsonschema.Resolved, error) { return schema.Resolve(nil) }
	text = bytes.Clone(text)
	offer := func() (json.RawMessage, string) { return offered(text) }
	return &compiled{text: text, schema: schema, resolved: sync.OnceValues(resolve), offered: sync.OnceValues(offer)}
}

// plain simplifies an inferred schema for models: a list is a list, never null. Check drops nulls of optional
// fields, so nothing is lost.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) > 0 {
		s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
	}
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
	plain(s.AdditionalProperties)
}

// encodeSchema writes a schema for models: required before properties, and properties in the order of the Go
// struct. Models write fewer malformed calls if they know what is required before they read the properties, and
// a stable order keeps prompt caches warm.
func encodeSchema(s *jsonschema.Schema) (json.RawMessage, error) {
	var w objectWriter
	switch {
	case s.Type != "":
		w.add("type", s.Type)
	case s.Types != nil:
		w.add("type", s.Types)
	}
	if s.Description != "" {
		w.add("description", s.Description)
	}
	if len(s.Required) > 0 {
		w.add("required", s.Required)
	}
	if s.Properties != nil || s.Type == "object" { // vendors refuse an object without
		w.addProperties(s)
	}
	w.addSchema("items", s.Items)
	w.addSchema("additionalProperties", s.AdditionalProperties)
	w.addRest(s)
	return w.done()
}

// shown returns the schema as the model sees it. An unreadable one is returned unchanged.
func (t Tool) shown() json.RawMessage {
	if t.ModelSchema != nil {
		return t.ModelSchema
	}
	if len(t.HiddenFields) == 0 {
		return t.Schema
	}
	c, err := t.compile()
	if err != nil {
		return t.Schema
	}
	s := *c.schema
	hidden := func(name string) bool { return slices.Contains(t.HiddenFields, name) }
	s.Properties, s.PropertyOrder = maps.Clone(s.Properties), slices.DeleteFunc(slices.Clone(s.PropertyOrder), hidden)
	maps.DeleteFunc(s.Properties, func(name string, _ *jsonschema.Schema) bool { return hidden(name) })
	text, err := encodeSchema(&s)
	if err != nil {
		return t.Schema
	}
	return text
}

// objectWriter writes a JSON object field by field.
type objectWriter struct {
	buf bytes.Buffer
	err error
}

func (w *objectWriter) raw(name string, value []byte) {
	if w.buf.Len() == 0 {
		w.buf.WriteByte('{')
	} else {
		w.buf.WriteByte(',')
	}
	key, _ := json.Marshal(name) // a string always has a JSON form
	w.buf.Write(key)
	w.buf.WriteByte(':')
	w.buf.Write(value)
}

func (w *objectWriter) add(name string, value any) {
	raw, err := marshal(value)
	w.err = errors.Join(w.err, err)
	w.raw(name, raw)
}

func (w *objectWriter) addSchema(name string, s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Not != nil { // false, written short
		w.add(name, s)
		return
	}
	raw, err := encodeSchema(s)
	w.err = errors.Join(w.err, err)
	w.raw(name, raw)
}

func (w *objectWriter) addProperties(s *jsonschema.Schema) {
	var props objectWriter
	for _, name := range s.PropertyOrder {
		props.addSchema(name, s.Properties[name])
	}
	raw, err := props.done()
	w.err = errors.Join(w.err, err)
	w.raw("properties", raw)
}

// addRest adds the keywords that encodeSchema does not place itself, such as minimum.
func (w *objectWriter) addRest(s *jsonschema.Schema) {
	rest := *s
	rest.Type, rest.Types, rest.Description, rest.Required = "", nil, "", nil
	rest.Properties, rest.PropertyOrder, rest.Items, rest.AdditionalProperties = nil, nil, nil, nil
	if reflect.ValueOf(rest).IsZero() {
		return
	}
	raw, err := marshal(&rest)
	w.err = errors.Join(w.err, err)
	var fields map[string]json.RawMessage
	w.err = errors.Join(w.err, json.Unmarshal(raw, &fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		w.raw(name, fields[name])
	}
}

func (w *objectWriter) done() (json.RawMessage, error) {
	if w.buf.Len() == 0 {
		w.buf.WriteByte('{')
	}
	w.buf.WriteByte('}')
	return w.buf.Bytes(), w.err
}

// marshal is json.Marshal without the escaping meant for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
