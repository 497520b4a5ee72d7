package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/config"
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
	c, err := config.Load("../../docs/config.sample.toml")
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
		"[tui]\ntheme = 'bright'":                                                  `tui.theme: "bright" is none of light, dark and auto`,
		"[tui]\nstatus_line = \"a\\nb\"":                                           `is not one line`,
		"modle = 'a/b'":                                                            `unknown key "modle"; did you mean "model"?`,
		"[providers.x]\nkind='openai'\nkeyenv='K'":                                 `did you mean "key_env"?`,
		"[providers.x]\nkind='openai'\n[providers.x.models.m]\nwindo=1":            `did you mean "window"?`,
		"[providers.x]\nkind='openai'\n[providers.x.models.m.price]\ncurrency='x'": `known here: input, cache_read`,
		"zzz = 1":                               "known here: model, mode",
		"[[profiles]]\nmatch='*'\nedit='magic'": `profiles: number 1: edit: unknown value "magic"; use replace`,
		"[providers.x]\nkind='openai'\ndeadlines={idle=90}": `providers.x.deadlines: 90 needs a unit, as in "90s"`,
		"retry_for = 'soon'": `line 1: invalid duration`,
		"retry_for = 90":     `90 needs a unit, as in "90s"`,
		"[providers.x]\nkind='openai'\nbase_url='localhost:80'":      `providers.x.base_url: "localhost:80" is not an address`,
		"[providers.x]\nkind='openai'\nbase_url='http://'":           "is not an address",
		"[providers.x]\nkind='openai'\nrequests_per_minute=-5":       "can't be negative",
		"[providers.x]\nkind='openai'\ntokens_per_minute=-5":         "can't be negative",
		"[providers.x]\nkind='openai'\nmodels.m.window=-5":           `models."m": window`,
		"[providers.x]\nkind='openai'\nmodels.m.price={output=-5.0}": `providers.x.models."m".price: nothing can be negative`,
		"[providers.x]\nkind='openai'\nmodels.m.price={above=1, " +
			"long={output=-5.0}}": "nothing can be negative",
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
		"[providers.x]\nkind='openai'\ndeadlines={connect='-1s'}":    "providers.x.deadlines: -1s can't be negative",
		"[checkpoints]\nquota_mb = 8796093022208":                    "checkpoints.quota_mb: 8796093022208 is not between 0 and 8796093022207",
		"[checkpoints]\nquota_mb = -1":                               "checkpoints.quota_mb: -1 is not between",
		"[sandbox]\nmemory_mb = 8796093022208":                       "sandbox.memory_mb: 8796093022208 is not between",
		"[sandbox]\nfile_mb = -1":                                    "sandbox.file_mb: -1 is not between",
		"[sandbox]\ncpu_seconds = 9223372037":                        "sandbox.cpu_seconds: 9223372037 is not between",
		"[sandbox]\nprocesses = -1":                                  "sandbox.processes: -1 is not between",
		"[sandbox]\nlocal = ['x']":                                   `sandbox.local: "x" is not a range`,
		"[sandbox]\nengine = 'foo'":                                  `sandbox.engine: "foo" is neither podman nor docker nor a path`,
		"[sandbox]\nenvironment = ['A=B']":                           `sandbox.environment: "A=B" is not the name of a variable`,
		"[sandbox]\nenvironment = ['']":                              `"" is not the name of a variable`,
		"[router]\nprivate = ['(']":                                  "router.private: error parsing regexp",
		"public = ['[']":                                             `public: "[" is not a pattern`,
		"max_cost = inf":                                             "max_cost: +Inf is not a finite number",
		"max_cost_per_day = nan":                                     "max_cost_per_day: NaN is not a finite number",
		"[reviewer]\nmodel='a/b'\nmax_cost=-inf":                     "reviewer.max_cost: -Inf is not",
		"[router]\nhard=nan":                                         "router.hard: NaN is not",
		"[[router.rules]]\nname='x'\nwhen={min_complexity=inf}":      "router.rules[0].when.min_complexity: +Inf is not",
		"[providers.x]\nkind='openai'\nmodels.'m.1'.price.input=inf": `providers.x.models."m.1".price.input: +Inf is not`,
		"[provider.x]\nkind='openai'":                                `unknown key "provider"; did you mean "providers"?`,
		"mode = 'careful'":                                           `unknown mode "careful"; use plan`,
		"max_cost = -1":                                              "can't be negative",
		"max_turns = -1":                                             "can't be negative",
		"effort = 'huge'":                                            `unknown value "huge"; use low`,
		"model = ":                                                   "line 1",
		"[providers.'a/b']\nkind='openai'":                           "can't contain a slash",
		"[providers.x]\nkind='carrier'":                              `unknown value "carrier"; use`,
		"[providers.x]\nbase_url='http://x'":                         `kind: unknown value ""; use`,
		"model = 3":                                                  "model",
		"[[rule]]\naction='forbid'\nrule='x'":                        `action: unknown value "forbid"; use allow, ask or deny`,
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// The sample shows every key there is.
func TestSampleIsComplete(t *testing.T) {
	raw, err := os.ReadFile("../../docs/config.sample.toml")
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

// TestProjectOnlyTightens holds that the folder that is worked in allows nothing.
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
	if err := put("allow=['bash']"); err == nil {
		t.Error("a project may allow")
	}
	if err := put("[providers.x]\nkind='openai'"); err == nil ||
		!strings.Contains(err.Error(), `unknown key "providers"; known here: ask, deny, rule, hook`) {
		t.Errorf("error %v", err)
	}
}
