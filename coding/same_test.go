package coding_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm/script"
)

// TestSameAgentAsTheCommand has the command and a host work for one person in one folder. The
// prompt, the tools, the limits and the mode that their sessions begin with are the same.
func TestSameAgentAsTheCommand(t *testing.T) {
	bin := testkit.Command(t)
	at, root := home(t), folder(t)
	write(t, filepath.Join(at, ".config/inspan/config.toml"), "mode = 'edit'\nmax_cost = 3.5\nmax_turns = 17\n")
	write(t, filepath.Join(at, ".claude/skills/mine/SKILL.md"), "---\nname: mine\ndescription: Of the person.\n---\nSay moin.\n")
	write(t, filepath.Join(root, "AGENTS.md"), "Use tabs.\n")
	write(t, filepath.Join(root, ".inspan/agents/tester.md"), "---\nname: tester\ndescription: Runs tests.\n---\nRun them.\n")

	cmd := exec.Command(bin, "run", "--model", "script", "say: hello")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	host, err := coding.Agent(coding.Options{Sandbox: coding.Init(), Root: root, Model: &script.Model{}, Personal: true, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	commands := list(t, host)
	if len(commands) != 1 {
		t.Fatalf("the host does not find the session of the command: %v", commands)
	}
	s := open(t, host, root)
	run(t, s, false, "say: hello")
	want, got := beginning(t, host, commands[0]), beginning(t, host, s.ID())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the command (-) and the host (+) differ:\n%s", diff)
	}
	for _, word := range []string{"Use tabs.", "Of the person.", "tester", "spawn_agent", "3.5", "17"} {
		if !strings.Contains(strings.ToLower(got), strings.ToLower(word)) {
			t.Errorf("no word of %s in the beginning of a session", word)
		}
	}
}

// beginning is the part of a log before the first request, without the names of processes.
func beginning(t *testing.T, host *inspan.Host, id string) string {
	t.Helper()
	var lines []string
	for e, err := range host.Events(t.Context(), id) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Body.Kind() == "asked":
			return strings.Join(lines, "\n")
		case e.Body.Kind() == "claimed":
			continue
		}
		raw, err := json.MarshalIndent(e.Body, e.Body.Kind()+" ", " ")
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	t.Fatalf("the model of session %s was never asked", id)
	return ""
}
