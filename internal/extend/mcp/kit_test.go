package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		fake(os.Args[2])
		return
	}
	testkit.Main(m)
}

// peers is the folder of modules with servers that were not written here.
func peers(t testing.TB) string {
	t.Helper()
	return filepath.Join(testkit.Dir(t), "node_modules")
}

// npm is a server from there as a command.
func npm(modules, name string, args ...string) []string {
	return append([]string{
		filepath.Join(modules, ".bin", "node22"),
		filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js"),
	}, args...)
}

// house is a Manager in a workspace of its own.
type house struct {
	*mcp.Manager
	t testing.TB

	// ask is the function with which calls ask the person; nil if there is no person.
	ask func(ctx context.Context, question string, options []string) (string, error)

	mu    sync.Mutex
	warns []string
}

func newHouse(t testing.TB, servers ...mcp.Server) *house {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	h := &house{t: t}
	h.Manager = &mcp.Manager{Env: env, Level: tool.BoxNone, Servers: servers, Warn: h.warn}
	t.Cleanup(h.Close)
	return h
}

func (h *house) warn(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warns = append(h.warns, text)
}

func (h *house) warned() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.warns, "\n")
}

// until waits for something to become true.
func (h *house) until(what string, is func() bool) {
	h.t.Helper()
	testkit.WaitFor(h.t, what, is, func() string { return fmt.Sprintf("%+v", h.Status()) })
}

// closes closes the manager, which waits neither for an answer nor for a server that does not end: for
// those there are fifteen seconds and more.
func (h *house) closes() {
	h.t.Helper()
	began := time.Now()
	h.Close()
	if took := time.Since(began); took > 12*time.Second {
		h.t.Errorf("closing took %v", took)
	}
}

func (h *house) status(name string) mcp.Status {
	for _, s := range h.Status() {
		if s.Name == name {
			return s
		}
	}
	return mcp.Status{}
}

// begin starts and waits until a server is in a state.
func (h *house) begin(name string, state mcp.State) mcp.Status {
	h.t.Helper()
	h.Start()
	h.until(name+" "+string(state), func() bool { return h.status(name).State == state })
	return h.status(name)
}

func (h *house) tool(name string) tool.Tool {
	h.t.Helper()
	for _, t := range h.Tools() {
		if t.Name == name {
			return t
		}
	}
	h.t.Fatalf("there is no tool %s in %s", name, h.names())
	return tool.Tool{}
}

func (h *house) names() string {
	var out []string
	for _, t := range h.Tools() {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

// call calls a tool as a session does.
func (h *house) call(ctx context.Context, name, args string) (tool.Result, error) {
	h.t.Helper()
	t := h.tool(name)
	checked, err := t.Check(json.RawMessage(args))
	if err != nil {
		h.t.Fatal(err)
	}
	return t.Run(ctx, &tool.Call{Name: name, Args: checked, Env: h.Env, Cwd: h.Env.Root, Progress: func(string) {}, Ask: h.ask})
}

func text(res tool.Result) string {
	var out []string
	for _, p := range res.Parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, p.Text)
		case llm.Image:
			out = append(out, fmt.Sprintf("<%s %d>", p.MediaType, len(p.Data)))
		}
	}
	return strings.Join(out, "|")
}

// self is a server that this test is when it is started again.
func self(t testing.TB, name, mode string) mcp.Server {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{Name: name, Command: []string{me, "fake", mode}, Source: "user"}
}

// honest is a server as the SDK makes them.
func honest() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "honest", Version: "1.2"}, nil)
	type in struct {
		Text string `json:"text" jsonschema:"what to say"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "says it again", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you said " + i.Text}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "env", Description: "a variable"},
		func(_ context.Context, _ *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: os.Getenv(i.Text)}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "steps", Description: "goes on until it is stopped"},
		func(ctx context.Context, r *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(),
				Progress:      1, Total: 3, Message: "one\x1b[31m",
			})
			<-ctx.Done()
			_ = os.WriteFile(i.Text, []byte("stopped"), 0o600)
			return nil, nil, ctx.Err()
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no \x1b[2Jway"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
		return asking(ctx, r, i.Text)
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "greets", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{
				Role:    "user",
				Content: &sdk.TextContent{Text: "Greet \x07" + r.Params.Arguments["who"]},
			}}}, nil
		})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "note", MIMEType: "text/plain"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://1", Text: "a note"}}}, nil
		})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "note://{id}", Name: "notes"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, sdk.ResourceNotFoundError("note://x")
		})
	return s
}

// asking asks for a field, for all fields of a schema, for a visit or a model, and returns the outcome.
func asking(ctx context.Context, r *sdk.CallToolRequest, what string) (*sdk.CallToolResult, any, error) {
	if what == "a flood" {
		failed := 0
		for range 300 {
			if res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{
				Message:         "again?",
				RequestedSchema: json.RawMessage(`{"type":"object"}`),
			}); err != nil || res.Action != "accept" {
				failed++
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("flooded, %d failed", failed)}}}, nil, nil
	}
	text := "how much is it?"
	if what == "a long model" {
		what, text = "a model", "Say hello"+strings.Repeat("x", 5000)+"and this too"
	}
	if what == "a model" {
		res, err := r.Session.CreateMessage(ctx, //nolint:staticcheck // servers still do
			&sdk.CreateMessageParams{ //nolint:staticcheck // as above
				SystemPrompt: "be brief\x1b", MaxTokens: 50,
				Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}, //nolint:staticcheck // as above
			})
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: res.Content.(*sdk.TextContent).Text +
			" by " + res.Model + " " + res.StopReason}}}, nil, nil
	}
	params := &sdk.ElicitParams{Message: "which\x1b one?", RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{what: map[string]any{"type": "string"}}, "required": []string{what},
	}}
	if strings.HasPrefix(what, "{") {
		params.RequestedSchema = json.RawMessage(what)
	}
	if strings.Contains(what, "://") {
		params = &sdk.ElicitParams{Mode: "url", Message: "log in", URL: what, ElicitationID: "1"}
	}
	said, _ := r.Params.InputResponses["q"].(*sdk.ElicitResult)
	if said == nil && r.Session.InitializeParams() != nil && r.Session.InitializeParams().ProtocolVersion >= "2026-07-28" {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": params}}, nil, nil
	}
	if said == nil {
		var err error
		if said, err = r.Session.Elicit(ctx, params); err != nil {
			return nil, nil, err
		}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%s %v", said.Action, said.Content)}}}, nil, nil
}
