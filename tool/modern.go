package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Programs write schemas in several drafts of JSON Schema and in OpenAPI's dialect, and make mistakes. modern
// converts a schema to draft 2020-12 without changing its meaning, so that arguments can be checked and vendors
// can read it. It leaves values alone, such as those of default or enum.
//
//	was                              is
//	"a": "string", "a": null         "a": {"type": "string"}, "a": {}
//	type "STRING", "any", "int"      type "string", none, "integer"
//	nullable: true                   type ["string", "null"]
//	exclusiveMinimum: true           exclusiveMinimum with the value of minimum
//	required: true in a property     the name in required of the object
//	items: [A, B]                    prefixItems: [A, B]
//	definitions, #/definitions/X     $defs, #/$defs/X
//	a keyword of the wrong type      left out, its words in the description
//	a pattern Go can't compile       likewise
func modern(root *ordered) {
	m := modernizer{root: root}
	root.remove("$schema", "$id", "id", "$comment", "$vocabulary")
	m.definitions()
	m.schema(root)
}

type modernizer struct {
	root  *ordered
	moved map[string]string // names of definitions that another had
}

// definitions moves the definitions of older drafts to $defs.
func (m *modernizer) definitions() {
	old := m.root.object("definitions")
	if old == nil {
		m.root.remove("definitions")
		return
	}
	defs := m.root.object("$defs")
	if defs == nil {
		m.root.remove("$defs")
		m.root.rename("definitions", "$defs")
		return
	}
	m.moved = map[string]string{}
	for _, name := range old.names {
		free := freeName(defs, name)
		if free != name {
			m.moved[name] = free
		}
		defs.set(free, old.values[name])
	}
	m.root.remove("definitions")
}

func freeName(o *ordered, name string) string {
	for free, n := name, 2; ; n++ {
		if !o.has(free) {
			return free
		}
		free = name + strconv.Itoa(n)
	}
}

// oneSchema lists the keywords whose value is a schema.
func oneSchema() []string {
	return []string{
		"items", "additionalItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "not",
		"if", "then", "else", "contentSchema",
	}
}

// someSchemas lists the keywords whose value is a list of schemas.
func someSchemas() []string { return []string{"prefixItems", "allOf", "anyOf", "oneOf"} }

// namedSchemas lists the keywords whose value maps names to schemas.
func namedSchemas() []string {
	return []string{"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"}
}

// schema modernizes one schema and everything in it.
func (m *modernizer) schema(s *ordered) {
	for _, name := range slices.Clone(s.names) {
		if v := s.values[name]; v == nil && name != "default" && name != "const" {
			s.remove(name)
		}
	}
	own := ownRequired(s)
	s.remove("$schema", "$vocabulary")
	m.types(s)
	bound(s, "minimum", "exclusiveMinimum")
	bound(s, "maximum", "exclusiveMaximum")
	s.rename("divisibleBy", "multipleOf")
	m.keywords(s)
	m.reference(s)
	tuple(s)
	for _, name := range oneSchema() {
		if s.has(name) {
			m.one(s, name)
		}
	}
	for _, name := range someSchemas() {
		m.some(s, name)
	}
	for _, name := range namedSchemas() {
		m.named(s, name)
	}
	m.required(s, own)
}

func (m *modernizer) one(s *ordered, name string) {
	switch v := s.values[name].(type) {
	case *ordered:
		m.schema(v)
	case bool:
	default:
		drop(s, name)
	}
}

func (m *modernizer) some(s *ordered, name string) {
	if one, is := s.get(name).(*ordered); is {
		s.set(name, []any{one})
	}
	list := s.list(name)
	if len(list) == 0 {
		drop(s, name)
		return
	}
	for i, v := range list {
		list[i] = m.asSchema(v)
	}
}

func (m *modernizer) named(s *ordered, name string) {
	if !s.has(name) {
		return
	}
	o := s.object(name)
	if o == nil {
		drop(s, name)
		return
	}
	for _, key := range o.names {
		o.values[key] = m.asSchema(o.values[key])
	}
}

// asSchema converts a value in the place of a schema. The name of a type stands for that type.
func (m *modernizer) asSchema(v any) any {
	switch v := v.(type) {
	case *ordered:
		m.schema(v)
		return v
	case bool:
		return v
	}
	o := newOrdered()
	if s, is := v.(string); is {
		if _, known := typeNamed(s); known {
			o.set("type", s)
			m.types(o)
		} else {
			o.set("description", s)
		}
	}
	return o
}

// typeNamed returns the type that a word stands for, "" for any.
func typeNamed(word string) (name string, known bool) {
	switch low := strings.ToLower(word); low {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return low, true
	case "any", "mixed", "unknown":
		return "", true
	case "int", "int32", "int64", "long", "uint":
		return "integer", true
	case "float", "double", "decimal":
		return "number", true
	case "str", "text":
		return "string", true
	case "bool":
		return "boolean", true
	case "list":
		return "array", true
	case "dict", "map":
		return "object", true
	case "none":
		return "null", true
	}
	return "", false
}

func (m *modernizer) types(s *ordered) {
	if _, text := s.get("type").(string); s.has("type") && !text && s.list("type") == nil {
		return // no schema: compile says so
	}
	given := s.texts("type")
	var names []any
	all := !s.has("type")
	for _, word := range given {
		name, known := typeNamed(word)
		switch {
		case !known:
			remark(s, "type "+word)
		case name == "":
			all = true
		case !slices.Contains(names, any(name)):
			names = append(names, name)
		}
	}
	if nullable, is := s.get("nullable").(bool); is {
		if nullable && len(names) > 0 && !slices.Contains(names, any("null")) {
			names = append(names, "null")
		}
		s.remove("nullable")
	}
	switch {
	case all || len(names) == 0 || len(given) < len(s.list("type")): // draft 3 has schemas in the list
		s.remove("type")
	case len(names) == 1:
		s.set("type", names[0])
	default:
		s.set("type", names)
	}
}

// bound converts draft 4's boolean, which makes a bound exclusive, to a number.
func bound(s *ordered, limit, exclusive string) {
	if out, is := s.get(exclusive).(bool); is {
		s.remove(exclusive)
		if out && s.has(limit) {
			s.rename(limit, exclusive)
		}
	}
}

// keywords removes keywords whose value has the wrong type, as a vendor refuses the whole request for one. A
// number in a string becomes that number.
func (m *modernizer) keywords(s *ordered) {
	for _, name := range slices.Clone(s.names) {
		v := s.values[name]
		ok := true
		switch name {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			ok = number(s, name, false)
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
			ok = number(s, name, true)
		case "uniqueItems", "deprecated", "readOnly", "writeOnly":
			_, ok = v.(bool)
		case "title", "description", "$comment", "format", "contentEncoding", "contentMediaType", "$anchor", "$dynamicAnchor", "$ref",
			"$id":
			_, ok = v.(string)
		case "pattern":
			var text string
			if text, ok = v.(string); ok {
				_, err := regexp.Compile(text)
				ok = err == nil
			}
		case "enum":
			list, is := v.([]any)
			if ok = is && len(list) > 0; ok {
				s.values[name] = distinct(list)
			}
		case "examples":
			_, ok = v.([]any)
		}
		if !ok {
			drop(s, name)
		}
	}
}

func distinct(list []any) []any {
	var out []any
	for _, v := range list {
		if !slices.ContainsFunc(out, func(w any) bool { return alike(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}

// number reports whether the value of a keyword is a number, or can be converted to one.
func number(s *ordered, name string, whole bool) bool {
	n, is := s.values[name].(json.Number)
	if text, quoted := s.values[name].(string); quoted {
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return false
		}
		n, is = json.Number(text), true
	}
	if !is {
		return false
	}
	f, err := n.Float64()
	if err != nil || whole && (f < 0 || f > 1<<53 || f != float64(int64(f))) {
		return false
	}
	if whole {
		n = json.Number(strconv.FormatInt(int64(f), 10))
	}
	s.values[name] = n
	return true
}

// reference updates a reference to a definition that has moved.
func (m *modernizer) reference(s *ordered) {
	ref, is := s.get("$ref").(string)
	name, old := strings.CutPrefix(ref, "#/definitions/")
	if !is || !old || m.root.object("$defs") == nil {
		return
	}
	name, rest, _ := strings.Cut(name, "/")
	if now, moved := m.moved[name]; moved {
		name = now
	}
	if rest != "" {
		name += "/" + rest
	}
	s.set("$ref", "#/$defs/"+name)
}

// tuple renames a list of items, one for each position, to its modern keyword.
func tuple(s *ordered) {
	if _, is := s.get("items").([]any); !is {
		return
	}
	if len(s.list("items")) == 0 {
		s.remove("items")
		return
	}
	s.rename("items", "prefixItems")
	switch more, _ := s.get("additionalItems").(bool); {
	case s.object("additionalItems") != nil:
		s.rename("additionalItems", "items")
	case s.has("additionalItems") && !more && !s.has("maxItems"):
		s.set("maxItems", json.Number(strconv.Itoa(len(s.list("prefixItems")))))
	}
	s.remove("additionalItems")
}

// required converts required to a list of names. Older drafts have it as a boolean in the property.
func (m *modernizer) required(s *ordered, own []string) {
	var names []any
	for _, name := range slices.Concat(s.texts("required"), own) {
		if !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	if s.list("required") == nil && len(own) == 0 || len(names) == 0 {
		s.remove("required")
		return
	}
	s.set("required", names)
}

// ownRequired returns the properties that are marked as required in their own schema.
func ownRequired(s *ordered) []string {
	var names []string
	properties := s.object("properties")
	if properties == nil {
		return nil
	}
	for _, name := range properties.names {
		if must, is := properties.object(name).get("required").(bool); is && must {
			names = append(names, name)
		}
	}
	return names
}

// drop removes a keyword and adds its content to the description.
func drop(s *ordered, name string) {
	if !s.has(name) {
		return
	}
	v := s.values[name]
	s.remove(name)
	switch v := v.(type) {
	case nil, bool:
		return
	case string:
		if v != "" {
			remark(s, name+" "+v)
		}
		return
	case []any:
		if len(v) == 0 {
			return
		}
	}
	remark(s, name+" "+inJSON(v))
}

const maxRemark = 500 // bytes of a remark

// remark adds text to the description.
func remark(s *ordered, text string) {
	if len(text) > maxRemark {
		text = strings.ToValidUTF8(text[:maxRemark], "") + "…"
	}
	s.set("description", strings.TrimSpace(fmt.Sprintf("%s (%s)", s.text("description"), text)))
}
