package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// contract is the OpenAPI description of an API, with schemas in place of contents.
type contract struct {
	Paths map[string]map[string]operation `json:"paths"`
}

type operation struct {
	Parameters []struct {
		Name     string            `json:"name"`
		In       string            `json:"in"`
		Required bool              `json:"required"`
		Schema   jsonschema.Schema `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Required bool              `json:"required"`
		Schema   jsonschema.Schema `json:"schema"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Schema jsonschema.Schema `json:"schema"`
	} `json:"responses"`
}

func newContract(raw []byte) *contract {
	var c contract
	if err := json.Unmarshal(raw, &c); err != nil {
		panic(err)
	}
	return &c
}

// find returns the operation of a request, and the parameters in its path.
func (c *contract) find(method, escaped string) (op operation, args []string, found bool) {
	is := strings.Split(escaped, "/")
	for _, path := range slices.Sorted(keysOf(c.Paths)) {
		want, args := strings.Split(path, "/"), []string(nil)
		fits := len(want) == len(is)
		for i := 0; fits && i < len(want); i++ {
			if strings.HasPrefix(want[i], "{") {
				arg, err := url.PathUnescape(is[i])
				args, fits = append(args, arg), err == nil && arg != ""
			} else {
				fits = want[i] == is[i]
			}
		}
		if op, ok := c.Paths[path][strings.ToLower(method)]; fits && ok {
			return op, args, true
		}
	}
	return op, nil, false
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// request reports parts of a request that the operation does not know or allow.
func (op operation) request(r *http.Request, body any) error {
	known := map[string]jsonschema.Schema{}
	for _, p := range op.Parameters {
		if p.In == "query" {
			known[p.Name] = p.Schema
		}
		if p.In == "query" && p.Required && !r.URL.Query().Has(p.Name) {
			return fmt.Errorf("the parameter %s is missing", p.Name)
		}
	}
	for name, values := range r.URL.Query() {
		s, ok := known[name]
		if !ok {
			return fmt.Errorf("there is no parameter %s", name)
		}
		if err := fits(s, typed(s, values[0])); err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
	}
	switch {
	case op.Body == nil && body != nil:
		return fmt.Errorf("it takes no body")
	case op.Body == nil, body == nil && !op.Body.Required:
		return nil
	}
	return fits(op.Body.Schema, body)
}

// typed returns the value of a parameter.
func typed(s jsonschema.Schema, text string) any {
	switch s.Type {
	case "integer":
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// fits reports parts of a value that a schema does not allow, or does not name.
func fits(s jsonschema.Schema, v any) error {
	resolved, err := s.Resolve(nil)
	if err == nil {
		err = resolved.Validate(v)
	}
	if err != nil {
		return err
	}
	return unnamed(&s, v)
}

// unnamed reports a field of a value that a schema does not name.
func unnamed(s *jsonschema.Schema, v any) error {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if s.Items != nil {
				if err := unnamed(s.Items, one); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		for name, one := range v {
			of := s.Properties[name]
			if of == nil {
				return fmt.Errorf("there is no field %s", name)
			}
			if err := unnamed(of, one); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
