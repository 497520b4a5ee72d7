package connect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

func newHubs(t *testing.T, c config.Config) *connect.Hubs {
	t.Helper()
	state := t.TempDir()
	set := &config.Installation{Config: c, StateDir: state}
	return &connect.Hubs{
		Installation: set, Logins: &connect.Logins{Installation: set, Note: func(string, string) {}},
		Consent: &consent.Store{Dir: filepath.Join(state, "consent")},
		Env:     func(root string) (tool.Env, error) { return tool.Env{Root: root}, nil },
		Plugins: func() []plugin.Enabled { return nil },
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// heard collects warnings.
type heard []string

func (h *heard) warn(text string) { *h = append(*h, text) }

func (h heard) all() string { return strings.Join(h, "\n") }

func sources(list []mcp.Server) (out []string) {
	for _, s := range list {
		out = append(out, s.Name+" of "+s.Source)
	}
	return out
}

// TestServers holds whose servers count: of two with a name the nearest to the person, and those of
// the workspace only as far as the person trusts just this content.
func TestServers(t *testing.T) {
	h, root := newHubs(t, config.Config{}), t.TempDir()
	h.Config.MCP.Servers = map[string]config.MCPServer{"a": {Command: []string{"mine"}}, "off": {Command: []string{"x"}, Off: true}}
	h.Plugins = func() []plugin.Enabled {
		raw := json.RawMessage(`{"command":"of-plugin"}`)
		p := plugin.Enabled{Plugin: plugin.Plugin{Name: "p", Dir: "/plugins/p"}}
		p.Servers = map[string]json.RawMessage{"a": raw, "b": raw, "c": raw}
		return []plugin.Enabled{p}
	}
	file := filepath.Join(root, ".mcp.json")
	write(t, file, `{"mcpServers":{"c":{"command":"of-workspace"},"d":{"command":"of-workspace"},"bad name!":{"command":"x"}}}`)
	client := []mcp.Server{{Name: "b", Command: []string{"of-client"}, Source: mcp.Client}}
	var told heard
	list := h.Servers(root, "", client, told.warn)
	got := sources(list)
	for _, want := range []string{"a of " + mcp.User, "b of " + mcp.Client, "c of plugin p"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if strings.Contains(strings.Join(got, " "), "d of") {
		t.Errorf("a server that nobody trusts: %q", got)
	}
	for _, want := range []string{"two MCP servers are called a", "two MCP servers are called b"} {
		if !strings.Contains(told.all(), want) {
			t.Errorf("nobody is told of %s: %q", want, told)
		}
	}
	// A plugin's program may read where it is installed.
	if i := slices.IndexFunc(list, func(s mcp.Server) bool { return s.Name == "c" }); !slices.Contains(list[i].Read, "/plugins/p") {
		t.Errorf("%+v", list[i])
	}
	items, err := consent.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Consent.Trust(t.Context(), root, items); err != nil {
		t.Fatal(err)
	}
	told = nil
	if got := sources(h.Servers(root, "", nil, told.warn)); !slices.Contains(got, "d of "+mcp.Project) ||
		!slices.Contains(got, "c of plugin p") {
		t.Errorf("what is trusted: %q, told %q", got, told)
	}
	write(t, file, `{"mcpServers":{"d":{"command":"evil"}}}`)
	if got := sources(h.Servers(root, "", nil, told.warn)); slices.Contains(got, "d of "+mcp.Project) {
		t.Errorf("what has changed since: %q", got)
	}
	h.Config.MCP.Off = true
	if got := h.Servers(root, "", client, told.warn); len(got) != 0 {
		t.Errorf("servers are off: %+v", got)
	}
}

// TestNoServers checks that a hub of no servers can be used.
func TestNoServers(t *testing.T) {
	h := newHubs(t, config.Config{})
	hub, err := h.OpenAt(t.TempDir(), "", nil, func(s string) { t.Error(s) })
	if hub != nil || err != nil {
		t.Fatalf("%+v, %v", hub, err)
	}
	if hub.Own() != nil || hub.Offered(t.Context()) != nil || hub.Served() != nil {
		t.Error("tools of no servers")
	}
	hub.Close()
}

// inside is a server in this process, with a tool and a prompt.
func inside(t *testing.T, name string) mcp.Server {
	return mcp.Server{Name: name, Source: mcp.User, Dial: func(context.Context) (io.ReadWriteCloser, error) {
		s := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
		s.AddTool(&sdk.Tool{Name: "say", Description: "Says it.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said"}}}, nil
			})
		args := []*sdk.PromptArgument{{Name: "what", Required: true, Description: "What to\nlook at."}, {Name: "how"}}
		s.AddPrompt(&sdk.Prompt{Name: "look at/it", Arguments: args},
			func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				text := fmt.Sprintf("Look at %q, %q.", r.Params.Arguments["what"], r.Params.Arguments["how"])
				return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
			})
		ours, theirs := net.Pipe()
		go func() { _ = s.Run(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}) }()
		return ours, nil
	}}
}

func quiet(string) {}

// TestHubWarns checks that all users of a connection hear of a problem that the state of its servers does not tell.
func TestHubWarns(t *testing.T) {
	h, root := newHubs(t, config.Config{}), t.TempDir()
	heard := make(chan string, 10)
	servers := []mcp.Server{inside(t, "mine"), inside(t, "Mine")}
	open := func() *connect.Hub {
		return h.Open(root, servers, tool.Env{Root: root}, func(problem string) { heard <- problem })
	}
	for _, hub := range []*connect.Hub{open(), open()} {
		defer hub.Close()
		hub.Await(t.Context())
		if list := hub.Offered(t.Context()); len(list) > 0 {
			t.Errorf("%+v", list)
		}
	}
	for range 2 {
		if problem := testkit.Receive(t, "a warning", heard); !strings.Contains(problem, "have the name mcp__") {
			t.Error(problem)
		}
	}
}

// TestHub has two users of one connection, which ends with the last of them.
func TestHub(t *testing.T) {
	h, root := newHubs(t, config.Config{}), t.TempDir()
	servers := []mcp.Server{inside(t, "mine")}
	one, two := h.Open(root, servers, tool.Env{Root: root}, quiet), h.Open(root, servers, tool.Env{Root: root}, quiet)
	if one.Manager != two.Manager || len(h.Managers(root)) != 1 || len(h.Managers("/elsewhere")) != 0 {
		t.Error("the connection is not shared")
	}
	state := one.Served()(t.Context(), func(string) {})
	if len(state) != 1 || state[0].Name != "mine" || state[0].Tools != 1 {
		t.Errorf("%+v", state)
	}
	if list := one.Offered(t.Context()); len(list) != 1 || !strings.Contains(list[0].Name, "say") {
		t.Errorf("%+v", list)
	}
	if len(one.Own()) == 0 {
		t.Error("no tools that deal with servers")
	}
	if why, failed := one.Failed(); failed {
		t.Error(why)
	}
	one.Close()
	one.Close() // counts once
	if len(h.Managers(root)) != 1 {
		t.Error("the connection ended under the other one")
	}
	two.Close()
	if len(h.Managers(root)) != 0 {
		t.Error("the connection is left")
	}
}

// prompts waits until a server has listed its prompts.
func prompts(t *testing.T, h *connect.Hubs, root string) (list []connect.PromptNamed) {
	t.Helper()
	testkit.WaitFor(t, "prompts", func() bool { list = h.Prompts(root); return len(list) > 0 })
	return list
}

func TestPrompts(t *testing.T) {
	h, root := newHubs(t, config.Config{}), t.TempDir()
	hub := h.Open(root, []mcp.Server{inside(t, "mine")}, tool.Env{Root: root}, quiet)
	defer hub.Close()
	list := prompts(t, h, root)
	if len(list) != 1 || list[0].Command != "mcp__mine__look-at-it" || list[0].Usage != "<what> [how]" {
		t.Fatalf("%+v", list)
	}
	for line, want := range map[string]string{
		"this":                 `Look at "this", "".`,
		"this very carefully ": `Look at "this", "very carefully".`,
		"how=fast this":        `Look at "this", "fast".`,
		"how=fast all of it":   `Look at "all of it", "fast".`, // the last one takes the rest
		"what=a=b":             `Look at "a=b", "".`,
		"x=y z":                `Look at "x=y", "z".`, // names no argument
	} {
		got, err := h.Fill(t.Context(), root, list[0].Prompt, line)
		if err != nil || !strings.Contains(got, want) || !strings.Contains(got, "a prompt of the MCP server mine") {
			t.Errorf("%q: %q, %v, want %s", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"": "it needs what: What to look at.", "how=x": "it needs what",
		"what=a how=b c": "is an extra argument",
	} {
		if got, err := h.Fill(t.Context(), root, list[0].Prompt, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
	if _, err := h.Fill(t.Context(), "/elsewhere", list[0].Prompt, "this"); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("a prompt of another workspace: %v", err)
	}
}

// TestForeign reads servers of other programs, except those that the person already has.
func TestForeign(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	h := newHubs(t, config.Config{})
	h.Config.MCP.Servers = map[string]config.MCPServer{"mine": {Command: []string{"x"}}, "same": {Command: []string{"x"}, Hosts: []string{"a.example"}}}
	var told heard
	if list, err := h.Foreign(nil, root, told.warn); err != nil || len(list) != 0 || len(told) != 0 {
		t.Errorf("there are none: %+v, %v, %q", list, err, told)
	}
	first := filepath.Join(root, ".cursor", "mcp.json")
	write(t, first, `{"mcpServers":{"mine":{"command":"y"},"b":{"command":"first"},"a":{"command":"first"}}}`)
	write(t, filepath.Join(home, ".cursor", "mcp.json"), `{"mcpServers":{"b":{"command":"second"},"c":{"command":"second"},"same":{"command":"x"}}}`)
	write(t, filepath.Join(home, ".copilot", "mcp-config.json"), `{"mcpServers":{"b":{"command":"third"}}}`)
	write(t, filepath.Join(root, ".vscode", "mcp.json"), `{broken`)
	list, err := h.Foreign(nil, root, told.warn)
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprint(f.Name, " ", strings.Join(f.Server.Command, " "), " ", f.Project, f.Had))
	}
	if err != nil || !slices.Equal(got, []string{"b second false false", "c second false false", "same x false true", "a first true false", "b first true false"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, want := range []string{"server mine already", "server b already", ".vscode"} {
		if !strings.Contains(told.all(), want) {
			t.Errorf("nobody is told of %q: %q", want, told)
		}
	}
	if list, err := h.Foreign([]string{first}, root, told.warn); err != nil || len(list) != 2 {
		t.Errorf("a file that is named: %+v, %v", list, err)
	}
	for _, path := range []string{filepath.Join(root, "none.json"), filepath.Join(root, ".vscode", "mcp.json"), root} {
		if list, err := h.Foreign([]string{path}, root, told.warn); err == nil {
			t.Errorf("%s: %+v", path, list)
		}
	}
}

func TestWay(t *testing.T) {
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"} {
		t.Setenv(name, "")
	}
	for _, said := range []oauth.Way{oauth.Browser, oauth.Paste, oauth.Device} {
		if way, err := connect.Way(string(said)); way != said || err != nil {
			t.Errorf("%s: %s, %v", said, way, err)
		}
	}
	for _, said := range []string{"telepathy", " browser", "Browser"} {
		if way, err := connect.Way(said); err == nil {
			t.Errorf("%q is %s", said, way)
		}
		if _, err := (&connect.Logins{}).AtTerminal(t.Context(), said, nil, nil); err == nil {
			t.Errorf("%q at a terminal", said)
		}
	}
	t.Setenv("DISPLAY", ":0")
	t.Setenv("SSH_CONNECTION", "here there")
	// A browser of another machine does not come back to this one.
	if way, err := connect.Way(""); way != oauth.Paste || err != nil {
		t.Errorf("over SSH: %s, %v", way, err)
	}
}

func TestNoLogin(t *testing.T) {
	h := newHubs(t, config.Config{})
	if err := h.Logins.Provider(t.Context(), "nobody", connect.Login{}); err == nil ||
		!strings.Contains(err.Error(), "[providers.nobody.oauth]") {
		t.Errorf("got %v", err)
	}
	if err := h.Logins.LeaveProvider(t.Context(), "nobody"); err == nil {
		t.Error("a login that nobody has was left")
	}
	if key, err := h.Logins.ProviderToken(t.Context(), "p", config.ProviderOAuth{Token: "http://127.0.0.1:1/token"}); key != "" ||
		err == nil || !strings.Contains(err.Error(), "inspan models login p") {
		t.Errorf("%q, %v", key, err)
	}
	if pass, err := h.Logins.Token(t.Context(), mcp.Server{Name: "s", URL: "http://127.0.0.1:1"}); pass != nil || err != nil {
		t.Errorf("a server without a login: %v, %v", pass, err)
	}
	root := t.TempDir()
	hub := h.Open(root, []mcp.Server{inside(t, "mine")}, tool.Env{Root: root}, quiet)
	defer hub.Close()
	for _, name := range []string{"mine", "none"} {
		if err := h.Logins.Server(t.Context(), hub.Manager, name, connect.Login{}); err == nil {
			t.Errorf("a login to %s", name)
		}
	}
}
