package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// set is that of settings, with no keys in the environment.
func set(t *testing.T, c config.Config) *providers.Set {
	t.Helper()
	s := &providers.Set{
		Installation: &config.Installation{Config: c, ConfigPath: "/etc/x.toml", StateDir: t.TempDir()},
		Note:         func(string, string) {},
		Spent:        func(context.Context) (float64, error) { return 0, nil },
	}
	for _, name := range (&providers.Set{Installation: &config.Installation{}}).KeyVariables() {
		t.Setenv(name, "")
	}
	return s
}

// server is a server at home that speaks Chat Completions.
func server(t *testing.T, s *openaitest.Server) config.Provider {
	t.Helper()
	return config.Provider{Kind: "openai", BaseURL: openaitest.Start(t, s)}
}

func named(t *testing.T, list []providers.Provider, name string) providers.Provider {
	t.Helper()
	i := slices.IndexFunc(list, func(p providers.Provider) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no provider %q", name)
	}
	return list[i]
}

func TestList(t *testing.T) {
	s := set(t, config.Config{Providers: map[string]config.Provider{
		"zebra":     {Kind: "openai", BaseURL: "http://z"},
		"apple":     {Kind: "openai", BaseURL: "http://a", KeyEnv: "APPLE_KEY"},
		"anthropic": {BaseURL: "http://proxy", Default: "mine"},
		"openai":    {Kind: "openai", KeyCommand: "pass key"},
	}})
	t.Setenv("APPLE_KEY", "k")
	list := s.List()
	if list[0].Name != "apple" || list[1].Name != "zebra" || list[2].Name != "anthropic" {
		t.Errorf("the order is %s, %s, %s", list[0].Name, list[1].Name, list[2].Name)
	}
	if !list[0].Ready || !list[1].Ready {
		t.Error("a key that is there, or that nobody wants, is missing")
	}
	// A preset adds the models that the settings lack, each once.
	a := named(t, list, "anthropic")
	if a.Kind != "anthropic" || a.KeyEnv != "ANTHROPIC_API_KEY" || a.BaseURL != "http://proxy" ||
		a.Default != "mine" || a.Ready || a.Need != "set ANTHROPIC_API_KEY" {
		t.Errorf("got %+v", a)
	}
	// A key command stands in for the variable.
	if o := named(t, list, "openai"); o.Kind != "openai" || o.KeyEnv != "" || !o.Ready {
		t.Errorf("got %+v", o)
	}
	seen := map[string]bool{}
	for _, p := range list {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
	}
	keys := s.KeyVariables()
	if !slices.Contains(keys, "APPLE_KEY") || !slices.Contains(keys, "GEMINI_API_KEY") || slices.Contains(keys, "OPENAI_API_KEY") {
		t.Errorf("variables with keys: %q", keys)
	}
}

func TestStays(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		p    providers.Provider
		want bool
	}{
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost:1/v1"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://LocalHost:1/v1"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://127.8.0.1"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://[::1]:80"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://192.168.3.4"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://[fd00::1]"}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://172.32.0.1"}}, false}, // beyond the private ones
		{providers.Provider{Provider: config.Provider{BaseURL: "http://8.8.8.8"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost.evil.example"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://evil.example/localhost"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost@evil.example"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://127.0.0.1.evil.example"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "://"}}, false},
		{providers.Provider{}, false}, // the vendor's own address
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost", Dialect: "litellm"}}, false},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost", Dialect: "litellm", Local: &yes}}, true},
		{providers.Provider{Provider: config.Provider{BaseURL: "http://localhost", Local: &no}}, false},
		{providers.Provider{Name: script.Provider}, true},
	} {
		if got := c.p.Stays(); got != c.want {
			t.Errorf("%+v stays: %v, want %v", c.p.Provider, got, c.want)
		}
	}
}

// TestSoldBehindAGateway checks that a vendor's model costs money and may see only what a cloud may see, even through a
// server on this machine, unless a person says otherwise.
func TestSoldBehindAGateway(t *testing.T) {
	s, yes, price := set(t, config.Config{}), true, llm.Price{Input: 3}
	for _, c := range []struct {
		p     config.Provider
		id    string
		keeps bool
		input float64
	}{
		{config.Provider{}, "qwen3-coder", true, 0},
		{config.Provider{}, "gpt-oss-20b", true, 0},
		{config.Provider{}, "claude-sonnet-5-5", false, 2},
		{config.Provider{}, "anthropic/claude-sonnet-5-5", false, 2},
		{config.Provider{Kind: "anthropic"}, "us.anthropic.claude-sonnet-5-5", false, 2.2},
		{config.Provider{}, "openai/gpt-6-sol", false, 2},
		{config.Provider{}, "models/gemini-2.5-pro", false, 1.25},
		{config.Provider{Local: &yes}, "claude-sonnet-5-5", true, 0},
		{config.Provider{Models: map[string]config.Model{"claude-sonnet-5-5": {Price: &price}}}, "claude-sonnet-5-5", false, 3},
	} {
		c.p.BaseURL = "http://127.0.0.1:4000"
		p := providers.Provider{Name: "gate", Provider: c.p}
		at, _ := s.Endpoint(p, c.id).Prices.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
		if got := p.Keeps(c.id); got != c.keeps || math.Abs(at.Input-c.input) > 1e-9 {
			t.Errorf("%s of %+v: stays %v, costs %v", c.id, c.p, got, at.Input)
		}
	}
}

func TestModelChoice(t *testing.T) {
	home := server(t, &openaitest.Server{})
	home.Default = "m"
	providersOf := map[string]config.Provider{"home": home}
	s := set(t, config.Config{Providers: providersOf, Model: "home/settings"})
	for _, c := range []struct{ name, had, want string }{
		{"home/named", "home/had", "home/named"},
		{"", "home/had", "home/had"},
		{"", "", "home/settings"},
		{"home", "", "home/m"},
		{"script", "", "script/commands"},
	} {
		got, err := s.Model(t.Context(), c.name, c.had)
		if err != nil || got.Model.Info().Route() != c.want || got.Why != "" {
			t.Errorf("%q, had %q: %+v, %v, want %s", c.name, c.had, got, err, c.want)
		}
	}
	s.Config.Model = ""
	got, err := s.Model(t.Context(), "", "")
	if err != nil || got.Model.Info().Route() != "home/m" || !strings.Contains(got.Why, "home/m") {
		t.Errorf("nothing named: %+v, %v", got, err)
	}
	told := ""
	if m, err := s.Choose(t.Context(), "", "", "", func(why string) { told = why }); err != nil || m.Info().Model != "m" || told != got.Why {
		t.Errorf("nobody is told why: %q, %v", told, err)
	}
}

func TestModelErrors(t *testing.T) {
	s := set(t, config.Config{Providers: map[string]config.Provider{
		"home":   {Kind: "openai", BaseURL: "http://localhost:1"},
		"odd":    {Kind: "telepathy"},
		"clouds": {Kind: "anthropic", Dialect: "bedrock"},
		"vertex": {Kind: "gemini", Dialect: "vertex", Region: "global"},
		"typo":   {Kind: "openai", Dialect: "opnai", BaseURL: "http://x"},
	}})
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("no script"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":                      "no model is configured",
		"anthropic/x":           "set ANTHROPIC_API_KEY",
		"antropic/x":            `did you mean "anthropic"?`,
		"nobody":                "models are named provider/model",
		"home":                  "name it as home/MODEL",
		"odd/x":                 `unknown kind "telepathy"`,
		"clouds/x":              "bedrock needs a region",
		"vertex/x":              "vertex needs a region and a project",
		"typo/x":                `"opnai"`,
		"router/auto":           "no [router] in /etc/x.toml",
		"script//no/such":       "read script",
		"script/" + broken:      "broken",
		"anthropic/\x00\x1b":    "set ANTHROPIC_API_KEY",
		"/":                     "no provider",
		strings.Repeat("a", 9):  "no provider",
		"http://127.0.0.1:9/v1": "the address of a server; name the server, and then a model of it: inspan config set providers.home.base_url=http://127.0.0.1:9/v1 model=home/MODEL",
	} {
		if got, err := s.Model(t.Context(), name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", name, got.Model, err, want)
		}
	}
	if _, err := s.Model(t.Context(), "", ""); !errors.Is(err, config.ErrSettings) {
		t.Errorf("%v is not about settings", err)
	}
}

// TestKeys checks where keys come from, and that a key printed by a command is redacted. TestReady checks the problems
// reported before a model is asked: only missing things, and a local server that is gone.
func TestReady(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := config.Config{Providers: map[string]config.Provider{
		"here": server(t, &openaitest.Server{Models: []llm.Info{{Model: "m"}}}), "gone": {Kind: "openai", BaseURL: gone.URL},
		"far": {Kind: "openai", BaseURL: "https://far.invalid", KeyEnv: "FAR_KEY", Default: "f"},
		"odd": server(t, &openaitest.Server{Key: "another"}),
	}}
	for _, tc := range []struct{ name, key, route, lacks, why string }{
		{"", "", "", "no model", "no model is configured"},
		{"", "k", "far/f", "", ""},
		{"far", "", "far", "no key for far", "set FAR_KEY"},
		{"far/g", "k", "far/g", "", ""},
		{"nobody/x", "k", "nobody/x", "unknown model", `no provider "nobody"`},
		{"here/m", "", "here/m", "", ""},
		{"odd/m", "", "odd/m", "", ""}, // it answers
		{"gone/m", "", "gone/m", "gone does not answer", "no server listens at "},
		{"script", "", "script", "", ""},
		{"router/auto", "", "router/auto", "", ""},
	} {
		s := set(t, c)
		t.Setenv("FAR_KEY", tc.key)
		route, lacks, why := s.Ready(t.Context(), tc.name)
		if route != tc.route || lacks != tc.lacks || (why == nil) != (tc.why == "") || why != nil && !strings.Contains(why.Error(), tc.why) {
			t.Errorf("%q: %q, %q, %v", tc.name, route, lacks, why)
		}
	}
}

// TestOllamaHost checks that Ollama is looked for where its own client looks for it.
func TestOllamaHost(t *testing.T) {
	for variable, want := range map[string]string{
		"": "http://localhost:11434", "10.0.0.7": "http://10.0.0.7:11434", ":9000": "http://localhost:9000", "box:9000": "http://box:9000",
		"0.0.0.0": "http://localhost:11434", "0.0.0.0:9000": "http://localhost:9000", "[::]:9000": "http://localhost:9000",
		"https://box.example": "https://box.example:443", "http://box/ollama/": "http://box:80/ollama", "::1": "http://[::1]:11434", "box": "http://box:11434",
	} {
		t.Setenv("OLLAMA_HOST", variable)
		if got := named(t, set(t, config.Config{}).List(), "ollama").BaseURL; got != want {
			t.Errorf("%q: %s, want %s", variable, got, want)
		}
	}
	t.Setenv("OLLAMA_HOST", "box")
	own := config.Config{Providers: map[string]config.Provider{"ollama": {BaseURL: "http://mine:1"}}}
	if got := named(t, set(t, own).List(), "ollama").BaseURL; got != "http://mine:1" {
		t.Errorf("the settings don't count: %s", got)
	}
}

func TestKeys(t *testing.T) {
	var noted string
	s := set(t, config.Config{})
	s.Note = func(name, key string) { noted = name + ": " + key }
	s.Token = func(_ context.Context, provider string, _ config.ProviderOAuth) (string, error) {
		return "token of " + provider, nil
	}
	t.Setenv("MINE", "of the environment")
	for want, p := range map[string]config.Provider{
		"of the environment": {KeyEnv: "MINE"},
		"printed":            {KeyCommand: "echo printed", KeyEnv: "MINE"},
		"token of p":         {OAuth: &config.ProviderOAuth{}, KeyCommand: "echo printed"},
	} {
		at := s.Endpoint(providers.Provider{Name: "p", Provider: p}, "m")
		if key, err := at.Key(t.Context()); err != nil || key != want || at.Bearer != (p.OAuth != nil) {
			t.Errorf("got %q, %v, bearer %v, want %q", key, err, at.Bearer, want)
		}
	}
	if noted != "the key of p: printed" {
		t.Errorf("noted %q", noted)
	}
	if at := s.Endpoint(providers.Provider{Name: "p"}, "m"); at.Key != nil {
		t.Error("nobody has asked for a key")
	}
	noted = ""
	at := s.Endpoint(providers.Provider{Name: "p", Provider: config.Provider{KeyCommand: "echo locked >&2; exit 3"}}, "m")
	if key, err := at.Key(t.Context()); key != "" || err == nil || !strings.Contains(err.Error(), "key_command") || noted != "" {
		t.Errorf("a command that fails: %q, %v, noted %q", key, err, noted)
	}
}

// TestPrices checks that local models cost nothing, that a price in the settings counts everywhere, and that a cost
// limit needs one.
func TestPrices(t *testing.T) {
	price := llm.Price{Input: 1, Output: 2}
	s := set(t, config.Config{DayCost: 1, Providers: map[string]config.Provider{
		"home":  server(t, &openaitest.Server{}),
		"away":  {Kind: "openai", BaseURL: "http://gateway.example", Models: map[string]config.Model{"known": {Price: &price}}},
		"cloud": {Kind: "openai", BaseURL: "http://gateway.example"},
	}})
	for name, ok := range map[string]bool{"home/m": true, "away/known": true, "cloud/m": false} {
		c, err := s.Model(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Priced(c.Model); (err == nil) != ok {
			t.Errorf("%s is priced: %v", name, err)
		}
		if held := s.Budgeted(c.Model) != c.Model; held != (name != "home/m") {
			t.Errorf("%s is held to the day's budget: %v", name, held)
		}
	}
	s.Config.DayCost = 0
	c, err := s.Model(t.Context(), "away/known", "")
	if err != nil || s.Budgeted(c.Model) != c.Model {
		t.Errorf("a budget without a limit: %v", err)
	}
	s.Config.Router = &config.Router{Routes: map[string]string{"local": "home/m", "cloud": "cloud/m"}}
	if c, err = s.Model(t.Context(), "router", ""); err != nil || s.Priced(c.Model) == nil {
		t.Errorf("a router of which one model has no price is priced (%v)", err)
	}
}

func TestDiscover(t *testing.T) {
	models := []llm.Info{{Model: "a", Window: 8192}}
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	s := set(t, config.Config{Providers: map[string]config.Provider{
		"home":   server(t, &openaitest.Server{Models: models, Dialect: "vllm"}),
		"broken": {Kind: "openai", BaseURL: broken.URL},
	}})
	p := s.Config.Providers["home"]
	p.Dialect = "vllm"
	s.Config.Providers["home"] = p
	found := s.Discover(t.Context())
	i := slices.IndexFunc(found, func(f providers.Found) bool { return f.Provider.Name == "home" })
	if i < 0 || len(found[i].Models) != 1 || found[i].Models[0].Window != 8192 {
		t.Errorf("found %+v", found)
	}
	if slices.ContainsFunc(found, func(f providers.Found) bool { return f.Provider.Name == "broken" }) {
		t.Error("a server without a list has models")
	}
	if f, err := s.DiscoverAt(t.Context(), "home"); err != nil || len(f.Models) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, name := range []string{"broken", "anthropic", "nobody"} {
		if f, err := s.DiscoverAt(t.Context(), name); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// A session asks the server for the window that the settings leave open.
	if c, err := s.Model(t.Context(), "home/a", ""); err != nil || c.Model.Info().Window != 8192 {
		t.Errorf("%v", err)
	}
	p.Models = map[string]config.Model{"a": {Window: 512}}
	s.Config.Providers["home"] = p
	if c, err := s.Model(t.Context(), "home/a", ""); err != nil || c.Model.Info().Window != 512 {
		t.Errorf("the settings don't count: %v", err)
	}
}

func TestRouter(t *testing.T) {
	providersOf := map[string]config.Provider{
		"home": server(t, &openaitest.Server{}),
		"away": {Kind: "openai", BaseURL: "http://gateway.example"},
	}
	s := set(t, config.Config{Providers: providersOf, Router: &config.Router{Routes: map[string]string{"local": "home/m", "cloud": "away/m"}}})
	c, err := s.Model(t.Context(), "router", "")
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model.(*router.Model)
	if len(m.Routes) != 2 || m.Routes[0].Name != "cloud" || m.Routes[0].Local || !m.Routes[1].Local || len(m.Rules) != 2 || m.Force != "" {
		t.Errorf("got %+v", m)
	}
	if c, err = s.Model(t.Context(), "router/cloud", ""); err != nil || c.Model.(*router.Model).Force != "cloud" {
		t.Errorf("a route that is named is not forced: %v", err)
	}
	for routes, want := range map[[2]string]string{
		{"a", "router/auto"}: "a route of the router can't be a router",
		{"a", "nobody/m"}:    "router.routes.a",
	} {
		s.Config.Router = &config.Router{Routes: map[string]string{routes[0]: routes[1]}}
		if _, err := s.Model(t.Context(), "router", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", routes, err, want)
		}
	}
	// For its decisions alone a router needs no keys.
	s.Config.Router = nil
	if h, err := s.Hybrid(t.Context(), "home/m", "anthropic/claude-opus-4-8"); err != nil || !h.Routes[0].Local || h.Routes[1].Local {
		t.Errorf("%+v, %v", h, err)
	}
	for _, c := range [][2]string{{"", ""}, {"home/m", ""}, {"", "away/m"}, {"home/m", "router/auto"}} {
		if _, err := s.Hybrid(t.Context(), c[0], c[1]); err == nil {
			t.Errorf("a router of %q", c)
		}
	}
}

// TestFallback checks which models stand in for another: those without a key don't, and a cloud gets nothing
// private after a local model.
func TestFallback(t *testing.T) {
	away := config.Provider{Kind: "openai", BaseURL: "http://gateway.example"}
	s := set(t, config.Config{
		Providers: map[string]config.Provider{"home": server(t, &openaitest.Server{}), "away": away},
		Fallback:  []string{"anthropic/m", "away/m", "home/m"},
	})
	for name, want := range map[string][]bool{"home/m": {true, false}, "away/m": {true, true}} {
		c, err := s.Model(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		m, ok := c.Model.(*router.Model)
		if !ok || len(m.Routes) != 2 || m.Routes[0].Name != name {
			t.Fatalf("%s: %+v", name, c.Model)
		}
		for i, local := range want {
			if m.Routes[i].Local != local {
				t.Errorf("behind %s, %s may see what is private: %v", name, m.Routes[i].Name, !local)
			}
		}
	}
	s.Config.Fallback = []string{"anthropic/m"}
	if c, err := s.Model(t.Context(), "home/m", ""); err != nil || c.Model.Info().Route() != "home/m" {
		t.Errorf("nobody can stand in: %v", err)
	} else if _, chained := c.Model.(*router.Model); chained {
		t.Error("a chain of one")
	}
	s.Config.Fallback = []string{"nobody/m"}
	if _, err := s.Model(t.Context(), "home/m", ""); err == nil || !strings.Contains(err.Error(), "fallback") {
		t.Errorf("got %v", err)
	}
}

// TestCassette records a model and has the recording stand for it.
func TestCassette(t *testing.T) {
	s := set(t, config.Config{})
	path := filepath.Join(t.TempDir(), "cassette")
	m, closed, err := providers.Recorded(&script.Model{}, path)
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hello")}}}
	want := said(t, m, req)
	if err := closed(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := providers.Recorded(m, path); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a recording is written over: %v", err)
	}
	player, err := s.Choose(t.Context(), path, "nobody/m", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, player, req); got != want || got == "" {
		t.Errorf("played %q, recorded %q", got, want)
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if _, err := s.Choose(t.Context(), bad, "", "", nil); err == nil {
			t.Errorf("%s was played", bad)
		}
	}
	if same, closed, err := providers.Recorded(m, ""); err != nil || same != m || closed() != nil {
		t.Errorf("no file: %v", err)
	}
}

func said(t *testing.T, m llm.Model, req llm.Request) string {
	t.Helper()
	text := ""
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Reply != nil {
			text = c.Reply.Parts.Text()
		}
	}
	return text
}

func TestSample(t *testing.T) {
	price := llm.Price{Input: 1e6, Output: 1e6}
	vendor := &openaitest.Server{Answer: func(*http.Request, []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say("sampled"), Usage: llm.Usage{Input: 3, Output: 4}}
	}}
	home := server(t, vendor)
	home.Models = map[string]config.Model{"small": {Price: &price}}
	s := set(t, config.Config{Providers: map[string]config.Provider{"home": home}, Model: "nobody/m"})
	s.Config.Agents.Small = "home/small"
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}
	reply, cost, err := s.Sample(t.Context(), req)
	if err != nil || reply.Parts.Text() != "sampled" || cost != 7 {
		t.Errorf("%+v, %v, %v", reply, cost, err)
	}
	if req.Purpose != "" {
		t.Error("the request was changed")
	}
	s.Config.Agents.Small = ""
	if _, _, err := s.Sample(t.Context(), req); err == nil {
		t.Error("nobody answered, yet something came back")
	}
}

// TestBareNameOfALocalModel checks that a name that only a server at home knows leads to its model.
func TestBareNameOfALocalModel(t *testing.T) {
	url := ollamatest.Start(t, &ollamatest.Server{Models: []llm.Info{{Model: "qwen3-coder:30b"}, {Model: "org/Tiny:1b"}}})
	s := set(t, config.Config{Providers: map[string]config.Provider{"ollama": {BaseURL: url}}})
	for name, want := range map[string]string{
		"qwen3-coder": "did you mean ollama/qwen3-coder:30b?", "qwen3-coder:30b": "did you mean ollama/qwen3-coder:30b?",
		"tiny":  "did you mean ollama/org/Tiny:1b?",
		"qwen3": "no provider or known model", "other/qwen3-coder": "no provider",
	} {
		_, err := s.Model(t.Context(), name, "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(want, "no ") && strings.Contains(err.Error(), ":30b?") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestWindowFitsWhatIsFree checks that the window of a local model fits the graphics memory that is free where it runs,
// to which that of loaded models counts.
func TestWindowFitsWhatIsFree(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := &ollamatest.Server{
		Models: []llm.Info{{Provider: "ollama", Model: "m:latest", Window: 262144}},
		Facts: map[string]ollamatest.Facts{"m:latest": {Size: 5e9, Info: map[string]any{
			"block_count": 36, "attention.head_count": 32, "attention.head_count_kv": 8, "attention.key_length": 128, "attention.value_length": 128,
		}}},
	}
	s := set(t, config.Config{Providers: map[string]config.Provider{"ollama": {BaseURL: ollamatest.Start(t, o)}}})
	window := func(free int) int {
		script := fmt.Sprintf("#!/bin/sh\necho 'NVIDIA X, 24300, %d'\n", free)
		if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := s.Model(t.Context(), "ollama/m", "")
		if err != nil {
			t.Fatal(err)
		}
		return c.Model.Info().Window
	}
	const perToken = 147456
	whole, part := window(24000), window(10000)
	if room := (10000 << 20) - 6_000_000_000; part*perToken > room || part < 16<<10 || whole < 64<<10 {
		t.Errorf("with all free %d, with 10,000 MiB %d", whole, part)
	}
	c, err := s.Model(t.Context(), "ollama/m", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if again := window(10000 - 4769); again < part-2<<10 || again > part+2<<10 { // which the loaded model has taken
		t.Errorf("loaded, it is %d and was %d", again, part)
	}
}

// TestWindowIsAskedOrAssumed checks that no model has a window of 0: the settings state it, or the server, whichever
// program it is, or it is assumed.
func TestWindowIsAskedOrAssumed(t *testing.T) {
	for name, c := range map[string]struct {
		dialect string
		set     config.Provider
		want    int
		assumed bool
	}{
		"nobody states it":     {"", config.Provider{}, providers.AssumedWindow, true},
		"the settings":         {"", config.Provider{Models: map[string]config.Model{"m": {Window: 5000}}}, 5000, false},
		"vLLM":                 {"vllm", config.Provider{}, 40_960, false},
		"llama.cpp":            {"llamacpp", config.Provider{}, 40_960, false},
		"LM Studio":            {"lmstudio", config.Provider{}, 40_960, false},
		"a server of a vendor": {"vllm", config.Provider{Local: new(false)}, 40_960, false},
		"no server at all":     {"gone", config.Provider{}, providers.AssumedWindow, true},
	} {
		c.set.BaseURL = "http://127.0.0.1:1/v1"
		if c.dialect != "gone" {
			c.set.BaseURL = openaitest.Start(t, &openaitest.Server{Dialect: c.dialect, Models: []llm.Info{{Model: "m", Window: 40_960}}})
		}
		got, err := set(t, config.Config{Providers: map[string]config.Provider{"p": c.set}}).Model(t.Context(), "p/m", "")
		if err != nil {
			t.Fatal(err)
		}
		if info := got.Model.Info(); info.Window != c.want || info.Assumed != c.assumed {
			t.Errorf("%s: %d, assumed %v", name, info.Window, info.Assumed)
		}
	}
}

// TestAddressOfAKnownProvider checks that an address of a provider that is known gets no second name.
func TestAddressOfAKnownProvider(t *testing.T) {
	s := set(t, config.Config{Providers: map[string]config.Provider{"mine": {BaseURL: "http://127.0.0.1:1/v1", KeyEnv: "NO_SUCH_KEY_HERE"}}})
	for _, name := range s.KeyVariables() {
		t.Setenv(name, "")
	}
	for address, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://api.anthropic.com/v1/messages": "anthropic", "https://openrouter.ai/api/v1/": "openrouter",
		"localhost:1": "mine", "http://127.0.0.1:1/v1/chat/completions": "mine",
	} {
		if f, err := s.At(t.Context(), address); err != nil || f.Provider.Name != want || f.Provider.Ready {
			t.Errorf("%s: %+v, %v", address, f.Provider, err)
		}
	}
}

// TestAllowancesAreOfModels checks that a pause requested for one model does not hold up other models of the key,
// even if the settings bound the key as a whole.
func TestAllowancesAreOfModels(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		p := config.Provider{Kind: "openai"}
		if bounded {
			p.Requests = 1000
		}
		asked := map[string]int{}
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			for _, id := range []string{"one", "two"} {
				if strings.Contains(string(raw), `"model":"`+id+`"`) {
					asked[id]++
				}
			}
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		t.Cleanup(h.Close)
		p.BaseURL = h.URL
		s := set(t, config.Config{Providers: map[string]config.Provider{"p": p}})
		for _, id := range []string{"one", "one", "two"} {
			c, err := s.Model(t.Context(), "p/"+id, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range c.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
				if err != nil && llm.AsError(err).Kind != llm.KindRateLimited {
					t.Fatal(err)
				}
			}
		}
		if asked["one"] != 1 || asked["two"] != 1 {
			t.Errorf("bounded as a whole: %v, asked %v", bounded, asked)
		}
	}
}

// TestPricesOfVendors checks that models of vendors in the price book have a window and a price, and that the person's
// own book takes its place.
func TestPricesOfVendors(t *testing.T) {
	s := set(t, config.Config{})
	for _, name := range []string{"DEEPSEEK_API_KEY", "XAI_API_KEY", "ANTHROPIC_API_KEY"} {
		t.Setenv(name, "k")
	}
	info := func(name string) llm.Info {
		t.Helper()
		c, err := s.Model(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		return c.Model.Info()
	}
	for _, name := range []string{"deepseek/deepseek-v4-pro", "xai/grok-4.3", "anthropic/claude-opus-4-5"} {
		if i := info(name); i.Window < 200_000 || len(i.Prices) == 0 {
			t.Errorf("%s: %+v", name, i)
		}
	}
	s.ConfigPath = filepath.Join(t.TempDir(), "config.toml")
	if own, err := providers.OwnPrices(s.Installation); own != nil || err != nil {
		t.Fatalf("%+v, %v", own, err)
	}
	from := filepath.Join(t.TempDir(), "new.toml")
	book := "[[vendor]]\nname = 'anthropic'\nchecked = '2027-01-01'\nsources = ['x']\n" +
		"models = [{ id = 'claude-opus-9', window = 3_000_000, output = 1000, prices = [{ input = 7, cache_read = 1, cache_write = 8, output = 9 }] }]\n"
	for _, text := range []string{"[[vendor]]\nname = 'x'\n", book} {
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := providers.TakePrices(s.Installation, from); (err == nil) != (text == book) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var err error
	if s.Prices, err = providers.OwnPrices(s.Installation); err != nil {
		t.Fatal(err)
	}
	if i := info("anthropic/claude-opus-9"); i.Window != 3_000_000 || i.Prices[0].Input != 7 {
		t.Errorf("%+v", i)
	}
	for _, p := range s.List() {
		if p.Name == "anthropic" && p.Keeps("claude-opus-9") {
			t.Error("a model that a vendor sells by the person's book counts as local")
		}
	}
	if err := os.WriteFile(providers.PricesPath(s.Installation), []byte("vendor = 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := providers.OwnPrices(s.Installation); err == nil || !strings.Contains(err.Error(), "remove it to use the built-in prices") {
		t.Errorf("%v", err)
	}
}
