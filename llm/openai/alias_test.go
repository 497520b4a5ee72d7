package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
	"github.com/inspan/inspan/llm/openai/openaitest"
)

// TestToolNames sends tools with the names of MCP servers, two of which differ
// only in what the wire can't carry, and lets the model call them.
func TestToolNames(t *testing.T) {
	tools := []string{"git.status", "git/status", "git_status", strings.Repeat("deep/", 20) + "er"}
	req := greeting()
	want := llm.Parts{}
	for i, name := range tools {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: name})
		want = append(want, llm.Call{ID: fmt.Sprint("call_", i), Name: name, Args: json.RawMessage(`{}`)})
	}
	for _, api := range []string{"chat", "responses"} {
		var sent []string
		answer := func(_ *http.Request, body []byte) openaitest.Answer {
			sent = append(sent, string(body))
			if len(sent) > 1 {
				return openaitest.Answer{Parts: llm.Say("ok")}
			}
			a := openaitest.Answer{}
			for i, name := range sentNames(body) { // the fake's validator has seen that each is good
				a.Parts = append(a.Parts, llm.Call{ID: fmt.Sprint("call_", i), Name: name, Args: json.RawMessage(`{}`)})
			}
			return a
		}
		var m llm.Model = &Model{ID: "m", BaseURL: openaitest.Start(t, &openaitest.Server{Answer: answer})}
		if api == "responses" {
			m = &Responses{ID: "m", BaseURL: openaitest.StartResponses(t, &openaitest.Responses{Answer: answer})}
		}
		r, shown := called(t, m, req)
		if diff := cmp.Diff(want, r.Parts); diff != "" {
			t.Errorf("%s: the calls come back otherwise:\n%s", api, diff)
		}
		if diff := cmp.Diff(tools, shown); diff != "" {
			t.Errorf("%s: the calls are shown otherwise:\n%s", api, diff)
		}
		next := llm.Message{Role: llm.User}
		for _, c := range r.Calls() {
			next.Parts = append(next.Parts, llm.Result{CallID: c.ID, Name: c.Name, Parts: llm.Say("x")})
		}
		again := req
		again.Messages = append(append([]llm.Message(nil), req.Messages...), llm.Message{Role: llm.Assistant, Parts: r.Parts}, next)
		if r, e := ask(t, m, again); e != nil || r.Parts.Text() != "ok" {
			t.Errorf("%s: %+v, %v", api, r, e)
		}
		for _, name := range sentNames([]byte(sent[0])) {
			if strings.Count(sent[1], `"name":"`+name+`"`) != 2 {
				t.Errorf("%s: %q is not both a tool and a call in %s", api, name, sent[1])
			}
		}
	}
}

// called returns a reply, and the tools that were seen being called.
func called(t *testing.T, m llm.Model, req llm.Request) (reply llm.Reply, shown []string) {
	t.Helper()
	for c, err := range m.Stream(t.Context(), req) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Call != nil && (len(shown) == 0 || shown[len(shown)-1] != c.Call.Name):
			shown = append(shown, c.Call.Name)
		case c.Reply != nil:
			reply = *c.Reply
		}
	}
	return reply, shown
}

// sentNames returns the names of the tools in a request of either wire.
func sentNames(body []byte) []string {
	var req struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		panic(err) // the fake has read it
	}
	var list []string
	for _, t := range req.Tools {
		list = append(list, t.Name+t.Function.Name)
	}
	return list
}

// TestAliasesTaken holds that a replacement never meets what is there already,
// whichever comes first.
func TestAliasesTaken(t *testing.T) {
	for _, rule := range []func(string) string{idUpTo40, idUpTo64, nineLetters, wire.ToolName} {
		foreign := strings.Repeat("functions.read:", 9)
		for _, order := range [][]string{{foreign, rule(foreign)}, {rule(foreign), foreign}} {
			table := wire.NewAliases(rule)
			a, b := table.Theirs(order[0]), table.Theirs(order[1])
			if a == b || a != table.Theirs(order[0]) || b != table.Theirs(order[1]) {
				t.Errorf("%q and %q become %q and %q", order[0], order[1], a, b)
			}
			if a != rule(order[0]) {
				t.Errorf("the first of %q is %q: it depends on what comes later", order, a)
			}
		}
	}
}

func FuzzAliases(f *testing.F) {
	f.Add("call_1\ncall_2\nfunctions.read:0\n\n\xff")
	f.Add(strings.Repeat("x", 41) + "\n" + strings.Repeat("x", 42) + "\nabcdefghi\nabcdefgh-")
	rules := map[string]struct {
		rule func(string) string
		good *regexp.Regexp
	}{
		"40":   {idUpTo40, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)},
		"64":   {idUpTo64, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
		"nine": {nineLetters, regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)},
		"name": {wire.ToolName, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	}
	f.Fuzz(func(t *testing.T, in string) {
		for name, r := range rules {
			table := wire.NewAliases(r.rule)
			back := map[string]string{}
			for _, s := range strings.Split(in, "\n") {
				alias := table.Theirs(s)
				if !r.good.MatchString(alias) {
					t.Fatalf("%s: %q becomes %q", name, s, alias)
				}
				if known, ok := back[alias]; ok && known != s {
					t.Fatalf("%s: %q and %q become %q", name, known, s, alias)
				}
				back[alias] = s
				if table.Ours(alias) != s {
					t.Fatalf("%s: %q does not come back from %q", name, s, alias)
				}
			}
		}
	})
}
