//go:build unix

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/internal/front/acp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
)

// TestMistakes checks lines that no client should send.
func TestMistakes(t *testing.T) {
	request := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
	}
	for name, tc := range map[string]struct {
		line string
		code float64 // 0 means no answer
		id   any
	}{
		"empty":           {"", 0, nil},
		"blank":           {" \t ", 0, nil},
		"no JSON":         {"hello", -32700, nil},
		"half":            {`{"jsonrpc":"2.0"`, -32700, nil},
		"list":            {`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, -32600, nil},
		"text":            {`"x"`, -32600, nil},
		"null":            {`null`, -32600, nil},
		"other version":   {`{"jsonrpc":"1.0","id":7,"method":"initialize"}`, -32600, nil},
		"no version":      {`{"id":7,"method":"initialize"}`, -32600, nil},
		"odd id":          {`{"jsonrpc":"2.0","id":{},"method":"initialize"}`, -32600, nil},
		"null id":         {`{"jsonrpc":"2.0","id":null,"method":"initialize"}`, -32600, nil},
		"odd method":      {`{"jsonrpc":"2.0","id":7,"method":7}`, -32600, nil},
		"neither":         {`{"jsonrpc":"2.0"}`, -32600, nil},
		"stray answer":    {`{"jsonrpc":"2.0","id":99,"result":{}}`, 0, nil},
		"stray error":     {`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"x"}}`, 0, nil},
		"unknown":         {request("session/dance", `{}`), -32601, 7.0},
		"ours, unknown":   {request("_inspan/dance", `{}`), -32601, 7.0},
		"a text for id":   {`{"jsonrpc":"2.0","id":"a b","method":"x"}`, -32601, "a b"},
		"notice, unknown": {`{"jsonrpc":"2.0","method":"dance"}`, 0, nil},
		"cancel nothing":  {`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}`, 0, nil},
		"cancel oddly":    {`{"jsonrpc":"2.0","method":"$/cancel_request","params":7}`, 0, nil},
		"cancel nobody":   {`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`, 0, nil},
		"params of text":  {request("session/new", `"x"`), -32602, 7.0},
		"relative":        {request("session/new", `{"cwd":"work","mcpServers":[]}`), -32602, 7.0},
		"no folder":       {request("session/new", `{"cwd":"/gone/for/good","mcpServers":[]}`), -32602, 7.0},
		"no cwd":          {request("session/new", `{"mcpServers":[]}`), -32602, 7.0},
		"odd server":      {request("session/new", `{"cwd":"/","mcpServers":[{"type":"acp","id":"x","name":"x"}]}`), -32602, 7.0},
		"no session":      {request("session/prompt", `{"sessionId":"x","prompt":[]}`), -32002, 7.0},
		"load nothing":    {request("session/load", `{"sessionId":"20261121-101010-abcd","cwd":"/","mcpServers":[]}`), -32002, 7.0},
		"load the last":   {request("session/load", `{"sessionId":"last","cwd":"/","mcpServers":[]}`), -32002, 7.0},
		"resume nameless": {request("session/resume", `{"sessionId":"","cwd":"/"}`), -32002, 7.0},
		"fork nothing":    {request("session/fork", `{"sessionId":"../x","cwd":"/"}`), -32002, 7.0},
		"close nothing":   {request("session/close", `{"sessionId":"x"}`), -32002, 7.0},
		"mode of nothing": {request("session/set_mode", `{"sessionId":"x","modeId":"ask"}`), -32002, 7.0},
		"switch nothing":  {request("session/set_config_option", `{"sessionId":"x","configId":"mode","value":"ask"}`), -32002, 7.0},
		"steer nothing":   {request("_inspan/steer", `{"sessionId":"x","prompt":"x"}`), -32002, 7.0},
		"name nothing":    {request("session/set_title", `{"sessionId":"x","title":"x"}`), -32002, 7.0},
		"name the last":   {request("session/set_title", `{"sessionId":"last","title":"x"}`), -32002, 7.0},
		"no name":         {request("session/set_title", `{"sessionId":"x","title":" "}`), -32602, 7.0},
		"odd cursor":      {request("session/list", `{"cursor":"x"}`), -32602, 7.0},
		"log in":          {request("authenticate", `{"methodId":"x"}`), -32602, 7.0},
	} {
		t.Run(name, func(t *testing.T) {
			answers := speak(t, serverIn(t.TempDir(), nil), tc.line)
			if tc.code == 0 {
				if len(answers) > 0 {
					t.Errorf("answered %v", answers)
				}
				return
			}
			if len(answers) != 1 {
				t.Fatalf("%d answers: %v", len(answers), answers)
			}
			fault, _ := answers[0]["error"].(map[string]any)
			if fault["code"] != tc.code || answers[0]["id"] != tc.id || fault["message"] == "" {
				t.Errorf("answered %v", answers[0])
			}
		})
	}
}

func TestInitialize(t *testing.T) {
	answers := speak(t, serverIn(t.TempDir(), nil),
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":9,"clientCapabilities":{"session":7,`+
			`"elicitation":{"form":{}}}}}`)
	result := answers[0]["result"].(map[string]any)
	agent := result["agentCapabilities"].(map[string]any)
	var names []string
	for _, name := range []string{"close", "delete", "fork", "list", "resume", "title"} {
		if _, ok := agent["sessionCapabilities"].(map[string]any)[name]; ok {
			names = append(names, name)
		}
	}
	steer := agent["_meta"].(map[string]any)["inspan"].(map[string]any)["steer"]
	if result["protocolVersion"] != 1.0 || agent["loadSession"] != true || len(names) != 6 || steer != "_inspan/steer" {
		t.Errorf("%v", result)
	}
	if methods, ok := result["authMethods"].([]any); !ok || len(methods) != 0 {
		t.Errorf("%v", result["authMethods"])
	}
}

// TestUnconfigured checks that the error says how to get a model.
func TestUnconfigured(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN"} {
		t.Setenv(name, "")
	}
	root := folder(t)
	s := &acp.Server{App: app.New(&config.Installation{StateDir: t.TempDir(), Config: config.Config{Model: "nowhere/x"}})}
	e := start(t, s, root, wire.ClientCapabilities{})
	r, err := e.conn.Initialize(t.Context(), wire.InitializeRequest{ProtocolVersion: 1})
	if err != nil || len(r.AuthMethods) != 1 || r.AuthMethods[0].Agent == nil ||
		!strings.Contains(*r.AuthMethods[0].Agent.Description, "nowhere") {
		t.Errorf("initialize: %+v, %v", r, err)
	}
	there := wire.ClientCapabilities{Auth: wire.AuthCapabilities{Terminal: true}}
	r, err = e.conn.Initialize(t.Context(), wire.InitializeRequest{ProtocolVersion: 1, ClientCapabilities: there})
	if err != nil || len(r.AuthMethods) != 2 || r.AuthMethods[0].Terminal == nil || !slices.Equal(r.AuthMethods[0].Terminal.Args, []string{"--setup"}) {
		t.Errorf("initialize of a client with terminals: %+v, %v", r, err)
	}
	_, err1 := e.conn.Authenticate(t.Context(), wire.AuthenticateRequest{MethodId: "setup"})
	_, err2 := e.conn.NewSession(t.Context(), wire.NewSessionRequest{Cwd: root, McpServers: []wire.McpServer{}})
	for _, err := range []error{err1, err2} {
		var fault *wire.RequestError
		if !errors.As(err, &fault) || fault.Code != -32000 || !strings.Contains(fault.Message, `no provider "nowhere"`) {
			t.Error(err)
		}
	}
}

// endless is a line that does not end before its size.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

func TestLongLine(t *testing.T) {
	var out bytes.Buffer
	in := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`), &endless{left: 65 << 20},
		strings.NewReader("\"}\n"+`{"jsonrpc":"2.0","id":2,"method":"x"}`))
	if err := serverIn(t.TempDir(), nil).Serve(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "longer than 67108864 bytes") ||
		!strings.Contains(lines[0], `"id":null`) || !strings.Contains(out.String(), `"id":2`) {
		t.Errorf("%.500s", out.String())
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error)  { return 0, f.error }
func (f failing) Write([]byte) (int, error) { return 0, f.error }

func TestStreamsFail(t *testing.T) {
	broken := failing{errors.New("it is broken")}
	if err := serverIn(t.TempDir(), nil).Serve(t.Context(), broken, io.Discard); !errors.Is(err, broken.error) {
		t.Errorf("reading: %v", err)
	}
	in, feed := io.Pipe()
	go func() { _, _ = io.WriteString(feed, "x\n") }()
	if err := serverIn(t.TempDir(), nil).Serve(t.Context(), in, broken); !errors.Is(err, broken.error) {
		t.Errorf("writing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, feed2 := io.Pipe()
	cancel()
	if err := serverIn(t.TempDir(), nil).Serve(ctx, in, io.Discard); err != nil {
		t.Errorf("cancelled: %v", err)
	}
	for _, feed := range []io.Writer{feed, feed2} {
		if _, err := feed.Write([]byte("x")); err == nil {
			t.Error("in is still read")
		}
	}
}

// TestTwiceTheSameID does not take a request whose answer could not be told apart.
func TestTwiceTheSameID(t *testing.T) {
	root := folder(t)
	var same []string
	for range 300 {
		same = append(same, fmt.Sprintf(`{"jsonrpc":"2.0","id":1.0,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, root),
			`{"jsonrpc":"2.0","id":1,"method":"session/list"}`)
	}
	refused := 0
	answers := speak(t, serverIn(t.TempDir(), nil), same...)
	for _, a := range answers {
		if raw, _ := json.Marshal(a["error"]); strings.Contains(string(raw), "in use") {
			refused++
		}
	}
	if refused == 0 || refused > 599 {
		t.Errorf("%d of %d refused", refused, len(answers))
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,` +
		`"clientCapabilities":{"fs":{"readTextFile":true}}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"ROOT","mcpServers":[]}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text","text":"x"}]}}` + "\n" +
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"20261121-101010-abcd","cwd":"ROOT",` +
		`"mcpServers":[{"name":"x","command":"y","args":[],"env":[]}]}}`))
	f.Add([]byte("[]\n{}\n\n\"\\ud800\"\nnull\n{\"id\":1}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":-0,"method":"session/list","params":{"cursor":"2026-01-01T00:00:00Z/x","cwd":"ROOT"}}`))
	for _, method := range []string{
		"session/fork", "session/resume", "session/close", "session/delete", "session/set_title",
		"session/set_mode", "session/set_config_option", "_inspan/steer", "_inspan/queue", "authenticate", "$/cancel_request",
	} {
		f.Add([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":%q,"params":{"sessionId":"x","cwd":"ROOT","title":"x","modeId":"ask",`+
			`"configId":"mode","value":"ask","prompt":"x","requestId":1}}`, method)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		root := t.TempDir()
		in = bytes.ReplaceAll(in, []byte("ROOT"), []byte(root))
		var out bytes.Buffer
		if err := serverIn(t.TempDir(), nil).Serve(t.Context(), bytes.NewReader(in), &out); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		open := map[string]int{} // requests without an answer
		for line := range bytes.Lines(in) {
			var m struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Method  string          `json:"method"`
			}
			if json.Unmarshal(line, &m) == nil && m.Version == "2.0" && m.Method != "" && len(m.ID) > 0 &&
				strings.ContainsRune(`"-0123456789`, rune(m.ID[0])) {
				open[id(m.ID)]++
			}
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Method  string          `json:"method"`
				Error   json.RawMessage `json:"error"`
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
				t.Errorf("%q wrote %q", in, line)
			}
			if m.Method == "" {
				open[id(m.ID)]--
			}
		}
		for id, n := range open {
			if id != "null" && n != 0 {
				t.Errorf("%q: %d answers are missing to %s", in, n, id)
			}
		}
	})
}

// id is an id however it is spelled.
func id(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}
