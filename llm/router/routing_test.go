package router_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

var update = flag.Bool("update", false, "write the tables of docs/ROUTING.md anew")

// labelled is a request that a person would send to one of two models, and the state of the
// conversation that it comes in.
type labelled struct {
	Split string `json:"split"` // "dev", which the weights and words were tuned on, or "held-out"
	Lang  string `json:"lang"`
	Want  string `json:"want"` // "local" or "cloud"
	Text  string `json:"text"`

	Before  string `json:"before"` // what was said before
	Plan    string `json:"plan"`   // and answered
	Last    string `json:"last"`   // route that answered last
	Turns   int    `json:"turns"`  // of the run so far
	Failing int    `json:"failing"`
	Files   int    `json:"files"`
}

func labels(t *testing.T) []labelled {
	t.Helper()
	f, err := os.Open("testdata/routing.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []labelled
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l labelled
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// request is what a session would send.
func (l labelled) request() llm.Request {
	req := llm.Request{Work: llm.Work{Failing: l.Failing, Files: l.Files}}
	if l.Before != "" {
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: llm.Say(l.Before)},
			llm.Message{Role: llm.Assistant, Parts: llm.Say(l.Plan)})
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: llm.Say(l.Text)})
	for i := range l.Turns {
		id := fmt.Sprint("c", i)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: id, Name: "bash"}}},
			llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: id, Parts: llm.Say("exit code 1")}}})
	}
	if l.Last != "" {
		req.Work.Last = l.Last + "/m"
	}
	if l.Turns > 0 {
		req.Pin = req.Work.Last
	}
	return req
}

// usual is the router that the settings make without rules.
func usual() *router.Model {
	local := &vendor{info: llm.Info{Provider: "local", Model: "m", Window: 32_768, Prices: llm.Prices{{}}}}
	cloud := &vendor{info: llm.Info{
		Provider: "cloud", Model: "m", Window: 200_000,
		Prices: llm.Prices{{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}},
	}}
	return &router.Model{
		ID:     "auto",
		Routes: []router.Route{{Name: "local", Model: local, Local: true}, {Name: "cloud", Model: cloud}},
		Rules: []router.Rule{
			{Name: "hard", When: router.Cond{MinComplexity: 0.7}, Use: []string{"cloud", "local"}},
			{Name: "easy", When: router.Cond{MaxComplexity: 0.7}, Use: []string{"local", "cloud"}},
		},
	}
}

// confusion counts what was wanted and what was chosen.
type confusion struct{ localLocal, localCloud, cloudLocal, cloudCloud int }

func (c *confusion) add(want, got string) {
	switch want + got {
	case "locallocal":
		c.localLocal++
	case "localcloud":
		c.localCloud++
	case "cloudlocal":
		c.cloudLocal++
	default:
		c.cloudCloud++
	}
}

func (c *confusion) all() int { return c.localLocal + c.localCloud + c.cloudLocal + c.cloudCloud }

func (c *confusion) right() float64 {
	return 100 * float64(c.localLocal+c.cloudCloud) / float64(max(c.all(), 1))
}

// TestRouting holds how often the usual router sends a labelled request where a person would,
// and that docs/ROUTING.md says so.
func TestRouting(t *testing.T) {
	all := labels(t)
	parts := map[string]*confusion{"dev": {}, "held-out": {}}
	langs := map[string]map[string]*confusion{}
	for _, l := range all {
		m := usual()
		d := m.Decide(m.Features(l.request()), router.View{})
		if len(d.Use) == 0 {
			t.Fatalf("nobody answers %q", l.Text)
		}
		parts[l.Split].add(l.Want, d.Use[0])
		if langs[l.Lang] == nil {
			langs[l.Lang] = map[string]*confusion{"dev": {}, "held-out": {}}
		}
		langs[l.Lang][l.Split].add(l.Want, d.Use[0])
		if l.Split == "dev" && d.Use[0] != l.Want {
			t.Logf("%s, not %s: %q: %s", d.Use[0], l.Want, l.Text, d)
		}
	}
	if len(all) < 300 || len(langs) < 10 || parts["dev"].right() < 95 || parts["held-out"].right() < 75 {
		t.Errorf("of %d requests in %d languages %.1f%% of dev and %.1f%% of held-out are right",
			len(all), len(langs), parts["dev"].right(), parts["held-out"].right())
	}
	document(t, tables(parts, langs))
}

func tables(parts map[string]*confusion, langs map[string]map[string]*confusion) string {
	var b strings.Builder
	b.WriteString("| part | wanted | local chosen | cloud chosen | right |\n|---|---|---|---|---|\n")
	for _, name := range []string{"dev", "held-out"} {
		c := parts[name]
		fmt.Fprintf(&b, "| %s | local | %d | %d | |\n| | cloud | %d | %d | %.1f%% |\n",
			name, c.localLocal, c.localCloud, c.cloudLocal, c.cloudCloud, c.right())
	}
	b.WriteString("\n| language | dev | right | held-out | right |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(langs)) {
		dev, held := langs[name]["dev"], langs[name]["held-out"]
		fmt.Fprintf(&b, "| %s | %d | %.0f%% | %d | %.0f%% |\n", name, dev.all(), dev.right(), held.all(), held.right())
	}
	return b.String()
}

// document compares what stands between two marks in docs/ROUTING.md, or writes it.
func document(t *testing.T, want string) {
	t.Helper()
	const path, from, to = "../../docs/ROUTING.md", "<!-- from TestRouting -->\n", "<!-- to here -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), from)
	old, tail, more := strings.Cut(rest, to)
	if !ok || !more {
		t.Fatalf("%s lacks its marks", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+from+want+to+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("%s says something else; run go test ./llm/router -run TestRouting -update\n%s", path, want)
	}
}
