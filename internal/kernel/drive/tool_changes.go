package drive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// toolChanges returns how to tell the model about its tools if they have changed: as a new list or, if the provider
// has cached the list and the conversation after it, as a message. With a message, the model calls new tools with
// call_tool. NewModel means that another model continues, so nothing is cached.
func (b *toolbox) toolChanges(newModel bool) (list []llm.ToolSpec, message []event.Body) {
	now, state := fingerprint(b.specs), b.journal.state
	switch {
	case now == cmp.Or(state.Retold, fingerprint(state.Tools)):
		return nil, nil
	case newModel, !state.Warm(), !state.HasTool("call_tool"):
		return b.specs, nil
	}
	return nil, []event.Body{
		event.Added{Where: event.PlaceTail, Source: "tools", Text: describeToolChanges(state.Tools, b.specs)},
		event.Switched{Retold: now},
	}
}

// changeEvents returns events that tell the same model about its tools if they have changed.
func (b *toolbox) changeEvents() []event.Body {
	list, message := b.toolChanges(false)
	if list != nil {
		return []event.Body{event.Switched{Tools: list}}
	}
	return message
}

// fingerprint returns a digest of a list of tools.
func fingerprint(specs []llm.ToolSpec) string {
	if len(specs) == 0 {
		return "none"
	}
	raw, _ := json.Marshal(specs) // they come from the log
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// maxDescriptions bounds the bytes of new tools' full descriptions in a message.
const maxDescriptions = 6000

// describeToolChanges tells the model how its tools differ from the list in its prompt.
func describeToolChanges(listed, current []llm.ToolSpec) string {
	var b strings.Builder
	b.WriteString("[Your tools have changed since they were listed. The list above can't be updated. This message corrects it, and any earlier " +
		"message like this one.")
	removed := map[string]llm.ToolSpec{}
	for _, t := range listed {
		removed[t.Name] = t
	}
	room := maxDescriptions
	for _, t := range current {
		old, known := removed[t.Name]
		delete(removed, t.Name)
		if !known {
			description := strings.TrimSpace(t.Description) + "\nArguments: " + string(t.Schema)
			if room -= len(description); room < 0 {
				description = text.FirstLine(t.Description) + " (tool_search shows its arguments)"
			}
			b.WriteString("\n\nNew tool, to be called with call_tool: " + t.Name + "\n" + description)
			continue
		}
		oldLines, newLines := diffLines(strings.Split(old.Description, "\n"), strings.Split(t.Description, "\n"))
		oldArgs, newArgs := diffLines(arguments(old), arguments(t))
		for _, part := range []struct {
			heading string
			lines   []string
		}{
			{"No longer true of it", oldLines},
			{"Now true of it", newLines},
			{"Removed arguments", oldArgs},
			{"New arguments", newArgs},
		} {
			if len(part.lines) > 0 {
				b.WriteString("\n\n" + t.Name + ": " + part.heading + ":\n" + strings.Join(part.lines, "\n"))
			}
		}
	}
	if len(removed) > 0 {
		b.WriteString("\n\nRemoved, do not call: " + strings.Join(slices.Sorted(maps.Keys(removed)), ", "))
	}
	return b.String() + "]"
}

// diffLines returns the lines that only one of two texts has, without blank ones.
func diffLines(a, b []string) (onlyA, onlyB []string) {
	without := func(lines, other []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.TrimSpace(l) == "" || slices.Contains(other, l) })
	}
	return without(a, b), without(b, a)
}

// arguments returns the arguments of a tool, each with its schema, by name.
func arguments(t llm.ToolSpec) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.Schema, &schema) // a schema of another form has no named arguments
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		out = append(out, name+": "+string(schema.Properties[name]))
	}
	return out
}
