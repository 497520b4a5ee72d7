//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// TestEverything talks to the reference server in all ways that it speaks.
func TestEverything(t *testing.T) {
	t.Parallel()
	modules := peers(t)
	for _, kind := range []string{mcp.Stdio, mcp.HTTP, mcp.SSE} {
		t.Run(kind, func(t *testing.T) {
			server := mcp.Server{Name: "every", Command: npm(modules, "everything", "stdio"), Source: mcp.User}
			if kind != mcp.Stdio {
				server = mcp.Server{Name: "every", URL: listening(t, modules, kind), Kind: kind, Source: mcp.User}
			}
			h := newHouse(t, server)
			guard := &netguard.Guard{
				Local:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
				MaxBytes: 1 << 30,
			}
			h.HTTP = func(mcp.Server) *http.Client { return guard.Client() }
			asked := &person{answers: slices.Repeat([]string{"1"}, 40)}
			h.ask = asked.ask
			s := h.begin("every", mcp.Ready)
			if s.Tools < 8 || s.Revision != "2025-11-25" || s.Tokens < 100 || s.Kind != kind || s.Latency <= 0 {
				t.Errorf("%+v", s)
			}
			used(t, h)
			research(t, h, asked)
			if kind != mcp.Stdio {
				if strings.Contains(h.names(), "roots") {
					t.Error("a server that is no program is told of folders")
				}
				return
			}
			h.until("its tool for folders", func() bool { return strings.Contains(h.names(), "get-roots-list") })
			if res, err := h.call(t.Context(), "mcp__every__get-roots-list", "{}"); err != nil ||
				!strings.Contains(text(res), "file://"+h.Env.Root) {
				t.Errorf("%s, %v", text(res), err)
			}
		})
	}
}

// used uses all features of the reference server.
func used(t *testing.T, h *house) {
	t.Helper()
	for _, c := range [][3]string{
		{"echo", `{"message":"hello"}`, "hello"},
		{"get-tiny-image", `{}`, "<image/png "},
		{"get-structured-content", `{"location":"New York"}`, "temperature"},
		{"trigger-long-running-operation", `{"duration":0.2,"steps":2}`, "completed"},
	} {
		if res, err := h.call(t.Context(), "mcp__every__"+c[0], c[1]); err != nil || !strings.Contains(text(res), c[2]) || !res.Untrusted {
			t.Errorf("%s: %s, %v", c[0], text(res), err)
		}
	}
	h.until("prompts", func() bool { return len(h.Prompts()) > 1 })
	list, err := h.Resources(t.Context(), "every")
	if err != nil || len(list) == 0 {
		t.Fatalf("resources %+v, %v", list, err)
	}
	if p, err := h.Read(t.Context(), "every", list[0].URI); err != nil || p.Bytes() == 0 {
		t.Errorf("%s is %v, %v", list[0].URI, p, err)
	}
}

// research calls a tool that is only called as a task, of revision 2025-11-25: to its end,
// with a question on the way, and interrupted.
func research(t *testing.T, h *house, asked *person) {
	t.Helper()
	const name = "mcp__every__simulate-research-query"
	res, err := h.call(t.Context(), name, `{"topic":"herons"}`)
	if err != nil || !strings.Contains(text(res), "Research Report: herons") || !res.Untrusted {
		t.Errorf("%s, %v", text(res), err)
	}
	before := len(asked.asked)
	res, err = h.call(t.Context(), name, `{"topic":"python","ambiguous":true}`)
	if err != nil || !strings.Contains(text(res), "Research Report: python (programming)") || len(asked.asked) <= before ||
		!strings.Contains(asked.asked[before], "multiple interpretations") {
		t.Errorf("%s, %v, asked %q", text(res), err, asked.asked[before:])
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = h.tool(name).Run(ctx, &tool.Call{Args: []byte(`{"topic":"cut short"}`), Progress: func(string) { cancel() }})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was interrupted; its effects until then are unknown") {
		t.Error(err)
	}
}

// listening starts the reference server over HTTP and returns its address.
func listening(t *testing.T, modules, kind string) string {
	t.Helper()
	port := free(t)
	start(t, port, []string{fmt.Sprintf("PORT=%d", port)}, npm(modules, "everything",
		map[string]string{mcp.HTTP: "streamableHttp", mcp.SSE: "sse"}[kind]))
	return fmt.Sprintf("http://127.0.0.1:%d/%s", port, map[string]string{mcp.HTTP: "mcp", mcp.SSE: "sse"}[kind])
}

// bridged is a server like one that is a program, behind a bridge that others made.
func bridged(t *testing.T, modules, kind string, s mcp.Server) mcp.Server {
	t.Helper()
	if kind == mcp.Stdio {
		return s
	}
	port := free(t)
	bridge := []string{
		s.Command[0], filepath.Join(modules, "supergateway", "dist", "index.js"), "--port", fmt.Sprint(port), "--stdio",
		strings.Join(s.Command, " "),
		"--outputTransport", map[string]string{mcp.HTTP: "streamableHttp", mcp.SSE: "sse", mcp.WebSocket: "ws"}[kind],
	}
	switch kind {
	case mcp.HTTP:
		bridge, s.URL = append(bridge, "--stateful"), fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	case mcp.SSE:
		s.URL = fmt.Sprintf("http://127.0.0.1:%d/sse", port)
	case mcp.WebSocket:
		s.URL = fmt.Sprintf("ws://127.0.0.1:%d/message", port)
	}
	var env []string
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	start(t, port, env, bridge)
	s.Kind, s.Command, s.Env = kind, nil, nil
	return s
}

// free is an unused port.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts a program and returns once it reports that it listens at the port. The program and its children end with
// the test.
func start(t *testing.T, port int, env, args []string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, out, err := os.Pipe()
	if err == nil {
		cmd.Stdout, cmd.Stderr = out, out
		err = errors.Join(cmd.Start(), out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	listens := regexp.MustCompile(fmt.Sprintf(`(?i)(listening|running|started).*\b%d\b`, port))
	ready, done := make(chan bool), make(chan struct{})
	go func() {
		defer close(done)
		told := false
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if !told && listens.MatchString(lines.Text()) {
				told = true
				ready <- true
			}
		}
		if !told {
			close(ready)
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		_ = cmd.Wait()
		said.Close()
	})
	if !<-ready {
		t.Fatalf("%q does not start", args)
	}
}

// TestFilesAndMemory does some work with the servers for files and for memory, over each
// transport.
func TestFilesAndMemory(t *testing.T) {
	t.Parallel()
	modules := peers(t)
	for _, kind := range []string{mcp.Stdio, mcp.HTTP, mcp.SSE, mcp.WebSocket} {
		t.Run(kind, func(t *testing.T) { filesAndMemory(t, modules, kind) })
	}
}

func filesAndMemory(t *testing.T, modules, kind string) {
	h := newHouse(t)
	root := h.Env.Root
	h.Servers = []mcp.Server{
		bridged(t, modules, kind, mcp.Server{Name: "files", Command: npm(modules, "filesystem", root), Source: mcp.User}),
		bridged(t, modules, kind, mcp.Server{
			Name: "memory", Command: npm(modules, "memory"), Source: mcp.User,
			Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(root, "memory.json")},
		}),
	}
	guard := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxBytes: 1 << 30}
	h.HTTP = func(mcp.Server) *http.Client { return guard.Client() }
	for _, name := range []string{"files", "memory"} {
		if s := h.begin(name, mcp.Ready); s.Kind != kind {
			t.Errorf("%+v", s)
		}
	}
	path := filepath.Join(root, "a.txt")
	for _, c := range [][3]string{
		{"files__write_file", fmt.Sprintf(`{"path":%q,"content":"heron"}`, path), "a.txt"},
		{"files__read_text_file", fmt.Sprintf(`{"path":%q}`, path), "heron"},
		{"files__list_directory", fmt.Sprintf(`{"path":%q}`, root), "a.txt"},
		{"memory__create_entities", `{"entities":[{"name":"heron","entityType":"bird","observations":["it wades"]}]}`, "heron"},
		{"memory__search_nodes", `{"query":"wades"}`, "heron"},
	} {
		if res, err := h.call(t.Context(), "mcp__"+c[0], c[1]); err != nil || !strings.Contains(text(res), c[2]) {
			t.Errorf("%s: %s, %v", c[0], text(res), err)
		}
	}
	if _, err := h.call(t.Context(), "mcp__files__read_text_file", `{"path":"/etc/passwd"}`); err == nil {
		t.Error("a file outside was read")
	}
	for name, want := range map[string]string{"a.txt": "heron", "memory.json": "wades"} {
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
