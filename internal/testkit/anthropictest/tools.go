package anthropictest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// The vendor's rules for tools, as far as they are known.
//
//   - Names have up to 64 letters, digits, "_" and "-" at every cloud, and are unique ("Tool names must be
//     unique", danny-avila/LibreChat#13162).
//   - The schema has type object and no choice: "input_schema does not support oneOf, allOf, or anyOf at the top
//     level" (anthropics/claude-code#5973, mobile-next/mobile-mcp#344).
//   - It keeps draft 2020-12: "JSON schema is invalid. It must match JSON Schema draft 2020-12", as for forms
//     of draft 4 and for a property that is a text (anthropics/claude-code#63673).
//   - Names of properties match "^[a-zA-Z0-9_.-]{1,64}$" (anthropics/claude-code#4668, diegosouzapw/OmniRoute#13552).
//   - A tool has no fields but those of the API reference: "Extra inputs are not permitted"
//     (anthropics/claude-code#11678).
//   - tool_choice goes with tools.
//
// How many tools it takes is not known.

var goodProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func checkTools(r *request) error {
	if err := toolsObjection(r); err != nil {
		return fake.Violation{Why: err}
	}
	return nil
}

func toolsObjection(r *request) error {
	if len(r.Tools) == 0 && r.Choice != nil {
		return refuse("tool_choice: tool_choice may only be specified while providing tools.")
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		switch {
		case !goodName.MatchString(t.Name):
			return refuse("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		case seen[t.Name]:
			return refuse("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if kind := string(t.fields["type"]); strings.HasPrefix(kind, `"text_editor_`) {
			if err := editorObjection(i, t); err != nil {
				return err
			}
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(t.fields)) {
			if !slices.Contains([]string{"name", "description", "input_schema", "cache_control", "type", "strict"}, field) {
				return refuse("tools.%d.custom.%s: Extra inputs are not permitted", i, field)
			}
		}
		if err := checkSchema(i, t.InputSchema); err != nil {
			return err
		}
	}
	return nil
}

// editorObjection returns the vendor's objection to an editor of its own, which has one name and no schema.
func editorObjection(i int, t tool) error {
	if string(t.fields["type"]) != `"text_editor_20250728"` || t.Name != "str_replace_based_edit_tool" {
		return refuse("tools.%d: Input tag does not match any of the expected tags, or the name is not that of its type", i)
	}
	for _, field := range slices.Sorted(maps.Keys(t.fields)) {
		if !slices.Contains([]string{"name", "type", "cache_control", "max_characters"}, field) {
			return refuse("tools.%d.text_editor_20250728.%s: Extra inputs are not permitted", i, field)
		}
	}
	return nil
}

func checkSchema(i int, raw json.RawMessage) error {
	var schema fake.Schema
	if len(raw) == 0 || json.Unmarshal(raw, &schema) != nil {
		return refuse("tools.%d.custom.input_schema: Field required", i)
	}
	top, is := schema.(map[string]any)
	switch {
	case !is:
		return refuse("tools.%d.custom.input_schema: Input should be an object", i)
	case top["type"] == nil:
		return refuse("tools.%d.custom.input_schema.type: Field required", i)
	case top["type"] != "object":
		return refuse("tools.%d.custom.input_schema.type: Input should be 'object'", i)
	case top["oneOf"] != nil || top["allOf"] != nil || top["anyOf"] != nil:
		return refuse("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
	}
	if _, words := fake.Draft(schema); words != "" {
		return refuse("tools.%d.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "+
			"(https://json-schema.org/draft/2020-12).", i)
	}
	properties, _ := top["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !goodProperty.MatchString(name) {
			return refuse("tools.%d.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", i)
		}
	}
	return nil
}
