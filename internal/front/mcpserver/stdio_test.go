package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/front/mcpserver"
	"github.com/inspan/inspan/internal/testkit"
)

// sink is an end of a pipe that keeps the written bytes.
type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

// ear keeps the written bytes and the time of the last answer.
type ear struct {
	sink
	last chan struct{}
	once sync.Once
}

func (e *ear) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"id":"the last one"`)) {
		e.once.Do(func() { close(e.last) })
	}
	return e.sink.Write(p)
}

// typed sends text and a ping to a server with nothing to offer, hangs up when that is
// answered, and returns all answers.
func typed(t testing.TB, text string) (string, error) {
	t.Helper()
	out := &ear{last: make(chan struct{})}
	s := &mcpserver.Server{Root: "/"}
	in, typing := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := io.WriteString(typing, text+ping); err == nil {
			select {
			case <-out.last:
			case <-time.After(testkit.Patience):
			}
		}
		_ = typing.Close()
	})
	err := s.ServeStdio(t.Context(), in, out)
	wg.Wait()
	return out.String(), err
}

const ping = `{"jsonrpc":"2.0","id":"the last one","method":"ping"}` + "\n"

// TestNonsense checks that a line that is not a message is answered, and so is the next one.
func TestNonsense(t *testing.T) {
	for _, text := range []string{
		"", "hello", "{", "[]", "null", "42", `"x"`, "{}", `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "\x00\xff", strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":"x"}`,
	} {
		out, err := typed(t, text+"\r\n")
		if err != nil || !strings.Contains(out, `"id":"the last one"`) || strings.Contains(out, `"the last one","error"`) {
			t.Errorf("%.60q: %v\n%s", text, err, out)
		}
		if text == "hello" && !strings.Contains(out, `"code":-32700`) {
			t.Errorf("%s", out)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%.60q: it answers %q", text, line)
			}
		}
	}
	if _, err := typed(t, strings.Repeat("x", 17<<20)+"\n"); err == nil {
		t.Error("a line without an end")
	}
}

func FuzzLines(f *testing.F) {
	for _, text := range []string{
		ping, "{",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x",` +
			`"version":"1"}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "the last one") {
			return
		}
		out, err := typed(t, text+"\n")
		if err != nil || !strings.Contains(out, `"the last one"`) {
			t.Errorf("%v: %q", err, out)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("it answers %q", line)
			}
		}
	})
}

// process is a server that runs as one, fed by a client that can be killed.
type process struct {
	server, feeder *exec.Cmd
	in             io.WriteCloser
	out            *bufio.Reader
}

func start(t *testing.T, root string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	between, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{server: exec.Command(self, "serve", root), feeder: exec.Command("cat")}
	p.feeder.Stdout, p.server.Stdin, p.server.Stderr = ours, between, os.Stderr
	out, err1 := p.server.StdoutPipe()
	in, err2 := p.feeder.StdinPipe()
	if err := errors.Join(err1, err2, p.feeder.Start(), p.server.Start(), ours.Close(), between.Close()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		_ = p.feeder.Process.Kill() // it may be dead
		_ = p.server.Process.Kill()
		_ = p.feeder.Wait()
		_ = p.server.Wait()
	})
	return p
}

func (p *process) send(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

// TestKill checks that nothing runs on when the client is killed, or the server itself.
func TestKill(t *testing.T) {
	for i, who := range []string{"client", "server"} {
		t.Run(who, func(t *testing.T) {
			h := newHouse(t, "auto")
			p := start(t, h.Root)
			p.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x",`+
				`"version":"1"}}}`, older)
			if line, err := p.out.ReadString('\n'); err != nil || !strings.Contains(line, "serverInfo") {
				t.Fatal(line, err)
			}
			p.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			p.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_agent","arguments":{"task":"bash: sleep %s"}}}`,
				mark(40+i))
			p.send(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"bash","arguments":{"command":"sleep %s & sleep %[1]s"}}}`,
				mark(40+i))
			testkit.WaitFor(t, "the processes", func() bool { return processes(t, mark(40+i)) > 2 })
			victim := p.feeder
			if who == "server" {
				victim = p.server
			}
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			testkit.WaitFor(t, "their end", func() bool { return processes(t, mark(40+i)) == 0 })
			if who == "client" {
				ended := make(chan error, 1)
				go func() { ended <- p.server.Wait() }()
				if err := testkit.Receive(t, "the end of the server", ended); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestInspector has the inspector that others have written talk to the server, at a
// pipe and over HTTP.
func TestInspector(t *testing.T) {
	dir := testkit.Dir(t)
	h := newHouse(t, "auto")
	h.write("a.txt", "the first line\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url := h.listen(two())
	for name, target := range map[string][]string{
		"pipe": {self, "serve", h.Root},
		"HTTP": {url, "--transport", "http", "--header", "Authorization: Bearer " + annsToken},
	} {
		for _, tc := range []struct {
			want string
			args []string
		}{
			{`"run_agent"`, []string{"--method", "tools/list"}},
			{"the first line", []string{"--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=a.txt"}},
			{`"stopped": "done"`, []string{"--method", "tools/call", "--tool-name", "run_agent", "--tool-arg", "task=bash: echo 6*7=$((6*7))"}},
		} {
			args := append(append([]string{"mcp-inspector", "--cli"}, target...), tc.args...)
			if name == "pipe" { // it hands on nothing of the environment but what is named
				args = append(args, "-e", "INSPAN_STATE_DIR="+h.state, "-e", "INSPAN_CONFIG_DIR="+os.Getenv("INSPAN_CONFIG_DIR"))
			}
			if out, err := peer(t, 4*time.Minute, dir, args...); err != nil || !strings.Contains(out, tc.want) {
				t.Errorf("%s, %v: %v\n%s", name, tc.args, err, out)
			}
		}
	}
	n := 0
	for _, err := range h.Host.List(t.Context()) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 4 { // two calls of a tool and two agents
		t.Errorf("%d sessions", n)
	}
	if out, err := peer(t, 4*time.Minute, dir, "mcp-inspector", "--cli", url, "--transport", "http", "--method", "tools/list"); err == nil {
		t.Errorf("without a token: %s", out)
	}
}

// TestStops checks that a server at a pipe ends with its context, and all that it does.
func TestStops(t *testing.T) {
	h := newHouse(t, "auto")
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	served := make(chan error)
	go func() { served <- h.ServeStdio(ctx, in, &sink{}) }()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x",` +
			`"version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bash","arguments":{"command":"sleep ` + mark(50) + `"}}}`,
	} {
		if _, err := io.WriteString(typing, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	testkit.WaitFor(t, "the process", func() bool { return processes(t, mark(50)) > 0 })
	cancel()
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := processes(t, mark(50)); n > 0 {
		t.Errorf("%d processes", n)
	}
}
