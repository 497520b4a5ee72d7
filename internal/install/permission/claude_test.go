package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/tool"
)

// TestClaudeJudges checks unreadable rules in Claude Code's settings with a person present: calls that they may concern
// ask. A mode that the settings rule out has no effect.
func TestClaudeJudges(t *testing.T) {
	execute, read, write := tool.Effect{Kind: tool.Execute, Text: "ls"}, tool.Effect{Kind: tool.Read, Path: "/a"}, tool.Effect{Kind: tool.Write, Path: "/a"}
	for _, c := range []struct {
		name, file string
		mode       tool.Mode
		effects    []tool.Effect
		want       tool.Action
	}{
		{"cut", `{"permissions": {"deny": ["Bash`, tool.ModeAuto, []tool.Effect{read}, tool.Ask},
		{"cut", `{"permissions": {"deny": ["Bash`, tool.ModeYolo, []tool.Effect{execute}, tool.Ask},
		{"cut", `{"permissions": {"deny": ["Bash`, tool.ModeAuto, nil, tool.Abstain},
		{"UTF-16", "\xff\xfe{\x00}\x00", tool.ModeAuto, []tool.Effect{write}, tool.Ask},
		{"a pipe", `{"permissions": {"deny": ["Bash(curl * | sh)"]}}`, tool.ModeAuto, []tool.Effect{read, execute}, tool.Ask},
		{"a pipe", `{"permissions": {"deny": ["Bash(curl * | sh)"]}}`, tool.ModeAuto, []tool.Effect{write}, tool.Abstain},
		{"braces", `{"permissions": {"ask": ["Edit({a,b})"]}}`, tool.ModeAuto, []tool.Effect{write}, tool.Ask},
		{"braces", `{"permissions": {"ask": ["Edit({a,b})"]}}`, tool.ModeAuto, []tool.Effect{read}, tool.Abstain},
		{"allows", `{"permissions": {"allow": ["Edit({a,b})"]}}`, tool.ModeAuto, []tool.Effect{write}, tool.Abstain},
		{"another tool", `{"permissions": {"deny": ["KillShell"]}}`, tool.ModeAuto, []tool.Effect{write}, tool.Abstain},
		{"comments", "{ // ours\n\"permissions\": {\"deny\": [\"Bash(rm:*)\",]}}", tool.ModeAuto, []tool.Effect{execute}, tool.Abstain},
		{"a mode", `{"permissions": {"disableBypassPermissionsMode": "disable"}}`, tool.ModeYolo, []tool.Effect{read}, tool.Deny},
		{"a mode", `{"permissions": {"disableBypassPermissionsMode": "disable"}}`, tool.ModeAuto, []tool.Effect{write}, tool.Abstain},
	} {
		root := t.TempDir()
		at := filepath.Join(root, ".claude", "settings.json")
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		judges, err := (&permission.Set{Installation: &config.Installation{}}).Judges(t.Context(), root, guard.Checks{}, false)
		if err != nil {
			t.Fatal(err)
		}
		var got tool.Verdict
		for _, j := range judges {
			v, err := j.Judge(t.Context(), &tool.Call{Name: "bash", Mode: c.mode}, c.effects)
			if err != nil {
				t.Fatal(err)
			}
			if v.Action != tool.Abstain {
				got = v
			}
		}
		if got.Action != c.want || c.want != tool.Abstain && !strings.Contains(got.Reason, ".claude/settings.json") {
			t.Errorf("%s, %s, %v: %+v, want %s", c.name, c.mode, c.effects, got, c.want)
		}
	}
}
