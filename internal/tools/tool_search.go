package tools

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/tool"
)

//go:embed tool_search.md
var toolSearchDoc string

const (
	mostShown = 5
	mostNames = 6000 // bytes of the names in the description
)

type toolSearchArgs struct {
	Query string `json:"query" jsonschema:"words, or a name"`
}

// Deferred returns the two tools that stand for many whose descriptions would
// fill the prompt. The many must be callable all the same. The names are listed
// in the description of the first, as far as there is room.
func Deferred(many []tool.Tool) []tool.Tool {
	search := tool.New("tool_search", toolSearchDoc+"\nThere are: "+nameList(many)+"\n", func(_ context.Context, _ *tool.Call, in toolSearchArgs) (tool.Result, error) {
		found := rank(many, in.Query)
		if len(found) == 0 {
			return tool.Text(fmt.Sprintf("No tool has to do with %q.", in.Query)), nil
		}
		var b strings.Builder
		for _, t := range found[:min(len(found), mostShown)] {
			fmt.Fprintf(&b, "## %s\n%s\nArguments: %s\n\n", t.Name, strings.TrimSpace(t.Doc), t.Schema)
		}
		if more := len(found) - mostShown; more > 0 {
			fmt.Fprintf(&b, "%s more; use other words to see them.\n", count(more, "tool"))
		}
		return tool.Text(strings.TrimSpace(b.String())), nil
	})
	search.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return nil, nil }
	return []tool.Tool{search, callTool(many)}
}

func nameList(many []tool.Tool) string {
	text, left := "", 0
	for _, t := range many {
		if len(text)+len(t.Name) > mostNames {
			left++
			continue
		}
		text += ", " + t.Name
	}
	text = strings.TrimPrefix(text, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text + "."
}

// rank orders the tools that have to do with a query, the best first: by how
// many of its words they hold, those in the name counting most.
func rank(many []tool.Tool, query string) []tool.Tool {
	asked := wordsOf(query)
	type scored struct {
		tool.Tool
		score int
	}
	var found []scored
	for _, t := range many {
		name, doc, score := wordsOf(t.Name), wordsOf(t.Doc), 0
		for _, w := range asked {
			switch {
			case slices.Contains(name, w):
				score += 4
			case slices.ContainsFunc(name, func(n string) bool { return sameStem(n, w) }):
				score += 2
			case slices.ContainsFunc(doc, func(n string) bool { return sameStem(n, w) }):
				score++
			}
		}
		if strings.EqualFold(t.Name, strings.TrimSpace(query)) {
			score += 100
		}
		if score > 0 {
			found = append(found, scored{t, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	out := make([]tool.Tool, len(found))
	for i, f := range found {
		out[i] = f.Tool
	}
	return out
}

// sameStem reports whether one word begins with the other, so that plurals and
// other forms are found.
func sameStem(a, b string) bool {
	return len(a) >= 3 && len(b) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// wordsOf splits a text into its words in lower case, also where the case or an
// underscore parts them.
func wordsOf(text string) []string {
	var spaced strings.Builder
	before := ' '
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
