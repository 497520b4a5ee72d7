package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxPages   = 100
	maxTools   = 1000
	maxDefined = 4 << 20 // bytes of the definitions of a server
	maxDoc     = 4 << 10 // bytes of a description
	maxName    = 64      // of a tool, for models
)

// Definition is a tool as its server defines it, with hidden characters made visible.
type Definition struct {
	Name   string // of the server
	Tool   string // for the model
	Doc    string
	Schema json.RawMessage // of the arguments
	Says   string          // its title, and what it says of its effects, as JSON
}

// toolset is everything that a server offers at one time. Immutable.
type toolset struct {
	digest string
	raw    json.RawMessage // as the server said it
	list   []definition
	tokens int // of the definitions, about
}

// definition is one tool.
type definition struct {
	name     string // for the server
	digest   string // of all that a person agrees to
	spec     llm.ToolSpec
	readOnly bool // the server says so
	task     bool // the server only takes calls that ask for a task; known once it is connected
	says     string
}

// list reads all tools of the server.
func (c *client) list(ctx context.Context) (*toolset, error) {
	ctx, stop := c.bound(ctx)
	defer stop()
	var tools []*sdk.Tool
	if offered := c.session.InitializeResult(); offered == nil || offered.Capabilities == nil || offered.Capabilities.Tools == nil {
		return define(c.server, nil)
	}
	required, cursor := map[string]bool{}, ""
	for range maxPages {
		page, tasks, err := c.listed(ctx, cursor)
		if err != nil {
			return nil, fmt.Errorf("read its tools: %w", err)
		}
		maps.Copy(required, tasks)
		for _, t := range page.Tools {
			if t == nil {
				return nil, errors.New("an entry of its list of tools is null")
			}
			t.OutputSchema, t.Icons, t.Meta = nil, nil, nil // they are not used, and may be big
		}
		tools = append(tools, page.Tools...)
		switch {
		case len(tools) > maxTools:
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		case page.NextCursor == "":
			set, err := define(c.server, tools)
			if err != nil {
				return nil, err
			}
			for i := range set.list {
				set.list[i].task = required[set.list[i].name]
			}
			return set, nil
		}
		cursor = page.NextCursor
	}
	return nil, fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

// define makes definitions of a server's tools from the fields that are used, ordered by name.
func define(server Server, tools []*sdk.Tool) (*toolset, error) {
	tools = slices.DeleteFunc(tools, func(t *sdk.Tool) bool { return !server.uses(t.Name) })
	slices.SortFunc(tools, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	size := 0
	for _, t := range tools { // nothing else is used, agreed to or kept
		*t = sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: t.Annotations}
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		return nil, fmt.Errorf("read its tools: %w", err)
	}
	out := toolset{raw: raw}
	var specs []llm.ToolSpec
	for _, t := range tools {
		// The name, description and schema: everything that a person approves.
		data, err := json.Marshal([]any{t.Name, t.Title, t.Description, t.InputSchema, t.Annotations})
		if err != nil {
			return nil, fmt.Errorf("read its tools: %w", err)
		}
		if size += len(data); size > maxDefined {
			return nil, fmt.Errorf("the definitions of its tools have more than %d MiB", maxDefined>>20)
		}
		data = append(data, '\n')
		sum.Write(data)
		own := sha256.Sum256(data)
		d := definition{name: t.Name, digest: hex.EncodeToString(own[:]), readOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint}
		d.spec = spec(server.Name, t)
		said, err := json.Marshal([]any{t.Title, t.Annotations})
		if err != nil {
			return nil, fmt.Errorf("read its tools: %w", err)
		}
		d.says = text.Visible(string(said))
		specs = append(specs, d.spec)
		out.list = append(out.list, d)
	}
	out.digest = hex.EncodeToString(sum.Sum(nil))
	if specs != nil {
		out.tokens = llm.Request{Tools: specs}.Tokens()
	}
	return &out, nil
}

// spec describes a tool for the model. A schema that can't be used to check arguments becomes text.
func spec(server string, t *sdk.Tool) llm.ToolSpec {
	s := llm.ToolSpec{Name: toolName(server, t.Name), Description: text.Cut(text.VisibleLines(cmp.Or(strings.TrimSpace(t.Description), t.Title, t.Name)), maxDoc)}
	schema, err := usable(s.Name, t.InputSchema)
	if err != nil {
		said, _ := json.Marshal(t.InputSchema) // it came as JSON
		s.Description += "\nArguments, whose schema inspan does not check: " + text.Cut(text.Visible(string(said)), maxDoc)
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	s.Schema = schema
	return s
}

// toolName returns the model's name for a tool: mcp__SERVER__TOOL if that is unambiguous, and otherwise
// something like it with a digest of both names.
func toolName(server, name string) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return '_'
	}, name)
	full := "mcp__" + server + "__" + plain
	clear := !strings.Contains(server, "__") && !strings.HasSuffix(server, "_") && plain == name && name != ""
	if clear && len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(server + "\x00" + name))
	return full[:min(len(full), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

const (
	maxNesting = 64     // values in one another in a schema
	maxValues  = 10_000 // of a schema
)

// usable returns the schema of a tool as the server gave it, of type object. An error says that it can't be
// used to check arguments.
func usable(name string, given any) (json.RawMessage, error) {
	top, is := given.(map[string]any)
	if is {
		top = maps.Clone(top) // what is kept of the server stays as it said it
	}
	if given == nil {
		top, is = map[string]any{}, true
	}
	if !is {
		return nil, errors.New("it is not an object")
	}
	switch kinds := top["type"].(type) {
	case nil:
		top["type"] = "object"
	case string:
		if !strings.EqualFold(kinds, "object") {
			return nil, errors.New("it does not describe an object")
		}
	case []any:
		if !slices.Contains(kinds, any("object")) {
			return nil, errors.New("it does not describe an object")
		}
	default:
		return nil, errors.New("its type is not a word")
	}
	left := maxValues
	if err := tame(top, 0, &left); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(top); err != nil {
		return nil, err
	}
	t := tool.Tool{Name: name, Schema: bytes.TrimSpace(b.Bytes())}
	// Arguments that do not fit are not the schema's fault, and the error names schema faults first.
	if _, err := t.Check(nil); err != nil && strings.HasPrefix(err.Error(), "schema of ") {
		return nil, err
	}
	return t.Schema, nil
}

// tame makes hidden characters in the descriptions of a schema visible. Hidden characters elsewhere, references
// to anything but its own definitions, and excessive numbers of values are errors.
func tame(v any, depth int, left *int) error {
	if *left--; *left < 0 || depth > maxNesting {
		return errors.New("it is too big")
	}
	switch v := v.(type) {
	case string:
		if text.Clean(v) != v {
			return errors.New("it has hidden characters")
		}
	case []any:
		for _, sub := range v {
			if err := tame(sub, depth+1, left); err != nil {
				return err
			}
		}
	case map[string]any:
		return tameObject(v, depth, left)
	}
	return nil
}

func tameObject(m map[string]any, depth int, left *int) error {
	for name, sub := range m {
		s, is := sub.(string)
		switch {
		case text.Clean(name) != name:
			return errors.New("it has hidden characters")
		case is && (name == "description" || name == "title" || name == "$comment"):
			m[name] = text.VisibleLines(s)
			continue
		case is && name == "$ref":
			// Definitions that refer to others can grow exponentially.
			if *left -= 100; !strings.HasPrefix(s, "#") {
				return errors.New("it refers to another document")
			}
		}
		if err := tame(sub, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}
