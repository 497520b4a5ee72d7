package router_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

var update = flag.Bool("update", false, "write the figures of docs/ROUTING.md anew")

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
			{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud", "local"}},
			{Name: "easy", When: router.Cond{Hard: new(false)}, Use: []string{"local", "cloud"}},
		},
	}
}

// decide is who is asked first for a request, and why.
func decide(m *router.Model, req llm.Request) (route, why string) {
	d := m.Decide(m.Features(req), router.View{})
	return d.Use[0], d.Reason
}

// TestBeginnings checks where tasks begin when only their form is known, in any language.
func TestBeginnings(t *testing.T) {
	for _, tt := range []struct{ text, want, why string }{
		{"Which port does the dev server use?", "local", "the task is a question"},
		{"端口是多少？", "local", "the task is a question"},
		{"كم عدد الاختبارات؟", "local", "the task is a question"},
		{"Mend the misspelt heading of docs/INSTALL.md", "local", "the task names a file"},
		{"Füge den Bericht zu .gitignore hinzu, bitte auch die Protokolle", "local", "the task names a file"},
		{"Benenne überall im Paket `alt` in `neu` um, bitte", "local", "the task quotes what it is about"},
		{"Explique ce que veut dire « interblocage » en une phrase", "local", "the task quotes what it is about"},
		{"Give parse_line a sentence that says what it returns", "local", "the task quotes what it is about"},
		{"Run the tests", "local", "the task is short"},
		{"テストを実行して", "local", "the task is short"},
		{"Some orders arrive twice since we have moved to the new queue", "cloud", "the task does not name where its work is"},
		{"Manche Bestellungen kommen seit dem Umzug zweimal an.", "cloud", "the task does not name where its work is"},
		{"新しいキューに移ってから、注文が二回届くことがある", "cloud", "the task does not name where its work is"},
		{"С переходом на новую очередь некоторые заказы приходят дважды", "cloud", "the task does not name where its work is"},
		{"Split a.go, b.go, c.go and d.go", "cloud", "the task names 4 files"},
		{"See main.go.\n- one\n- two\n\n- three\n- four", "cloud", "the task has 5 lines"},
		{"In main.go: " + strings.Repeat("and then, ", 60), "cloud", "the task is a long text"},
		{"e.g. see https://example.com/a/b for what we want to have here", "cloud", "the task does not name where its work is"},
	} {
		if got, why := decide(usual(), say(tt.text)); got != tt.want || !strings.HasPrefix(why, tt.why+";") {
			t.Errorf("%q goes to %s: %s", tt.text, got, why)
		}
	}
	m := usual()
	for m.Begin = range map[string]bool{"local": true, "cloud": true} {
		for _, text := range []string{"Run the tests", "Some orders arrive twice since we have moved to the new queue"} {
			if got, why := decide(m, say(text)); got != m.Begin {
				t.Errorf("every task is to begin at %s: %s, %s", m.Begin, got, why)
			}
		}
	}
}

// TestGoesOn checks that a short message refers to the request before it.
func TestGoesOn(t *testing.T) {
	for text, want := range map[string]string{
		"yes, do it":                 "cloud",
		"さあ、続けて":                     "cloud",
		"What is in main.go?":        "local",
		"List what is in the folder": "local",
		"Now see to util.go too":     "local",
	} {
		req := say("Some orders arrive twice since we have moved to the new queue")
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: llm.Say("This is how: ...")},
			llm.Message{Role: llm.User, Parts: llm.Say(text)})
		if got, why := decide(usual(), req); got != want {
			t.Errorf("%q goes to %s: %s", text, got, why)
		}
		req.Work.Person = []int{2} // the first is not a person's
		if got, _ := decide(usual(), req); got != "local" {
			t.Errorf("%q goes on with what no person has said", text)
		}
	}
}

// TestEvidence checks which events of a run move its task from the local model and which do not, and that nothing moves
// it back before the run ends.
func TestEvidence(t *testing.T) {
	for _, tt := range []struct {
		work llm.Work
		want string // why; empty means it stays
	}{
		{llm.Work{Failing: 2, Again: 2, Useless: 1, Turns: 39, Files: 11}, ""},
		{llm.Work{Failing: 3}, "3 calls or checks failed since a check succeeded"},
		{llm.Work{Again: 3}, "the same call returned the same result 3 times"},
		{llm.Work{Useless: 2}, "2 replies in a row were of no use"},
		{llm.Work{Turns: 40}, "it has taken 40 turns"},
		{llm.Work{Files: 12}, "it has changed 12 files"},
	} {
		for _, begin := range []string{"", "local"} {
			m, req := usual(), say("What is in main.go?")
			m.Begin, req.Pin, req.Work = begin, "local/m", tt.work
			got, why := decide(m, req)
			if (got == "cloud") != (tt.want != "") || tt.want != "" && !strings.HasPrefix(why, "taken over from local: "+tt.want+";") {
				t.Errorf("%+v: %s, %s", tt.work, got, why)
			}
			req.Pin, req.Work = "cloud/m", llm.Work{}
			if got, why := decide(m, req); got != "cloud" {
				t.Errorf("given back within the run: %s", why)
			}
			req.Pin = ""
			if got, why := decide(m, req); got != "local" {
				t.Errorf("the next task does not begin again: %s", why)
			}
		}
	}
	req := say("AKIAQ3EGRIM5UDP7XV2K")
	req.Pin, req.Work.Failing = "local/m", 9
	if got, why := decide(usual(), req); got != "local" {
		t.Errorf("private text leaves: %s", why)
	}
}

// TestLabelled checks how many tasks of labelled ones begin where a person would have them begin, and that
// docs/ROUTING.md says so.
func TestLabelled(t *testing.T) {
	f, err := os.Open("testdata/beginnings.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	right, all, langs := map[string]int{}, map[string]int{}, map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l struct{ Lang, Want, Text string }
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		all[l.Want]++
		langs[l.Lang] = true
		if got, why := decide(usual(), say(l.Text)); got == l.Want {
			right[l.Want]++
		} else {
			t.Logf("%s: %q: %s", got, l.Text, why)
		}
	}
	document(t, fmt.Sprintf("Of %d tasks in %d languages that one author has written and labelled, %d of %d easy ones begin local, and %d of %d hard\nones in the cloud.\n",
		all["local"]+all["cloud"], len(langs), right["local"], all["local"], right["cloud"], all["cloud"]))
}

// document compares the text between two marks in docs/ROUTING.md, or writes it.
func document(t *testing.T, want string) {
	t.Helper()
	const path, from, to = "../../docs/ROUTING.md", "<!-- from TestLabelled -->\n", "<!-- to here -->"
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
		t.Errorf("%s says something else; run go test ./llm/router -run TestLabelled -update\n%s", path, want)
	}
}
