package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"

	"github.com/inspan/inspan/internal/front/mcpserver"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		if err := serve(os.Args[2]); err != nil {
			os.Exit(1)
		}
		return
	}
	testkit.Main(m)
}

// The revisions of the protocol that are spoken.
const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// house is a server over a workspace of its own, put together as the command does it,
// with the offline model.
type house struct {
	*mcpserver.Server
	t      testing.TB
	state  string
	url    string
	rounds *sdk.MultiRoundTripOptions // of its clients
}

func newHouse(t testing.TB, mode tool.Mode) *house {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("INSPAN_CONFIG_DIR", dir)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(dir, "state"))
	root := filepath.Join(t.TempDir(), "work")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := newServer(root, mode)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{Server: server, t: t, state: filepath.Join(dir, "state")}
	t.Cleanup(h.Close)
	return h
}

func newServer(root string, mode tool.Mode) (*mcpserver.Server, error) {
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	quiet := func(string) {}
	tools := a.Host(app.Options{Model: "script", Mode: mode, AllTools: true}, quiet)
	return &mcpserver.Server{Host: a.Host(app.Options{Model: "script", Mode: mode}, quiet), Tools: tools, Skills: a.Extensions.Skills(root), Root: root}, nil
}

// serve is the process that tests start: a server on its pipes.
func serve(root string) error {
	s, err := newServer(root, "auto")
	if err != nil {
		return err
	}
	return s.ServeStdio(context.Background(), os.Stdin, os.Stdout)
}

func (h *house) write(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.Root, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) read(name string) string {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Root, name))
	if err != nil {
		return ""
	}
	return string(raw)
}

func (h *house) has(name string) bool {
	_, err := os.Stat(filepath.Join(h.Root, name))
	return err == nil
}

// client is one at the other end of a pipe.
type client struct {
	*sdk.ClientSession
	t testing.TB

	mu     sync.Mutex
	asked  []*sdk.ElicitParams
	told   []string
	answer func(*sdk.ElicitParams) *sdk.ElicitResult
	rounds *sdk.MultiRoundTripOptions
	served chan error
	broken func() // breaks the pipe
}

// connect has a client speak a revision with a server at a pipe. Answer answers forms; nil means the client has
// none.
func (h *house) connect(revision string, answer func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	h.t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	c := &client{t: h.t, answer: answer, rounds: h.rounds, served: make(chan error, 1), broken: func() { _ = fromClient.Close() }}
	go func() { c.served <- h.ServeStdio(context.Background(), toServer, fromServer) }()
	c.join(revision, &sdk.IOTransport{Reader: toClient, Writer: fromClient})
	h.t.Cleanup(func() {
		_ = c.Close()
		if err := <-c.served; err != nil {
			h.t.Errorf("serve: %v", err)
		}
	})
	return c
}

// join connects over a transport.
func (c *client) join(revision string, transport sdk.Transport) {
	c.t.Helper()
	o := &sdk.ClientOptions{ProgressNotificationHandler: c.progress, MultiRoundTrip: c.rounds}
	if c.answer != nil {
		o.ElicitationHandler = c.elicit
	}
	var err error
	c.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, o).Connect(c.t.Context(), transport,
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) elicit(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	c.mu.Lock()
	c.asked = append(c.asked, req.Params)
	c.mu.Unlock()
	return c.answer(req.Params), nil
}

func (c *client) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, req.Params.Message)
}

func (c *client) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.told, "\n")
}

func (c *client) questions() []*sdk.ElicitParams {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// call calls a tool and returns its text.
func (c *client) call(name string, args map[string]any) (text string, failed bool) {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.t.Fatal(err)
	}
	return textOf(res), res.IsError
}

func textOf(res *sdk.CallToolResult) string {
	var b strings.Builder
	for _, part := range res.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// reportOf is the structured content of run_agent, in which its text is too: there are
// clients that read nothing else.
func reportOf(t testing.TB, res *sdk.CallToolResult) (r struct {
	Text             string
	Session, Stopped string
	Cost             float64
	Turns, Denied    int
},
) {
	t.Helper()
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Text == "" || r.Text != textOf(res) {
		t.Errorf("its structured content says %q, its content %q", r.Text, textOf(res))
	}
	return r
}

// says answers every form with one choice.
func says(choice string) func(*sdk.ElicitParams) *sdk.ElicitResult {
	return func(*sdk.ElicitParams) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": choice}}
	}
}

// both runs a test in each revision.
func both(t *testing.T, f func(t *testing.T, revision string)) {
	for _, revision := range []string{older, newer} {
		t.Run(revision, func(t *testing.T) { f(t, revision) })
	}
}
