package coding_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
)

// TestResume leaves a question open, and continues in another host with the answer.
func TestResume(t *testing.T) {
	host, o := kit(t)
	s := open(t, host, o.Root)
	first := inspan.Conductor{Session: s}
	if err := first.Run(t.Context(), event.Say("bash: touch x\nsay: It is there.")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err = again.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	waiting := s.Status().Waiting
	if len(waiting) != 1 || exists(filepath.Join(o.Root, "x")) {
		t.Fatalf("%+v", waiting)
	}
	second := inspan.Conductor{Session: s}
	if err := second.Run(t.Context(), event.Decided{Call: waiting[0].Call.ID, Question: waiting[0].Question, Allow: true}); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone || !exists(filepath.Join(o.Root, "x")) {
		t.Errorf("%+v", st)
	}
}

// TestStore lists sessions, reads one, and removes it.
func TestStore(t *testing.T) {
	host, o := kit(t)
	s := open(t, host, o.Root)
	if err := host.Remove(t.Context(), "nonsense"); err == nil {
		t.Error("a session that is not there was removed")
	}
	run(t, s, true, "say: hello")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e, err := range host.Events(t.Context(), s.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Body.Kind())
	}
	if got := list(t, host); len(got) != 1 || got[0] != s.ID() || kinds[0] != "opened" || !slices.Contains(kinds, "replied") {
		t.Errorf("sessions %v, events %v", got, kinds)
	}
	if err := host.Remove(t.Context(), s.ID()); err != nil || len(list(t, host)) > 0 {
		t.Errorf("after the removal: %v, %v", list(t, host), err)
	}
}

func list(t *testing.T, host *inspan.Host) (ids []string) {
	t.Helper()
	for info, err := range host.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// TestOneWorkspace refuses to work in a folder that the options do not name, also where an old
// session lies there.
func TestOneWorkspace(t *testing.T) {
	host, o := kit(t)
	s := open(t, host, o.Root)
	id := s.ID()
	s.Close()
	if _, err := host.New(t.Context(), folder(t)); err == nil || !strings.Contains(err.Error(), "it works in "+o.Root) {
		t.Error(err)
	}
	o.Root = folder(t)
	other, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(t.Context(), id); err == nil || !strings.Contains(err.Error(), "make another agent") {
		t.Error(err)
	}
}

// TestGivenModel has the model of the options answer, for subagents too, although the session
// and the settings know others.
func TestGivenModel(t *testing.T) {
	steps := []script.Step{
		{Parts: llm.Parts{llm.Call{Name: "spawn_agent", Args: []byte(`{"task":"Say it."}`)}}},
		{Parts: llm.Say("It has said it.")},
	}
	model := &script.Model{ID: "mine", Steps: steps}
	host, o := kit(t, func(o *coding.Options) { o.Mode, o.Model = tool.ModeYolo, model })
	s := open(t, host, o.Root)
	run(t, s, true, "Have it said.")
	st := s.Status()
	if st.Route != "script/mine" || len(st.Children) != 1 || st.Children[0].Route != "script/mine" {
		t.Errorf("%+v", st)
	}
}

// TestFurtherTool offers tools of the program, to subagents too, whose calls have the sandbox.
func TestFurtherTool(t *testing.T) {
	var roots []string
	where := tool.New("where_am_i", "Tells the folder.", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		roots = append(roots, c.Env.Root)
		return tool.Text("in " + c.Env.Root), nil
	})
	where.Effects = tool.NoEffects
	host, o := kit(t, func(o *coding.Options) { o.Tools = []tool.Tool{where} })
	s := open(t, host, o.Root)
	run(t, s, false, "call: where_am_i {}\n"+`call: spawn_agent {"task":"call: where_am_i {}"}`)
	if len(roots) != 2 || roots[0] != o.Root || roots[1] != o.Root || !slices.Contains(s.Status().Tools, "where_am_i") {
		t.Errorf("called in %q; the model is told of %q", roots, s.Status().Tools)
	}

	where.Name = "bash"
	o.Tools = []tool.Tool{where}
	host, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.New(t.Context(), o.Root); err == nil || !strings.Contains(err.Error(), `two tools are named "bash"`) {
		t.Error(err)
	}
}

// TestHooksHoldForSubagents denies a call of a subagent.
func TestHooksHoldForSubagents(t *testing.T) {
	host, o := kit(t, func(o *coding.Options) { o.Mode, o.Hooks = tool.ModeYolo, []tool.Hook{noTouch{}} })
	s := open(t, host, o.Root)
	run(t, s, true, `call: spawn_agent {"task":"bash: touch x"}`)
	if exists(filepath.Join(o.Root, "x")) {
		t.Error("the hook was not asked")
	}
}

// noTouch denies commands with touch.
type noTouch struct{}

// At implements [tool.Hook].
func (noTouch) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if p.Moment == tool.BeforeCall && strings.Contains(string(p.Call.Args), "touch") {
		return tool.Outcome{Action: tool.Deny, By: "the program", Reason: "nothing is touched"}, nil
	}
	return tool.Outcome{}, nil
}

// TestServers calls a tool of an MCP server in this process, which a rule allows.
func TestServers(t *testing.T) {
	dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
		server := mcp.NewServer(&mcp.Implementation{Name: "birds", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "seen"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "two herons"}}}, nil, nil
		})
		ours, theirs := net.Pipe()
		go func() { _ = server.Run(ctx, &mcp.IOTransport{Reader: theirs, Writer: theirs}) }()
		return ours, nil
	}
	host, o := kit(t, func(o *coding.Options) {
		o.Servers, o.Allow = []mcptool.Server{{Name: "birds", Dial: dial}}, []string{"mcp__birds__*"}
	})
	s := open(t, host, o.Root)
	if got := run(t, s, false, "call: mcp__birds__seen {}"); !strings.Contains(got, "two herons") {
		t.Error(got)
	}
}

// TestSkills loads a skill of the program.
func TestSkills(t *testing.T) {
	dir := folder(t)
	write(t, filepath.Join(dir, "greet", "SKILL.md"), "---\nname: greet\ndescription: How to greet.\n---\nSay moin.\n")
	host, o := kit(t, func(o *coding.Options) { o.Skills = []string{dir} })
	s := open(t, host, o.Root)
	if got := run(t, s, false, `call: skill {"name":"greet"}`); !strings.Contains(got, "Say moin.") {
		t.Error(got)
	}
}

// TestPrompt adds to the prompt of the command.
func TestPrompt(t *testing.T) {
	host, o := kit(t, func(o *coding.Options) { o.Prompt = "You work for the museum of clocks." })
	s := open(t, host, o.Root)
	s.Close()
	log, err := os.ReadFile(filepath.Join(host.Dir, s.ID(), "log.jsonl"))
	if err != nil || !strings.Contains(string(log), "the museum of clocks") {
		t.Error(err)
	}
}
