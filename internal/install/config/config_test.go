package config_test

import (
	"fmt"
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

func load(t *testing.T, text string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path)
}

func TestSampleIsTrue(t *testing.T) {
	c, err := config.Load("../../../docs/config.sample.toml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode == "" || c.Providers["work"].Models["big-coder"].Price == nil || *c.MaxTurns != 200 {
		t.Errorf("the sample lacks something: %+v", c)
	}
}

func TestMissingFileIsFine(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.toml")); err != nil {
		t.Error(err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"[tui]\ntheme = 'bright'":                                       `tui.theme: unknown value "bright"; use light, dark, auto`,
		"[notify]\nquiet = '22:00'":                                     `notify.quiet: "22:00" is not a span such as "22:00-07:00"`,
		"[notify]\nquiet = '08:00-08:00'":                               `is not a span`,
		"[notify]\nto = ['both']":                                       `notify.to: unknown value "both"; use bell, desktop`,
		"[notify]\non = ['']":                                           `notify.on: unknown value`,
		"[notify]\nurl = 'file:///etc/x'":                               `notify.url: not an address such as`,
		"[notify]\nafter = '-1s'":                                       `notify.after: -1s can't be negative`,
		"[notify]\nntfy_token_env = 'A=b'":                              `notify.ntfy_token_env: "A=b" is not the name`,
		"[tui]\nstatus_line = \"a\\nb\"":                                `is not one line`,
		"modle = 'a/b'":                                                 `unknown key "modle"; did you mean "model"?`,
		"[providers.x]\nkind='openai'\nkeyenv='K'":                      `did you mean "key_env"?`,
		"[providers.x]\nkind='openai'\n[providers.x.models.m]\nwindo=1": `did you mean "window"?`,
		"[providers.x]\nkind='openai'\n[providers.x.models.m.price]\ncurrency='x'": `known here: input, cache_read`,
		"zzz = 1":                               "known here: model, mode",
		"[[profiles]]\nmatch='*'\nedit='magic'": `:3: profiles[0].edit: unknown value "magic"; use replace`,
		"[providers.x]\nkind='openai'\ndeadlines={idle=90}": `providers.x.deadlines.idle: 90 is not a time; it needs a unit, as in "90s"`,
		"retry_for = 'soon'": `config.toml:1: retry_for: "soon" is not a time such as "90s" or "2h"`,
		"retry_for = 90":     `retry_for: 90 is not a time; it needs a unit, as in "90s"`,
		"[providers.x]\nkind='openai'\nbase_url='localhost:80'":      `providers.x.base_url: "localhost:80" is not an address`,
		"[providers.x]\nkind='openai'\nbase_url='http://'":           "is not an address",
		"[providers.x]\nkind='openai'\nrequests_per_minute=-5":       "can't be negative",
		"[providers.x]\nkind='openai'\ntokens_per_minute=-5":         "can't be negative",
		"[providers.x]\nkind='openai'\nmodels.m.window=-5":           `providers.x.models.m.window: -5 can't be negative`,
		"[providers.x]\nkind='openai'\nmodels.m.price={output=-5.0}": `providers.x.models.m.price: prices can't be negative`,
		"[providers.x]\nkind='openai'\nmodels.m.price={above=1, " +
			"long={output=-5.0}}": "prices can't be negative",
		"[providers.x]\nkind='openai'\nmodels.m.price={from='tomorrow', " +
			"output=5.0}": `"tomorrow" is not a day`,
		"[providers.x]\nkind='anthropic'\ndialect='bedrok'": `dialect: unknown value "bedrok"; use anthropic, bedrock, vertex`,
		"[providers.x]\nkind='gemini'\ndialect='vertx'":     `unknown value "vertx"; use vertex`,
		"[providers.x]\nkind='ollama'\ndialect='vllm'":      `unknown value "vllm"; use ollama`,
		"max_cost_per_day = -1.0":                           "can't be negative",
		"[providers.router]\nkind='openai'":                 "the name is taken",
		"[providers.x]\nkind='openai'\n[providers.x.oauth]\ntoken_url='https://x'\n" +
			"client_ids='i'": `did you mean "client_id"?`,
		"[[router.rules]]\nname='x'\nwhen={min_token=3}":             `did you mean "min_tokens"?`,
		"[router]\nroute={a='b'}":                                    `did you mean "routes"?`,
		"[providers.x.models.m.price.long]\nimput=1":                 `did you mean "input"?`,
		"[providers.x]\nkind='openai'\ndeadlines={connect='-1s'}":    "providers.x.deadlines.connect: -1s can't be negative",
		"[checkpoints]\nquota_mb = 8796093022208":                    "checkpoints.quota_mb: 8796093022208 is not between 0 and 8796093022207",
		"[checkpoints]\nquota_mb = -1":                               "checkpoints.quota_mb: -1 is not between",
		"[sandbox]\nmemory_mb = 8796093022208":                       "sandbox.memory_mb: 8796093022208 is not between",
		"[sandbox]\nfile_mb = -1":                                    "sandbox.file_mb: -1 is not between",
		"[sandbox]\ncpu_seconds = 9223372037":                        "sandbox.cpu_seconds: 9223372037 is not between",
		"[sandbox]\nprocesses = -1":                                  "sandbox.processes: -1 is not between",
		"[sandbox]\nlocal = ['x']":                                   `sandbox.local: "x" is not a range`,
		"[sandbox]\nengine = 'foo'":                                  `sandbox.engine: "foo" is not podman, docker or a path`,
		"[sandbox]\nenvironment = ['A=B']":                           `sandbox.environment: "A=B" is not the name of a variable`,
		"[sandbox]\nenvironment = ['']":                              `"" is not the name of a variable`,
		"[router]\nprivate = ['(']":                                  "router.private: error parsing regexp",
		"public = ['[']":                                             `public: "[" is not a pattern`,
		"max_cost = inf":                                             "max_cost: +Inf is not a finite number",
		"max_cost_per_day = nan":                                     "max_cost_per_day: NaN is not a finite number",
		"[reviewer]\nmodel='a/b'\nmax_cost=-inf":                     "reviewer.max_cost: -Inf is not",
		"[router]\nhard = 0.7":                                       `unknown key "router.hard"; inspan no longer scores the words of a task; set begin`,
		"[[router.rules]]\nname='x'\nwhen={min_complexity=0.5}":      `unknown key "router.rules[0].when.min_complexity"; inspan no longer scores the words of a task`,
		"[[router.rules]]\nname='x'\nwhen={said='('}":                "router.rules[0].when.said: error parsing regexp",
		"[router]\nbegin = 'desk'":                                   `router.begin: unknown value "desk"; use local, cloud`,
		"[[router.rules]]\nname='x'\nmax_cost=inf":                   "router.rules[0].max_cost: +Inf is not",
		"[providers.x]\nkind='openai'\nmodels.'m.1'.price.input=inf": `providers.x.models."m.1".price.input: +Inf is not`,
		"[provider.x]\nkind='openai'":                                `unknown key "provider"; did you mean "providers"?`,
		"mode = 'careful'":                                           `unknown mode "careful"; use plan`,
		"max_cost = -1":                                              "can't be negative",
		"max_turns = -1":                                             "can't be negative",
		"effort = 'huge'":                                            `unknown value "huge"; use low`,
		"model = ":                                                   "config.toml:1: it is not TOML: ",
		"[providers.'a/b']\nkind='openai'":                           "can't contain a slash",
		"[providers.x]\nkind='carrier'":                              `unknown value "carrier"; use`,
		"[providers.x]\nkind='opnai'":                                `:2: providers.x.kind: unknown value "opnai"; use anthropic, `,
		"[[rule]]\nrule='x'":                                         "rule[0].action: it is missing; use allow, ask or deny",
		"max_turns = '200'":                                          `:1: max_turns: "200" is not a whole number; write 200 without quotes`,
		"\n[sandbox]\noff = 'yes'":                                   `:3: sandbox.off: "yes" is not true or false`,
		"sandbox = 3":                                                ":1: sandbox: 3 is not a table",
		"allow = 'bash(go *)'":                                       `:1: allow: "bash(go *)" is not a list; write ["bash(go *)"]`,
		"allow = ['a',\n3]":                                          ":1: allow[1]: 3 is not a text in quotes",
		"rule = ['x']":                                               `:1: rule[0]: "x" is not a table`,
		"[[hook]]\ncommand = ['true']":                               ":2: hook[0].command: a list is not a text in quotes",
		"[mcp.servers.x]\ncommand = 'true'":                          `:2: mcp.servers.x.command: "true" is not a list; write ["true"]`,
		"[[hook]]\non = 'before_cal'\ncommand = 'true'":              ":1: hook[0]: on is \"before_cal\", not a moment",
		"[providers.x]\nkind='openai'\napi_key='abc'":                `:3: unknown key "providers.x.api_key"; settings hold no keys`,
		"[[hook]]\nclaud = 'x'":                                      `:2: unknown key "hook[0].claud"; did you mean "claude"?`,
		"[[hook]]\nevent = 'x'":                                      `unknown key "hook[0].event"; known here: on, match, command, args, hosts, read`,
		"effort = 'hig'":                                             `did you mean "high"?`,
		"model = 3":                                                  "config.toml:1: model: 3 is not a text in quotes",
		"[[rule]]\naction='forbid'\nrule='x'":                        `:2: rule[0].action: unknown value "forbid"; use allow, ask, deny`,
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestFaults checks that all mistakes in a file are reported, each with its line, and in our words. Correct settings
// count.
func TestFaults(t *testing.T) {
	c, err := load(t, "model = 3\neffort = 'hig'\nmode = 'plan'\n\n[sandbox]\nmemory_mb = -1\nof = true\n[levers]\nverify='x'\ntodo='y'\n")
	faults := config.Faults(err)
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%d %v", f.Line, f.Err))
	}
	want := []string{
		`1 model: 3 is not a text in quotes`,
		`2 effort: unknown value "hig"; use low, medium, high, xhigh, max; did you mean "high"?`,
		`6 sandbox.memory_mb: -1 is not between 0 and 8796093022207`,
		`7 unknown key "sandbox.of"; did you mean "off"?`,
		`9 levers.verify: unknown value "x"; use default, off, on, unattended`,
		`10 levers.todo: unknown value "y"; use default, off, on, unattended`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c.Mode != "plan" {
		t.Errorf("what is right is lost: %+v", c)
	}
	if strings.Contains(err.Error(), " toml:") || strings.Contains(err.Error(), "incompatible") {
		t.Errorf("in words of the decoder: %v", err)
	}
	const key = "ghp_" + "Rk3vTq8ZbN1xYw7LcJ5mHd2PfSa9UeG4oKiM"
	if _, err := load(t, "max_turns = '"+key+"'"); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("a key is told: %v", err)
	}
}

// The sample shows every key there is.
func TestSampleIsComplete(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/config.sample.toml")
	if err != nil {
		t.Fatal(err)
	}
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				key := typ.Field(i).Tag.Get("toml")
				if !regexp.MustCompile(`\b` + key + `\b`).Match(raw) {
					t.Errorf("the sample lacks %q", key)
				}
				if key != "long" { // is of its own kind
					look(typ.Field(i).Type)
				}
			}
		}
	}
	look(reflect.TypeFor[config.Config]())
}

// TestProjectOnlyTightens checks that the folder that is worked in allows nothing.
func TestProjectOnlyTightens(t *testing.T) {
	root := t.TempDir()
	put := func(text string) error {
		path := filepath.Join(root, config.ProjectFile)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := config.LoadProject(filepath.Join(root, config.ProjectFile))
		return err
	}
	if err := put("ask=['write']\n[[rule]]\naction='deny'\nrule='bash(make deploy)'\nmatch=['make deploy']"); err != nil {
		t.Error(err)
	}
	if err := put("[[rule]]\naction='allow'\nrule='bash'"); err == nil || !strings.Contains(err.Error(), "can't allow anything") {
		t.Errorf("error %v", err)
	}
	if err := put("alow=['bash']"); err == nil || !strings.Contains(err.Error(), `unknown key "alow"; known here: ask`) {
		t.Errorf("error %v", err)
	}
	if err := put("allow=['bash']"); err == nil {
		t.Error("a project may allow")
	}
	if err := put("[notify]\nurl='https://example.com'"); err == nil || !strings.Contains(err.Error(), "a project can't set notify") {
		t.Errorf("error %v", err)
	}
	if err := put("[providers.x]\nkind='openai'"); err == nil ||
		!strings.Contains(err.Error(), `a project can't set providers, only ask, deny, rule, hook; set it in your own settings`) {
		t.Errorf("error %v", err)
	}
}

// TestQuietHours checks when notifications are held back: from the first minute of the span until before its end, also
// across midnight.
func TestQuietHours(t *testing.T) {
	for _, tc := range []struct {
		span, at string
		want     bool
	}{
		{"22:00-07:00", "21:59", false},
		{"22:00-07:00", "22:00", true},
		{"22:00-07:00", "00:00", true},
		{"22:00-07:00", "06:59", true},
		{"22:00-07:00", "07:00", false},
		{"12:30 - 13:30", "12:29", false},
		{"12:30 - 13:30", "13:29", true},
		{"12:30 - 13:30", "13:30", false},
		{"", "03:00", false},
	} {
		at, err := time.Parse("15:04", tc.at)
		if err != nil {
			t.Fatal(err)
		}
		if n := (config.Notify{Quiet: tc.span}); n.Check() != nil || n.Sleeps(at) != tc.want || n.Wants(config.NotifyFailed, at) == tc.want {
			t.Errorf("%q at %s: %v, %v", tc.span, tc.at, n.Sleeps(at), n.Check())
		}
	}
}
