package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/words"
)

// slashRows are the slash commands that the command adds to those of the front end, each with the resulting screen.
// Commands without arguments that change nothing may come in any order.
func slashRows() [][]string {
	return [][]string{
		{"/doctor", "ok       settings", "program git"},
		{"/hooks", "No hooks are set."},
		{"/skills", "skill-creator  built in"},
		{"/memory", "The memory is empty."},
		{"/memory what", "want /memory or /memory add TEXT"},
		{"/skills all", "/skills takes no arguments; nothing was done"},
		{"/agents", "KIND", "reviewer  inherited"},
		{"/mcp", "No MCP servers are set up here; 'inspan mcp add' adds one."},
		{"/mcp agree nobody", `no MCP server "nobody" is connected`},
		{"/workflow", "piv                  built in"},
		{"/workflow nothing", `no workflow "nothing"`},
		{"/workflow clips", "clips needs source; give them as NAME=VALUE"},
		{"/goal be good", "want /goal GOAL --check COMMAND"},
		{"/mcp what", "want /mcp, /mcp agree NAME or /mcp agree NAME DIGEST"},
		{"/commit", "# Commit changes", "■ done"},
		{"/debug", "# Find and mend a bug", "■ done"},
		{"/init", "# Write AGENTS.md", "■ done"},
		{"/review", "# Review a change", "■ done"},
		{"/simplify", "# Simplify code", "■ done"},
		{"/skill-creator", "# Write a skill", "■ done"},
		{"/test", "# Test code", "■ done"},
		{"/own Ann", "› say: Hello Ann.", "■ done"},
	}
}

// TestSlashes checks the effect of every slash command that the command adds, in a real terminal. One without a row
// fails. It also presses the keys that need a real terminal: to suspend, and to redraw.
func TestSlashes(t *testing.T) {
	h := withoutModel(t)
	commands := filepath.Join(h.dir, "config", "commands")
	if err := os.MkdirAll(commands, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(commands, "own.md"), []byte("say: Hello $1.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTerminal(t, h, 100, 40)
	s.Types("inspan")
	s.Shows("say what to do")
	have := map[string]bool{}
	for _, row := range slashRows() {
		s.idles()
		s.Tmux("clear-history")
		s.Types(row[0])
		s.Shows(row[1:]...)
		name, _, _ := words.Slash(row[0])
		have[name] = true
	}
	tty := strings.TrimSpace(s.Tmux("display-message", "-p", "#{pane_tty}"))
	s.idles()
	s.Writes("x")
	s.Shows("› x")
	s.Keys("BSpace")
	s.Shows("› say what to do") // so the last picture of the run is drawn, and falls into no rubbish
	if err := os.WriteFile(tty, []byte("rubbish"), 0); err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, "rubbish on the screen", func() bool { return strings.Contains(s.Screen(), "rubbish") })
	s.Keys("C-l")
	testkit.WaitFor(t, "the rubbish to go", func() bool { return !strings.Contains(s.Screen(), "rubbish") })
	s.Keys("C-z")
	s.Shows("Stopped")
	s.Prompts()
	composer := func() bool { return strings.Contains(s.Screen(), "say what to do") }
	s.Types("clear")
	testkit.WaitFor(t, "an empty screen", func() bool { return !composer() })
	s.Prompts()
	s.Types("fg")
	testkit.WaitFor(t, "the composer", composer)
	s.Keys("C-d")
	s.Shows("continue with: inspan resume ")

	t.Setenv("HOME", h.dir)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(h.dir, "state"))
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(h.dir, "config"))
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range (&command{}).slashes(a, h.work, &runFlags{}, func(_, why string) { t.Error(why) }) {
		if !have[c.Name] {
			t.Errorf("/%s has no row", c.Name)
		}
		if slices.ContainsFunc(tui.Commands(), func(o tui.Command) bool { return o.Name == c.Name }) {
			t.Errorf("/%s is there twice", c.Name)
		}
	}
}
