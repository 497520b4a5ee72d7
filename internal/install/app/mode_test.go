package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// toldTools are the tools that the model was last told of, according to the log, and how often the list has changed.
func toldTools(t *testing.T, host *inspan.Host, id string) (tools map[string]llm.ToolSpec, times int) {
	t.Helper()
	log, err := host.Sessions().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if sw, is := e.Body.(event.Switched); is && sw.Tools != nil {
			tools, times = map[string]llm.ToolSpec{}, times+1
			for _, spec := range sw.Tools {
				tools[spec.Name] = spec
			}
		}
	}
	return tools, times
}

// works has a session answer a text, and closes it.
func works(t *testing.T, s *inspan.Session, err error, text string) inspan.Status {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Run(t.Context(), event.Say(text)) {
		if err != nil {
			t.Fatal(err)
		}
		if f, failed := e.Body.(event.Failed); failed {
			t.Fatal(f.Message)
		}
	}
	return s.Status()
}

// results has a session make calls, and returns the outcome of each. It closes the session.
func results(t *testing.T, s *inspan.Session, err error, calls ...string) (ended []event.Ended) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Run(t.Context(), event.Say("call: "+strings.Join(calls, "\ncall: "))) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Ended); is {
			ended = append(ended, b)
		}
	}
	if len(ended) != len(calls) {
		t.Fatalf("%d calls of %d: %+v", len(ended), len(calls), ended)
	}
	return ended
}

// TestToolsFollowTheMode checks that the tools of a session are a function of its log: one that is resumed or forked,
// whatever the settings say by then, tells the model of the same ones, byte for byte, and an agent that works for it of
// the same bash.
func TestToolsFollowTheMode(t *testing.T) {
	for _, unattended := range []bool{false, true} {
		for _, mode := range tool.Modes() {
			t.Run(string(mode)+map[bool]string{true: " unattended"}[unattended], func(t *testing.T) {
				a := load(t, "mode = 'ask'")
				host := a.Host(app.Options{Model: "script", Mode: mode, Unattended: unattended}, func(string) {})
				s, err := host.New(t.Context(), t.TempDir())
				st := works(t, s, err, `call: spawn_agent {"task":"say: hi"}`)
				first, times := toldTools(t, host, st.Session)
				if times != 1 || len(st.Children) != 1 {
					t.Fatalf("the model was told %d times of %d tools, and had %d agents", times, len(first), len(st.Children))
				}
				said := first["bash"].Description
				if held := strings.Contains(said, "in a sandbox") || strings.Contains(said, "need approval") || strings.Contains(said, "In mode plan"); held != (mode != tool.ModeYolo) {
					t.Errorf("it is told %q", said)
				}
				theirs, _ := toldTools(t, host, st.Children[0].Child)
				if diff := cmp.Diff(first["bash"].Description, theirs["bash"].Description); diff != "" {
					t.Errorf("an agent that works for it is told: %s", diff)
				}
				again := a.Host(app.Options{Unattended: unattended}, func(string) {})
				s, err = again.Open(t.Context(), st.Session)
				works(t, s, err, "say: b")
				s, err = again.Fork(t.Context(), st.Session, 0)
				fork := works(t, s, err, "say: b").Session
				for how, id := range map[string]string{"resumed": st.Session, "forked": fork} {
					if _, times := toldTools(t, host, id); times != 1 {
						t.Errorf("%s: the model was told of other tools", how)
					}
				}
			})
		}
	}
}

// TestToldToDirectAgents checks that the model is told once how to direct agents, when there is one to direct: in the
// background or in a copy. A list that a vendor has cached stays, and a message tells. Neither a resume nor a fork
// repeats it.
func TestToldToDirectAgents(t *testing.T) {
	const name = "manage_agents"
	for args, want := range map[string]bool{
		`{"task":"say: hi"}`:                        false,
		`{"task":"say: hi","background":true}`:      true,
		`{"task":"say: hi","isolation":"worktree"}`: true,
	} {
		for _, cached := range []bool{false, true} {
			a := load(t, "mode = 'auto'")
			a.Providers.Given = &script.Model{}
			if cached {
				a.Providers.Given = counted{a.Providers.Given}
			}
			host := a.Host(app.Options{}, func(string) {})
			s, err := host.New(t.Context(), repository(t, map[string]string{"a": "a"}))
			st := works(t, s, err, "call: spawn_agent "+args)
			s, err = host.Open(t.Context(), st.Session)
			works(t, s, err, "say: again")
			s, err = host.Fork(t.Context(), st.Session, 0)
			for _, id := range []string{st.Session, works(t, s, err, "say: again").Session} {
				spawned, lists, told := false, 0, 0
				for e, err := range store.Events(t.Context(), host.Sessions(), id) {
					if err != nil {
						t.Fatal(err)
					}
					switch b := e.Body.(type) {
					case event.Spawned:
						spawned = true
					case event.Switched:
						if b.Tools != nil {
							lists++
						}
						if slices.ContainsFunc(b.Tools, func(s llm.ToolSpec) bool { return s.Name == name }) {
							told++
						}
					case event.Added:
						if b.Source == "tools" && strings.Contains(b.Text, "New tool, to be called with call_tool: "+name+"\n") {
							told++
						}
					case event.Asked:
						if yes := told == 1; told > 1 || yes != (want && spawned) {
							t.Errorf("%s, cached %v: a request goes out and it was told %d times", args, cached, told)
						}
					}
				}
				if most := map[bool]int{want && !cached: 2}[true]; lists != max(most, 1) {
					t.Errorf("%s, cached %v: it was told of its tools in %d lists", args, cached, lists)
				}
			}
		}
	}
}

// counted is a model whose vendor has counted the tokens.
type counted struct{ llm.Model }

func (m counted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range m.Model.Stream(ctx, req) {
			if chunk.Reply != nil {
				chunk.Reply.Usage.Estimated = false
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// TestPromptsNameWhatIsThere checks that a prompt mentions skills and memory only if the agent has the tools for them,
// and that an agent in a copy learns of the copy.
func TestPromptsNameWhatIsThere(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "a"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		if cmd.Dir = root; cmd.Run() != nil {
			t.Skip("no git")
		}
	}
	for args, want := range map[string]struct{ skills, memory, apart bool }{
		`{"task":"say: hi"}`:                            {skills: true, memory: true},
		`{"task":"say: hi","agent":"explore"}`:          {},
		`{"task":"say: hi","tools":["read_file"]}`:      {},
		`{"task":"say: hi","isolation":"worktree"}`:     {skills: true, memory: true, apart: true},
		`{"task":"say: hi","tools":["skill"]}`:          {skills: true},
		`{"task":"say: hi","agent":"reviewer"}`:         {skills: false},
		`{"task":"say: hi","tools":["memory"]}`:         {memory: true},
		`{"task":"say: hi","agent":"worker","count":1}`: {skills: true, memory: true},
	} {
		a := load(t, "mode = 'auto'")
		notes := filepath.Join(os.Getenv("INSPAN_CONFIG_DIR"), "skills", "notes")
		if err := errors.Join(os.MkdirAll(notes, 0o755), os.WriteFile(filepath.Join(notes, "SKILL.md"),
			[]byte("---\nname: notes\ndescription: Takes notes. Use to take some.\n---\nNote.\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		host := a.Host(app.Options{Model: "script"}, func(string) {})
		s, err := host.New(t.Context(), root)
		st := works(t, s, err, "call: spawn_agent "+args)
		if len(st.Children) != 1 {
			t.Fatalf("%s: %d agents", args, len(st.Children))
		}
		child := st.Children[0].Child
		log, err := host.Sessions().Open(t.Context(), child)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for e, err := range log.Read(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Added:
				said += b.Text
			case event.Steered:
				said += b.Parts.Text()
			}
		}
		_ = log.Close()
		tools, _ := toldTools(t, host, child)
		_, has := tools["skill"]
		if told := strings.Contains(said, "the tool skill"); told != has || told != want.skills {
			t.Errorf("%s: told of skills: %v, has the tool: %v", args, told, has)
		}
		if told := strings.Contains(said, "the tool memory"); told != want.memory {
			t.Errorf("%s: told of the memory: %v", args, told)
		}
		if told := strings.Contains(said, "a copy of the workspace "+st.Root); told != want.apart {
			t.Errorf("%s: told of its copy: %v", args, told)
		}
	}
}

// TestTeamsCostLittle checks that teams (names, mailboxes, tasks) cost a session that has none at most 150 tokens of its
// prompt.
func TestTeamsCostLittle(t *testing.T) {
	a := load(t, "mode = 'auto'")
	a.Providers.Given = &script.Model{}
	host := a.Host(app.Options{}, func(string) {})
	s, err := host.New(t.Context(), repository(t, map[string]string{"a": "a"}))
	st := works(t, s, err, "say: hi")
	told, _ := toldTools(t, host, st.Session)
	spawn, found := told["spawn_agent"]
	if !found || !strings.Contains(told["tool_search"].Description, "team") {
		t.Fatalf("%d tools, among them no agents", len(told))
	}
	if _, also := told["team"]; also {
		t.Error("the tool team is described before it is searched for")
	}
	var schema map[string]any
	if err := json.Unmarshal(spawn.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties["name"] == nil || properties["plan"] != nil {
		t.Fatalf("spawn_agent has %v", properties)
	}
	name, err := json.Marshal(map[string]any{"name": properties["name"]})
	if err != nil {
		t.Fatal(err)
	}
	words := llm.Request{Tools: []llm.ToolSpec{{Name: "team", Description: "finish_task", Schema: name}}}
	if n := words.Tokens(); n > 150 {
		t.Errorf("%d tokens", n)
	} else {
		t.Logf("%d tokens", n)
	}
}
