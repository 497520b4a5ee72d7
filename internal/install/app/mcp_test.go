package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

// peer is a server of so many tools that this test is when it is started again.
func peer(many int) {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	for i := range many {
		s.AddTool(&sdk.Tool{
			Name: fmt.Sprint("say", i), Description: strings.Repeat("says it ", 20),
			InputSchema: json.RawMessage(`{"type":"object"}`),
		},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if os.Getenv("WORD") == "span" {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(r.Params.Meta["traceparent"])}}}, nil
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said " + os.Getenv("WORD")}}}, nil
			})
	}
	s.AddPrompt(&sdk.Prompt{Name: "look at", Arguments: []*sdk.PromptArgument{{Name: "what", Required: true}, {Name: "how"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{
				Role:    "user",
				Content: &sdk.TextContent{Text: fmt.Sprintf("Look at %s %q", r.Params.Arguments["what"], r.Params.Arguments["how"])},
			}}}, nil
		})
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

// served is an app whose settings have a server called mine.
func served(t *testing.T, many int, more string) (*app.App, string) {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("model = \"script/commands\"\nsandbox.off = true\n%s\n[mcp.servers.mine]\ncommand = [%q, \"peer\", \"%d\"]\n"+
		"env = { WORD = \"${PEER_WORD}\" }\n", more, me, many)
	t.Setenv("PEER_WORD", "heron")
	return load(t, settings), t.TempDir()
}

// says runs a session and returns the results of its calls.
func says(t *testing.T, a *app.App, o app.Options, root, prompt string) []string {
	t.Helper()
	h := a.Host(o, func(text string) { t.Log(text) })
	s, err := h.New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []string
	for e, err := range s.Run(t.Context(), event.Say(prompt)) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Ended); ok {
			out = append(out, string(b.Outcome)+" "+b.Parts.Text())
		}
	}
	return out
}

// TestServers calls the tools of servers of all kinds of sources in sessions.
func TestServers(t *testing.T) {
	a, root := served(t, 1, "")
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.Server{Name: "ours", Source: mcp.Client, Command: []string{me, "peer", "1"}, Env: map[string]string{"WORD": "crane"}}
	o := app.Options{Mode: "yolo", Unattended: true, Servers: []mcp.Server{client}}
	file := fmt.Sprintf(`{"mcpServers":{"theirs":{"command":%q,"args":["peer","1"],"env":{"WORD":"${PEER_WORD} and `+
		`${MY_TOKEN:-nothing}"}},"mine":{"command":"false"}}}`, me)
	if err := os.WriteFile(filepath.Join(root, ".mcp.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MY_TOKEN", "secret-token-value")
	prompt := "call: mcp__mine__say0 {}\ncall: mcp__ours__say0 {}\ncall: mcp__theirs__say0 {}"
	got := says(t, a, o, root, prompt)
	if len(got) != 3 || !strings.Contains(got[0], "said heron") ||
		!strings.Contains(got[1], "said crane") || strings.Contains(got[2], "said") {
		t.Errorf("%q", got)
	}
	review, err := a.Consent.ReviewRunning(root, "")
	if err != nil || len(review.New) != 1 {
		t.Fatal(review, err)
	}
	if err := a.Consent.Trust(t.Context(), root, review.New); err != nil {
		t.Fatal(err)
	}
	if got = says(t, a, o, root, prompt); len(got) != 3 || !strings.Contains(got[2], "said heron and nothing") {
		t.Errorf("%q", got)
	}
	var warned []string
	list := a.Hubs.Servers(root, "", nil, func(text string) { warned = append(warned, text) })
	if len(list) != 2 || list[0].Source != mcp.User || list[1].Name != "theirs" || len(warned) != 1 ||
		!strings.Contains(warned[0], "two MCP servers are called mine") {
		t.Errorf("%+v, %q", list, warned)
	}
	a.Config.MCP.Secrets = map[string][]string{"theirs": {"MY_TOKEN"}}
	if got = says(t, a, o, root, prompt); len(got) != 3 || !strings.Contains(got[2], "heron and [secret:") {
		t.Errorf("%q", got)
	}
	needs := mcp.Server{Name: "needs", Source: mcp.Project, Command: []string{"true"}, Env: map[string]string{"A": "${MY_TOKEN}"}}
	env, err := a.Permission.Env(root)
	if err != nil {
		t.Fatal(err)
	}
	hub := a.Hubs.Open(root, []mcp.Server{needs}, env, func(string) {})
	hub.Settle(t.Context())
	if why := hub.Status()[0].Why; !strings.Contains(why, "MY_TOKEN") ||
		!strings.Contains(why, `mcp.secrets = { needs = ["MY_TOKEN"] }`) || strings.Contains(why, "not set") {
		t.Error(why)
	}
	hub.Close()
	if err := env.Close(); err != nil {
		t.Error(err)
	}
	a.Config.MCP.Off = true
	if list := a.Hubs.Servers(root, "", []mcp.Server{client}, nil); list != nil {
		t.Errorf("%+v", list)
	}
}

// TestManyTools checks that a search replaces a long list of tools, and that an unapproved tool asks.
func TestManyTools(t *testing.T) {
	a, root := served(t, 600, "")
	got := says(t, a, app.Options{Mode: "yolo", Unattended: true}, root,
		"call: tool_search {\"query\":\"say7\"}\ncall: call_tool {\"name\":\"mcp__mine__say7\",\"arguments\":{}}")
	if len(got) != 2 || !strings.Contains(got[0], "mcp__mine__say7") || !strings.Contains(got[1], "said heron") {
		t.Errorf("%q", got)
	}
	if got := says(t, a, app.Options{Mode: "ask", Unattended: true}, root,
		"call: call_tool {\"name\":\"mcp__mine__say7\",\"arguments\":{}}"); len(got) != 1 || !strings.HasPrefix(got[0], "denied") {
		t.Errorf("%q", got)
	}
	if got := says(t, a, app.Options{Mode: "ask", Unattended: true, Allow: []string{"mcp__mine__*"}}, root,
		"call: mcp__mine__say7 {}"); len(got) != 1 || !strings.HasPrefix(got[0], "ok") {
		t.Errorf("%q", got)
	}
}

// TestSharedHub checks that all sessions of a folder have one connection, which ends with the last of them.
func TestSharedHub(t *testing.T) {
	a, root := served(t, 1, "")
	one, err := a.Hubs.OpenAt(root, "", nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	two, err := a.Hubs.OpenAt(root, "", nil, func(string) {})
	if err != nil || one.Manager != two.Manager {
		t.Fatal(err)
	}
	one.Settle(t.Context())
	one.Close()
	one.Close()
	if s := two.Status(); len(a.Hubs.Managers(root)) != 1 || s[0].State != mcp.Ready {
		t.Errorf("%+v", s)
	}
	two.Close()
	if left := a.Hubs.Managers(root); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
}

// TestServersOfThisMachine are reached by its own addresses, and by no name that leads
// to them: also where another server is here.
func TestServersOfThisMachine(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "here", Version: "1"}, nil)
	here := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(here.Close)
	other := strings.Replace(here.URL, "127.0.0.1", "localhost.", 1)
	a := load(t, fmt.Sprintf("model = \"script/commands\"\n[mcp.servers.here]\nurl = %q\n[mcp.servers.named]\nurl = %q\n", here.URL, other))
	hub, err := a.Hubs.OpenAt(t.TempDir(), "", nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	hub.Settle(t.Context())
	list := hub.Status()
	if list[0].State != mcp.Ready {
		t.Errorf("%+v", list[0])
	}
	if list[1].State != mcp.Failed || !strings.Contains(list[1].Why, "loopback") {
		t.Errorf("%+v", list[1])
	}
}

// TestPrompts fills in prompts as slash commands do.
func TestPrompts(t *testing.T) {
	a, root := served(t, 1, "")
	hub, err := a.Hubs.OpenAt(root, "", nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	var list []connect.PromptNamed
	testkit.WaitFor(t, "prompts", func() bool { list = a.Hubs.Prompts(hub.Env.Root); return len(list) > 0 })
	p := list[0]
	if p.Command != "mcp__mine__look-at" || p.Usage != "<what> [how]" {
		t.Errorf("%+v", p)
	}
	for line, want := range map[string]string{
		"birds": `Look at birds ""`, "birds in the lake": `Look at birds "in the lake"`, "how=well the birds": `Look at the birds "well"`,
		"": "needs what", "what=a b": `Look at a "b"`,
	} {
		text, err := a.Hubs.Fill(t.Context(), hub.Env.Root, p.Prompt, line)
		if !strings.Contains(text+fmt.Sprint(err), want) {
			t.Errorf("%q: %q, %v", line, text, err)
		}
	}
}

// TestLoginsOfProviders checks which settings a login needs.
func TestLoginsOfProviders(t *testing.T) {
	a := load(t, "[providers.acme]\nkind = \"openai\"\nbase_url = \"https://llm.example.com/v1\"\ndefault = \"m\"\n[providers.acme.oauth]\n"+
		"client_id = \"x\"\ntoken_url = \"https://login.example.com/token\"\nauthorize_url = \"https://login.example.com/a\"\n")
	i := slices.IndexFunc(a.Providers.List(), func(p providers.Provider) bool { return p.Name == "acme" })
	if i < 0 || !a.Providers.List()[i].Ready {
		t.Fatal("a provider with a login is not there")
	}
	choice, err := a.Providers.Model(t.Context(), "acme/m", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range choice.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
		if err == nil || !strings.Contains(err.Error(), "inspan models login acme") {
			t.Error(err)
		}
	}
	if err := a.Logins.LeaveProvider(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if err := a.Logins.LeaveProvider(t.Context(), "other"); err == nil {
		t.Error("logged out of what has no login")
	}
}

// TestModelsBehindLogins has a model answer whose provider wants a token that no person
// logs in for.
func TestModelsBehindLogins(t *testing.T) {
	given := 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, secret, _ := r.BasicAuth(); id != "inspan" || secret != "known-to-both" ||
			r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "models" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		given++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d-0123456789abcdef","token_type":"Bearer","expires_in":3600}`, given)
	}))
	t.Cleanup(tokens.Close)
	t.Setenv("ACME_SECRET", "known-to-both")
	hello := func(*http.Request, []byte) openaitest.Answer { return openaitest.Answer{Parts: llm.Say("hello")} }
	base := openaitest.Start(t, &openaitest.Server{Answer: hello, Key: "token-1-0123456789abcdef"})
	a := load(t, fmt.Sprintf("[providers.acme]\nkind = \"openai\"\nbase_url = %q\ndefault = \"m\"\n[providers.acme.oauth]\n"+
		"client_id = \"inspan\"\nclient_secret_env = \"ACME_SECRET\"\n"+
		"grant = \"client_credentials\"\nscopes = [\"models\"]\ntoken_url = %q\n", base, tokens.URL))
	for range 2 {
		choice, err := a.Providers.Model(t.Context(), "acme/m", "")
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for chunk, err := range choice.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Reply != nil {
				text = chunk.Reply.Parts.Text()
			}
		}
		if text != "hello" || given != 1 {
			t.Errorf("%q, %d tokens", text, given)
		}
	}
}
