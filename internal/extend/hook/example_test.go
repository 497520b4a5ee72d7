//go:build unix

package hook_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// A hook of Claude Code that keeps a folder from being changed.
func ExampleReadClaude() {
	hooks, notes, err := hook.ReadClaude([]byte(`{
	  "hooks": {
	    "PreToolUse": [{
	      "matcher": "Edit|Write",
	      "hooks": [{ "type": "command", "command": "grep -q '\"file_path\":\"[^\"]*/vendor/' && { echo 'vendor is not ours' >&2; exit 2; }; exit 0" }]
	    }]
	  }
	}`), ".claude/settings.json")
	if err != nil || len(notes) > 0 {
		fmt.Println(err, notes)
		return
	}
	dir, err := os.MkdirTemp("", "hook")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	env, err := sandbox.Local(dir, nil, sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &hook.Set{Hooks: hooks, Env: env}
	for _, path := range []string{"main.go", "vendor/x/x.go"} {
		call := &tool.Call{Name: "write_file", Args: fmt.Appendf(nil, `{"path":%q,"content":""}`, path), Cwd: dir}
		out, err := s.At(context.Background(), tool.Point{Moment: tool.BeforeCall, Root: dir, Call: call})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %q %q\n", path, out.Action, out.Reason)
	}
	// Output:
	// main.go: "" ""
	// vendor/x/x.go: "deny" "vendor is not ours"
}

// examples opens a workspace with the hooks that the documents show.
func examples(t *testing.T) (*hook.Set, *warnings) {
	t.Helper()
	var file struct{ Hook []hook.Config }
	meta, err := toml.DecodeFile(filepath.Join("testdata", "examples.toml"), &file)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatal(err, meta.Undecoded())
	}
	for _, c := range file.Hook {
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", c.Command, err)
		}
	}
	return set(t, file.Hook...)
}

func TestExamples(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq")
	}
	s, w := examples(t)
	root := s.Env.Root
	write(t, root, "NOTES", "Use tabs.\n")
	write(t, root, "bin/gofmt", "#!/bin/sh\necho \"$@\" >> formatted\n")
	write(t, root, "a.go", "")
	for _, tc := range []struct {
		point tool.Point
		want  string
	}{
		{tool.Point{Moment: tool.SessionStart}, "text=Use tabs."},
		{call(tool.BeforeCall, s.Env, "bash", `{"command":"git push --force"}`), "deny reason=no forced pushes"},
		{call(tool.BeforeCall, s.Env, "bash", `{"command":"git push"}`), ""},
		{call(tool.BeforeCall, s.Env, "bash", `{"command":"npm ci"}`), "ask reason=this project uses bun"},
		{call(tool.AfterCall, s.Env, "edit_file", `{"path":"a.go"}`), ""},
		{tool.Point{Moment: tool.RunStop, Why: "done"}, "text=There are merge markers in a.go."},
		{tool.Point{Moment: tool.RunStop, Why: "done", Rounds: 1}, ""},
	} {
		if tc.point.Moment == tool.RunStop {
			write(t, root, "a.go", "<<<<<<< HEAD\n")
		}
		if got := brief(must(t, s, tc.point)); got != tc.want {
			t.Errorf("%s %+v: %q", tc.point.Moment, tc.point.Call, got)
		}
	}
	closed(t, s)
	if got := read(t, root, "formatted"); got != "-w "+root+"/a.go\n" {
		t.Errorf("formatted %q", got)
	}
	if n := strings.Count(read(t, root, ".calls.jsonl"), "\n"); n != 3 {
		t.Errorf("%d calls are logged", n)
	}
	has(t, "told", w.take())
}
