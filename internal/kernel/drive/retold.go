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

// retooled returns how the model is told about its tools if they differ from what it knows: as a whole list or,
// where a vendor has cached the list and everything behind it, in a message. The model calls a new tool with
// call_tool then. Elsewhere means that another model continues, which has cached nothing.
func (b *toolbox) retooled(elsewhere bool) (list []llm.ToolSpec, told []event.Body) {
	now, state := fingerprint(b.specs), b.journal.state
	switch {
	case now == cmp.Or(state.Retold, fingerprint(state.Tools)):
		return nil, nil
	case elsewhere, !state.Warm(), !state.HasTool("call_tool"):
		return b.specs, nil
	}
	return nil, []event.Body{
		event.Added{Where: event.PlaceTail, Source: "tools", Text: retold(state.Tools, b.specs)},
		event.Switched{Retold: now},
	}
}

// fingerprint distinguishes lists of tools.
func fingerprint(specs []llm.ToolSpec) string {
	if len(specs) == 0 {
		return "none"
	}
	raw, _ := json.Marshal(specs) // they come from the log
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// mostRetold bounds the bytes of new tools' descriptions that are told in full.
const mostRetold = 6000

// retold describes how tools differ from the current list.
func retold(stands, now []llm.ToolSpec) string {
	var b strings.Builder
	b.WriteString("[Your tools have changed since they were listed. The list stays as it was; this holds beside it, and for all that was said of " +
		"changed tools before.")
	old := map[string]llm.ToolSpec{}
	for _, t := range stands {
		old[t.Name] = t
	}
	left := mostRetold
	for _, t := range now {
		was, known := old[t.Name]
		delete(old, t.Name)
		if !known {
			said := strings.TrimSpace(t.Description) + "\nArguments: " + string(t.Schema)
			if left -= len(said); left < 0 {
				said = text.FirstLine(t.Description) + " (tool_search shows its arguments)"
			}
			b.WriteString("\n\nNew, to be called with call_tool: " + t.Name + "\n" + said)
			continue
		}
		gone, come := differing(strings.Split(was.Description, "\n"), strings.Split(t.Description, "\n"))
		lost, won := differing(arguments(was), arguments(t))
		for _, part := range []struct {
			said  string
			lines []string
		}{
			{"What was said of it and holds no longer", gone},
			{"What holds of it now", come},
			{"Arguments that it has no longer", lost},
			{"Arguments that it has now", won},
		} {
			if len(part.lines) > 0 {
				b.WriteString("\n\n" + t.Name + ": " + part.said + ":\n" + strings.Join(part.lines, "\n"))
			}
		}
	}
	if len(old) > 0 {
		b.WriteString("\n\nGone, and not to be called: " + strings.Join(slices.Sorted(maps.Keys(old)), ", "))
	}
	return b.String() + "]"
}

// differing returns the lines that only one of two texts has.
func differing(a, b []string) (onlyA, onlyB []string) {
	missing := func(of, in []string) []string {
		return slices.DeleteFunc(slices.Clone(of), func(l string) bool { return strings.TrimSpace(l) == "" || slices.Contains(in, l) })
	}
	return missing(a, b), missing(b, a)
}

// arguments returns the arguments of a tool, each with its schema, by name.
func arguments(t llm.ToolSpec) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.Schema, &schema) // a schema of another form has none
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		out = append(out, name+": "+string(schema.Properties[name]))
	}
	return out
}
