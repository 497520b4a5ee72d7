package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// New makes a tool from a function with typed arguments. The schema is generated from In, a struct whose fields
// have `json` names and `jsonschema` descriptions; fields without omitempty are required and unknown fields are
// refused. An `enum` tag lists the values of a string, or of the strings in a list, separated by commas. New panics
// if In has no schema, because only a programming mistake can cause that.
//
// Effects, Preview and the other fields can be set on the returned tool.
func New[In any](name, doc string, run func(ctx context.Context, c *Call, in In) (Result, error)) Tool {
	t := typed(name, doc, reflect.TypeFor[In]())
	t.Run = func(ctx context.Context, c *Call) (Result, error) {
		in, err := Args[In](c)
		if err != nil {
			return Result{}, err
		}
		return run(ctx, c, in)
	}
	return t
}

// typed returns the tool without Run.
func typed(name, doc string, in reflect.Type) Tool {
	if in.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: arguments are %v, want a struct", name, in))
	}
	c, err := inferSchema(in)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	return Tool{Name: name, Doc: doc, Schema: bytes.Clone(c.text), compiled: c}
}

func inferSchema(in reflect.Type) (*compiled, error) {
	schema, err := jsonschema.ForType(in, nil)
	if err != nil {
		return nil, err
	}
	plain(schema)
	closed(schema, in)
	text, err := encodeSchema(schema)
	if err != nil {
		return nil, err
	}
	return compileSchema(schema, text), nil
}

// closed restricts fields to the values of their enum tags.
func closed(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice && s != nil {
			s = s.Items
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || s == nil {
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		closed(p, field.Type)
		if p.Items != nil {
			p = p.Items
		}
		if values := field.Tag.Get("enum"); values != "" {
			for value := range strings.SplitSeq(values, ",") {
				p.Enum = append(p.Enum, value)
			}
		}
	}
}

// Args decodes the arguments of a call, for Effects and Preview functions that need them typed.
func Args[In any](c *Call) (In, error) {
	var in In
	err := json.Unmarshal(c.Args, &in)
	return in, err
}
