//go:build unix

package hook_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func local(t testing.TB) tool.Env {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	return env
}

// warnings collects the warnings to people.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.list, "\n")
	w.list = nil
	return out
}

// set makes a set whose warnings can be looked at.
func set(t testing.TB, hooks ...hook.Config) (*hook.Set, *warnings) {
	t.Helper()
	w := &warnings{}
	return &hook.Set{Hooks: hooks, Env: local(t), Warn: w.add}, w
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// at is a moment with all that it may have.
func at(m tool.Moment, env tool.Env) tool.Point {
	p := tool.Point{Moment: m, Session: "s1", Root: env.Root, Mode: "ask", Text: "hello", Why: "new"}
	if m == tool.BeforeCall || m == tool.AfterCall {
		p = call(m, env, "bash", `{"command":"ls"}`)
	}
	return p
}

func call(m tool.Moment, env tool.Env, name, args string) tool.Point {
	p := tool.Point{Moment: m, Session: "s1", Root: env.Root, Mode: "ask"}
	p.Call = &tool.Call{ID: "c1", Name: name, Args: json.RawMessage(args), Env: env, Cwd: env.Root}
	if m == tool.AfterCall {
		p.Result = &tool.Result{Parts: llm.Say("brought"), Cwd: "/elsewhere"}
	}
	return p
}

func must(t testing.TB, s *hook.Set, p tool.Point) tool.Outcome {
	t.Helper()
	out, err := s.At(t.Context(), p)
	if err != nil {
		t.Fatalf("at %s: %v", p.Moment, err)
	}
	return out
}

// brief is an outcome in one line.
func brief(out tool.Outcome) string {
	var parts []string
	for _, f := range []struct{ name, text string }{
		{"", string(out.Action)},
		{"reason=", out.Reason},
		{"args=", string(out.Args)},
		{"text=", out.Text},
	} {
		if f.text != "" {
			parts = append(parts, f.name+f.text)
		}
	}
	if out.Result != nil {
		parts = append(parts, "result="+out.Result.Parts.Text())
	}
	return strings.Join(parts, " ")
}

// has checks that a text has all of the parts, or that it is empty if there are none.
func has(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	if len(parts) == 0 && text != "" {
		t.Errorf("%s: unexpected %q", what, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q lacks %q", what, text, part)
		}
	}
}

// closed waits for hooks in the background.
func closed(t testing.TB, s *hook.Set) {
	t.Helper()
	s.Close(context.Background())
}
