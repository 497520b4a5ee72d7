//go:build unix

package custom_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

// bench is a set with one folder of programs, and the warnings to people.
type bench struct {
	*custom.Set
	dir string

	mu   sync.Mutex
	said []string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir}
	b.Set = &custom.Set{Env: env, Folders: []custom.Folder{{Dir: dir, Source: "user"}}, Warn: b.warn, Patience: time.Minute}
	return b
}

func (b *bench) warn(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, text)
}

// warned returns the warnings since the last call.
func (b *bench) warned() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := strings.Join(b.said, "\n")
	b.said = nil
	return out
}

// write puts a file of mode 0o755 below the folder.
func (b *bench) write(t testing.TB, name, text string) string {
	t.Helper()
	return write(t, b.dir, name, text)
}

// write replaces a file: one that runs can't be written to. No process is started meanwhile: it
// would hold the file open for writing until it is another program, and so it could not be run.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock()
	err := os.WriteFile(path+"~", []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path+"~", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// declare makes a program that describes itself, with more fields in the declaration, and otherwise does what body
// says.
func declare(name, more, body string) string {
	if more != "" {
		more = "," + more
	}
	return "#!/bin/sh\nif [ \"$1\" = --describe ]; then\ncat <<'END'\n" +
		`{"name":"` + name + `","description":"Does it.","schema":{"type":"object","properties":{"a":{"type":"string"}}}` +
		more + "}\nEND\nexit\nfi\n" + body + "\n"
}

// names of the tools there are now.
func (b *bench) names(t testing.TB) string {
	t.Helper()
	var out []string
	for _, tl := range b.Tools(t.Context()) {
		out = append(out, tl.Name)
	}
	return strings.Join(out, " ")
}

// one returns the tool of a name.
func (b *bench) one(t testing.TB, name string) tool.Tool {
	t.Helper()
	tools := b.Tools(t.Context())
	i := slices.IndexFunc(tools, func(tl tool.Tool) bool { return tl.Name == name })
	if i < 0 {
		t.Fatalf("no tool %s; %s", name, b.warned())
	}
	return tools[i]
}

// progress collects the output that watchers see.
type progress struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *progress) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(text)
}

func (p *progress) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (b *bench) call(tl tool.Tool, args string, p *progress) *tool.Call {
	if p == nil {
		p = &progress{}
	}
	return &tool.Call{
		ID: "c1", Key: "key of the call", Name: tl.Name, Args: json.RawMessage(args), Session: "s1", Env: b.Env, Cwd: b.Env.Root, Mode: "ask",
		Progress: p.add,
	}
}

// run checks the arguments as the driver does, and runs the tool.
func (b *bench) run(t testing.TB, tl tool.Tool, args string) (tool.Result, error) {
	t.Helper()
	return b.runIn(t.Context(), t, tl, args)
}

func (b *bench) runIn(ctx context.Context, t testing.TB, tl tool.Tool, args string) (tool.Result, error) {
	t.Helper()
	checked, err := tl.Check(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return tl.Run(ctx, b.call(tl, string(checked), nil))
}

// has checks that a text has all of the parts, or that it is empty if there are none.
func has(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	if len(parts) == 0 && text != "" {
		t.Errorf("%s: unexpected %q", what, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q lacks %q", what, text, part)
		}
	}
}
