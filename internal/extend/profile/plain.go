package profile

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxNodes = 2000 // schemas in one that is simplified
	maxDeep  = 24   // nested ones
	maxNote  = 160  // bytes of a constraint that is described
)

// Plain makes a schema that small models and simple servers understand: type, description, enum, required,
// properties and items, and nothing else. References are inlined; of alternatives one is kept: the first that
// is an object, else the first that is not null. The rest is dropped: lost names it as "path: what", and the
// description at its place says it, so that a model still knows. Keys have a fixed order, properties that of
// the original. The result is always that of an object; Plain of it changes nothing and loses nothing.
//
// It is only for models: check arguments by the original.
func Plain(schema json.RawMessage) (plain json.RawMessage, lost []string) {
	schema = bytes.ToValidUTF8(schema, []byte("\ufffd"))
	p := plainer{root: schema}
	f := p.flatten(schema, "", nil)
	if f.Type != "object" {
		if f.Type != "" {
			p.lose(&f, "", "type "+f.Type)
		}
		f = flat{Type: "object", Description: f.Description, notes: f.notes}
	}
	return f.encode(), p.lost
}

// flat is a simplified schema.
type flat struct {
	Type        string
	Description string
	Enum        []json.RawMessage
	Required    []string
	Properties  []property
	Items       *flat
	notes       []string // constraints lost here
}

type property struct {
	name   string
	schema flat
}

type plainer struct {
	root  json.RawMessage
	lost  []string
	nodes int
}

func (p *plainer) lose(f *flat, path, what string) {
	what = text.Cut(what, maxNote)
	if path == "" {
		path = "arguments"
	}
	p.lost = append(p.lost, path+": "+what)
	f.notes = append(f.notes, what)
}

// flatten simplifies one schema. refs are the references on the way to it.
func (p *plainer) flatten(raw json.RawMessage, path string, refs []string) flat {
	var f flat
	p.nodes++
	if p.nodes > maxNodes || len(refs) > maxDeep {
		p.lose(&f, path, "more that is too large to show")
		return f
	}
	for _, m := range members(raw) {
		p.keyword(&f, m, path, append(slices.Clip(refs), ""))
	}
	switch {
	case f.Type != "":
	case len(f.Properties) > 0:
		f.Type = "object"
	case f.Items != nil:
		f.Type = "array"
	}
	if f.Type != "" && f.Type != "object" {
		f.Properties, f.Required = nil, nil // they don't apply to it
	}
	f.Required = slices.DeleteFunc(f.Required, func(name string) bool {
		known := slices.ContainsFunc(f.Properties, func(q property) bool { return q.name == name })
		if !known {
			p.lose(&f, path, "required "+name)
		}
		return !known
	})
	return f
}

func (p *plainer) keyword(f *flat, m member, path string, refs []string) {
	switch m.name {
	case "$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title":
	case "type":
		p.types(f, m.value, path)
	case "description":
		_ = json.Unmarshal(m.value, &f.Description) // a value that is not a text is ignored
	case "enum":
		f.Enum = list(m.value)
	case "const":
		f.Enum = []json.RawMessage{compact(m.value)}
	case "required":
		for _, v := range list(m.value) {
			if name, ok := stringOf(v); ok && !slices.Contains(f.Required, name) {
				f.Required = append(f.Required, name)
			}
		}
	case "properties":
		for _, q := range members(m.value) {
			f.add(property{q.name, p.flatten(q.value, strings.TrimPrefix(path+"."+q.name, "."), refs)})
		}
	case "$ref":
		p.ref(f, m.value, path, refs)
	case "allOf":
		for _, v := range list(m.value) {
			f.merge(p.flatten(v, path, refs))
		}
	case "anyOf", "oneOf":
		if !p.choose(f, list(m.value), path, refs) {
			p.lose(f, path, m.name+" "+string(m.value))
		}
	case "items", "prefixItems":
		p.items(f, m, path, refs)
	case "additionalProperties", "unevaluatedProperties":
		if bytes.HasPrefix(m.value, []byte("{")) {
			p.lose(f, path, m.name+" "+string(m.value))
		}
	default:
		p.lose(f, path, m.name+" "+words(m.value))
	}
}

// types keeps the first type that is not null.
func (p *plainer) types(f *flat, raw json.RawMessage, path string) {
	names := list(raw)
	if names == nil {
		names = []json.RawMessage{raw}
	}
	kept := ""
	for _, v := range names {
		name, _ := stringOf(v)
		if kept == "" && slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean"}, name) {
			kept = name
		} else if name != kept {
			p.lose(f, path, "or "+words(v))
		}
	}
	if kept != "" {
		f.Type = kept
	}
}

func (p *plainer) items(f *flat, m member, path string, refs []string) {
	first := m.value
	if l := list(m.value); len(l) > 0 {
		first = l[0]
		p.lose(f, path, m.name+" "+string(m.value))
	}
	if f.Items == nil && bytes.HasPrefix(first, []byte("{")) {
		item := p.flatten(first, path+"[]", refs)
		f.Items = &item
	}
}

// ref replaces a reference by its target.
func (p *plainer) ref(f *flat, raw json.RawMessage, path string, refs []string) {
	name, _ := stringOf(raw)
	target, ok := p.resolve(name)
	switch {
	case !ok:
		p.lose(f, path, "$ref "+words(raw))
	case slices.Contains(refs, name):
		p.lose(f, path, "as in "+name)
		if t := p.kind(target); f.Type == "" && t != "null" {
			f.Type = t
		}
	default:
		f.merge(p.flatten(target, path, append(slices.Clip(refs), name)))
	}
}

// resolve follows a JSON pointer (RFC 6901) within the schema.
func (p *plainer) resolve(ref string) (json.RawMessage, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !ok || err != nil {
		return nil, false
	}
	at := p.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		all := members(at)
		i := slices.IndexFunc(all, func(m member) bool { return m.name == name })
		if i < 0 {
			return nil, false
		}
		at = all[i].value
	}
	return at, true
}

// choose keeps one of several alternatives. Alternatives that are only values become one list of values. It
// reports false if the best of them only has required fields.
func (p *plainer) choose(f *flat, alternatives []json.RawMessage, path string, refs []string) bool {
	if values, ok := p.values(alternatives); ok {
		f.Enum = values
		return true
	}
	best := 0
	for i, a := range alternatives {
		switch kind, had := p.kind(a), p.kind(alternatives[best]); {
		case kind == "object" && had != "object", had == "null" && kind != "null":
			best = i
		}
	}
	if len(alternatives) == 0 || !slices.ContainsFunc(members(alternatives[best]), func(m member) bool { return m.name != "required" }) {
		return false
	}
	f.merge(p.flatten(alternatives[best], path, refs))
	for i, a := range alternatives {
		if i == best {
			continue
		}
		if what := p.kind(a); what != "" && len(members(a)) == 1 {
			p.lose(f, path, "or "+what)
		} else {
			p.lose(f, path, "or "+words(a))
		}
	}
	return true
}

// values returns the values of alternatives that are constants or lists of values.
func (p *plainer) values(alternatives []json.RawMessage) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	for _, a := range alternatives {
		n := len(out)
		for _, m := range members(a) {
			switch m.name {
			case "const":
				out = append(out, compact(m.value))
			case "enum":
				out = append(out, list(m.value)...)
			case "type", "title":
			default:
				return nil, false
			}
		}
		if len(out) == n {
			return nil, false
		}
	}
	return out, true
}

// kind returns the type of a schema at a glance; it may be empty.
func (p *plainer) kind(raw json.RawMessage) string {
	for range maxDeep {
		kind, next := "", json.RawMessage(nil)
		for _, m := range members(raw) {
			switch m.name {
			case "type":
				kind, _ = stringOf(m.value)
			case "properties":
				kind = "object"
			case "$ref":
				name, _ := stringOf(m.value)
				next, _ = p.resolve(name)
			}
		}
		if kind != "" || next == nil {
			return kind
		}
		raw = next
	}
	return ""
}

// add adds a property unless it exists.
func (f *flat) add(q property) {
	if !slices.ContainsFunc(f.Properties, func(r property) bool { return r.name == q.name }) {
		f.Properties = append(f.Properties, q)
	}
}

// merge takes fields from g that f lacks.
func (f *flat) merge(g flat) {
	if f.Type == "" {
		f.Type = g.Type
	}
	if f.Description == "" {
		f.Description = g.Description
	}
	if f.Enum == nil {
		f.Enum = g.Enum
	}
	for _, name := range g.Required {
		if !slices.Contains(f.Required, name) {
			f.Required = append(f.Required, name)
		}
	}
	for _, q := range g.Properties {
		f.add(q)
	}
	if f.Items == nil {
		f.Items = g.Items
	}
	f.notes = append(f.notes, g.notes...)
}

func (f flat) encode() json.RawMessage {
	o := object{}
	if f.Type != "" {
		o.add("type", quote(f.Type))
	}
	if d := f.describe(); d != "" {
		o.add("description", quote(d))
	}
	if len(f.Enum) > 0 {
		o.add("enum", array(f.Enum))
	}
	if len(f.Required) > 0 {
		var names []json.RawMessage
		for _, name := range f.Required {
			names = append(names, quote(name))
		}
		o.add("required", array(names))
	}
	if f.Type == "object" {
		var properties object
		for _, q := range f.Properties {
			properties.add(q.name, q.schema.encode())
		}
		o.add("properties", properties.done())
	}
	if f.Items != nil && f.Type == "array" {
		o.add("items", f.Items.encode())
	}
	return o.done()
}

// describe returns the description and the lost constraints.
func (f flat) describe() string {
	if len(f.notes) == 0 {
		return f.Description
	}
	return strings.TrimSpace(f.Description + " (" + strings.Join(f.notes, "; ") + ")")
}
