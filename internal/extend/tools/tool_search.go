package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/base/text"
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

// Deferred returns the two tools that stand for many whose descriptions would fill the prompt. The many must be
// callable anyway. The names are listed in the description of the first, as far as there is room, and after them
// those of tools with more arguments than the model sees. Both also find others, which the model may not know yet.
func Deferred(many, partly, others []tool.Tool) []tool.Tool {
	all := slices.Concat(many, partly, others)
	doc := toolSearchDoc
	if len(many) > 0 {
		doc += "\nThere are: " + nameList(many) + "\n"
	}
	if len(partly) > 0 {
		doc += "\nMore arguments have: " + nameList(partly) + "\n"
	}
	search := tool.New("tool_search", doc,
		func(_ context.Context, _ *tool.Call, in toolSearchArgs) (tool.Result, error) {
			found := Ranked(all, in.Query)
			if len(found) == 0 {
				return tool.Text(fmt.Sprintf("No tool has to do with %q.", in.Query)), nil
			}
			var b strings.Builder
			for _, t := range found[:min(len(found), mostShown)] {
				fmt.Fprintf(&b, "## %s\n%s\nArguments: %s\n\n", t.Name, strings.TrimSpace(t.Doc), t.Schema)
			}
			if more := len(found) - mostShown; more > 0 {
				fmt.Fprintf(&b, "%s more; use other words to see them.\n", text.Count(more, "tool"))
			}
			return tool.Text(strings.TrimSpace(b.String())), nil
		})
	search.Effects = tool.NoEffects
	search.Ready = func(c *tool.Call) {
		for _, t := range all {
			if t.Ready != nil {
				t.Ready(c)
			}
		}
	}
	return []tool.Tool{search, callTool()}
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

// Ranked returns the tools that match a query, the best first: by the words of the query that they contain,
// where rare words and those in the name count most.
func Ranked(many []tool.Tool, query string) []tool.Tool {
	type scored struct {
		tool.Tool
		holds []float64 // by word, how well it matches
		score float64
	}
	asked := slices.DeleteFunc(wordsOf(query), little)
	found, holders := make([]scored, len(many)), make([]int, len(asked))
	for i, t := range many {
		found[i] = scored{Tool: t, holds: holding(t, asked)}
		for n, h := range found[i].holds {
			if h > 0 {
				holders[n]++
			}
		}
	}
	for i := range found {
		f := &found[i]
		for n, h := range f.holds {
			f.score += h * math.Log(1+float64(len(many))/float64(1+holders[n]))
		}
		if strings.EqualFold(f.Name, strings.TrimSpace(query)) {
			f.score += 1000
		}
	}
	found = slices.DeleteFunc(found, func(f scored) bool { return f.score == 0 })
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]tool.Tool, len(found))
	for i, f := range found {
		out[i] = f.Tool
	}
	return out
}

// holding returns for each word how well it matches the name or the description of a tool.
func holding(t tool.Tool, asked []string) []float64 {
	name, doc, out := wordsOf(t.Name), wordsOf(t.Doc), make([]float64, len(asked))
	for i, w := range asked {
		same := func(n string) bool { return sameStem(n, w) }
		switch {
		case slices.Contains(name, w):
			out[i] = 4
		case slices.ContainsFunc(name, same):
			out[i] = 2
		case slices.Contains(doc, w), slices.ContainsFunc(doc, same):
			out[i] = 1
		}
	}
	return out
}

// little reports whether a word says little about a tool, however rare it is.
func little(word string) bool {
	return slices.Contains(strings.Fields("a an and are as at be by can do for from how i if in is it me my of on or that the this to want "+
		"what which with you"), word)
}

// sameStem reports whether one word begins with the other, so that plurals and other forms match. A number
// matches only itself.
func sameStem(a, b string) bool {
	if strings.Trim(a, "0123456789") == "" || strings.Trim(b, "0123456789") == "" {
		return a == b
	}
	return len(a) >= 3 && len(b) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// wordsOf splits a text into lower-case words, also at a change of case or an underscore.
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
