package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

//go:embed tool_types.md
var typesDoc string

type typesArgs struct {
	Query string `json:"query" jsonschema:"words, or a name"`
}

// mostTypes is the number of declarations shown at once.
const mostTypes = 10

// TypesTool returns the types of those tools of many that match a query.
func TypesTool(many []tool.Tool) tool.Tool {
	t := tool.New("tool_types", strings.TrimSpace(typesDoc), func(_ context.Context, _ *tool.Call, in typesArgs) (tool.Result, error) {
		found := tools.Ranked(many, in.Query)
		if len(found) == 0 {
			return tool.Text(fmt.Sprintf("No tool has to do with %q.", in.Query)), nil
		}
		out := Types(found[:min(len(found), mostTypes)])
		if more := len(found) - mostTypes; more > 0 {
			out += fmt.Sprintf("// %s more; use other words to see them.\n", text.Count(more, "tool"))
		}
		return tool.Text(out), nil
	})
	t.Effects = tool.NoEffects
	return t
}

// Types declares tools in TypeScript, as a script calls them.
func Types(list []tool.Tool) string {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "/** %s */\n%s(args: %s): Promise<Result>;\n", comment(t.Doc), member(t.Name), argumentsOf(t.Schema))
	}
	return b.String()
}

// mostDoc is the length of a description in a declaration, in bytes.
const mostDoc = 300

// comment returns a description in a form for a comment.
func comment(doc string) string {
	return strings.ReplaceAll(text.Short(strings.Join(strings.Fields(doc), " "), mostDoc), "*/", "* /")
}

func argumentsOf(raw json.RawMessage) string {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return "object"
	}
	return (&typed{defs: s.Defs}).of(&s, 0)
}

// typed writes schemas as types.
type typed struct {
	defs map[string]*jsonschema.Schema
}

// deepest is the depth to which types are written out.
const deepest = 6

func (t *typed) of(s *jsonschema.Schema, depth int) string {
	switch {
	case s == nil || depth > deepest:
		return "any"
	case s.Ref != "":
		name, local := strings.CutPrefix(s.Ref, "#/$defs/")
		if def := t.defs[name]; local && def != nil {
			return t.of(def, depth+1)
		}
		return "any"
	case s.Const != nil:
		return literal(*s.Const)
	case len(s.Enum) > 0:
		var out []string
		for _, v := range s.Enum {
			out = append(out, literal(v))
		}
		return strings.Join(out, " | ")
	case len(s.AnyOf) > 0:
		return t.union(s.AnyOf, depth)
	case len(s.OneOf) > 0:
		return t.union(s.OneOf, depth)
	case len(s.Types) > 0:
		var out []string
		for _, kind := range s.Types {
			one := *s
			one.Types, one.Type = nil, kind
			out = append(out, t.of(&one, depth))
		}
		return strings.Join(out, " | ")
	}
	return t.kind(s, depth)
}

func (t *typed) union(list []*jsonschema.Schema, depth int) string {
	var out []string
	for _, s := range list {
		if one := t.of(s, depth+1); !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return strings.Join(out, " | ")
}

func (t *typed) kind(s *jsonschema.Schema, depth int) string {
	switch s.Type {
	case "string", "boolean", "null":
		return s.Type
	case "integer", "number":
		return "number"
	case "array":
		item := t.of(s.Items, depth+1)
		if strings.ContainsAny(item, " |") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		return t.object(s, depth)
	}
	if len(s.Properties) > 0 {
		return t.object(s, depth)
	}
	return "any"
}

func (t *typed) object(s *jsonschema.Schema, depth int) string {
	if len(s.Properties) == 0 {
		return "{ [key: string]: " + t.of(s.AdditionalProperties, depth+1) + " }"
	}
	var out []string
	for _, name := range fields(s) {
		field, about := s.Properties[name], ""
		if field.Description != "" {
			about = "/** " + comment(field.Description) + " */ "
		}
		mark := "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		out = append(out, about+member(name)+mark+": "+t.of(field, depth+1))
	}
	return "{ " + strings.Join(out, "; ") + " }"
}

// fields returns the names of the fields of an object, required ones first.
func fields(s *jsonschema.Schema) []string {
	names := slices.Sorted(maps.Keys(s.Properties))
	sort.SliceStable(names, func(i, j int) bool {
		return slices.Contains(s.Required, names[i]) && !slices.Contains(s.Required, names[j])
	})
	return names
}

func literal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "any"
	}
	return string(raw)
}

// member returns a name in the form for an object, in quotes unless it is a JavaScript identifier.
func member(name string) string {
	for i, r := range name {
		if r != '_' && r != '$' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return strconv.Quote(name)
		}
	}
	return name
}
