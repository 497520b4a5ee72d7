package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/tool"
)

// TestElsewhere has an agent whose files are elsewhere know no tool, no instruction and no place of
// this machine, whatever lies in the folder.
func TestElsewhere(t *testing.T) {
	a, root := load(t, ""), t.TempDir()
	for name, text := range map[string]string{
		"AGENTS.md": "instructions of this machine", ".inspan/tools/own": "#!/bin/sh\n", ".inspan/skills/own/SKILL.md": "---\nname: own\ndescription: d\n---\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	equipped := func(o app.Options) (names []string, told string, agent *inspan.Agent) {
		t.Helper()
		o.Model = "script"
		agent, err := a.Host(o, func(string) {}).Agent(t.Context(), inspan.SessionSpec{Root: root, New: true})
		if err != nil {
			t.Fatal(err)
		}
		shown, hidden := agent.Dynamic.Tools(t.Context())
		for _, one := range slices.Concat(agent.Tools, shown, hidden) {
			names = append(names, one.Name)
		}
		for _, block := range agent.System {
			told += block.Text + "\n"
		}
		if err := agent.Lifecycle.Close(); err != nil {
			t.Error(err)
		}
		return names, told, agent
	}
	mine := tool.Tool{Name: "mine"}
	here, told, _ := equipped(app.Options{Tools: []tool.Tool{mine}})
	if !slices.Contains(here, "read_file") || !strings.Contains(told, root) || !strings.Contains(told, "instructions of this machine") {
		t.Fatalf("%v\n%s", here, told)
	}
	names, told, agent := equipped(app.Options{Tools: []tool.Tool{mine}, Elsewhere: true})
	for _, name := range names { // others are names that models have for these
		of := slices.Contains(equipment.Names(), name) || name == "own"
		if of && !slices.Contains([]string{"todo", "web_fetch", "web_search", "mcp_resource", "mcp_server_list"}, name) {
			t.Errorf("it has the tool %s", name)
		}
	}
	if !slices.Contains(names, "mine") || agent.Dynamic.Instructions != nil || agent.Workspace.Checkpoint != nil {
		t.Errorf("%v", names)
	}
	for _, never := range []string{root, "instructions of this machine", "own: d"} {
		if strings.Contains(told, never) {
			t.Errorf("it is told of %q: %s", never, told)
		}
	}
}
