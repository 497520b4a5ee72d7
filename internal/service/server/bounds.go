package server

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Limits in the API description beyond the types of fields. The server checks each one where it uses the field;
// scripts/fuzz-api tests that the two agree.

const (
	anyText   = `^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$` // see clean
	someText  = `^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$`
	aName     = `^[A-Za-z0-9._-]{1,64}$` // see checkName
	aLabel    = `^[A-Za-z0-9._-]+$`      // see event.Opened
	aNumber   = `^[0-9]{0,19}$`          // of an event; empty: none
	mostWhole = 1<<53 - 1                // the largest that every client can write
)

// Limits of one request. A body takes a small multiple of its bytes in memory, whatever its content.
const (
	mostDepth  = 64     // of nested lists and objects
	mostValues = 20_000 // strings, numbers, lists and objects in a body
	mostSchema = 2_000  // and in the schema of a tool, which takes much more memory than its text

	mostShort = 256  // characters of names and ids
	mostRule  = 1000 // and of a rule
	mostPath  = 4096
)

// budgets returns limits by type and field, in the names that clients see: the number of entries of a list or
// an object, and the number of characters of a text. With [] it is that of each entry.
func budgets() map[string]int {
	return map[string]int{
		"Spec.prompt": mostPrompt, "Spec.title": mostTitle, "Spec.system": mostPrompt, "Spec.model": mostShort, "Spec.workflow": mostShort, "Spec.beside": mostShort,
		"Spec.session": mostShort, "Spec.folder": mostPath, "Spec.github": mostAddress, "Spec.inputs": 100,
		"Spec.ask": 1000, "Spec.ask[]": mostRule, "Spec.deny": 1000, "Spec.deny[]": mostRule, "Spec.servers": 20, "Spec.tools": 256,
		"Repository.url": mostAddress, "Fork.task": mostShort, "MCPServer.url": mostAddress, "ClientTool.description": 65_536,
		"newMessage.text": mostPrompt, "Decision.also": 1000,
		"completionRequest.messages": 2048, "responseRequest.instructions": mostPrompt,
		"NewWebhook.enabled_events": 100, "newIdentity.claims": maxClaims, "newIdentity.agents": maxConfines, "newIdentity.environments": maxConfines,
	}
}

// fits reports a field that exceeds its budget.
func fits(field, of string, v reflect.Value) error {
	most, bounded := budgets()[of]
	if !bounded {
		return nil
	}
	n, what := 0, "characters"
	switch v.Kind() {
	case reflect.String:
		n = utf8.RuneCountInString(v.String())
	case reflect.Slice, reflect.Map:
		n, what = v.Len(), "entries"
	case reflect.Pointer:
		if !v.IsNil() {
			return fits(field, of, v.Elem())
		}
	}
	if n > most {
		return Wrong(field, fmt.Sprintf("it has %d %s", n, what), fmt.Sprintf("at most %d", most))
	}
	return nil
}

// shallow reports a body that nests too deeply or has too many values, before it is decoded.
func shallow(raw []byte) error {
	switch depth, values := measure(raw); {
	case depth > mostDepth:
		return Wrong(theBody, fmt.Sprintf("its lists and objects are more than %d deep", mostDepth), fmt.Sprintf("at most %d in each other", mostDepth))
	case values > mostValues:
		return Wrong(theBody, fmt.Sprintf("it holds more than %d values", mostValues), "fewer values")
	}
	return nil
}

// measure returns the depth of a JSON text and the number of its values. It stops soon after a limit.
func measure(raw []byte) (deepest, values int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
			values++
		case c == ']' || c == '}':
			depth--
		case c == ',':
			values++
		}
		if depth > mostDepth || values > mostValues {
			break
		}
	}
	return deepest, values
}

// narrow adds the limits of a field of a type, in the names that clients see, to its schema.
func narrow(s *jsonschema.Schema, of reflect.Type, name string) {
	if most, bounded := budgets()[of.Name()+"."+name]; bounded {
		switch {
		case s.Items != nil:
			s.MaxItems = &most
		case s.AdditionalProperties != nil:
			s.MaxProperties = &most
		default:
			s.MaxLength = &most
		}
	}
	if most, bounded := budgets()[of.Name()+"."+name+"[]"]; bounded && s.Items != nil {
		s.Items.MaxLength = &most
	}
	switch of.Name() + "." + name {
	case "newMessage.text":
		s.Pattern = someText
	case "newIdentity.name", "newBounds.name", "MCPServer.name", "ClientTool.name":
		s.Pattern = aName
	case "newIdentity.tenant":
		s.Pattern = strings.Replace(aName, "{1,", "{0,", 1)
	case "part.after", "followed.after", "rejoined.after", "viewed.after":
		s.Pattern = aNumber
	case "Spec.labels":
		s.PropertyNames = &jsonschema.Schema{Pattern: aLabel}
	case "Spec.github":
		s.Pattern = `^$|` + issueForm.String()
	case "NewWebhook.state":
		s.Enum = oneOf(enabled, disabled)
	case "Fork.at", "rewindRequest.to":
		between(s, 0, mostWhole)
	case "page.limit", "auditPage.limit", "part.limit", "boardWanted.limit", "sought.limit":
		between(s, 1, mostListed)
	case "viewed.from", "stretch.from", "stretch.until":
		between(s, 0, mostWhole)
	case "boardWanted.state":
		s.Enum = oneOf(append(new(running.Board).Standings(), "")...)
	case "auditPage.after", "Spec.max_turns", "Decision.seq", "newBounds.at_once", "newBounds.queue", "newBounds.per_hour", "newBounds.disk":
		between(s, 0, mostWhole)
	case "Spec.timeout_seconds", "Spec.idle_timeout_seconds":
		between(s, 0, int(mostTimeout.Seconds()))
	case "completionRequest.model", "responseRequest.model":
		s.Examples = []any{chatName}
	case "message.role":
		s.Enum = oneOf("system", "developer", "user", "assistant")
	case "message.content":
		part := &jsonschema.Schema{Type: "object", Required: []string{"type"}, Properties: map[string]*jsonschema.Schema{
			"type": {Type: "string", Enum: oneOf("text", "input_text", "output_text")}, "text": {Type: "string"},
		}}
		s.AnyOf = []*jsonschema.Schema{{Type: "string"}, {Type: "null"}, {Type: "array", Items: part}}
	case "responseRequest.input":
		list := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "object"}}
		s.AnyOf, s.Examples = []*jsonschema.Schema{{Type: "string"}, list}, []any{"Say hello"}
	case "completionRequest.n":
		between(s, -mostWhole, 1)
	case "Spec.effort":
		s.Enum = oneOf(append(llm.Efforts(), "")...)
	case "Spec.max_cost", "newBounds.budget":
		s.Minimum = new(0.0)
	case "page.stage":
		s.Enum = oneOf(stages()...)
	case "costs.by":
		s.Enum = oneOf(cost.Groupings()...)
	case "Spec.mode":
		s.Enum = oneOf(append(tool.Modes(), "")...)
	case "Spec.keep":
		s.Enum = oneOf(KeepNever, KeepFailed, KeepAlways, "")
	case "newIdentity.role":
		s.Enum = oneOf(roles()...)
	case "Decision.decision":
		s.Enum = oneOf("allow", "deny")
	}
}

func between(s *jsonschema.Schema, least, most int) {
	s.Minimum, s.Maximum = new(float64(least)), new(float64(most))
}

func oneOf[T ~string](values ...T) (out []any) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// bound adds the limits of requests to the schema of a type.
func bound(t reflect.Type, s *jsonschema.Schema) {
	if s.Ref != "" || s.AnyOf != nil { // another schema has them
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		bound(t.Elem(), s)
	case reflect.String:
		s.Pattern = anyText
	case reflect.Int, reflect.Int64, reflect.Uint64:
		between(s, -mostWhole, mostWhole)
	case reflect.Slice:
		if s.Items != nil { // else it is arbitrary JSON
			bound(t.Elem(), s.Items)
		}
	case reflect.Map:
		bound(t.Elem(), s.AdditionalProperties)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				bound(f.Type, s)
				continue
			}
			name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
			of := s.Properties[name]
			if of == nil || t == reflect.TypeFor[time.Time]() {
				continue
			}
			bound(f.Type, of)
			narrow(of, t, name)
			if strings.Contains(more, "omit") { // null has the same effect as omitting it
				switch {
				case of.Ref != "":
					of.Types = []string{"null"}
					nullable(of)
				case of.Type != "":
					of.Types, of.Type = []string{"null", of.Type}, ""
				}
				if of.Enum != nil {
					of.Enum = append(of.Enum, nil)
				}
			}
		}
	}
	if t == reflect.TypeFor[Spec]() { // an open task may get its prompt later
		s.Required = nil
		// Twice "not", as generators of clients make three types of a plain anyOf.
		s.Not = &jsonschema.Schema{Not: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Required: []string{"prompt"}, Properties: map[string]*jsonschema.Schema{"prompt": {Type: "string", Pattern: someText}}},
			{Required: []string{"github"}, Properties: map[string]*jsonschema.Schema{"github": {Type: "string", MinLength: new(1)}}},
			{Required: []string{"workflow"}, Properties: map[string]*jsonschema.Schema{"workflow": {Type: "string", MinLength: new(1)}}},
			{Required: []string{"open"}, Properties: map[string]*jsonschema.Schema{"open": {Const: new(any(true))}}},
		}}}
	}
}

// bounded returns the schema of a field that is read from the URL.
func bounded(of reflect.Type, f reflect.StructField, name string) *jsonschema.Schema {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &jsonschema.Schema{Type: map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Int: "integer"}[t.Kind()]}
	if s.Type == "" {
		s.Type = "string"
	}
	bound(t, s)
	narrow(s, of, name)
	if s.Type == "string" && f.Tag.Get("path") != "" {
		s.MinLength = new(1)
	}
	return s
}
