package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This is the form of a schema that all vendors accept: one that refuses a tool's schema refuses the whole
// request, and so blocks the session. Each rule comes from at least one vendor; the fakes of their servers,
// such as openaitest, enforce them all and name the sources.
//
//   - The top is of type object. It has properties, if only none, and no choice: alternatives are merged, and the
//     description says which arguments go together.
//   - Every object has properties, and every array has items.
//   - required names properties.
//   - A type is one word. A list of types becomes a choice.
//   - References lead to $defs.
//   - Names of arguments at the top have letters, digits, "_", "." and "-". Others are in the description.
//
// Tools are offered in that form ([Tool.Spec]) and logged in it, so that a session's history never changes.
// Arguments are checked against the original schema, so nothing that it forbids is let through.

// offered returns a schema in that form, and text for the parts that the form can't express. A schema in that form
// already, or a value that is not a schema, is returned unchanged.
func offered(schema json.RawMessage) (_ json.RawMessage, words string) {
	v, err := parseOrdered(schema)
	root, is := v.(*ordered)
	if len(schema) == 0 || err == nil && v == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), ""
	}
	if err != nil || !is {
		return schema, ""
	}
	before := inJSON(root)
	modern(root)
	o := offerer{root: root}
	o.hoist(root)
	o.top(root)
	o.object(root, true)
	prune(root)
	after := inJSON(root)
	if after == before {
		return schema, ""
	}
	return json.RawMessage(after), strings.Join(o.words, "\n")
}

type offerer struct {
	root    *ordered
	words   []string
	hoisted map[string]string // definitions made of the targets of other references
	nodes   int
}

const (
	maxWords   = 2000 // bytes of what is said in words
	maxMerged  = 2000 // schemas that are merged into the top
	maxChained = 16   // references and choices in one another at the top
)

func (o *offerer) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	o.words = append(o.words, text)
}

// prune removes definitions without references.
func prune(root *ordered) {
	defs := root.object("$defs")
	if defs == nil {
		return
	}
	used := map[string]bool{}
	var find func(*ordered)
	find = func(s *ordered) {
		name, _ := strings.CutPrefix(s.text("$ref"), "#/$defs/")
		name, _, _ = strings.Cut(name, "/")
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if def := defs.object(name); def != nil && !used[name] {
			used[name] = true
			find(def)
		}
		each(s, find)
	}
	root.remove("$defs")
	find(root)
	for _, name := range slices.Clone(defs.names) {
		if !used[name] {
			defs.remove(name)
		}
	}
	if len(defs.names) > 0 {
		root.set("$defs", defs)
	}
}

// each visits the direct subschemas of a schema, and keeps those for which visit returns true.
func each(s *ordered, visit func(*ordered)) {
	for _, name := range oneSchema() {
		if sub := s.object(name); sub != nil {
			visit(sub)
		}
	}
	for _, name := range someSchemas() {
		for _, v := range s.list(name) {
			if sub, is := v.(*ordered); is {
				visit(sub)
			}
		}
	}
	for _, name := range namedSchemas() {
		if sub := s.object(name); sub != nil {
			for _, key := range sub.names {
				if p := sub.object(key); p != nil {
					visit(p)
				}
			}
		}
	}
}

// hoist makes definitions of targets of references that lie elsewhere, such as a property.
func (o *offerer) hoist(root *ordered) {
	var others []*ordered
	var find func(*ordered)
	find = func(s *ordered) {
		if ref := s.text("$ref"); strings.HasPrefix(ref, "#") && !strings.HasPrefix(ref, "#/$defs/") {
			others = append(others, s)
		}
		each(s, find)
	}
	find(root)
	o.hoisted = map[string]string{}
	for len(others) > 0 {
		s := others[0]
		others = others[1:]
		ref := s.text("$ref")
		name, known := o.hoisted[ref]
		if !known {
			target := o.target(ref)
			if target == nil || len(o.hoisted) > 100 {
				continue
			}
			target, _ = copyOf(target).(*ordered)
			target.remove("$defs")
			defs := root.object("$defs")
			if defs == nil {
				defs = newOrdered()
				root.set("$defs", defs)
			}
			name = freeName(defs, definitionName(ref))
			o.hoisted[ref] = name
			defs.set(name, target)
			// What is in it may refer elsewhere too.
			find(target)
		}
		s.set("$ref", "#/$defs/"+name)
	}
}

func definitionName(ref string) string {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	if !goodArgument.MatchString(name) {
		return "arguments"
	}
	return name
}

// target returns the schema that a reference leads to, or nil.
func (o *offerer) target(ref string) *ordered {
	path, ok := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(path)
	if !ok || err != nil || path != "" && path[0] != '/' {
		return nil
	}
	var v any = o.root
	for _, part := range strings.Split(path, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch at := v.(type) {
		case *ordered:
			v = at.get(part)
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	s, _ := v.(*ordered)
	return s
}

// top removes choices from the top of the schema.
func (o *offerer) top(root *ordered) {
	flat := o.flatten(root, 0)
	for _, name := range slices.Clone(root.names) {
		if !flat.has(name) {
			root.remove(name)
		}
	}
	for _, name := range flat.names {
		root.set(name, flat.values[name])
	}
	for _, name := range []string{"enum", "const"} {
		if root.has(name) {
			o.say("The arguments as a whole must be one of: %s", strings.Trim(inJSON(root.get(name)), "[]"))
			root.remove(name)
		}
	}
	if root.has("not") {
		o.say("The arguments must not fit this schema: %s", inJSON(root.get("not")))
		root.remove("not")
	}
	root.remove("$ref") // to itself
	if kinds := root.texts("type"); len(kinds) > 0 && !slices.Contains(kinds, "object") {
		o.say("The arguments fit a schema of type %s.", strings.Join(kinds, " or ")) // which no arguments do
	}
	if root.has("type") {
		root.set("type", "object")
	} else {
		root.names = slices.Insert(root.names, 0, "type")
		root.values["type"] = "object"
	}
	o.names(root)
	if text := root.text("description"); text != "" && len(o.words) > 0 {
		root.remove("description") // the words go to the same place
		o.words = slices.Insert(o.words, 0, text)
	}
}

// flatten returns a copy of a schema of arguments without references and choices of its own.
func (o *offerer) flatten(s *ordered, depth int) *ordered {
	flat := &ordered{names: slices.Clone(s.names), values: maps.Clone(s.values)}
	if p := flat.object("properties"); p != nil {
		flat.set("properties", &ordered{names: slices.Clone(p.names), values: maps.Clone(p.values)})
	}
	o.nodes++
	if depth > maxChained || o.nodes > maxMerged {
		return flat
	}
	if ref := flat.text("$ref"); ref != "" {
		if target := o.target(ref); target != nil && target != s {
			flat.remove("$ref")
			merge(flat, o.flatten(target, depth+1), true)
		}
	}
	for _, v := range flat.list("allOf") {
		if sub, is := v.(*ordered); is {
			merge(flat, o.flatten(sub, depth+1), true)
		}
	}
	flat.remove("allOf")
	for _, name := range []string{"anyOf", "oneOf"} {
		if list := flat.list(name); list != nil {
			flat.remove(name)
			o.choice(flat, name, list, depth)
		}
	}
	return flat
}

// choice merges the alternatives of a schema into it.
func (o *offerer) choice(flat *ordered, name string, list []any, depth int) {
	var subs []*ordered
	for _, v := range list {
		sub, is := v.(*ordered)
		if !is {
			continue
		}
		sub = o.flatten(sub, depth+1)
		if kinds := sub.texts("type"); sub.has("type") && !slices.Contains(kinds, "object") {
			continue // arguments are an object
		}
		subs = append(subs, sub)
	}
	always := map[string]int{}
	var told []string
	for _, sub := range subs {
		for _, arg := range sub.texts("required") {
			always[arg]++
		}
		told = append(told, alternative(sub))
	}
	for _, sub := range subs {
		needed := sub.texts("required")
		sub.remove("description", "title", "additionalProperties", "required", "type")
		merge(flat, sub, false)
		for _, arg := range needed {
			if always[arg] == len(subs) {
				require(flat, arg)
			}
		}
	}
	told = slices.DeleteFunc(told, func(s string) bool { return s == "" })
	told = slices.Compact(told) // those that differ in types only stand in the schema
	switch {
	case len(told) < 2:
	case name == "oneOf":
		o.say("Give the arguments of exactly one of: %s", strings.Join(told, "; or "))
	default:
		o.say("Give the arguments of at least one of: %s", strings.Join(told, "; or "))
	}
}

// alternative says which arguments an alternative has.
func alternative(s *ordered) string {
	var names []string
	required := s.texts("required")
	if p := s.object("properties"); p != nil {
		for _, name := range p.names {
			text := name
			if c, fixed := p.object(name).get("const"), p.object(name) != nil && p.object(name).has("const"); fixed {
				text += " " + inJSON(c)
			}
			if slices.Contains(required, name) {
				text += " (required)"
			}
			names = append(names, text)
		}
	}
	for _, name := range required {
		if !s.object("properties").hasField(name) {
			names = append(names, name+" (required)")
		}
	}
	text := strings.Join(names, ", ")
	if d := s.text("description"); d != "" {
		text = strings.TrimSuffix(d, ".") + ": " + text
	} else if d := s.text("title"); d != "" {
		text = d + ": " + text
	}
	return text
}

func (o *ordered) hasField(name string) bool { return o != nil && o.has(name) }

func require(s *ordered, name string) {
	if list := s.list("required"); !slices.Contains(list, any(name)) {
		s.set("required", append(slices.Clone(list), any(name)))
	}
}

// merge adds the constraints of another schema to s. If all is true both apply, else either may.
func merge(s, more *ordered, all bool) {
	for _, name := range more.names {
		v := more.values[name]
		switch {
		case name == "properties":
			mergeProperties(s, more.object(name), all)
		case name == "required":
			for _, arg := range more.texts(name) {
				require(s, arg)
			}
		case name == "$defs" || name == "additionalProperties" && s.has("properties") && v == false:
			// Definitions are those of the root; of several parts none is closed.
		case !s.has(name):
			if all || name == "patternProperties" || name == "title" {
				s.set(name, v)
			}
		}
	}
	if len(s.object("properties").fields()) > 0 && more.object("properties") != nil && s.get("additionalProperties") == false && !all {
		s.remove("additionalProperties")
	}
}

func (o *ordered) fields() []string {
	if o == nil {
		return nil
	}
	return o.names
}

func mergeProperties(s, more *ordered, all bool) {
	if more == nil {
		return
	}
	own := s.object("properties")
	if own == nil {
		own = newOrdered()
		s.set("properties", own)
	}
	for _, name := range more.names {
		v := more.values[name]
		had, twice := own.values[name]
		switch {
		case !twice:
			own.set(name, v)
		case alike(had, v):
		case all:
			own.set(name, both(had, v))
		default:
			own.set(name, either(had, v))
		}
	}
}

func both(a, b any) any {
	if a == true {
		return b
	}
	if s, is := a.(*ordered); is && len(s.names) == 0 {
		return b
	}
	if s, is := b.(*ordered); b == true || is && len(s.names) == 0 {
		return a
	}
	s := newOrdered()
	s.set("allOf", []any{a, b})
	return s
}

// either returns a schema that accepts values of both. Enums are joined into one.
func either(a, b any) any {
	x, isX := a.(*ordered)
	y, isY := b.(*ordered)
	if isX && isY {
		one, other := values(x), values(y)
		if one != nil && other != nil && alike(x.get("type"), y.get("type")) {
			s, _ := copyOf(x).(*ordered)
			s.remove("const")
			s.set("enum", distinct(slices.Concat(one, other)))
			return s
		}
		if list := x.list("anyOf"); len(x.names) == 1 && list != nil {
			if !slices.ContainsFunc(list, func(v any) bool { return alike(v, y) }) {
				list = append(slices.Clone(list), y)
			}
			s := newOrdered()
			s.set("anyOf", list)
			return s
		}
	}
	s := newOrdered()
	s.set("anyOf", []any{a, b})
	return s
}

func values(s *ordered) []any {
	if s.has("const") {
		return []any{s.values["const"]}
	}
	return s.list("enum")
}

var goodArgument = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// names mentions, in words, arguments whose names a vendor refuses. They may still be given.
func (o *offerer) names(root *ordered) {
	p := root.object("properties")
	if p == nil {
		return
	}
	for _, name := range slices.Clone(p.names) {
		if goodArgument.MatchString(name) {
			continue
		}
		must := ""
		if list := root.list("required"); slices.Contains(list, any(name)) {
			must = ", which is required"
			root.set("required", slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == any(name) }))
		}
		o.say("There is also the argument %s%s: %s", strconv.Quote(name), must, inJSON(p.values[name]))
		p.remove(name)
		if root.get("additionalProperties") == false {
			root.remove("additionalProperties")
		}
	}
}

// object converts one schema, and everything in it, except for the rules for the top.
func (o *offerer) object(s *ordered, top bool) {
	if _, text := s.get("type").(string); !text && s.list("type") == nil {
		drop(s, "type")
	}
	if !top {
		oneType(s)
	}
	if s.get("type") == "object" || s.object("properties") != nil {
		properties(s)
	}
	if list := s.list("required"); list != nil && len(list) == 0 {
		s.remove("required")
	}
	if more := s.object("additionalProperties"); more != nil && len(more.names) == 0 || s.get("additionalProperties") == true {
		s.remove("additionalProperties")
	}
	if isArray := s.get("type") == "array" || slices.Contains(s.texts("type"), "array"); isArray && s.object("items") == nil {
		if s.get("items") == false && !s.has("maxItems") {
			s.set("maxItems", json.Number(strconv.Itoa(len(s.list("prefixItems")))))
		}
		s.set("items", newOrdered())
	}
	if p := s.object("properties"); p != nil {
		for _, name := range p.names {
			if allowed, is := p.values[name].(bool); is {
				p.values[name] = newOrdered()
				if !allowed {
					p.object(name).set("description", "(must not be given)")
				}
			}
		}
	}
	for _, name := range someSchemas() {
		for i, v := range s.list(name) {
			if allowed, is := v.(bool); is {
				sub := newOrdered()
				if !allowed {
					sub.set("not", newOrdered())
				}
				s.list(name)[i] = sub
			}
		}
	}
	if format := s.text("format"); format != "" && !slices.Contains(formats(), format) {
		drop(s, "format")
	}
	each(s, func(sub *ordered) { o.object(sub, false) })
}

// formats are the formats of draft 2020-12.
func formats() []string {
	return []string{
		"date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri",
		"iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex",
	}
}

// properties gives an object properties, including all required ones.
func properties(s *ordered) {
	p := s.object("properties")
	if p == nil {
		p = newOrdered()
		s.set("properties", p)
	}
	for _, name := range s.texts("required") {
		if !p.has(name) {
			p.set(name, newOrdered())
		}
	}
}

// oneType makes a choice of a list of types. Each keyword goes to the type it applies to.
func oneType(s *ordered) {
	kinds := s.list("type")
	if len(kinds) == 0 || s.has("anyOf") {
		return
	}
	var subs []any
	for _, kind := range kinds {
		sub := newOrdered()
		sub.set("type", kind)
		for _, name := range s.names {
			if slices.Contains(about(kind), name) {
				sub.set(name, s.values[name])
			}
		}
		subs = append(subs, sub)
	}
	for _, kind := range []any{"object", "array", "string", "number"} {
		s.remove(about(kind)...)
	}
	s.rename("type", "anyOf")
	s.set("anyOf", subs)
}

// about lists the keywords that apply to values of a type.
func about(kind any) []string {
	switch kind {
	case "object":
		return []string{
			"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
			"dependentRequired", "dependentSchemas", "unevaluatedProperties",
		}
	case "array":
		return []string{
			"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems",
		}
	case "string":
		return []string{"pattern", "format", "minLength", "maxLength", "contentEncoding", "contentMediaType"}
	case "number", "integer":
		return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	}
	return nil
}
