package harnesstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// oddNames returns names of tools that some vendor refuses, and some that none does.
func oddNames() []string {
	return []string{
		"git.status", "git/status", "git status", "git_status", strings.Repeat("deep/", 20) + "er", strings.Repeat("long ", 20),
		"Grüße", "", "1st", "-x", strings.Repeat("9", 64), "ok-1.A_", "ok-1_A", strings.Repeat("x", 64), strings.Repeat("x", 65),
	}
}

// toolNames checks that tools whose names the vendor refuses get others, in the definitions, the history and
// the replies, and that they come back under their own, even while a call streams.
func (s modelSuite) toolNames(t *testing.T) {
	names := oddNames()
	// A tool may have the very name that another gets.
	names = append([]string{s.theirs(t, names)[1]}, names...)
	names = slices.Compact(names)
	theirs := s.theirs(t, names)
	calls := llm.Parts{}
	for i, name := range append(theirs, "invented") {
		calls = append(calls, llm.Call{ID: fmt.Sprintf("new_%d", i), Name: name, Args: json.RawMessage(`{}`)})
	}
	f := s.New(t, Turn{Parts: calls}, Turn{Parts: llm.Say("ok")}, Turn{Parts: llm.Say("ok")})
	req := toolsNamed(names)
	r, shown := called(t, f.Model, req)
	var got []string
	for _, c := range r.Calls() {
		got = append(got, c.Name)
	}
	if want := append(slices.Clone(names), "invented"); !slices.Equal(got, want) || !slices.Equal(shown, want) {
		t.Errorf("the names\n     %q come back as\n     %q, and are shown as\n     %q", want, got, shown)
	}
	// A call of a removed tool stays in the history.
	past := append(slices.Clone(r.Parts), llm.Call{ID: "past", Name: "gone/tool", Args: json.RawMessage(`{}`)})
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: past}, answered(past))
	reply(t, f.Model, req)
	reply(t, f.Model, req)
	sent := f.Requests()
	if sent[1] != sent[2] {
		t.Errorf("equal requests differ:\n%s\n%s", sent[1], sent[2])
	}
	for i, name := range names {
		s.goesBy(t, name, theirs[i], sent[1])
	}
}

// goesBy checks that a tool gets a name that the vendor accepts, its own if possible, and the same one
// throughout a request.
func (s modelSuite) goesBy(t *testing.T, name, theirs, sent string) {
	t.Helper()
	if !s.ToolNames.MatchString(theirs) || s.ToolNames.MatchString(name) != (theirs == name) {
		t.Errorf("%q goes by %q", name, theirs)
	}
	n := 0
	for _, other := range namesIn(t, sent) {
		if other == theirs {
			n++
		}
	}
	if n < 2 {
		t.Errorf("%q goes by %q, which is not both a tool and a call in %s", name, theirs, sent)
	}
}

func toolsNamed(names []string) llm.Request {
	req := llm.Request{Messages: []llm.Message{said("hi")}}
	for _, name := range names {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: name})
	}
	return req
}

// theirs returns the names that tools get.
func (s modelSuite) theirs(t *testing.T, names []string) []string {
	t.Helper()
	f := s.New(t, Turn{Parts: llm.Say("ok")})
	reply(t, f.Model, toolsNamed(names))
	var body struct{ Tools json.RawMessage }
	if err := json.Unmarshal([]byte(f.Requests()[0]), &body); err != nil {
		t.Fatal(err)
	}
	list := namesIn(t, string(body.Tools))
	if len(list) != len(names) {
		t.Fatalf("%d tools were sent as %q", len(names), list)
	}
	return list
}

// namesIn returns all names in a text of JSON.
func namesIn(t *testing.T, text string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	var list []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if name, ok := v["name"].(string); ok {
				list = append(list, name)
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		}
	}
	walk(v)
	return list
}

// called returns a reply, and the tools whose calls were streamed.
func called(t *testing.T, m llm.Model, req llm.Request) (r llm.Reply, shown []string) {
	t.Helper()
	for c, err := range m.Stream(t.Context(), req) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Call != nil && (len(shown) == 0 || shown[len(shown)-1] != c.Call.Name):
			shown = append(shown, c.Call.Name)
		case c.Reply != nil:
			r = *c.Reply
		}
	}
	return r, shown
}
