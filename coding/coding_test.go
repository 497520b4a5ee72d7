package coding_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	coding.Init()
	testkit.Main(m)
}

// kit is an agent in a workspace and a home of its own. Its model follows the commands of
// prompts.
func kit(t *testing.T, change ...func(*coding.Options)) (*inspan.Host, coding.Options) {
	t.Helper()
	home(t)
	o := coding.Options{Sandbox: coding.Init(), Root: folder(t), Model: &script.Model{}, Warn: func(text string) { t.Log("warned:", text) }}
	for _, c := range change {
		c(&o)
	}
	host, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	return host, o
}

// home is an empty home folder, and an environment that names no other.
func home(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	t.Setenv("HOME", dir)
	for _, name := range []string{
		"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "INSPAN_CONFIG_DIR", "INSPAN_STATE_DIR", "INSPAN_MODEL", "INSPAN_MODE",
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY",
	} {
		t.Setenv(name, "")
	}
	return dir
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// exists reports whether there is something at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// environment is the sandbox for other parts of the program.
func environment(t *testing.T, o coding.Options) tool.Env {
	t.Helper()
	env, err := coding.Env(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// open is a new session of the host.
func open(t *testing.T, host *inspan.Host, root string) *inspan.Session {
	t.Helper()
	s, err := host.New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// run sends a session a message, allows or denies its questions, and returns the results of its calls with their
// outcomes.
func run(t *testing.T, s *inspan.Session, allow bool, text string) string {
	t.Helper()
	var results []string
	c := inspan.Conductor{
		Session: s,
		OnEvent: func(e event.Event) error {
			if b, ok := e.Body.(event.Ended); ok {
				results = append(results, string(b.Outcome)+": "+b.Parts.Text())
			}
			return nil
		},
		Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
			return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: allow, By: "the test"}, nil
		},
	}
	if err := c.Run(t.Context(), event.Say(text)); err != nil {
		t.Fatal(err)
	}
	return strings.Join(results, "\n")
}

// TestSandboxHolds runs a program that no judge can analyse: it may change the workspace, and nothing outside it.
func TestSandboxHolds(t *testing.T) {
	host, o := kit(t, func(o *coding.Options) { o.Mode = tool.ModeAuto })
	env := environment(t, o)
	if !env.Walls.Workspace {
		t.Skip("THIS MACHINE CAN'T BUILD THE SANDBOX: " + env.Walls.Why)
	}
	outside := folder(t)
	s := open(t, host, o.Root)
	got := run(t, s, false, `bash: python3 -c "open('inside','w')"`+"\n"+`bash: python3 -c "open('`+outside+`/'+'owned','w')"`)
	if !exists(filepath.Join(o.Root, "inside")) || exists(filepath.Join(outside, "owned")) {
		t.Errorf("the sandbox does not hold: %s", got)
	}
}

// TestApproval asks before a change, does it when it is allowed, and not when it is denied.
func TestApproval(t *testing.T) {
	host, o := kit(t)
	s := open(t, host, o.Root)
	run(t, s, false, "bash: touch denied")
	run(t, s, true, "bash: touch allowed")
	if exists(filepath.Join(o.Root, "denied")) || !exists(filepath.Join(o.Root, "allowed")) {
		t.Errorf("%+v", s.Status())
	}
}

// TestAnswerNamesWhatWaits is the agent without sessions on disk.
func TestAnswerNamesWhatWaits(t *testing.T) {
	host, _ := kit(t)
	agent, err := host.Agent(t.Context(), inspan.SessionSpec{New: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Answer(t.Context(), "bash: touch x")
	var waiting *inspan.WaitingError
	if !errors.As(err, &waiting) || len(waiting.Waiting) != 1 || waiting.Waiting[0].Call.Name != "bash" {
		t.Errorf("%v", err)
	}
}
