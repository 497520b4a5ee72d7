package recursion_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/llm"
)

var update = flag.Bool("update", false, "run all simulations, and write the table of docs/CORPUS.md again")

// big is the model of plain calls: better than the small one, and dearer.
func big(seed int, t task) *leaf {
	return &leaf{
		seed: seed, base: 0.01, begins: 16_000, decays: 200_000, window: 272_000, price: llm.Price{Input: 1.25, Output: 10}, does: t.does,
	}
}

// cell is the mean score and cost of a policy.
type cell struct {
	score, cost float64
	requests    float64
	runs, none  int // none: those without an answer
}

func (c cell) String() string {
	if c.none == c.runs {
		return "does not fit"
	}
	return fmt.Sprintf("%.0f (%.2f)", 100*c.score, c.cost)
}

func simulate(t *testing.T, kind string, runs int, p policy, with func(l *leaf), of func(seed int) task) cell {
	t.Helper()
	var scores, costs, requests []float64
	out := cell{runs: runs}
	for seed := range runs {
		task := of(seed)
		l := small(seed, task)
		if p.name == direct().name {
			l = big(seed, task)
		}
		if with != nil {
			with(l)
		}
		o := play(t, l, task.sources, max(1, p.asks), p.code(kind, task))
		if o.none {
			out.none++
			scores = append(scores, 0)
		} else {
			scores = append(scores, task.score(o.answer))
		}
		costs, requests = append(costs, o.cost), append(requests, float64(o.requests))
	}
	out.score, out.cost, out.requests = stats.Mean(scores), stats.Mean(costs), stats.Mean(requests)
	return out
}

// table is a table of markdown.
type table struct{ strings.Builder }

func (t *table) row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(t, "| %v ", c)
	}
	t.WriteString("|\n")
}

func (t *table) head(cells ...any) {
	t.row(cells...)
	t.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
}

func policies() []policy {
	return []policy{direct(), retrieval(), code(), mapped(usualChunk)}
}

// byTask is the table that the paper has: policies and tasks.
func byTask(t *testing.T, runs int, scale int) string {
	var out table
	out.head("simulated", "S-NIAH", "multi-hop", "OOLONG, count", "OOLONG, compare", "Pairs, F1")
	for _, p := range policies() {
		pairing := p
		if p.chunk == usualChunk {
			pairing = mapped(12_000)
		}
		out.row(p.name,
			simulate(t, "needle", runs, p, nil, func(seed int) task { return needle(seed, 131_000/scale, float64(seed%5)/4, 5) }),
			simulate(t, "hops", runs, p, nil, func(seed int) task { return hops(seed, 1_000_000/scale, 1000/scale, 3) }),
			simulate(t, "linear", runs, p, nil, func(seed int) task { return linear(seed, 131_000/scale) }),
			simulate(t, "frequent", runs, p, nil, func(seed int) task { return frequent(seed, 131_000/scale) }),
			simulate(t, "pairs", runs, pairing, nil, func(seed int) task { return pairs(seed, 32_000/scale) }))
	}
	return out.String()
}

// byLength is accuracy and cost against length.
func byLength(t *testing.T, runs int, lengths []int) string {
	var out table
	head := []any{"tokens"}
	kinds := []string{"needle", "hops", "frequent"}
	for _, kind := range []string{"S-NIAH", "multi-hop", "compare"} {
		for _, p := range []string{"plain", "retrieval", "programs"} {
			head = append(head, kind+", "+p)
		}
	}
	out.head(head...)
	for _, n := range lengths {
		row := []any{n}
		for _, kind := range kinds {
			for _, p := range []policy{direct(), retrieval(), mapped(usualChunk)} {
				k := runs
				if n > 1_000_000 {
					k = 1 + runs/10
				}
				row = append(row, simulate(t, kind, k, p, nil, func(seed int) task {
					switch kind {
					case "needle":
						return needle(seed, n, float64(seed%5)/4, 5)
					case "hops":
						return hops(seed, n, max(5, n/8_000), 3)
					}
					return frequent(seed, n)
				}))
			}
		}
		out.row(row...)
	}
	return out.String()
}

// byError is accuracy against the error of the leaf.
func byError(t *testing.T, runs, tokens int) string {
	var out table
	out.head("error of the leaf", "count", "compare", "Pairs, F1", "S-NIAH", "count by 3 votes", "the same, correlated")
	for _, e := range []float64{0.005, 0.02, 0.05, 0.1, 0.2} {
		with := func(l *leaf) { l.base = e }
		row := []any{fmt.Sprintf("%g %%", 100*e)}
		add := func(kind string, p policy, with func(*leaf), of func(seed int) task) {
			row = append(row, fmt.Sprintf("%.0f", 100*simulate(t, kind, runs, p, with, of).score))
		}
		add("linear", mapped(12_000), with, func(seed int) task { return linear(seed, tokens) })
		add("frequent", mapped(12_000), with, func(seed int) task { return frequent(seed, tokens) })
		add("pairs", mapped(12_000), with, func(seed int) task { return pairs(seed, tokens) })
		add("needle", mapped(12_000), with, func(seed int) task { return needle(seed, tokens, float64(seed%5)/4, 5) })
		add("linear", voting(12_000, 3), with, func(seed int) task { return linear(seed, tokens) })
		add("linear", voting(12_000, 3), func(l *leaf) { l.base, l.correlated = e, true }, func(seed int) task { return linear(seed, tokens) })
		out.row(row...)
	}
	return out.String()
}

// byChunk is accuracy, cost and requests against the size of parts.
func byChunk(t *testing.T, runs, tokens int, sizes []int) string {
	var out table
	out.head("characters of a part", "compare", "requests", "US dollars")
	for _, size := range sizes {
		c := simulate(t, "frequent", runs, mapped(size), nil, func(seed int) task { return frequent(seed, tokens) })
		out.row(size, fmt.Sprintf("%.0f", 100*c.score), fmt.Sprintf("%.0f", c.requests), fmt.Sprintf("%.3f", c.cost))
	}
	return out.String()
}

const (
	tablesBegin = "<!-- simulated: make recursion -->\n"
	tablesEnd   = "<!-- end -->\n"
)

// TestTables writes the table by task, and logs the others. Without -update it only checks that small
// ones can be made.
func TestTables(t *testing.T) {
	if !*update {
		text := byTask(t, 1, 8) + byLength(t, 1, []int{8_000}) + byError(t, 1, 4_000) + byChunk(t, 1, 8_000, []int{8_000})
		if n := strings.Count(text, "\n"); n != 6+3+7+3 {
			t.Errorf("%d lines:\n%s", n, text)
		}
		return
	}
	text := "Score in per cent, and mean cost in US dollars in brackets.\n\n" + byTask(t, 20, 1)
	t.Log("Against length:\n\n" + byLength(t, 10, []int{1 << 13, 1 << 15, 1 << 17, 1 << 18, 1 << 20, 10_000_000}))
	t.Logf("Against the error of the leaf, at 8,000 tokens in parts of 12,000 characters:\n\n%s\nAgainst the size of parts, at 131,000 tokens:\n\n%s",
		byError(t, 20, 8_000), byChunk(t, 20, 131_000, []int{2_000, 12_000, 50_000, 200_000, 400_000}))
	const path = "../../../docs/CORPUS.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(raw), tablesBegin)
	_, tail, ok := strings.Cut(rest, tablesEnd)
	if !ok {
		t.Fatalf("%s lacks its marks", path)
	}
	if err := os.WriteFile(path, []byte(head+tablesBegin+text+tablesEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
