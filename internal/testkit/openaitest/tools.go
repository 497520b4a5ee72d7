package openaitest

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// The vendor's rules for tools, as far as they are known. It documents few of them
// (https://platform.openai.com/docs/guides/function-calling); most are known by what it answers.
//
//   - An object has properties, if only none: "object schema missing properties"
//     (openai/openai-agents-python#449, mark3labs/mcphost#88, langchain-ai/langchain-mcp-adapters#343).
//   - The top has type object and no choice: "schema must have type 'object' and not have
//     'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (IvanMurzak/Unity-MCP#440,
//     MervinPraison/PraisonAI#3111).
//   - An array has items: "array schema missing items" (nnemirovsky/iwdp-mcp#3).
//   - Keywords have the form that JSON Schema gives them: "None is not of type 'array'" for required null
//     (bnb-chain/bnbchain-mcp#68), "'object' is not of type 'object', 'boolean'" for a property that is not a schema
//     (smallmain/vscode-unify-chat-provider#162).
//   - Names have up to 64 letters, digits, "_" and "-" (the vendor's API reference).
//   - Chat Completions take up to 128 tools (zed-industries/zed#42393), at xAI 200; none are no empty list, and
//     tool_choice goes with tools (JetBrains/koog#786, dapr/dapr-agents#248).
//   - Responses reads a tool without strict false as a strict one (vercel/ai#7888).

func (rules rules) checkTools(r *request) error {
	if r.Tools == nil {
		if r.ToolChoice != nil {
			return refuse("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		return nil
	}
	switch n := len(*r.Tools); {
	case n == 0:
		return refuse("Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case rules.mostTools > 0 && n > rules.mostTools:
		return refuse("Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.",
			rules.mostTools, n)
	}
	seen := map[string]bool{}
	for i, t := range *r.Tools {
		switch {
		case seen[t.Function.Name]:
			return refuse("Invalid 'tools[%d].function.name': function names must be unique.", i)
		case t.Type != "function":
			return refuse("Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		case !goodName.MatchString(t.Function.Name):
			return refuse("Invalid 'tools[%d].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
		seen[t.Function.Name] = true
		if err := checkSchema(t.Function.Name, t.Function.Parameters); err != nil {
			return err
		}
	}
	return nil
}

func checkResponseTools(r *responseRequest) error {
	if len(r.Tools) == 0 && r.Choice != nil {
		return refuse("Tool choice requires 'tools'.")
	}
	for i, t := range r.Tools {
		switch {
		case t.Type != "function":
			return refuse("Invalid value: '%s'. Supported values are: 'function', 'custom', ... (tools[%d].type)", t.Type, i)
		case t.Name == "":
			return refuse("Missing required parameter: 'tools[%d].name'.", i)
		case !goodName.MatchString(t.Name):
			return refuse("Invalid 'tools[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
				i)
		case t.Strict == nil || *t.Strict:
			return refuse("Invalid schema for function '%s': In context=(), 'additionalProperties' is required to be supplied and to be false.",
				t.Name)
		}
		if err := checkSchema(t.Name, t.Parameters); err != nil {
			return err
		}
	}
	return nil
}

// checkSchema checks the parameters of a function. A function may have none.
func checkSchema(name string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	object := func(why string, args ...any) error {
		return refuse("Invalid schema for function '%s': "+why, append([]any{name}, args...)...)
	}
	var schema fake.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return object("it is not JSON.")
	}
	top, is := schema.(map[string]any)
	if !is {
		return object("%s is not of type 'object'.", strings.ReplaceAll(string(raw), "null", "None"))
	}
	if top["type"] != "object" {
		return object("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", top["type"])
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "not", "const"} {
		if _, has := top[keyword]; has {
			return object("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.")
		}
	}
	if path, words := fake.Draft(schema); words != "" {
		return object("In context=%s, %s.", fake.Context(path), words)
	}
	return fake.Walk(schema, func(path []string, s map[string]any) error {
		_, properties := s["properties"]
		_, items := s["items"].(map[string]any)
		switch {
		case s["type"] == "object" && !properties:
			return object("In context=%s, object schema missing properties.", fake.Context(path))
		case s["type"] == "array" && !items:
			return object("In context=%s, array schema missing items.", fake.Context(path))
		}
		return nil
	})
}
