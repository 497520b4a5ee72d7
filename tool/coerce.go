package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// decodeArgs decodes JSON into any, with numbers as written. A field that appears twice in one object is an
// error.
func decodeArgs(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	// The scanner after Valid also bounds how deep values nest.
	if !json.Valid(raw) {
		var v any
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(raw, &v))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return decodeValue(dec)
}

func decodeValue(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return decodeObject(dec)
		}
		return decodeList(dec)
	case json.Number:
		if _, err := tok.Float64(); err != nil {
			return nil, fmt.Errorf("number %.40s is out of range", tok)
		}
	}
	return tok, nil
}

func decodeObject(dec *json.Decoder) (any, error) {
	m := map[string]any{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := tok.(string)
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("field %q appears twice", name)
		}
		if m[name], err = decodeValue(dec); err != nil {
			return nil, err
		}
	}
	return m, closing(dec)
}

func decodeList(dec *json.Decoder) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := decodeValue(dec)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, closing(dec)
}

func closing(dec *json.Decoder) error {
	_, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// kindOf returns the JSON Schema type of a decoded value. A number is an integer only if it is written as one
// and fits 64 bits.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if isInteger(string(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func isInteger(s string) bool {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return true
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

func accepts(kinds []string, v any) bool {
	kind := kindOf(v)
	return slices.Contains(kinds, kind) || kind == "integer" && slices.Contains(kinds, "number")
}

// coerce converts v to one of the kinds, by the table of [Tool.Check].
func coerce(v any, kinds []string) (any, bool) {
	for _, kind := range kinds {
		if w, ok := coerceTo(v, kind); ok {
			return w, true
		}
	}
	if v != nil && slices.Contains(kinds, "array") {
		return []any{v}, true
	}
	return nil, false
}

func coerceTo(v any, kind string) (any, bool) {
	switch v := v.(type) {
	case string:
		return coerceString(strings.TrimSpace(v), kind)
	case json.Number:
		switch kind {
		case "string":
			return string(v), true
		case "integer":
			return integral(v)
		}
	case bool:
		if kind == "string" {
			return strconv.FormatBool(v), true
		}
	}
	return nil, false
}

func coerceString(s, kind string) (any, bool) {
	if kind == "boolean" {
		switch s {
		case "true", "True":
			return true, true
		case "false", "False":
			return false, true
		}
	}
	if kind == "boolean" || kind == "null" || s == "" {
		return nil, false
	}
	v, err := decodeArgs(json.RawMessage(s))
	if err != nil {
		return nil, false
	}
	n, isNumber := v.(json.Number)
	switch {
	case isNumber && kind == "number":
		return n, true
	case isNumber && kind == "integer":
		return integral(n)
	}
	return v, !isNumber && kindOf(v) == kind
}

// integral returns a number without a fraction as an integer, if a float64 can represent it exactly.
func integral(n json.Number) (any, bool) {
	if isInteger(string(n)) {
		return n, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

// native returns v with Go numbers, as the validator requires.
func native(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // decodeArgs has refused what does not fit
		return f
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, x := range v {
			m[name] = native(x)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = native(x)
		}
		return list
	}
	return v
}

// describe names a value and shows the start of it.
func describe(v any) string {
	if v == nil {
		return "null"
	}
	raw, err := marshal(v)
	if err != nil {
		return kindOf(v)
	}
	text := strings.ToValidUTF8(string(raw[:min(len(raw), 60)]), "")
	if len(raw) > 60 {
		text += "…"
	}
	return kindOf(v) + " " + text
}

// maxNesting bounds how many references and alternatives are followed from one schema, because they may form a
// ring.
const maxNesting = 16

// deref follows references within the schema.
func (f *fitter) deref(s *jsonschema.Schema) *jsonschema.Schema {
	for range maxNesting {
		if s == nil || s.Ref == "" {
			return s
		}
		name, ok := strings.CutPrefix(s.Ref, "#/$defs/")
		defs := f.root.Defs
		if !ok {
			name, ok = strings.CutPrefix(s.Ref, "#/definitions/")
			defs = f.root.Definitions
		}
		if !ok {
			return nil
		}
		s = defs[name]
	}
	return nil
}

// kinds returns the types a schema takes; none means that it does not say.
func (f *fitter) kinds(s *jsonschema.Schema, depth int) []string {
	s = f.deref(s)
	switch {
	case s == nil || depth > maxNesting:
		return nil
	case s.Type != "":
		return []string{s.Type}
	case s.Types != nil:
		return s.Types
	}
	var kinds []string
	for _, alt := range slices.Concat(s.AnyOf, s.OneOf) {
		k := f.kinds(alt, depth+1)
		if k == nil {
			return nil
		}
		kinds = append(kinds, k...)
	}
	return kinds
}

// branch returns the schema that describes values of the kind: s itself or its first matching alternative. It
// returns nil if there is none.
func (f *fitter) branch(s *jsonschema.Schema, kind string) *jsonschema.Schema {
	s = f.deref(s)
	if s == nil || s.Properties != nil || s.Items != nil {
		return s
	}
	for _, alt := range slices.Concat(s.AnyOf, s.OneOf) {
		if alt = f.deref(alt); alt != nil && slices.Contains(f.kinds(alt, 0), kind) {
			return alt
		}
	}
	return s
}

func (f *fitter) nullable(s *jsonschema.Schema) bool {
	kinds := f.kinds(s, 0)
	return len(kinds) == 0 || slices.Contains(kinds, "null")
}

// want says in words which values a schema accepts.
func (f *fitter) want(s *jsonschema.Schema) string {
	if kinds := f.kinds(s, 0); len(kinds) > 0 {
		return strings.Join(kinds, " or ")
	}
	return "any value"
}

// example builds a value that fits s: its own example if it has one, else a minimal one.
func (f *fitter) example(name string, s *jsonschema.Schema, depth int) any {
	s = f.deref(s)
	if s == nil || depth > maxNesting {
		return nil
	}
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Default != nil:
		return s.Default
	}
	if alts := slices.Concat(s.AnyOf, s.OneOf); len(alts) > 0 {
		return f.example(name, alts[0], depth+1)
	}
	return f.exampleOf(name, s, depth)
}

func (f *fitter) exampleOf(name string, s *jsonschema.Schema, depth int) any {
	kinds := f.kinds(s, 0)
	if len(kinds) == 0 {
		return "<" + name + ">"
	}
	switch kinds[0] {
	case "object":
		m := map[string]any{}
		for _, name := range s.Required {
			m[name] = f.example(name, s.Properties[name], depth+1)
		}
		return m
	case "array":
		if s.Items == nil {
			return []any{}
		}
		return []any{f.example(name, s.Items, depth+1)}
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return true
	case "null":
		return nil
	}
	return "<" + name + ">"
}
