package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/netguard"
)

// TestEverything talks to the reference server in all ways that it speaks.
func TestEverything(t *testing.T) {
	modules := peers(t)
	for _, kind := range []string{mcp.Stdio, mcp.HTTP, mcp.SSE} {
		t.Run(kind, func(t *testing.T) {
			server := mcp.Server{Name: "every", Command: npm(modules, "everything", "stdio"), Source: mcp.User}
			if kind != mcp.Stdio {
				server = mcp.Server{Name: "every", URL: listening(t, modules, kind), Kind: kind, Source: mcp.User}
			}
			h := newHouse(t, server)
			guard := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, MaxBytes: 1 << 30}
			h.HTTP = func(mcp.Server) *http.Client { return guard.Client() }
			asked := &person{answers: slices.Repeat([]string{"1"}, 40)}
			h.ask = asked.ask
			s := h.begin("every", mcp.Ready)
			if s.Tools < 8 || s.Revision != "2025-11-25" || s.Tokens < 100 || s.Kind != kind || s.Latency <= 0 {
				t.Errorf("%+v", s)
			}
			used(t, h)
		})
	}
}

// used uses what the reference server has.
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

// listening starts the reference server over HTTP and returns its address.
func listening(t *testing.T, modules, kind string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	args := npm(modules, "everything", map[string]string{mcp.HTTP: "streamableHttp", mcp.SSE: "sse"}[kind])
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	ready := make(chan bool)
	done := make(chan struct{})
	go func() {
		defer close(done)
		told := false
		for lines.Scan() {
			if !told && strings.Contains(lines.Text(), fmt.Sprint(port)) {
				told = true
				ready <- true
			}
		}
		if !told {
			close(ready)
		}
	}()
	t.Cleanup(func() { cancel(); <-done; _ = cmd.Wait() })
	if !<-ready {
		t.Fatal("the reference server does not start")
	}
	return fmt.Sprintf("http://127.0.0.1:%d/%s", port, map[string]string{mcp.HTTP: "mcp", mcp.SSE: "sse"}[kind])
}

// TestFilesAndMemory does some work with the servers for files and for memory.
func TestFilesAndMemory(t *testing.T) {
	modules := peers(t)
	h := newHouse(t,
		mcp.Server{Name: "files", Command: npm(modules, "filesystem", "."), Source: mcp.User},
		mcp.Server{Name: "memory", Command: npm(modules, "memory"), Source: mcp.User, Env: map[string]string{"MEMORY_FILE_PATH": "${ROOT}/memory.json"}})
	h.Expand = func(mcp.Server, string) string { return h.Env.Root }
	h.begin("files", mcp.Ready)
	h.begin("memory", mcp.Ready)
	for _, c := range [][3]string{
		{"files__write_file", `{"path":"a.txt","content":"heron"}`, "a.txt"},
		{"files__read_text_file", `{"path":"a.txt"}`, "heron"},
		{"files__list_directory", `{"path":"."}`, "a.txt"},
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
		if data, err := os.ReadFile(filepath.Join(h.Env.Root, name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
