package guard_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func compiled(t *testing.T, list ...guard.Check) guard.Checks {
	t.Helper()
	c, err := guard.Compile(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChecksAreAJudge(t *testing.T) {
	harnesstest.TestJudge(t, guard.Checks{})
	harnesstest.TestJudge(t, compiled(t, guard.Check{Name: "a", On: guard.OnCall, Pattern: "passwd"},
		guard.Check{Name: "b", On: guard.OnCall, Pattern: "ls", Action: tool.Ask}))
}

func TestChecksOnCalls(t *testing.T) {
	c := compiled(t,
		guard.Check{Name: "prod asks", On: guard.OnCall, Pattern: `\bprod\b`, Action: tool.Ask},
		guard.Check{Name: "no drop", On: guard.OnCall, Pattern: `(?i)drop\s+table`, Tool: "db_*", Reason: "tables stay"},
		guard.Check{Name: "no 4711", On: guard.OnCall, Pattern: `^4711$`},
		guard.Check{Name: "input only", On: guard.OnInput, Pattern: `.`},
	)
	for _, x := range []struct {
		tool, args string
		want       tool.Action
		by         string
	}{
		{"db_query", `{"sql":"DROP TABLE a"}`, tool.Deny, "check no drop"},
		{"db_query", `{"sql":"\u0044rop\ntable a"}`, tool.Deny, "check no drop"},
		{"db_query", `{"sql":"dr\u200bop table a"}`, tool.Deny, "check no drop"},
		{"db_query", `{"list":[{"deep":["drop table"]}]}`, tool.Deny, "check no drop"},
		{"db_query", `{"drop table":1}`, tool.Deny, "check no drop"},
		{"db_query", `{"sql":"drop table a","sql":"select"}`, tool.Deny, "check no drop"},
		{"db_query", `{"host":"prod","sql":"drop table a"}`, tool.Deny, "check no drop"},
		{"db_query", `{"host":"prod"}`, tool.Ask, "check prod asks"},
		{"bash", `{"command":"drop table a"}`, tool.Abstain, ""},
		{"bash", `{"n":4711}`, tool.Deny, "check no 4711"},
		{"bash", `{"n":47110}`, tool.Abstain, ""},
		{"bash", `{"a":"drop","b":"table"}`, tool.Abstain, ""},
		{"bash", `{}`, tool.Abstain, ""},
	} {
		v, err := c.Judge(t.Context(), &tool.Call{Name: x.tool, Args: json.RawMessage(x.args)}, nil)
		if err != nil || v.Action != x.want || v.By != x.by || (v.Reason == "") != (x.want == tool.Abstain) {
			t.Errorf("%s %s: %+v, %v; want %q by %q", x.tool, x.args, v, err, x.want, x.by)
		}
	}
	if v, err := c.Judge(t.Context(), &tool.Call{Name: "bash", Args: json.RawMessage(`{"a":`)}, nil); err == nil {
		t.Errorf("arguments that can't be read: %+v", v)
	}
	only := compiled(t, guard.Check{Name: "a", On: guard.OnCall, Pattern: "x", Tool: "other"})
	if v, err := only.Judge(t.Context(), &tool.Call{Name: "bash", Args: json.RawMessage(`{"a":`)}, nil); err != nil ||
		v.Action != tool.Abstain {
		t.Errorf("a check on another tool: %+v, %v", v, err)
	}
}

func TestChecksOnText(t *testing.T) {
	c := compiled(t,
		guard.Check{Name: "in", On: guard.OnInput, Pattern: "secret project"},
		guard.Check{Name: "out", On: guard.OnOutput, Pattern: "(?i)password:", Reason: "no passwords"},
	)
	if got := c.Input("about the secret pro\u200bject"); got == nil || got.Name != "in" || got.Action != tool.Deny {
		t.Errorf("input: %+v", got)
	}
	if got := c.Output("Password: x"); got == nil || got.Reason != "no passwords" {
		t.Errorf("output: %+v", got)
	}
	if c.Input("password:") != nil || c.Output("secret project") != nil || (guard.Checks{}).Input("x") != nil {
		t.Error("a check looks where it should not")
	}
}

func TestChecksOnResults(t *testing.T) {
	c := compiled(t, guard.Check{Name: "names", On: guard.OnResult, Pattern: "Mallory Inc", Tool: "read_*", Reason: "a customer's name"})
	img := llm.Image{MediaType: "image/png", Data: []byte("x")}
	brought := errors.New("Mallory Inc is not there")
	for name, parts := range map[string]llm.Parts{
		"one":      {llm.Text{Text: "of Mallory Inc."}, img, llm.Text{Text: "more"}},
		"over two": {llm.Text{Text: "Mallory"}, llm.Text{Text: " Inc"}, img},
		"hidden":   {llm.Text{Text: "Mal\u200blory Inc"}, img},
	} {
		res, err := run(t, c.Wrap(bringing(tool.Read, brought, parts...)), "{}")
		want := "[inspan: what the call brought is withheld by the check names: a customer's name]"
		if res.Parts.Text() != want || len(res.Parts) != 2 {
			t.Errorf("%s: %+v", name, res.Parts)
		}
		if !errors.Is(err, brought) || err.Error() != want {
			t.Errorf("%s: error %v", name, err)
		}
	}
	res, err := run(t, c.Wrap(bringing(tool.Read, nil, llm.Text{Text: "of Alice"}, img)), "{}")
	if err != nil || res.Parts.Text() != "of Alice" || len(res.Parts) != 2 {
		t.Errorf("harmless: %+v, %v", res, err)
	}
	other := bringing(tool.Read, nil, llm.Text{Text: "Mallory Inc"})
	other.Name = "bash"
	if res, err := run(t, c.Wrap(other), "{}"); err != nil || res.Parts.Text() != "Mallory Inc" {
		t.Errorf("another tool: %+v, %v", res, err)
	}
}

func TestCompileNamesWhatIsWrong(t *testing.T) {
	ok := guard.Check{Name: "fine", On: guard.OnCall, Pattern: "x"}
	for want, c := range map[string]guard.Check{
		`check[1]: "": it has no name`:                      {On: guard.OnCall, Pattern: "x"},
		`check[1]: "a": on is "calls"`:                      {Name: "a", On: "calls", Pattern: "x"},
		`check[1]: "a": it has no pattern`:                  {Name: "a", On: guard.OnCall},
		`check[1]: "a": pattern: error parsing regexp`:      {Name: "a", On: guard.OnCall, Pattern: "("},
		`check[1]: "a": tool "[" is not a glob`:             {Name: "a", On: guard.OnCall, Pattern: "x", Tool: "["},
		`check[1]: "a": tool is only for call and result`:   {Name: "a", On: guard.OnInput, Pattern: "x", Tool: "b"},
		`check[1]: "a": only a check on calls can ask`:      {Name: "a", On: guard.OnOutput, Pattern: "x", Action: tool.Ask},
		`check[1]: "a": action is "allow", not deny or ask`: {Name: "a", On: guard.OnCall, Pattern: "x", Action: tool.Allow},
		`check[1]: "fine": there is another of that name`:   ok,
	} {
		if _, err := guard.Compile([]guard.Check{ok, c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := guard.Compile([]guard.Check{{Name: "a", On: "x"}, {Name: "b", On: "x"}})
	if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("not all that is wrong is named: %v", err)
	}
}

func FuzzChecks(f *testing.F) {
	f.Add(`{"a":"forbidden"}`)
	f.Fuzz(func(t *testing.T, args string) {
		c, err := guard.Compile([]guard.Check{{Name: "a", On: guard.OnCall, Pattern: "forbidden"}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Judge(t.Context(), &tool.Call{Name: "x", Args: json.RawMessage(args)}, nil)
		if json.Valid([]byte(args)) && strings.Contains(args, "forbidden") && (err != nil || v.Action != tool.Deny) {
			t.Errorf("%s: %+v, %v", args, v, err)
		}
	})
}
