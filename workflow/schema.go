package workflow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// schema reports whether a schema can be used.
func (c *checker) schema(path string, s *Schema) bool {
	if s == nil {
		c.add(path, "it is empty", "give it a JSON schema")
		return false
	}
	if what, remedy := odd(s); what != "" {
		c.add(path, what, remedy)
		return false
	}
	raw, err := json.Marshal(s)
	if err == nil {
		object := fmt.Appendf(nil, `{"type":"object","properties":{"value":%s}}`, raw) // with a value that fits the schema
		err = tool.Tool{Name: "value", Schema: object}.CheckSchema()
	}
	if err == nil {
		_, err = s.Resolve(nil) // CheckSchema passes over patterns that don't compile, as servers send such
	}
	if err != nil {
		c.add(path, "it is not a JSON schema: "+err.Error(), "see json-schema.org")
		return false
	}
	return true
}

// odd names the parts of a schema that would be ignored or can't be enforced.
func odd(s *Schema) (what, remedy string) {
	if s == nil {
		return "a part of the schema is empty", "give it a JSON schema such as {type: string}"
	}
	if s.Ref+s.DynamicRef+s.ID+s.Anchor+s.DynamicAnchor != "" {
		return "it refers to another schema, or has an address", "write out what it stands for"
	}
	if extra := sortedKeys(s.Extra); len(extra) > 0 {
		return fmt.Sprintf("schemas have no keyword %q", extra[0]), remedyFor(extra[0], []string{
			"type", "properties", "required", "items", "enum", "default", "description", "minimum", "maximum", "pattern", "minItems", "maxItems",
		})
	}
	names := []string{"string", "number", "integer", "boolean", "object", "array", "null"}
	for _, one := range append(slices.Clip(s.Types), cmp.Or(s.Type, "null")) {
		if !slices.Contains(names, one) {
			return fmt.Sprintf("%q is not a type of JSON", one), remedyFor(one, names)
		}
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil && len(s.Properties) > 0 {
			return fmt.Sprintf("it requires %q, which is not one of its properties", name), remedyFor(name, sortedKeys(s.Properties))
		}
	}
	for _, one := range s.Enum {
		if !could(one, s) {
			return fmt.Sprintf("%s in its enum is not of type %s", shown(one), s.Type), "give the enum values of its type"
		}
	}
	for _, part := range partsOf(s) {
		if what, remedy := odd(part); what != "" {
			return what, remedy
		}
	}
	return "", ""
}

// valid returns the reason why JSON does not fit a schema.
func valid(s *Schema, raw json.RawMessage) error {
	r, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if err := r.Validate(v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "validating root: "))
	}
	return nil
}

// partsOf returns the schemas within a schema.
func partsOf(s *Schema) (out []*Schema) {
	for _, named := range []map[string]*Schema{
		s.Properties, s.PatternProperties, s.Defs, s.Definitions, s.DependentSchemas, s.DependencySchemas,
	} {
		for _, name := range sortedKeys(named) {
			out = append(out, named[name])
		}
	}
	for _, list := range [][]*Schema{s.ItemsArray, s.PrefixItems, s.AllOf, s.AnyOf, s.OneOf} {
		out = append(out, list...)
	}
	single := []*Schema{
		s.Items, s.AdditionalItems, s.UnevaluatedItems, s.Contains, s.AdditionalProperties, s.UnevaluatedProperties,
		s.PropertyNames, s.Not, s.If, s.Then, s.Else, s.ContentSchema,
	}
	return append(out, slices.DeleteFunc(single, func(s *Schema) bool { return s == nil })...)
}
