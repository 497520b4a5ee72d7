package setup_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

const key = "sk-ant-0123456789abcdef"

// home is an installation of a person who has nothing but servers that answer here.
func home(t *testing.T, settings string) *app.App {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(dir, ".config"))
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(dir, ".state"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if err := os.MkdirAll(filepath.Join(dir, ".config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".config", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range a.Providers.KeyVariables() {
		t.Setenv(name, "")
	}
	return a
}

// typist types lines one after the other, and ends the input after the last.
func typist(out io.Writer, lines ...string) func(context.Context, string) (string, error) {
	return func(_ context.Context, question string) (string, error) {
		fmt.Fprint(out, question)
		if len(lines) == 0 {
			return "", io.EOF
		}
		line := lines[0]
		lines = lines[1:]
		fmt.Fprintln(out)
		return line, nil
	}
}

// TestModel chooses a model as a newcomer does: a name that is wrong, a key that is refused, the
// right key, a model. The key is in a file for this user alone, and in no text.
func TestModel(t *testing.T) {
	claude := anthropictest.Start(t, &anthropictest.Server{Key: key, Models: []string{"claude-new", "claude-sonnet-5-5"}})
	a := home(t, "# mine\n[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \""+claude+"\"\n")
	if why := a.Providers.Missing(""); why == nil || !strings.Contains(why.Error(), "no model is configured") {
		t.Errorf("something is there already: %v", why)
	}
	write(t, filepath.Join(os.Getenv("HOME"), ".codex", "config.toml"), "sandbox_mode = \"read-only\"\n")
	var out strings.Builder
	talk := setup.Talk{
		App: a, Root: t.TempDir(), Out: &out,
		Ask:    typist(&out, "antropic", "anthropic", "claude-nw", "claude-new", "2", "1"),
		Secret: typist(&out, "two words", "sk-ant-wrong", " "+key+" "),
	}
	done, err := talk.Model(t.Context())
	if err != nil || !done {
		t.Fatalf("%v, %v\n%s", done, err, &out)
	}
	for _, want := range []string{
		`No provider or model "antropic"; did you mean "anthropic"?`, "That is not a key", "invalid x-api-key. Check that you copied all of it.",
		"anthropic accepts the key and has 2 models.", "1  claude-sonnet-5-5  (default)", `has no model "claude-nw"; did you mean "claude-new"?`,
		"Stored the key in " + a.StateDir, "which only you can read", `Set model = "anthropic/claude-new" in ` + a.ConfigPath,
		"Found files of Codex.", "translated  ~/.codex/config.toml, sandbox_mode read-only → mode = plan", "Wrote 1 item",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), key) || strings.Contains(out.String(), "sk-ant-wrong") {
		t.Errorf("a key is shown:\n%s", &out)
	}
	settings, err := os.ReadFile(a.ConfigPath)
	if err != nil || strings.Contains(string(settings), key) ||
		!strings.HasPrefix(string(settings), "model = \"anthropic/claude-new\"\nmode = \"plan\"\n\n# mine\n") {
		t.Errorf("%v\n%s", err, settings)
	}
	err = filepath.WalkDir(a.StateDir, func(path string, d os.DirEntry, err error) error {
		if info, e := d.Info(); err == nil && (e != nil || info.Mode().Perm()&0o077 != 0) {
			t.Errorf("%s is for others too: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	again, err := app.Load("")
	if err != nil || again.Providers.Missing("") != nil {
		t.Errorf("the next start has no model: %v", err)
	}
	if got, _, err := again.Logins.Key(t.Context(), "anthropic"); err != nil || got != key {
		t.Errorf("kept %q, %v", got, err)
	}
	if err := again.Logins.LeaveProvider(t.Context(), "anthropic"); err != nil || again.Providers.Missing("") == nil {
		t.Errorf("the key is not forgotten: %v", err)
	}
}

// TestNoDefault checks that the first model of a list is not chosen by default: if the usual one is missing, the person
// chooses.
func TestNoDefault(t *testing.T) {
	claude := anthropictest.Start(t, &anthropictest.Server{Models: []string{"claude-unheard-of", "claude-opus-4-8"}})
	a := home(t, "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \""+claude+"\"\n")
	var out strings.Builder
	talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, "anthropic", "", "anthropic", "3", "1"), Secret: typist(&out, key, key)}
	if done, err := talk.Model(t.Context()); err != nil || !done {
		t.Fatalf("%v, %v\n%s", done, err, &out)
	}
	if !strings.Contains(out.String(), `no model "3"`) || !strings.Contains(out.String(), `Set model = "anthropic/claude-opus-4-8"`) {
		t.Errorf("%s", &out)
	}
}

// TestLocalModel takes the one model of a server that answers here.
func TestLocalModel(t *testing.T) {
	server := ollamatest.Start(t, &ollamatest.Server{Models: []llm.Info{{Model: "qwen3-coder"}}})
	a := home(t, "[providers.here]\nkind = \"ollama\"\nbase_url = \""+server+"\"\n")
	var out strings.Builder
	talk := setup.Talk{App: a, Out: &out, Ask: typist(&out, "here"), Secret: typist(&out)}
	if done, err := talk.Model(t.Context()); err != nil || !done {
		t.Fatalf("%v, %v\n%s", done, err, &out)
	}
	if !strings.Contains(out.String(), "runs at "+server+", 1 model") || !strings.Contains(out.String(), `Set model = "here/qwen3-coder"`) {
		t.Errorf("%s", &out)
	}
}

// TestAddress takes an address for an answer: it looks which server is there, keeps it under a name of its own and
// says how large the window is. A key that the server wants goes into the store of keys, and not into the settings.
func TestAddress(t *testing.T) {
	some := []llm.Info{{Model: "qwen", Window: 40_960}, {Model: "other", Window: 8_192}}
	for name, c := range map[string]struct {
		server  *openaitest.Server
		path    string
		ask     []string
		want    []string
		setting []string
	}{
		"a plain server": {
			&openaitest.Server{Models: some}, "/v1",
			[]string{"qwen"},
			[]string{"Found a server with the OpenAI API at ADDRESS/v1 with 2 models.", "assumes 64,000 tokens", "inspan config set providers.local.models.qwen.window 64000"},
			[]string{`model = "local/qwen"`, "[providers.local]", `kind = "openai"`, `base_url = "ADDRESS/v1"`},
		},
		"without a path": {
			&openaitest.Server{Models: some[:1]}, "", nil, []string{"ADDRESS/v1 with 1 model."}, []string{`base_url = "ADDRESS/v1"`},
		},
		"the path of a request": {
			&openaitest.Server{Models: some[:1]}, "/v1/chat/completions", nil, []string{"ADDRESS/v1 with 1 model."}, []string{`base_url = "ADDRESS/v1"`},
		},
		"llama.cpp": {
			&openaitest.Server{Models: some[:1], Dialect: "llamacpp"}, "/v1", nil,
			[]string{"Found llamacpp at ADDRESS/v1", "The model has a window of 40,960 tokens."},
			[]string{`dialect = "llamacpp"`},
		},
		"LM Studio": {
			&openaitest.Server{Models: some[:1], Dialect: "lmstudio"}, "", nil,
			[]string{"Found lmstudio at ADDRESS/v1", "The model has a window of 40,960 tokens."},
			[]string{`dialect = "lmstudio"`},
		},
		"TGI": {
			&openaitest.Server{Models: some[:1], Dialect: "tgi"}, "", nil,
			[]string{"Found tgi at ADDRESS/v1", "The model has a window of 40,960 tokens."},
			[]string{`dialect = "tgi"`},
		},
		"vLLM states the window in its list": {
			&openaitest.Server{Models: some[:1], Dialect: "vllm"}, "", nil, []string{"The model has a window of 40,960 tokens."}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := strings.TrimSuffix(openaitest.Start(t, c.server), "/v1")
			a := home(t, "")
			var out strings.Builder
			talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, append([]string{address + c.path}, c.ask...)...), Secret: typist(&out)}
			if done, err := talk.Model(t.Context()); err != nil || !done {
				t.Fatalf("%v, %v\n%s", done, err, &out)
			}
			settings, err := os.ReadFile(a.ConfigPath)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if want = strings.ReplaceAll(want, "ADDRESS", address); !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			for _, want := range c.setting {
				if want = strings.ReplaceAll(want, "ADDRESS", address); !strings.Contains(string(settings), want) {
					t.Errorf("no %q in\n%s", want, settings)
				}
			}
			if again, err := app.Load(""); err != nil || again.Providers.Missing("") != nil {
				t.Errorf("the next start has no model: %v", err)
			}
		})
	}
}

// TestAddressWithKey gives the key that a server wants to the store of keys, and only a variable to the settings.
func TestAddressWithKey(t *testing.T) {
	models := &openaitest.Server{Models: []llm.Info{{Model: "m"}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error": {"message": "no key"}}`, http.StatusUnauthorized)
			return
		}
		models.ServeHTTP(w, r)
	}))
	defer server.Close()
	address := server.URL + "/v1"
	a := home(t, "")
	var out strings.Builder
	talk := setup.Talk{
		App: a, Root: t.TempDir(), Out: &out, Secret: typist(&out, key),
		Ask: typist(&out, "another server", "", "another server", strings.Replace(address, "http://", "http://me:pw@", 1), address),
	}
	if done, err := talk.Model(t.Context()); err != nil || !done {
		t.Fatalf("%v, %v\n%s", done, err, &out)
	}
	for _, want := range []string{"leave keys out of the address", "It wants a key.", "local accepts the key and has 1 model.", "Stored the key in "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	settings, err := os.ReadFile(a.ConfigPath)
	if err != nil || strings.Contains(string(settings), key) || !strings.Contains(string(settings), `key_env = "LOCAL_API_KEY"`) {
		t.Errorf("%v\n%s", err, settings)
	}
	again, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := again.Logins.Key(t.Context(), "local"); err != nil || got != key || again.Providers.Missing("") != nil {
		t.Errorf("kept %q, %v", got, err)
	}
}

// TestAddressOfNothing gives the reason why an address has no models, and asks again.
func TestAddressOfNothing(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	gone := httptest.NewServer(nil)
	gone.Close()
	defer page.Close()
	a := home(t, "")
	var out strings.Builder
	talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, gone.URL, page.URL+"/v1", "localhost:x/", ""), Secret: typist(&out)}
	if done, err := talk.Model(t.Context()); err != nil || done {
		t.Fatalf("%v, %v\n%s", done, err, &out)
	}
	for _, want := range []string{
		"no server listens at " + strings.TrimPrefix(gone.URL, "http://"), strings.TrimPrefix(page.URL, "http://") + " answers, but lists no models",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestNamedModel accepts the name of a model as an answer, with its meaning after --model.
func TestNamedModel(t *testing.T) {
	claude := anthropictest.Start(t, &anthropictest.Server{Key: key, Models: []string{"claude-opus-4-8", "claude-opus-5-5"}})
	a := home(t, "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \""+claude+"\"\n")
	want, err := a.Providers.Route("opus")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, "opus"), Secret: typist(&out, key)}
	if done, err := talk.Model(t.Context()); err != nil || !done || !strings.Contains(out.String(), `Set model = "`+want+`"`) {
		t.Errorf("%v, %v\n%s", done, err, &out)
	}
}

// TestOffer offers an import once to a person whose model came from elsewhere.
func TestOffer(t *testing.T) {
	a := home(t, "")
	write(t, filepath.Join(os.Getenv("HOME"), ".claude", "settings.json"), `{"model": "opus", "permissions": {"defaultMode": "plan"}}`)
	var out strings.Builder
	talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, "1")}
	if wrote, err := talk.Offer(t.Context()); err != nil || !wrote {
		t.Fatalf("%v, %v\n%s", wrote, err, &out)
	}
	settings, err := os.ReadFile(a.ConfigPath)
	if err != nil || string(settings) != "model = \"opus\"\nmode = \"plan\"\n" && string(settings) != "mode = \"plan\"\nmodel = \"opus\"\n" {
		t.Errorf("%v\n%s", err, settings)
	}
	out.Reset()
	if wrote, err := talk.Offer(t.Context()); err != nil || wrote || out.Len() > 0 {
		t.Errorf("%v, %v: it was offered again:\n%s", wrote, err, &out)
	}
}

// TestOfferOfMode checks that the offer names a mode that asks less than the default, and only such a mode.
func TestOfferOfMode(t *testing.T) {
	for theirs, want := range map[string]string{
		"plan":        "",
		"acceptEdits": "Import sets mode edit: file changes in the workspace no longer ask.",
		"auto":        "Import sets mode auto: file changes in the workspace and commands in the sandbox no longer ask.",
	} {
		a := home(t, "")
		write(t, filepath.Join(os.Getenv("HOME"), ".claude", "settings.json"), `{"permissions": {"defaultMode": "`+theirs+`"}}`)
		var out strings.Builder
		talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, "3")}
		if wrote, err := talk.Offer(t.Context()); err != nil || wrote {
			t.Fatalf("%s: %v, %v", theirs, wrote, err)
		}
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "with mode") != (want != "") {
			t.Errorf("%s:\n%s", theirs, got)
		}
	}
}

// TestUncheckedKey keeps a key that can't be checked without a network, if the person says so.
func TestUncheckedKey(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		ask   []string
		model string
	}{
		"a named model": {"openai", []string{"gone", "y", "two words", "gone/m-1"}, "gone/m-1"},
		"the default":   {"openai\"\ndefault = \"m-2", []string{"gone", "yes", ""}, "gone/m-2"},
	} {
		a := home(t, "[providers.gone]\nkind = \""+c.kind+"\"\nbase_url = \"http://no-such-host.invalid\"\nkey_env = \"GONE_KEY\"\n")
		var out strings.Builder
		talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, c.ask...), Secret: typist(&out, key)}
		if done, err := talk.Model(t.Context()); err != nil || !done {
			t.Fatalf("%s: %v, %v\n%s", name, done, err, &out)
		}
		if !strings.Contains(out.String(), "The key could not be checked. ") || !strings.Contains(out.String(), `Set model = "`+c.model+`"`) {
			t.Errorf("%s: %s", name, &out)
		}
		if got, _, err := a.Logins.Key(t.Context(), "gone"); err != nil || got != key {
			t.Errorf("%s: kept %q, %v", name, got, err)
		}
	}
}

// TestOffline takes the scripted model, by its name, its title and its place in the list, which is the last. No one
// can take it for an AI.
func TestOffline(t *testing.T) {
	for _, typed := range []string{"script", "offline script", "6"} {
		a := home(t, "")
		var out strings.Builder
		talk := setup.Talk{App: a, Root: t.TempDir(), Out: &out, Ask: typist(&out, typed), Secret: typist(&out)}
		if typed == "6" { // servers that run on this machine come first
			typed = fmt.Sprint(len(a.Providers.Discover(t.Context())) + 6)
			talk.Ask = typist(&out, typed)
		}
		if done, err := talk.Model(t.Context()); err != nil || !done {
			t.Fatalf("%s: %v, %v\n%s", typed, done, err, &out)
		}
		for _, want := range []string{
			"Offline script  not an AI: it follows commands that you type", `Set model = "script/commands"`,
			"The offline script is not an AI. Type commands such as 'bash: ls'",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", typed, want, &out)
			}
		}
		if again, err := app.Load(""); err != nil || again.Providers.Missing("") != nil {
			t.Errorf("%s: the next start has no model: %v", typed, err)
		}
	}
}

// TestNoModel checks that an aborted or failed set-up has changed nothing and gives the reason.
func TestNoModel(t *testing.T) {
	claude := anthropictest.Start(t, &anthropictest.Server{Key: key})
	settings := "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"" + claude + "\"\n" +
		"[providers.gone]\nkind = \"openai\"\nbase_url = \"http://no-such-host.invalid\"\nkey_env = \"GONE_KEY\"\n"
	for name, c := range map[string]struct {
		variable   string
		ask, typed []string
		want       string
	}{
		"stops at once":         {"", []string{""}, nil, "Number or name"},
		"types no key":          {"", []string{"anthropic", ""}, []string{""}, "Paste the key of anthropic"},
		"types Esc for a key":   {"", []string{"anthropic", ""}, []string{"\x1b"}, "Paste the key of anthropic"},
		"no network":            {"", []string{"gone", "", ""}, []string{"k-0123456789"}, "could not be checked. gone: "},
		"no network, no model":  {"", []string{"gone", "y", "", ""}, []string{"k-0123456789"}, "Name of the model at gone (Enter: back)"},
		"a variable is refused": {"sk-ant-other", []string{"anthropic", ""}, nil, "The key comes from the variable ANTHROPIC_API_KEY; correct it there, or unset it and run 'inspan setup'"},
		"it has no models":      {key, []string{"anthropic", ""}, nil, "anthropic has no models yet"},
		"the input ends":        {"", nil, nil, "Number or name"},
	} {
		a := home(t, settings)
		t.Setenv("ANTHROPIC_API_KEY", c.variable)
		var out strings.Builder
		talk := setup.Talk{App: a, Out: &out, Ask: typist(&out, c.ask...), Secret: typist(&out, c.typed...)}
		if done, err := talk.Model(t.Context()); done || err != nil && c.ask != nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, &out)
		}
		if now, err := os.ReadFile(
			a.ConfigPath,
		); err != nil || string(now) != settings || a.Logins.HasKey("anthropic") ||
			a.Logins.HasKey("gone") {
			t.Errorf("%s: something was written: %v\n%s", name, err, now)
		}
	}
}

// TestDoctorOutside checks that the doctor lists the programs that run outside the sandbox, and settings meant to allow
// it without effect.
func TestDoctorOutside(t *testing.T) {
	root := keep.Real(t.TempDir())
	t.Chdir(root)
	if err := os.WriteFile(filepath.Join(root, "mine"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings      string
		state         setup.State
		found, remedy string
	}{
		{"", setup.Good, "no hook, status line or MCP server", ""},
		{"[sandbox]\noutside = ['/bin/sh']", setup.Good, "/bin/sh (sandbox.outside)", ""},
		{"[mcp.servers.x]\ncommand = ['x']\nno_sandbox = true", setup.Good, "MCP server x (no_sandbox)", ""},
		{"[sandbox]\noutside = ['" + root + "/mine']", setup.Warn, "no hook", "in this folder"},
		{"[sandbox]\noutside = ['/no/such']", setup.Warn, "no hook", "/no/such is missing"},
	} {
		home(t, c.settings)
		all := setup.Doctor(t.Context(), "", "", false)
		at := slices.IndexFunc(all, func(f setup.Finding) bool { return f.Check == "outside" })
		if at < 0 || all[at].State != c.state || !strings.Contains(all[at].Found, c.found) || !strings.Contains(all[at].Remedy, c.remedy) {
			t.Errorf("%q: %+v", c.settings, all)
		}
	}
}

// TestDoctorLists asks a provider for its models if nothing names one, so that a wrong key and a wrong address are
// found there too.
func TestDoctorLists(t *testing.T) {
	mine := anthropictest.Start(t, &anthropictest.Server{Key: key, Models: []string{"claude-new", "claude-sonnet-5-5"}})
	home(t, "model = \"script/commands\"\n[providers.mine]\nkind = \"anthropic\"\nbase_url = \""+mine+"\"\nkey_env = \"MINE_KEY\"\n")
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		key, model, check string
		state             setup.State
		found             string
	}{
		{key, "", "provider mine", setup.Good, mine + " has 2 models"},
		{"sk-ant-wrong", "", "provider mine", setup.Bad, "mine: auth"},
		{key, "mine/claude-new", "provider mine", setup.Good, "claude-new answers; its key is in the variable MINE_KEY"},
		{key, "", "model", setup.Good, "script/commands is the default"},
		{key, "mine/claude-new", "model", setup.Good, "mine/claude-new is the one of --model"},
		{key, "mien/claude-new", "model", setup.Bad, `did you mean "mine"`},
	} {
		t.Setenv("MINE_KEY", c.key)
		all := setup.Doctor(t.Context(), "", c.model, true)
		at := slices.IndexFunc(all, func(f setup.Finding) bool { return f.Check == c.check })
		if at < 0 || all[at].State != c.state || !strings.Contains(all[at].Found, c.found) || (c.state == setup.Bad) != (all[at].Remedy != "") {
			t.Errorf("%+v: %+v", c, all)
		}
	}
}
