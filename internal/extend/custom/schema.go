package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const (
	maxNesting = 64     // nested objects and lists
	maxWeight  = 10_000 // values of a schema, counted again wherever a reference leads to them
)

// checkSchema returns the schema without white space. It fails if checking arguments against the schema would
// take long.
func checkSchema(name string, data json.RawMessage) (json.RawMessage, error) {
	if data == nil {
		return nil, errors.New(`schema is missing; a tool without arguments has {"type":"object","properties":{}}`)
	}
	var root any
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if top, _ := root.(map[string]any); top["type"] != "object" {
		return nil, errors.New(`schema must be an object of "type": "object"`)
	}
	s := scale{root: root, known: map[string]int{}}
	if _, err := s.weigh(root, 0, false); err != nil {
		return nil, fmt.Errorf("schema %w", err)
	}
	var short bytes.Buffer
	if err := json.Compact(&short, data); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	t := tool.Tool{Name: name, Schema: short.Bytes()}
	// Arguments that don't fit are not a fault of the schema, which the error would name first.
	if _, err := t.Check(nil); err != nil && strings.HasPrefix(err.Error(), "schema of ") {
		return nil, err
	}
	return t.Schema, nil
}

// scale weighs schemas. Small ones can be exponential: a definition that refers twice to the next, which refers
// twice to the next, and so on.
type scale struct {
	root  any
	known map[string]int // weight of definitions; 0 while one is being weighed
}

// weigh counts the values of a schema. Values in data count nothing.
func (s *scale) weigh(v any, depth int, data bool) (int, error) {
	if depth > maxNesting {
		return 0, fmt.Errorf("has objects and lists nested more than %d deep", maxNesting)
	}
	total := 1
	if m, is := v.(map[string]any); is && !data {
		n, err := s.keywords(m)
		if err != nil {
			return 0, err
		}
		total += n
	}
	for name, sub := range parts(v) {
		n, err := s.weigh(sub, depth+1, data || slices.Contains([]string{"default", "const", "enum", "examples"}, name))
		if err != nil {
			return 0, err
		}
		if total += n; total > maxWeight {
			return 0, fmt.Errorf("is too big: with all that it refers to it has more than %d values", maxWeight)
		}
	}
	return total, nil
}

// parts yields the values in a value, with their names if they have any.
func parts(v any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, sub := range v {
				if !yield(name, sub) {
					return
				}
			}
		case []any:
			for _, sub := range v {
				if !yield("", sub) {
					return
				}
			}
		}
	}
}

// keywords returns the weight of the definitions that a schema refers to. It checks types, since some vendors
// refuse every request with an unknown type in a schema.
func (s *scale) keywords(m map[string]any) (int, error) {
	if t, is := m["type"].(string); is && !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, t) {
		return 0, fmt.Errorf("has the unknown type %q", text.Clip(t, 80))
	}
	if pattern, is := m["pattern"].(string); is {
		if _, err := regexp.Compile(pattern); err != nil {
			return 0, fmt.Errorf("has a pattern that can't be used: %w", err)
		}
	}
	if ref, is := m["$ref"].(string); is {
		return s.follow(ref)
	}
	return 0, nil
}

func (s *scale) follow(ref string) (int, error) {
	if n, known := s.known[ref]; known {
		return n, nil
	}
	v, err := s.target(ref)
	if err != nil {
		return 0, err
	}
	s.known[ref] = 0
	n, err := s.weigh(v, 0, false)
	s.known[ref] = n
	return n, err
}

// target returns the target of a reference.
func (s *scale) target(ref string) (any, error) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil, fmt.Errorf("refers to %q; only references that begin with #/ are supported", text.Clip(ref, 80))
	}
	v := s.root
	for _, part := range strings.Split(path, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch at := v.(type) {
		case map[string]any:
			v, ok = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(at); ok {
				v = at[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("refers to %q, which does not exist", text.Clip(ref, 80))
		}
	}
	return v, nil
}
