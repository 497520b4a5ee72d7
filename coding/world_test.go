package coding_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/files"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestWorld checks that the coding agent works in an Env of the embedder, even after a restart: its tools change
// files there and none on the disk, and it has no tools for commands, because that world has no processes.
func TestWorld(t *testing.T) {
	home(t)
	tree := files.New(fstest.MapFS{"plan.md": {Data: []byte("Ship on Monday.\n")}})
	world := tree.Env()
	o := coding.Options{Sandbox: coding.NoSandbox(), Env: &world, Model: &script.Model{}, Mode: tool.ModeEdit}
	host, err := coding.Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := host.New(t.Context(), files.Root)
	if err != nil {
		t.Fatal(err)
	}
	work := func(text string) {
		t.Helper()
		c := inspan.Conductor{Session: s}
		if err := c.Run(t.Context(), event.Say(text)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tools := s.Status().Tools
	work(`call: edit_file {"path":"plan.md","old":"Monday","new":"Tuesday"}`)
	if host, err = coding.Agent(o); err != nil {
		t.Fatal(err)
	}
	if s, err = host.Open(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	work(`call: write_file {"path":"new/b.md","content":"b"}
call: write_file {"path":"/tmp/never.md","content":"b"}`)
	changes := map[string]string{}
	for _, c := range tree.Changes() {
		changes[c.Path] = string(c.Data)
	}
	if len(changes) != 2 || changes["/files/plan.md"] != "Ship on Tuesday.\n" || changes["/files/new/b.md"] != "b" {
		t.Errorf("%q", changes)
	}
	if !slices.Contains(tools, "edit_file") || slices.ContainsFunc(tools, func(name string) bool {
		return slices.Contains([]string{"bash", "jobs", "git", "spawn_agent", "lsp_rename"}, name)
	}) {
		t.Errorf("%q", tools)
	}
}
