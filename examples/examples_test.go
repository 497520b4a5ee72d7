package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs every example as a person would, without any key.
func TestExamples(t *testing.T) {
	want := map[string][]string{
		"01-agent":    {"may send run with {\"Text\":\"42\"}? yes", "Sent."},
		"02-provider": {"script/commands says: Everything around a model"},
		"03-tool":     {"The sum is 42."},
		"04-events":   {"1 opened", "stopped", "$0.00645"},
		"05-resume":   {"a life\n  working on one\na life\n  working on two\nstopped: done"},
		"06-fork":     {"trunk:  The map it is.", "branch: The slice it is.", "two sessions: true"},
		"08-mcp":      {"There were two herons. <nil>"},
		"07-child":    {"I have asked.", "session: say: It is in cart.go.", "session: call: ask_another"},
		"09-approve": {
			"the run waits for a decision on bash", "may it run? it would run \"echo 'The museum opens at ten.' > hours.txt\"",
			"hours.txt: The museum opens at ten.",
		},
		// An answer that comes while the run is still there needs no new claim, so the numbers differ.
		"10-http":    {"11 waiting\n--- the connection breaks, and a person allows the call\n12 decided\n", " replied\n", " stopped\n"},
		"11-log":     {"model: The key is under the mat.\nmodel: As I said: under the mat.\ntwo things were said: true"},
		"12-sandbox": {"which only reads: 12 clocks\n  it made []\n", "in the workspace box: 12 clocks\n  it made [work/inside]\n"},
		"13-mcp": {
			"server clocks ready 2", "the clock in the hall shows a quarter past ten",
			"question: it would call wind of the MCP server clocks",
		},
		"22-memory":    {"/files/plan.md: Ship on Tuesday."},
		"23-world":     {"<nil> <nil>\nShip on Tuesday."},
		"14-subagents": {"3 lines", "5 words", "a session of its own: counter, in mode plan, done"},
		"15-skills":    {"deny by mode ask\nallow by mode ask\nallow by rule bash(touch wound/*) (skill winding)", "wound: [- after]"},
		"16-hooks": {
			"The release branch is frozen.", "call: deny nobody pushes during the freeze", "Run test.sh before you finish.",
			"call: allow \nmodel: Now I am done.",
		},
		"17-budget": {"stopped: budget, after 2 turns and $0.0210 of $0.02\nstopped: done, after 3 turns and $0.0405 of $0.20"},
		"21-builtin": {
			"piv: ok after 9 steps, {\"approved\":true,\"passed\":true,", "goal: ok after 15 steps,", "clips: ok after 6 steps,",
			"{\"left\":0,\"upgraded\":1}", "pulls: fix-issue-12 Add, don't subtract", "comments: sum.sh says 2, whatever the numbers are.",
		},
		"20-workflow": {
			"count: ok {\"exit\":0,\"output\":\"3\"}\n", "asked:\nClocks, 3 of them.\n", "SUMMARY.md: Clocks, 3 of them.\n",
		},
		"19-calls":  {"publish is run\n  wrote tides\nmay ping run? ", "\n  pinged for tides\n", "\ndone\n"}, // the answered call and its caller run side by side
		"18-resume": {"the first process: signal: killed", "open question: it would run \"touch made\"\nmodel: I made it.\nmade: [- made]"},
	}
	dirs, err := filepath.Glob("[0-9]*")
	if err != nil || len(dirs) != len(want) {
		t.Fatalf("examples %v, %v: want %d", dirs, err, len(want))
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", bin, "./...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(filepath.Join(bin, dir))
			cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "no full sandbox") {
				t.Skipf("THIS MACHINE CAN'T BUILD THE SANDBOX: %s", out)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, w := range want[dir] {
				if !strings.Contains(string(out), w) {
					t.Errorf("output lacks %q:\n%s", w, out)
				}
			}
		})
	}
}
