package ollamatest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/inspan/inspan/internal/testkit/fake"
)

// tool is a tool in a request.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// The server reads a schema into Go types (ToolFunctionParameters and ToolProperty in
// https://github.com/ollama/ollama/blob/main/api/types.go), so a field of another JSON type is an error, such
// as a list for properties (ollama/ollama#10328). Templates show what was read and know neither more
// keywords nor an object without properties.

type parameters struct {
	Type       string              `json:"type"`
	Defs       any                 `json:"$defs"`
	Items      any                 `json:"items"`
	Required   []string            `json:"required"`
	Properties map[string]property `json:"properties"`
}

type property struct {
	AnyOf       []property          `json:"anyOf"`
	Type        types               `json:"type"`
	Items       any                 `json:"items"`
	Description string              `json:"description"`
	Enum        []any               `json:"enum"`
	Properties  map[string]property `json:"properties"`
}

// types are one type or a list of types.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	if json.Unmarshal(data, &list) != nil {
		return errors.New("invalid type for property: must be a string or an array of strings")
	}
	*t = list
	return nil
}

func checkTools(tools []tool) error {
	for _, t := range tools {
		var p parameters
		if err := json.Unmarshal(t.Function.Parameters, &p); err != nil {
			return fmt.Errorf("tool %q: %w", t.Function.Name, err)
		}
		if t.Type != "function" || t.Function.Name == "" || p.Type != "object" || p.Properties == nil {
			return fmt.Errorf("tool %q: want a function with parameters of type object, with properties", t.Function.Name)
		}
		var schema fake.Schema
		_ = json.Unmarshal(t.Function.Parameters, &schema) // read before
		if path, words := fake.Draft(schema); words != "" {
			return fmt.Errorf("tool %q: parameters%s: %s", t.Function.Name, fake.Dotted(path), words)
		}
	}
	return nil
}
