package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// Tree draws the steps for a terminal, each with its needs other than the step above it.
func (w *Workflow) Tree() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", w.Name, w.Description)
	w.branch(&b, w.Steps, "")
	if len(w.Finally) > 0 {
		b.WriteString("finally\n")
		w.branch(&b, w.Finally, "")
	}
	return b.String()
}

func (w *Workflow) branch(b *strings.Builder, steps []Step, indent string) {
	for i, s := range steps {
		fork, below := "├─ ", "│  "
		if i == len(steps)-1 {
			fork, below = "└─ ", "   "
		}
		line := s.ID + " · " + string(s.Kind)
		if s.Title != "" {
			line += " · " + s.Title
		}
		if s.Needs != nil {
			line += " · needs " + strings.Join(append(slices.Clone(s.Needs), "nothing")[:max(1, len(s.Needs))], ", ")
		}
		if len(s.When) > 0 {
			line += " · when " + conditionsOf(s.When)
		}
		if s.Join != "" {
			line += " · when " + string(s.Join)
		}
		if s.Kind == KindLoop {
			line += fmt.Sprintf(" · until %s, at most %s times", conditionsOf(s.Until), asText(s.Max))
		}
		fmt.Fprintf(b, "%s%s%s\n", indent, fork, line)
		w.branch(b, s.Steps, indent+below)
		if used := w.Included[s.Use]; s.Kind == KindWorkflow && used != nil {
			used.branch(b, used.Steps, indent+below)
		}
	}
}

func conditionsOf(when map[string]any) string {
	var parts []string
	for _, ref := range sortedKeys(when) {
		if ops, ok := when[ref].(map[string]any); ok {
			for _, op := range sortedKeys(ops) {
				parts = append(parts, ref+" "+op+" "+asText(ops[op]))
			}
			continue
		}
		parts = append(parts, ref+" is "+asText(when[ref]))
	}
	return strings.Join(parts, " and ")
}

// Mermaid draws the steps as a Mermaid flowchart.
func (w *Workflow) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	w.nodes(&b, w.Steps, "", "  ")
	if len(w.Finally) > 0 {
		b.WriteString("  subgraph finally\n")
		w.nodes(&b, w.Finally, "", "    ")
		b.WriteString("  end\n")
	}
	return b.String()
}

func (w *Workflow) nodes(b *strings.Builder, steps []Step, path, indent string) {
	name := func(id string) string { return "n_" + strings.NewReplacer("-", "_0", "/", "__").Replace(path+id) }
	label := func(s Step) string {
		return strings.NewReplacer(`"`, "'", "\n", " ").Replace(s.ID + ": " + string(s.Kind) + strings.TrimSuffix("<br>"+s.Title, "<br>"))
	}
	for i, s := range steps {
		inner, of := s.Steps, w
		if used := w.Included[s.Use]; s.Kind == KindWorkflow && used != nil {
			inner, of = used.Steps, used
		}
		switch {
		case len(inner) > 0:
			fmt.Fprintf(b, "%ssubgraph %s[\"%s\"]\n", indent, name(s.ID), label(s))
			of.nodes(b, inner, path+s.ID+"/", indent+"  ")
			fmt.Fprintf(b, "%send\n", indent)
		case s.Kind == KindApproval:
			fmt.Fprintf(b, "%s%s{\"%s\"}\n", indent, name(s.ID), label(s))
		default:
			fmt.Fprintf(b, "%s%s[\"%s\"]\n", indent, name(s.ID), label(s))
		}
		for _, id := range needed(steps, i) {
			fmt.Fprintf(b, "%s%s --> %s\n", indent, name(id), name(s.ID))
		}
	}
}
