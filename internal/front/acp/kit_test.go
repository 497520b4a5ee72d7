//go:build unix

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/front/acp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

// editor is a client that collects its notifications.
type editor struct {
	t       testing.TB
	server  *acp.Server
	root    string
	conn    *wire.ClientSideConnection
	in      io.WriteCloser
	log     lockedBuffer
	ended   chan error
	session wire.SessionId

	permit func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error)
	visit  string // the action of a person who is sent to an address
	read   func(path string) (string, error)
	write  func(path, text string) error
	screens

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something comes
	updates []wire.SessionNotification
	asked   []wire.RequestPermissionRequest
	sent    []wire.UnstableCreateElicitationUrl // addresses that the person was sent to
	dropped int                                 // questions that the agent took back
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serverIn is a server with state of its own, whose agents answer with the steps and
// then with the commands of the prompt.
func serverIn(state string, change func(*inspan.Agent), steps ...script.Step) *acp.Server {
	a := app.New(&config.Installation{StateDir: state})
	s := &acp.Server{App: a}
	s.Host = func(o app.Options, warn func(string)) *inspan.Host {
		return &inspan.Host{Dir: a.Store().Dir, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
			warn("there are no walls\nhere")
			env, err := sandbox.Local(at.Root, at.Blobs, sandbox.Options{})
			if err != nil {
				return nil, err
			}
			shell := &tools.Shell{}
			agent := &inspan.Agent{
				Model: &script.Model{Steps: steps}, Tools: append(tools.Core(shell, ""), ticker()), Mode: o.Mode, Env: env, Limits: inspan.Limits{Retry: -1},
				Lifecycle: inspan.Lifecycle{Close: func() error { shell.Close(); return nil }},
			}
			if at.New && agent.Mode == "" {
				agent.Mode = "ask"
			}
			if change != nil {
				change(agent)
			}
			return agent, nil
		}}
	}
	return s
}

// ticker is a tool that shows progress until the test ends it.
func ticker() tool.Tool {
	tick := tool.New("tick", "takes long", func(ctx context.Context, c *tool.Call, in struct {
		Word string `json:"word"`
	},
	) (tool.Result, error) {
		for i := 0; ; i++ {
			c.Progress(fmt.Sprintf("%s %d\n", in.Word, i))
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	})
	tick.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{}, nil }
	return tick
}

// edit starts an editor with a session in a folder of its own.
func edit(t testing.TB, capabilities wire.ClientCapabilities, change func(*inspan.Agent), steps ...script.Step) *editor {
	t.Helper()
	e := start(t, serverIn(t.TempDir(), change, steps...), folder(t), capabilities)
	made, err := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: e.root, McpServers: []wire.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	e.session = made.SessionId
	return e
}

func folder(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// start starts an editor. The agent has ended when the test has.
func start(t testing.TB, s *acp.Server, root string, capabilities wire.ClientCapabilities) *editor {
	t.Helper()
	e := &editor{t: t, server: s, root: root, ended: make(chan error, 1), changed: make(chan struct{})}
	s.Log = &e.log
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	e.in = in
	go func() {
		err := s.Serve(context.WithoutCancel(t.Context()), fromEditor, toEditor)
		_ = toEditor.Close()
		e.ended <- err
	}()
	e.conn = wire.NewClientSideConnection(e, in, out)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
		<-e.conn.Done()
		_ = out.Close()
	})
	if _, err := e.conn.Initialize(t.Context(), wire.InitializeRequest{ProtocolVersion: 1, ClientCapabilities: capabilities}); err != nil {
		t.Fatal(err)
	}
	return e
}

// close ends the editor and waits for the agent.
func (e *editor) close() error {
	_ = e.in.Close()
	select {
	case err := <-e.ended:
		e.ended <- err
		return err
	case <-time.After(testkit.Patience):
		return errors.New("the agent does not end")
	}
}

// prompt says something and waits for the end.
func (e *editor) prompt(text string) wire.PromptResponse {
	e.t.Helper()
	r, err := e.ask(text)
	if err != nil {
		e.t.Fatalf("%q: %v", text, err)
	}
	return r
}

func (e *editor) ask(text string) (wire.PromptResponse, error) {
	return e.conn.Prompt(e.t.Context(), wire.PromptRequest{SessionId: e.session, Prompt: []wire.ContentBlock{wire.TextBlock(text)}})
}

// going says something, and returns how to wait for the end.
func (e *editor) going(text string) func() wire.PromptResponse {
	done := make(chan wire.PromptResponse, 1)
	go func() {
		r, err := e.ask(text)
		if err != nil {
			r.StopReason = wire.StopReason(err.Error())
		}
		done <- r
	}()
	return func() wire.PromptResponse { return <-done }
}

// until waits until the notifications meet a condition.
func (e *editor) until(what string, test func() bool) {
	e.t.Helper()
	late := time.After(testkit.Patience)
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		if test() {
			return
		}
		select {
		case <-changed:
		case <-late:
			e.t.Fatalf("waited too long for %s: %s", what, e.log.String())
		}
	}
}

func (e *editor) note(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.changed)
	e.changed = make(chan struct{})
}

// told are the updates of the session.
func (e *editor) told() []wire.SessionUpdate {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []wire.SessionUpdate
	for _, u := range e.updates {
		if u.SessionId == e.session {
			out = append(out, u.Update)
		}
	}
	return out
}

func (e *editor) text() string {
	var b strings.Builder
	for _, u := range e.told() {
		if u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil {
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

func (e *editor) thoughts() string {
	var b strings.Builder
	for _, u := range e.told() {
		if u.AgentThoughtChunk != nil {
			b.WriteString(u.AgentThoughtChunk.Content.Text.Text)
		}
	}
	return b.String()
}

func (e *editor) spoken() string {
	var b strings.Builder
	for _, u := range e.told() {
		if u.UserMessageChunk != nil && u.UserMessageChunk.Content.Text != nil {
			b.WriteString(u.UserMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

// calls are the calls as an editor shows them after all updates.
func (e *editor) calls() []wire.SessionUpdateToolCall {
	var out []wire.SessionUpdateToolCall
	for _, u := range e.told() {
		if u.ToolCall != nil {
			out = append(out, *u.ToolCall)
		}
		n := u.ToolCallUpdate
		if n == nil {
			continue
		}
		i := slices.IndexFunc(out, func(c wire.SessionUpdateToolCall) bool { return c.ToolCallId == n.ToolCallId })
		if i < 0 {
			e.t.Errorf("an update of a call that was never told: %s", n.ToolCallId)
			continue
		}
		c := &out[i]
		if n.Status != nil {
			c.Status = *n.Status
		}
		if n.Title != nil {
			c.Title = *n.Title
		}
		if n.Kind != nil {
			c.Kind = *n.Kind
		}
		if n.Content != nil {
			c.Content = n.Content
		}
		if n.Locations != nil {
			c.Locations = n.Locations
		}
		if n.RawInput != nil {
			c.RawInput = n.RawInput
		}
	}
	return out
}

// last is the last call.
func (e *editor) last() wire.SessionUpdateToolCall {
	all := e.calls()
	if len(all) == 0 {
		return wire.SessionUpdateToolCall{}
	}
	return all[len(all)-1]
}

// shown is the text of the content of a call.
func shown(c wire.SessionUpdateToolCall) string {
	raw, err := json.Marshal(c.Content)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (e *editor) questions() []wire.RequestPermissionRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// choose answers questions with an option.
func choose(id string) func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
	return func(wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
		return wire.RequestPermissionResponse{Outcome: wire.RequestPermissionOutcome{Selected: &wire.RequestPermissionOutcomeSelected{OptionId: wire.PermissionOptionId(id)}}}, nil
	}
}

// What the agent asks of the editor.

func (e *editor) SessionUpdate(_ context.Context, n wire.SessionNotification) error {
	e.note(func() { e.updates = append(e.updates, n) })
	return nil
}

func (e *editor) RequestPermission(ctx context.Context, p wire.RequestPermissionRequest) (wire.RequestPermissionResponse, error) {
	e.note(func() { e.asked = append(e.asked, p) })
	if e.permit != nil {
		return e.permit(p)
	}
	<-ctx.Done()
	e.note(func() { e.dropped++ })
	return wire.RequestPermissionResponse{}, ctx.Err()
}

func (e *editor) UnstableCreateElicitation(_ context.Context, p wire.UnstableCreateElicitationRequest) (wire.UnstableCreateElicitationResponse, error) {
	if p.Url == nil {
		return wire.UnstableCreateElicitationResponse{}, wire.NewInvalidParams("it asks for a form")
	}
	e.note(func() { e.sent = append(e.sent, *p.Url) })
	switch e.visit {
	case "accept":
		return wire.NewUnstableCreateElicitationResponseAccept(), nil
	case "decline":
		return wire.NewUnstableCreateElicitationResponseDecline(), nil
	case "cancel":
		return wire.NewUnstableCreateElicitationResponseCancel(), nil
	}
	return wire.UnstableCreateElicitationResponse{}, wire.NewInternalError("no browser")
}

func (e *editor) UnstableCompleteElicitation(context.Context, wire.UnstableCompleteElicitationNotification) error {
	return nil
}

func (e *editor) ReadTextFile(_ context.Context, p wire.ReadTextFileRequest) (wire.ReadTextFileResponse, error) {
	if e.read == nil {
		return wire.ReadTextFileResponse{}, wire.NewMethodNotFound("fs/read_text_file")
	}
	text, err := e.read(p.Path)
	return wire.ReadTextFileResponse{Content: text}, err
}

func (e *editor) WriteTextFile(_ context.Context, p wire.WriteTextFileRequest) (wire.WriteTextFileResponse, error) {
	if e.write == nil {
		return wire.WriteTextFileResponse{}, wire.NewMethodNotFound("fs/write_text_file")
	}
	return wire.WriteTextFileResponse{}, e.write(p.Path, p.Content)
}

// speak gives a server some lines and returns its answers until it has ended.
func speak(t testing.TB, s *acp.Server, lines ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := s.Serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Error(err)
	}
	var answers []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["jsonrpc"] != "2.0" {
			t.Errorf("%q is no message: %v", line, err)
		}
		answers = append(answers, m)
	}
	return answers
}

// say and call are steps of the model.
func say(text string) script.Step { return script.Step{Parts: llm.Say(text)} }

func call(name, args string) script.Step {
	return script.Step{Parts: llm.Parts{llm.Call{Name: name, Args: json.RawMessage(args)}}}
}
