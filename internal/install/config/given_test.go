package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/config"
)

// TestGivenSettings checks how the settings of one run combine with those of the file: tables are merged, rules are
// added, and everything else is replaced.
func TestGivenSettings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	at := config.Where{Settings: write("config.toml", `
mode = "plan"
max_time = "1h"
fallback = ["a/b", "a/c"]
deny = ["bash(rm *)"]
[sandbox]
memory_mb = 300
processes = 90
[providers.mine]
base_url = "http://127.0.0.1:1/v1"
[[rule]]
action = "ask"
rule = "bash(make *)"
`), State: filepath.Join(dir, "state")}
	for _, v := range os.Environ() { // such as those of the program that runs the tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "INSPAN_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	t.Setenv("INSPAN_MODE", "ask")
	t.Setenv("INSPAN_MAX_TURNS", "3")
	asJSON := `{"mode": "edit", "max_cost": 1.5, "max_time": "2h", "fallback": ["x/y"], "deny": ["bash(mv *)"], "no_lsp": true,
		"sandbox": {"memory_mb": 400}, "providers": {"other": {"base_url": "http://127.0.0.1:2/v1"}},
		"rule": [{"action": "deny", "rule": "bash(dd *)", "reason": "no"}]}`
	asTOML := `
mode = "edit"
max_cost = 1.5
max_time = "2h"
fallback = ["x/y"]
deny = ["bash(mv *)"]
no_lsp = true
sandbox.memory_mb = 400
[providers.other]
base_url = "http://127.0.0.1:2/v1"
[[rule]]
action = "deny"
rule = "bash(dd *)"
reason = "no"
`
	for name, given := range map[string]string{
		"JSON": asJSON, "a JSON file": write("given.json", asJSON), "a TOML file": write("given.toml", asTOML),
	} {
		t.Setenv(config.SettingsVariable, given)
		set, err := config.Open("", at)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := set.Config
		if c.Mode != "edit" || *c.MaxTurns != 3 || c.MaxCost != 1.5 || c.MaxTime != 2*time.Hour || !c.NoLSP || len(c.Fallback) != 1 ||
			strings.Join(c.Deny, " ") != "bash(rm *) bash(mv *)" || c.Sandbox.Memory != 400 || c.Sandbox.Processes != 90 || len(c.Providers) != 2 ||
			len(c.Rules) != 2 || c.Rules[1].Reason != "no" {
			t.Errorf("%s: %+v", name, c)
		}
		if list, err := set.Settings(dir); err != nil || len(list) == 0 || len(set.Warnings) > 0 {
			t.Errorf("%s: %v, %v, %v", name, list, err, set.Warnings)
		}
	}
	// Keys are valid in any case, and those of both sides meet.
	t.Setenv(config.SettingsVariable, `{"Deny": ["bash(mv *)"], "Mode": "edit", "Sandbox": {"Memory_MB": 400}}`)
	if set, err := config.Open("", at); err != nil || set.Config.Mode != "edit" || set.Config.Sandbox.Memory != 400 ||
		strings.Join(set.Config.Deny, " ") != "bash(rm *) bash(mv *)" || set.Config.Sandbox.Processes != 90 {
		t.Errorf("other case: %v, %v", set, err)
	}
	for given, want := range map[string]string{
		`{"deny": ["bash(mv *)"], "Deny": []}`: "INSPAN_SETTINGS: Deny and deny are the same key; remove one",
		`{"deny": [null]}`:                     "INSPAN_SETTINGS: deny[0]: null is not a text",
		`{"sandbox": {"memory": 1}}`:           `INSPAN_SETTINGS: unknown key "sandbox.memory"`,
		`{"max_turns": "many"}`:                "INSPAN_SETTINGS: max_turns",
		`{"max_turns": null}`:                  "INSPAN_SETTINGS: max_turns",
		`{"mode": "plan"} {}`:                  "something follows",
		write("odd.toml", "mode = 'odd'\n"):    "odd.toml:1: mode",
		filepath.Join(dir, "none"):             "no such file",
		dir:                                    "not a regular file",
	} {
		t.Setenv(config.SettingsVariable, given)
		if _, err := config.Open("", at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", given, err)
		}
	}
}
