package equipment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// echo is a tool that returns its input; run, if set, runs instead.
func echo(name string, effects []tool.Effect, run func(context.Context, *tool.Call) (tool.Result, error)) tool.Tool {
	if run == nil {
		run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
			return tool.Result{Parts: llm.Say("got " + string(c.Args))}, nil
		}
	}
	return tool.Tool{
		Name: name, Doc: "Says it.", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`),
		Effects: func(context.Context, *tool.Call) ([]tool.Effect, error) { return effects, nil }, Run: run,
	}
}

// windowed is a model with a window of its own.
type windowed struct {
	llm.Model
	tokens int
}

func (w windowed) Info() llm.Info { return llm.Info{Provider: "p", Model: "m", Window: w.tokens} }

func named(list []tool.Tool) (out []string) {
	for _, t := range list {
		out = append(out, t.Name)
	}
	return out
}

// agent has tools, and the way that more of them come.
func agent(list, come, stand []tool.Tool) *inspan.Agent {
	return &inspan.Agent{
		Tools: list, Env: tool.Env{Root: "/w"}, Model: &script.Model{},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) { return come, stand }},
	}
}

func TestBuiltIn(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range equipment.BuiltIn() {
		if seen[b.Name] || b.Name == "" || b.Doc == "" || !json.Valid(b.Schema) {
			t.Errorf("%q is there twice, or lacks something", b.Name)
		}
		seen[b.Name] = true
	}
	for _, name := range []string{"read_file", "bash", "web_fetch"} {
		if !seen[name] {
			t.Errorf("no %s", name)
		}
	}
}

// TestSession checks that the settings leave out tools.
func TestSession(t *testing.T) {
	list := func(c config.Config) []string {
		all, end := equipment.Tools(c, &tools.Shell{}, "", tool.Env{Root: t.TempDir()})
		end()
		return named(all)
	}
	all := list(config.Config{})
	noWeb := config.Config{NoLSP: true}
	noWeb.Web.Off = true
	few := list(noWeb)
	if len(few) >= len(all) {
		t.Errorf("%d tools with everything, %d without", len(all), len(few))
	}
	for _, name := range few {
		if !slices.Contains(all, name) || strings.HasPrefix(name, "web_") {
			t.Errorf("%s is there without the web", name)
		}
	}
	if c := (config.Config{}); len(equipment.Skilled(c, &skill.Library{}, nil)) != 1 {
		t.Error("no tool loads skills")
	}
	c := config.Config{}
	c.Skills.Off = true
	if len(equipment.Skilled(c, &skill.Library{}, nil)) != 0 {
		t.Error("skills that are off can be loaded")
	}
}

// TestCall runs tools by hand.
func TestCall(t *testing.T) {
	list := []tool.Tool{
		echo("say", nil, nil),
		echo("fails", nil, func(context.Context, *tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("no paper") }),
		echo("panics", nil, func(context.Context, *tool.Call) (tool.Result, error) { panic("oops") }),
		echo("changes", []tool.Effect{{Kind: tool.Write, Path: "/etc/x"}}, nil),
	}
	call := func(name, args string, rules ...inspan.Rule) (string, error) {
		a := agent(list, []tool.Tool{echo("comes", nil, nil)}, []tool.Tool{echo("stands", nil, nil)})
		closed := 0
		a.Rules, a.Lifecycle.Close = rules, func() error { closed++; return nil }
		text, err := equipment.Call(t.Context(), a, name, json.RawMessage(args), func(string) {})
		if closed != 1 {
			t.Errorf("%s: the agent was closed %d times", name, closed)
		}
		return text, err
	}
	for name, want := range map[string]string{
		"say":   `got {"x":1}`,
		"comes": `got {"x":1}`, "stands": `got {"x":1}`, "changes": `got {"x":1}`,
	} {
		if got, err := call(name, `{"x":1}`); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, c := range []struct{ name, args, want string }{
		{"fails", `{}`, "no paper"},
		{"panics", `{}`, "panic"},
		{"say", `{"x":"many"}`, "x"},
		{"sya", `{}`, `did you mean "say"?`},
		{"quite another", `{}`, "see 'inspan tools list'"},
		{"", `{}`, "no tool"},
	} {
		if got, err := call(c.name, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %q, %v, want %q", c.name, c.args, got, err, c.want)
		}
	}
	// What denies, denies also a person.
	if got, err := call("changes", `{}`, inspan.Rule{Action: tool.Deny, Text: "write(/etc/**)"}); err == nil {
		t.Errorf("a rule denies it: %q", got)
	}
}

// TestCallIsNotAsked checks that a tool which asks in turn gets no answer, and that the call ends.
func TestCallIsNotAsked(t *testing.T) {
	asks := echo("asks", nil, func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		answer, err := c.Ask(ctx, "Which?", []string{"this", "that"})
		return tool.Result{Parts: llm.Say(fmt.Sprintf("%q %v", answer, err))}, nil
	})
	got, err := equipment.Call(t.Context(), agent([]tool.Tool{asks}, nil, nil), "asks", json.RawMessage(`{}`), func(string) {})
	if err != nil || got != `"" <nil>` {
		t.Errorf("%q, %v", got, err)
	}
}

func TestList(t *testing.T) {
	a := agent([]tool.Tool{echo("always", nil, nil)}, []tool.Tool{echo("comes", nil, nil)}, []tool.Tool{echo("stands", nil, nil)})
	a.Dynamic.Servers = func(context.Context, func(string)) []event.Server {
		return []event.Server{{Name: "up", State: "ready"}, {Name: "down", State: "failed", Why: "it exited"}}
	}
	var told []string
	if got := named(equipment.List(t.Context(), a, func(s string) { told = append(told, s) })); !slices.Equal(got, []string{"always", "comes"}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(told, []string{"the MCP server down is failed: it exited"}) {
		t.Errorf("%q", told)
	}
}

// TestFurnish checks which tools a model is told of: the common ones if rare ones wait, all of them if requested, and
// no more of the changing ones than there is room for.
func TestFurnish(t *testing.T) {
	many := func(n int) (out []tool.Tool) {
		for i := range n {
			e := echo(fmt.Sprintf("mcp__s__tool%d", i), nil, nil)
			e.Doc = strings.Repeat("It says what it is given. ", 40)
			out = append(out, e)
		}
		return out
	}
	window := 0
	furnished := func(deferred event.Lever, unattended, told bool, come []tool.Tool) (always, shown, hidden []string) {
		t.Helper()
		list, end := equipment.Tools(config.Config{}, &tools.Shell{}, "", tool.Env{Root: "/w"})
		end()
		list = append(list, echo("ask_user", nil, nil))
		a := &inspan.Agent{
			Tools: list, Env: tool.Env{Root: "/w"}, Model: windowed{&script.Model{}, window}, Unattended: unattended,
			Opening: inspan.Opening{Levers: event.Levers{Deferred: deferred, Names: "off"}},
		}
		equipment.Furnish(a, &config.Installation{}, "", func(context.Context) []tool.Tool { return come }, told)
		s, h := a.Dynamic.Tools(t.Context())
		return named(a.Tools), named(s), named(h)
	}
	always, shown, hidden := furnished("on", false, false, many(2))
	if !slices.Contains(always, "read_file") || !slices.Contains(always, "history") || !slices.Contains(always, "jobs") || slices.Contains(always, "lsp") || len(hidden) == 0 ||
		!slices.Contains(shown, "tool_search") || !slices.Contains(shown, "mcp__s__tool0") {
		t.Errorf("deferred: always %q, shown %q, hidden %q", always, shown, hidden)
	}
	all, shown, hidden := furnished("on", false, true, many(500))
	if len(all) <= len(always) || slices.Contains(shown, "tool_search") || len(shown) != 500 || len(hidden) != 0 {
		t.Errorf("told of all: always %q, %d shown, %d hidden", all, len(shown), len(hidden))
	}
	always, shown, hidden = furnished("off", false, false, many(500))
	if len(always) != len(all) || slices.Contains(shown, "mcp__s__tool0") || !slices.Contains(shown, "tool_search") ||
		!slices.Contains(hidden, "mcp__s__tool499") {
		t.Errorf("too many: always %q, shown %q, %d hidden", always, shown, len(hidden))
	}
	window = 8000
	small, _, rest := furnished("on", false, false, nil)
	for _, name := range []string{"read_file", "edit_file", "bash", "todo", "history"} {
		if !slices.Contains(small, name) {
			t.Errorf("in a small window the model is not told of %s", name)
		}
	}
	if slices.Contains(small, "jobs") || !slices.Contains(rest, "jobs") {
		t.Errorf("in a small window the model is told of %q, and %q are hidden", small, rest)
	}
	window = 0
	if alone, _, _ := furnished("off", true, false, nil); slices.Contains(alone, "ask_user") {
		t.Error("nobody answers, and the model is told to ask")
	}
}
