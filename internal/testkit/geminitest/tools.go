package geminitest

import (
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// The vendor's rules for tools, as far as they are known.
//
//   - Names begin with a letter or "_" and have up to 64 letters, digits, "_", "." and "-"
//     (google-gemini/gemini-cli#9535), and are unique.
//   - There are up to 512 declarations (google-gemini/gemini-cli#19083).
//   - The adapter sends parametersJsonSchema and never parameters, which knows a part of OpenAPI only
//     (https://ai.google.dev/api/caching#FunctionDeclaration). Its top is of type object.
//   - "required[0]: property is not defined" (iBUHub/AIStudioToAPI#154) and "items: missing field"
//     (cline/cline#7339) are known of parameters. An adapter that keeps to them is safe with both.

const mostDeclarations = 512

func (v *validator) declarations() error {
	if err := v.toolsObjection(); err != nil {
		return fake.Violation{Why: err}
	}
	return nil
}

func (v *validator) toolsObjection() error {
	seen := map[string]bool{}
	for _, t := range v.Tools {
		if n := len(t.FunctionDeclarations); n > mostDeclarations {
			return refuse("The number of function declarations %d is more than the maximum of %d.", n, mostDeclarations)
		}
		for i, d := range t.FunctionDeclarations {
			switch {
			case !goodName.MatchString(d.Name):
				return refuse("GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name. Must start with a letter or an "+
					"underscore.", i)
			case seen[d.Name]:
				return refuse("Duplicate function declaration found: %s", d.Name)
			case d.Parameters != nil:
				return refuse("GenerateContentRequest.tools[0].function_declarations[%d].parameters: want parametersJsonSchema", i)
			}
			seen[d.Name] = true
			if err := checkSchema(i, d.ParametersJSONSchema); err != nil {
				return err
			}
		}
	}
	if c := v.ToolConfig; c != nil && !slices.Contains([]string{"AUTO", "ANY", "NONE"}, c.FunctionCallingConfig.Mode) {
		return refuse("Invalid value at 'tool_config.function_calling_config.mode'")
	}
	return nil
}

func checkSchema(i int, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var schema fake.Schema
	top, is := schema, false
	if err := json.Unmarshal(raw, &schema); err == nil {
		top, is = schema.(map[string]any)
	}
	if m, _ := top.(map[string]any); !is || m["type"] != "object" {
		return refuse("GenerateContentRequest.tools[0].function_declarations[%d].parameters: schema should be of type OBJECT", i)
	}
	if path, words := fake.Draft(schema); words != "" {
		return refuse("GenerateContentRequest.tools[0].function_declarations[%d].parameters%s: %s", i, fake.Dotted(path), words)
	}
	return fake.Walk(schema, func(path []string, s map[string]any) error {
		properties, has := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for n, name := range required {
			if name, _ := name.(string); has && properties[name] == nil {
				return refuse("GenerateContentRequest.tools[0].function_declarations[%d].parameters%s.required[%d]: property is not defined", i,
					fake.Dotted(path), n)
			}
		}
		if s["type"] == "array" && s["items"] == nil {
			return refuse("GenerateContentRequest.tools[0].function_declarations[%d].parameters%s.items: missing field.", i, fake.Dotted(path))
		}
		return nil
	})
}
