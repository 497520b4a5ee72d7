package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

// load reads settings in a home of its own, with no keys but the given ones.
func load(t *testing.T, settings string, keys ...string) *app.App {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("INSPAN_CONFIG_DIR", dir)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(dir, "state"))
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN", "GEMINI_API_KEY"} {
		t.Setenv(name, "")
	}
	for _, name := range keys {
		t.Setenv(name, "test-key-value")
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Findings(t, "/proc/self/exe", filepath.Join(dir, "state"))
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhichModelIsTaken(t *testing.T) {
	local := "[providers.ollama]\nkind='ollama'\ndefault='qwen'\n"
	for _, tc := range []struct {
		name, settings string
		keys           []string
		model, had     string
		want           string
		says           bool // why it was taken
	}{
		{"named", "", []string{"OPENAI_API_KEY"}, "script", "", "script/commands", false},
		{"named goes before the session's", "", nil, "script", "ollama/x", "script/commands", false},
		{"the session's", "model='ollama/y'", nil, "", "ollama/x", "ollama/x", false},
		{"the settings'", "model='ollama/y'", []string{"OPENAI_API_KEY"}, "", "", "ollama/y", false},
		{"the first key", "", []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}, "", "", "anthropic/claude-sonnet-5-5", true},
		{"another key", "", []string{"OPENAI_API_KEY"}, "", "", "openai/gpt-6-sol", true},
		{"a local one that is set", local, nil, "", "", "ollama/qwen", true},
		{
			"own default of a preset", "[providers.anthropic]\nkind='anthropic'\ndefault='claude-opus-5-5'",
			[]string{"ANTHROPIC_API_KEY"},
			"", "", "anthropic/claude-opus-5-5", true,
		},
		{"provider without a model", local, nil, "ollama", "", "ollama/qwen", false},
		{"model ids may hold slashes", "", []string{"OPENROUTER_API_KEY"}, "openrouter/meta/llama:free", "", "openrouter/meta/llama:free", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := load(t, tc.settings, tc.keys...).Providers.Model(t.Context(), tc.model, tc.had)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Model.Info().Route(); got != tc.want || (c.Why != "") != tc.says {
				t.Errorf("got %s (%s), want %s", got, c.Why, tc.want)
			}
		})
	}
}

func TestNoModel(t *testing.T) {
	for name, want := range map[string]string{
		"": "no model is configured", "openai/x": "set OPENAI_API_KEY", "opnai/x": `did you mean "openai"?`,
		"nothing-like-it/x": "see 'inspan models'", "llamacpp": "name it as llamacpp/MODEL",
	} {
		_, err := load(t, "").Providers.Model(t.Context(), name, "")
		if !errors.Is(err, config.ErrSettings) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// run answers one task through the host, the way the command does.
func run(t *testing.T, a *app.App, o app.Options) (string, error) {
	t.Helper()
	s, err := a.Host(o, func(string) {}).New(t.Context(), t.TempDir())
	if err != nil {
		return "", err
	}
	defer s.Close()
	var text string
	for e, err := range s.Run(t.Context(), event.Say("hi")) {
		if err != nil {
			return "", err
		}
		if r, ok := e.Body.(event.Replied); ok {
			text = r.Parts.Text()
		}
		if f, ok := e.Body.(event.Failed); ok {
			return "", errors.New(f.Message)
		}
	}
	return text, nil
}

func TestKeyCommandReachesTheWire(t *testing.T) {
	hello := func(*http.Request, []byte) anthropictest.Answer { return anthropictest.Answer{Parts: llm.Say("hello")} }
	url := anthropictest.Start(t, &anthropictest.Server{Key: "from-the-command", Answer: hello})
	settings := "model='work/m'\n[providers.work]\nkind='anthropic'\nbase_url='" + url + "'\nkey_command='"
	if got, err := run(t, load(t, settings+"echo noise >&2; echo from-the-command'"), app.Options{}); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := run(t, load(t, settings+"echo wrong'"), app.Options{}); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := run(t, load(t, settings+"echo locked >&2; exit 7'"), app.Options{}); err == nil ||
		!strings.Contains(err.Error(), "ended with 7: locked") {
		t.Errorf("a failing command: %v", err)
	}
}

// Every kind of provider reaches the wire it names.
func TestEveryKind(t *testing.T) {
	hello := func(*http.Request, []byte) anthropictest.Answer { return anthropictest.Answer{Parts: llm.Say("hello")} }
	urls := map[string]string{
		"anthropic":        anthropictest.Start(t, &anthropictest.Server{Answer: hello}),
		"openai":           openaitest.Start(t, &openaitest.Server{Answer: hello}),
		"openai-responses": openaitest.StartResponses(t, &openaitest.Responses{Answer: hello}),
		"gemini":           geminitest.Start(t, &geminitest.Server{Answer: hello}),
		"ollama":           ollamatest.Start(t, &ollamatest.Server{Answer: hello}),
	}
	for _, kind := range config.Kinds() {
		t.Run(kind, func(t *testing.T) {
			a := load(t, fmt.Sprintf("[providers.mine]\nkind='%s'\nbase_url='%s'\nkey_command='echo some-key'\n", kind, urls[kind]))
			if got, err := run(t, a, app.Options{Model: "mine/some-model"}); err != nil || got != "hello" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestCostLimitNeedsAPrice(t *testing.T) {
	a := load(t, "[providers.mine]\nkind='openai'\nbase_url='http://192.0.2.1'\n")
	if _, err := run(t, a, app.Options{Model: "mine/m", Limits: inspan.Limits{Cost: 1}}); !errors.Is(err, config.ErrSettings) ||
		!strings.Contains(err.Error(), `providers.mine.models."m".price`) {
		t.Errorf("%v", err)
	}
	if list, err := a.Store().List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a session was left behind: %v, %v", list, err)
	}
}

// A model without a price gets round no limit: not behind another, and not in a session that has one.
func TestCostLimitsHoldEverywhere(t *testing.T) {
	settings := "[providers.mine]\nkind='openai'\nbase_url='http://192.0.2.1'\n[providers.dear]\nkind='openai'\n" +
		"base_url='http://192.0.2.1'\nmodels.m.price={input=1.0}\n"
	tape := filepath.Join(t.TempDir(), "tape")
	a := load(t, "fallback=['script']\n"+settings)
	if _, err := run(t, a, app.Options{Model: "mine/m", Limits: inspan.Limits{Cost: 1}, Record: tape}); !errors.Is(err, config.ErrSettings) {
		t.Errorf("behind another: %v", err)
	}
	if _, err := os.Stat(tape); err == nil {
		t.Error("a cassette was begun for a session that was not")
	}
	a = load(t, settings)
	s, err := a.Host(app.Options{Model: "dear/m", Limits: inspan.Limits{Cost: 1}}, func(string) {}).New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := a.Host(app.Options{Model: "mine/m"}, func(string) {}).Open(t.Context(), s.ID()); !errors.Is(err, config.ErrSettings) {
		t.Errorf("in a session with a limit: %v", err)
	}
}

// Models that cost nothing continue when the day's money is spent.
func TestDayLimitIsNotForWhatIsFree(t *testing.T) {
	hello := func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say("hello"), Usage: llm.Usage{Input: 1000, Output: 10}}
	}
	url := openaitest.Start(t, &openaitest.Server{Answer: hello})
	a := load(t, fmt.Sprintf("max_cost_per_day=0.001\n[providers.mine]\nkind='openai'\nlocal=false\nbase_url='%s'\n"+
		"models.m.price={input=1.0}\n", url))
	tape := filepath.Join(t.TempDir(), "tape")
	if _, err := run(t, a, app.Options{Model: "mine/m", Record: tape}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]app.Options{"free": {Model: "script"}, "a cassette": {Replay: tape}} {
		if got, err := run(t, a, o); err != nil || got == "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := run(t, a, app.Options{Model: "script", Record: tape}); err == nil ||
		!strings.Contains(err.Error(), "already exists; name a new file") {
		t.Errorf("a cassette that is there: %v", err)
	}
}

// The sum of the day and the pace of a provider are kept apart, whatever the
// provider is called.
func TestProviderCalledDay(t *testing.T) {
	hello := func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say("hello"), Usage: llm.Usage{Input: 1000, Output: 10}}
	}
	url := openaitest.Start(t, &openaitest.Server{Answer: hello})
	a := load(t, fmt.Sprintf("max_cost_per_day=0.0015\n[providers.day]\nkind='openai'\nlocal=false\nrequests_per_minute=600\nbase_url='%s'\n"+
		"models.m.price={input=1.0}\n", url))
	for range 2 {
		if _, err := run(t, a, app.Options{Model: "day/m"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t, a, app.Options{Model: "day/m"}); err == nil || !strings.Contains(err.Error(), "$0.0020 spent today") {
		t.Errorf("the third run: %v", err)
	}
}

// The offline model may stand in a router whose decisions are looked at.
func TestHybridOfScript(t *testing.T) {
	for name, router := range map[string]string{
		"named":           "",
		"in the settings": "[router]\nroutes={local='script', cloud='anthropic/claude-sonnet-5-5'}",
	} {
		local, cloud := "script", "anthropic/claude-sonnet-5-5"
		if router != "" {
			local, cloud = "", ""
		}
		if _, err := load(t, router).Providers.Hybrid(t.Context(), local, cloud); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Settings are for new sessions: an old one keeps its own.
func TestSettingsDoNotChangeOldSessions(t *testing.T) {
	a := load(t, "mode='plan'\nmax_turns=7")
	host := a.Host(app.Options{Model: "script"}, func(string) {})
	s, err := host.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	if s.Status().Mode != "plan" {
		t.Errorf("mode %s", s.Status().Mode)
	}
	_ = s.Close()
	a.Config.Mode = "auto"
	s, err = a.Host(app.Options{}, func(string) {}).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Run(t.Context(), event.Say("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if sw, ok := e.Body.(event.Switched); ok {
			t.Errorf("switched %+v", sw)
		}
	}
	if st := s.Status(); st.Mode != "plan" || st.Route != "script/commands" {
		t.Errorf("status %+v", st)
	}
}

func TestToolsByHand(t *testing.T) {
	quiet := func(string) {}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("some text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := load(t, "").CallTool(t.Context(), app.Options{}, dir, "bash", []byte(`{"cmd":"cat a.txt"}`), quiet)
	if err != nil || !strings.Contains(text, "some text") {
		t.Errorf("%q, %v", text, err)
	}
	slow := []byte(`{"command":"echo begun; sleep 600; echo more","timeout":1}`)
	if _, err := load(t, "").CallTool(t.Context(), app.Options{}, dir, "bash", slow, quiet); err == nil ||
		!strings.Contains(err.Error(), "begun") || !strings.Contains(err.Error(), "timed out after 1s and was ended") ||
		strings.Contains(err.Error(), "job") {
		t.Error(err)
	}
	for _, how := range []string{"background", "interactive", "tty"} {
		args := []byte(`{"command":"sleep 600","` + how + `":true}`)
		if _, err := load(t, "").CallTool(t.Context(), app.Options{}, dir, "bash", args, quiet); err == nil ||
			!strings.Contains(err.Error(), "the command ends with this call") {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := load(t, "").CallTool(t.Context(), app.Options{}, dir, "bsh", nil, quiet); err == nil ||
		!strings.Contains(err.Error(), `did you mean "bash"?`) {
		t.Error(err)
	}
	if _, err := load(t, "").CallTool(t.Context(), app.Options{}, filepath.Join(dir, "none"), "bash", nil, quiet); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestDayLimit(t *testing.T) {
	hello := func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say("hello"), Usage: llm.Usage{Input: 1000, Output: 10}}
	}
	server := &openaitest.Server{Answer: hello}
	a := load(t, fmt.Sprintf("max_cost_per_day=0.001\n[providers.mine]\nkind='openai'\nlocal=false\nbase_url='%s'\n"+
		"models.m.price={input=1.0, output=1.0}\n", openaitest.Start(t, server)))
	if got, err := run(t, a, app.Options{Model: "mine/m"}); err != nil || got != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := run(t, a, app.Options{Model: "mine/m"}); err == nil || !strings.Contains(err.Error(), "spent today of $0.0010") {
		t.Errorf("the second run: %v", err)
	}
	// Without the file, the sessions tell what was spent.
	if err := os.RemoveAll(filepath.Join(a.StateDir, "limits")); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, a, app.Options{Model: "mine/m"}); err == nil || !strings.Contains(err.Error(), "spent today") {
		t.Errorf("without the file: %v", err)
	}
}

func TestFallbacks(t *testing.T) {
	refuse := func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{Status: 402, Type: "billing_error", Message: "pay"}
	}
	hello := func(*http.Request, []byte) anthropictest.Answer { return anthropictest.Answer{Parts: llm.Say("hello")} }
	settings := fmt.Sprintf("fallback=['openai/m', 'second/m']\n[providers.first]\nkind='anthropic'\nbase_url='%s'\n[providers.second]\n"+
		"kind='gemini'\nbase_url='%s'\n",
		anthropictest.Start(t, &anthropictest.Server{Answer: refuse}), geminitest.Start(t, &geminitest.Server{Answer: hello}))
	a := load(t, settings)
	if got, err := run(t, a, app.Options{Model: "first/m"}); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	choice, err := a.Providers.Model(t.Context(), "first/m", "")
	if err != nil || choice.Model.Info().Route() != "first/m" {
		t.Errorf("the chain is called %s, %v", choice.Model.Info().Route(), err)
	}
	if _, err := load(t, strings.Replace(settings, "openai/m", "nowhere/m", 1)).Providers.Model(t.Context(), "first/m", ""); err == nil ||
		!strings.Contains(err.Error(), "fallback") {
		t.Errorf("a fallback that does not exist: %v", err)
	}
}

// Secrets do not leave with the fallback of a local model.
func TestFallbacksOfALocalModelStayLocal(t *testing.T) {
	refuse := func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{Status: 404, Type: "not_found_error", Message: "model: m"}
	}
	asked := false
	cloud := func(*http.Request, []byte) anthropictest.Answer {
		asked = true
		return anthropictest.Answer{Parts: llm.Say("hello")}
	}
	a := load(t, fmt.Sprintf("fallback=['far/m']\n[providers.near]\nkind='anthropic'\nbase_url='%s'\n[providers.far]\nkind='gemini'\n"+
		"local=false\nbase_url='%s'\n",
		anthropictest.Start(t, &anthropictest.Server{Answer: refuse}), geminitest.Start(t, &geminitest.Server{Answer: cloud})))
	choice, err := a.Providers.Model(t.Context(), "near/m", "")
	if err != nil {
		t.Fatal(err)
	}
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ"
	var failed error
	for _, err := range choice.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(key)}}}) {
		failed = err
	}
	if failed == nil || asked {
		t.Errorf("asked %v, %v", asked, failed)
	}
	// In a session a placeholder stands for the key, and the placeholder may leave.
	if got, err := run(t, a, app.Options{Model: "near/m", System: key}); err != nil || got != "hello" {
		t.Errorf("without a secret: %q, %v", got, err)
	}
}

func TestServersAtHomeAreFound(t *testing.T) {
	s := &openaitest.Server{Dialect: "vllm", Models: []llm.Info{{Model: "qwen", Window: 40_960}}}
	o := &ollamatest.Server{Models: []llm.Info{{Model: "small:1b", Window: 8192}}}
	a := load(t, fmt.Sprintf("[providers.vllm]\nkind='openai'\nbase_url='%s'\n[providers.ollama]\nkind='ollama'\nbase_url='%s'\n",
		openaitest.Start(t, s), ollamatest.Start(t, o)))
	found := map[string]int{}
	for _, f := range a.Providers.Discover(t.Context()) {
		for _, m := range f.Models {
			found[f.Provider.Name+"/"+m.Model] = m.Window
		}
	}
	if found["vllm/qwen"] != 40_960 || found["ollama/small:1b"] != 8192 {
		t.Errorf("found %v", found)
	}
	choice, err := a.Providers.Model(t.Context(), "vllm/qwen", "")
	if err != nil || choice.Model.Info().Window != 40_960 {
		t.Errorf("the window is %d, %v", choice.Model.Info().Window, err)
	}
	if _, err := a.Providers.DiscoverAt(t.Context(), "nowhere"); !errors.Is(err, config.ErrSettings) {
		t.Error(err)
	}
}

func TestClouds(t *testing.T) {
	for settings, want := range map[string]string{
		"kind='anthropic'\ndialect='bedrock'\nregion='eu-west-1'":                         "",
		"kind='anthropic'\ndialect='bedrock'":                                             "needs a region",
		"kind='anthropic'\ndialect='vertex'\nregion='global'\nproject='p'":                "",
		"kind='gemini'\ndialect='vertex'\nregion='europe-west1'\nproject='p'":             "",
		"kind='gemini'\ndialect='vertex'\nregion='europe-west1'":                          "needs a region and a project",
		"kind='openai'\ndialect='azure'\nbase_url='https://r.openai.azure.com/openai/v1'": "",
		"kind='openai'\ndialect='azur'":                                                   "azur",
	} {
		_, err := load(t, "[providers.c]\n"+settings).Providers.Model(t.Context(), "c/m", "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// A weak model gets the tools, the schemas and the words it can deal with.
func TestProfiles(t *testing.T) {
	var sent []string
	answer := func(_ *http.Request, body []byte) openaitest.Answer {
		sent = append(sent, string(body))
		return openaitest.Answer{Parts: llm.Say("hello")}
	}
	url := openaitest.Start(t, &openaitest.Server{Answer: answer})
	settings := "[providers.mine]\nkind='openai'\nbase_url='" + url + "'\n[[profiles]]\nmatch='mine/*'\nprompt='Be brief.'\n"
	for model, want := range map[string][]string{
		"strong":    {`"name":"edit_file"`, "Be brief."},
		"gemma3:4b": {`"name":"edit_lines"`, "Be brief."},
		"gemma2":    {`<tools>`, "edit_lines"},
	} {
		sent = nil
		if got, err := run(t, load(t, settings), app.Options{Model: "mine/" + model}); err != nil || got != "hello" {
			t.Fatalf("%s: %q, %v", model, got, err)
		}
		for _, part := range want {
			if !strings.Contains(sent[0], part) {
				t.Errorf("%s: %q is not in what was sent: %.3000s", model, part, sent[0])
			}
		}
		if strings.Contains(sent[0], `"tools":`) == (model == "gemma2") {
			t.Errorf("%s: the model's own tools were used or not", model)
		}
	}
}

func TestDeadlinesOfTheSettings(t *testing.T) {
	hang := make(chan struct{})
	answer := func(*http.Request, []byte) openaitest.Answer { return openaitest.Answer{Hold: hang} }
	url := openaitest.Start(t, &openaitest.Server{Answer: answer})
	defer close(hang)
	a := load(t, fmt.Sprintf("[providers.mine]\nkind='openai'\nbase_url='%s'\ndeadlines={first_byte='20ms'}\n", url))
	if _, err := run(t, a, app.Options{Model: "mine/m", Limits: inspan.Limits{Retry: -1}}); err == nil || !strings.Contains(err.Error(), "timeout (first byte)") {
		t.Errorf("%v", err)
	}
}
