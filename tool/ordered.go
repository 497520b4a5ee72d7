package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// ordered is a JSON object that keeps the order of its fields. Schemas are rewritten in this form because
// models read the fields in the order in which they are written.
type ordered struct {
	names  []string
	values map[string]any // *ordered, []any, string, json.Number, bool or nil
}

func newOrdered() *ordered { return &ordered{values: map[string]any{}} }

// parseOrdered decodes JSON. If a field appears twice the last value counts, as in encoding/json.
func parseOrdered(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) { // also bounds how deep values nest
		var v any
		return nil, json.Unmarshal(raw, &v)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return decodeOrdered(dec)
}

func decodeOrdered(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := decodeOrdered(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.Token()
		return list, err
	case json.Delim('{'):
		o := newOrdered()
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeOrdered(dec)
			if err != nil {
				return nil, err
			}
			key, _ := name.(string) // nothing else can stand here
			o.set(key, v)
		}
		_, err = dec.Token()
		return o, err
	}
	return tok, nil
}

// get returns the value of a field, nil if there is none.
func (o *ordered) get(name string) any {
	if o == nil {
		return nil
	}
	return o.values[name]
}

func (o *ordered) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

func (o *ordered) set(name string, v any) {
	if !o.has(name) {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

func (o *ordered) remove(names ...string) {
	for _, name := range names {
		if o.has(name) {
			delete(o.values, name)
			o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
		}
	}
}

// rename renames a field and keeps its position.
func (o *ordered) rename(from, to string) {
	if !o.has(from) || o.has(to) {
		return
	}
	o.names[slices.Index(o.names, from)] = to
	o.values[to] = o.values[from]
	delete(o.values, from)
}

func (o *ordered) object(name string) *ordered {
	sub, _ := o.get(name).(*ordered)
	return sub
}

func (o *ordered) list(name string) []any {
	list, _ := o.get(name).([]any)
	return list
}

func (o *ordered) text(name string) string {
	s, _ := o.get(name).(string)
	return s
}

// texts returns the strings in a list, or the one string that is there instead of a list.
func (o *ordered) texts(name string) []string {
	if s, ok := o.get(name).(string); ok {
		return []string{s}
	}
	var out []string
	for _, v := range o.list(name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// copyOf returns a deep copy.
func copyOf(v any) any {
	switch v := v.(type) {
	case *ordered:
		c := &ordered{names: slices.Clone(v.names), values: maps.Clone(v.values)}
		for name, sub := range c.values {
			c.values[name] = copyOf(sub)
		}
		return c
	case []any:
		c := slices.Clone(v)
		for i, sub := range c {
			c[i] = copyOf(sub)
		}
		return c
	}
	return v
}

// alike reports whether two values are the same JSON, in any order of fields.
func alike(a, b any) bool {
	switch x := a.(type) {
	case *ordered:
		y, ok := b.(*ordered)
		return ok && len(x.names) == len(y.names) && !slices.ContainsFunc(x.names, func(name string) bool {
			return !y.has(name) || !alike(x.values[name], y.values[name])
		})
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, alike)
	}
	return reflect.DeepEqual(a, b)
}

// inJSON returns the value as JSON.
func inJSON(v any) string { return string(appendOrdered(nil, v)) }

func appendOrdered(b []byte, v any) []byte {
	switch v := v.(type) {
	case *ordered:
		b = append(b, '{')
		for i, name := range v.names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendOrdered(b, name), ':')
			b = appendOrdered(b, v.values[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, sub := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendOrdered(b, sub)
		}
		return append(b, ']')
	}
	raw, _ := marshal(v) // texts, numbers, booleans and null have a form
	return append(b, raw...)
}
