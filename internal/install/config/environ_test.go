package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/config"
)

// TestEveryScalarHasAVariable sets each setting that is one value by its variable,
// and finds it where the file would put it.
func TestEveryScalarHasAVariable(t *testing.T) {
	turns := 7
	c := config.Config{Model: "a/b", MaxTurns: &turns}
	set, warnings, err := c.Over([]string{
		"INSPAN_MODEL=c/d", "INSPAN_MODE=edit", "INSPAN_MAX_COST=1.5", "INSPAN_MAX_TOKENS=9", "INSPAN_MAX_TIME=2h", "INSPAN_MAX_COST_PER_DAY=3",
		"INSPAN_EFFORT=high", "INSPAN_NO_LSP=true", "INSPAN_LEFTOVERS=keep",
		"INSPAN_SANDBOX__MEMORY_MB=512", "INSPAN_REVIEWER__MODEL=x/y", "INSPAN_REVIEWER__TIMEOUT=5s", "INSPAN_ASK_TIMEOUT=",
		"INSPAN_STATE_DIR=/x", "INSPAN_SESSION=s", "OTHER=1",
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := config.Config{
		Model: "c/d", Mode: "edit", MaxTurns: &turns, MaxCost: 1.5, MaxTokens: 9, MaxTime: 2 * time.Hour, DayCost: 3, Effort: "high", NoLSP: true,
		Leftovers: "keep",
		Sandbox:   config.Sandbox{Memory: 512}, Reviewer: &config.Reviewer{Model: "x/y", Timeout: 5 * time.Second},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if len(set) != 12 || set[0].File != "INSPAN_EFFORT" || set[0].Key != "effort" {
		t.Errorf("%v", set)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		if k := f.Type.Kind(); k != reflect.String && k != reflect.Bool && k != reflect.Int64 && k != reflect.Float64 {
			continue
		}
		name := "INSPAN_" + strings.ToUpper(f.Tag.Get("toml"))
		_, warnings, err := (&config.Config{}).Over([]string{name + "=?"})
		if len(warnings) > 0 || err != nil && !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
}

func TestVariablesThatAreWrong(t *testing.T) {
	for kv, want := range map[string]string{
		"INSPAN_MODE=fast":                `INSPAN_MODE: mode: unknown mode "fast"; use plan, ask, edit, auto or yolo; did you mean "ask"?`,
		"INSPAN_MAX_TURNS=1.5":            `INSPAN_MAX_TURNS: "1.5" is not a whole number`,
		"INSPAN_MAX_COST=NaN":             `INSPAN_MAX_COST: "NaN" is not a number`,
		"INSPAN_MAX_COST=-1":              `INSPAN_MAX_COST: max_cost: -1 can't be negative; 0 means the default, or no limit`,
		"INSPAN_MAX_TIME=90":              `INSPAN_MAX_TIME: "90" is not a time such as "90s" or "2h"`,
		"INSPAN_SANDBOX__OFF=perhaps":     `INSPAN_SANDBOX__OFF: "perhaps" is not true or false`,
		"INSPAN_LEFTOVERS=drop":           `INSPAN_LEFTOVERS: leftovers: unknown value "drop"; use end, keep`,
		"INSPAN_PRESET=containers":        `INSPAN_PRESET: unknown preset "containers"; did you mean "container"?`,
		"INSPAN_REVIEWER__TIMEOUT=-1s":    `INSPAN_REVIEWER__TIMEOUT: reviewer.model: it is missing; name one, as PROVIDER/MODEL`,
		"INSPAN_SANDBOX__MEMORY_MB=1e300": `INSPAN_SANDBOX__MEMORY_MB: "1e300" is not a whole number`,
	} {
		if _, _, err := (&config.Config{}).Over([]string{kv}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", kv, err, want)
		}
	}
	if _, _, err := (&config.Config{}).Over([]string{"INSPAN_REVIEWER__MAX_COST=1", "INSPAN_REVIEWER__MODEL=x/y"}); err != nil {
		t.Errorf("settings that need each other: %v", err)
	}
	_, warnings, err := (&config.Config{}).Over([]string{"INSPAN_MAX_TURN=3", "INSPAN_QQQQQQQQ=1"})
	want := []string{`INSPAN_MAX_TURN is not a setting; did you mean "INSPAN_MAX_TURNS"?`, "INSPAN_QQQQQQQQ is not a setting"}
	if d := cmp.Diff(want, warnings); d != "" || err != nil {
		t.Error(d, err)
	}
}

// TestVariablesThatAreReadAreKnown checks that no variable that some package reads causes a warning.
func TestVariablesThatAreReadAreKnown(t *testing.T) {
	read := regexp.MustCompile(`Getenv\("(INSPAN_[A-Z_]+)"\)`)
	found := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range read.FindAllSubmatch(source, -1) {
			found++
			if _, warnings, _ := (&config.Config{}).Over([]string{string(m[1]) + "=?"}); len(warnings) > 0 {
				t.Errorf("%s: %v", path, warnings)
			}
		}
		return err
	})
	if err != nil || found < 3 {
		t.Error(found, err)
	}
}

// TestPreset checks that a preset comes over the file and under the environment.
func TestPreset(t *testing.T) {
	c := config.Config{Mode: "ask", Effort: "low"}
	set, _, err := c.Over([]string{"INSPAN_MODE=auto", "INSPAN_PRESET=container"})
	if err != nil || c.Mode != "auto" || c.MaxTurns == nil || *c.MaxTurns != 0 || c.Leftovers != "keep" || c.Effort != "low" {
		t.Errorf("%+v, %v", c, err)
	}
	if len(set) != 4 || set[0].File != "preset container" || set[3].File != "INSPAN_MODE" {
		t.Errorf("%v", set)
	}
}

// TestAim checks that an address and a key go to the provider of the model that the environment names, whatever else is
// named.
func TestAim(t *testing.T) {
	t.Setenv("INSPAN_BASE_URL", "http://localhost:1/v1")
	t.Setenv("INSPAN_API_KEY", "x")
	file := map[string]config.Provider{
		"mine":  {Kind: "openai", BaseURL: "https://mine.example", KeyCommand: "pass mine"},
		"other": {Kind: "gemini"},
	}
	for _, tc := range []struct{ variable, flag, file, want string }{
		{"", "", "mine/a", "mine"},
		{"", "other/b", "mine/a", "other"},
		{"new/c", "other/b", "mine/a", "new"},
		{"", "", "", ""},
		{"script", "mine/a", "", ""},
		{"", "router/auto", "mine/a", ""},
		{"", "bare", "other/b", "mine"},
		{"bare", "other/b", "", "mine"},
	} {
		t.Setenv("INSPAN_MODEL", tc.variable)
		c := config.Config{Model: tc.file, Providers: file}
		route := func(name string) (string, error) {
			if name == "bare" {
				return "mine/bare", nil
			}
			return name, nil
		}
		if err := c.Aim(tc.flag, route); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mine", "other", "new"} {
			p := c.Providers[name]
			aimed := p.BaseURL == "http://localhost:1/v1" && p.KeyEnv == "INSPAN_API_KEY" && p.KeyCommand == ""
			if aimed != (name == tc.want) {
				t.Errorf("%+v: %s: %+v", tc, name, p)
			}
		}
		if len(file) != 2 || file["mine"].KeyEnv != "" {
			t.Fatal("the file's own were changed")
		}
	}
}
