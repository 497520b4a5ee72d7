//go:build unix

package lsp_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/lsp"
)

// faked is a workspace with one file, a.x, and a fake server for it.
func faked(t testing.TB, kind string) *project {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := lsp.Server{
		Name: "fake", Command: []string{self, "fake", kind}, Languages: map[string]string{".x": "x"},
		Settings: map[string]any{"a": map[string]any{"on": true}}, RootMarkers: []string{"mark"},
	}
	return newProject(t, s, map[string]string{"a.x": "a😀b語c\nsecond\n"})
}

func (p *project) hover() (string, error) {
	return p.Hover(p.t.Context(), p.path("a.x"), lsp.Position{})
}

// starts is how often the fake server was started.
func (p *project) starts() int { return len(p.pids()) }

func (p *project) pids() []int {
	data, _ := os.ReadFile(p.path("started"))
	var out []int
	for _, line := range strings.Fields(string(data)) {
		n, _ := strconv.Atoi(line)
		out = append(out, n)
	}
	return out
}

func TestServersThatFail(t *testing.T) {
	for _, row := range []struct {
		kind   string
		words  []string // of the error
		starts int      // until it is given up
	}{
		{"garbage", []string{"fake", "where the header of a message was due", "Welcome!"}, 2},
		{"huge", []string{"99999999999"}, 2},
		{"endless", []string{"not messages"}, 2},
		{"dies", []string{"exit code 3", "no license found"}, 2},
		{"crash", []string{"exit code 9", "out of cheese"}, 2},
		{"silent", []string{"did not answer in 2s"}, 1},
		{"deaf", []string{"did not answer in 2s"}, 1},
		{"never", []string{"did not answer in 2s"}, 1},
		{"nothing offered", []string{"does not offer textDocument/hover"}, 1},
		{"7", []string{"can't be understood"}, 1},
	} {
		t.Run(row.kind, func(t *testing.T) {
			t.Parallel()
			p := faked(t, row.kind)
			p.SetLimits(testkit.Patience, testkit.Patience)
			if strings.Contains(row.words[0], "did not answer") {
				p.SetLimits(2*time.Second, 200*time.Millisecond)
			}
			_, err := p.hover()
			if err == nil {
				t.Fatal("it worked")
			}
			for _, w := range row.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if got := p.starts(); got != row.starts {
				t.Errorf("it was started %d times, want %d", got, row.starts)
			}
			if row.starts < 2 {
				return
			}
			for range 2 { // the second pause is waited for
				if p.starts() == 3 {
					break
				}
				if _, err := p.hover(); err == nil {
					t.Fatal("it worked after two ends")
				}
			}
			if _, err := p.hover(); err == nil || !strings.Contains(err.Error(), "has ended 3 times and is started again in ") || p.starts() != 3 {
				t.Errorf("after three ends: %v, %d starts", err, p.starts())
			}
		})
	}
}

func TestServersThatAreOdd(t *testing.T) {
	for kind, want := range map[string]string{
		"crash once": "here again",
		"dies once":  "here",
		"flood":      "after the flood",
		"busy":       "all loaded",
		"moody":      "at last",
		"nosy": "1=[{\"on\":true},null]\n\"two\"={\"applied\":false,\"failureReason\":\"edits are not made for servers\"}\n" +
			"3={\"code\":-32601,\"message\":\"\\\"rm/everything\\\" is not known here\"}\n4=null",
		`null`: "",
		`{"contents":{"value":"` + "```go\\na\\n```\\nb" + `","kind":"markdown"}}`: "a\nb",
		`{"contents":["one",{"language":"x","value":"two"}]}`:                      "one\n\ntwo",
		`{"contents":{"value":7}}`:                                                 "",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := faked(t, kind)
			got, err := p.hover()
			if starts := p.starts(); starts != 1 && !strings.HasSuffix(kind, "once") || starts > 2 {
				t.Errorf("%d starts", starts)
			}
			if err != nil || got != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestAnswersOutOfOrder(t *testing.T) {
	p := faked(t, "disorder")
	got := make([]string, 2)
	var wait sync.WaitGroup
	for i := range got {
		wait.Go(func() {
			var err error
			if got[i], err = p.hover(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if s := strings.Join(got, " "); s != "first second" && s != "second first" {
		t.Errorf("got %q", s)
	}
	if p.starts() != 1 {
		t.Errorf("%d starts for two queries at once", p.starts())
	}
}

func TestAnswersAreBounded(t *testing.T) {
	p := faked(t, "big")
	if text, err := p.hover(); err != nil || len(text) > 17<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for _, row := range []struct {
		one          string
		n            int
		places, more int
	}{
		{`{"uri":"URI","range":{"start":{"line":0,"character":N}}}`, 500, 200, 300},
		{`{"uri":"URI","range":{"start":{"line":0,"character":3}}}`, 500, 1, 0},
		{`{"uri":"http://example.com/N","range":{}}`, 10, 0, 0},
		{`{"targetUri":"URI","targetSelectionRange":{"start":{"line":-4,"character":-9},"end":{"line":99999999,"character":9}}}`, 1, 1, 0},
	} {
		var list []string
		for i := range row.n {
			list = append(list, strings.ReplaceAll(row.one, "N", strconv.Itoa(i)))
		}
		p := faked(t, "["+strings.Join(list, ",")+"]")
		found, err := p.Definition(t.Context(), p.path("a.x"), lsp.Position{})
		if err != nil || len(found.List) != row.places || found.More != row.more {
			t.Errorf("%s: %d places and %d more, %v", row.one, len(found.List), found.More, err)
		}
	}
	p = faked(t, "["+strings.Repeat(`{"name":"s","kind":1,"location":{"uri":"file:///x"}},`, 300)+`{"name":"s"}]`)
	if all, err := p.WorkspaceSymbols(t.Context(), "s", p.path("a.x")); err != nil || len(all.List) != 200 || all.More != 101 {
		t.Errorf("%d symbols and %d more, %v", len(all.List), all.More, err)
	}
	deep := strings.Repeat(`[{"name":"s","kind":99,"children":`, 200) + "[]" + strings.Repeat("}]", 200)
	p = faked(t, deep)
	symbols, err := p.DocumentSymbols(t.Context(), p.path("a.x"))
	if err != nil || len(symbols.List) != 33 || symbols.More != 1 {
		t.Errorf("%d symbols and %d more, %v", len(symbols.List), symbols.More, err)
	}
}

func TestPositions(t *testing.T) {
	for kind, wire := range map[string][]int{"echo": {0, 1, 3, 4, 5, 6}, "bytes": {0, 1, 5, 6, 9, 10}} {
		p := faked(t, kind)
		for i, offset := range []int{0, 1, 5, 6, 9, 10} { // a 😀 b 語 c end
			at := lsp.Position{Byte: offset}
			text, err := p.Hover(t.Context(), p.path("a.x"), at)
			if want := `{"line":0,"character":` + strconv.Itoa(wire[i]) + `}`; err != nil || text != want {
				t.Errorf("%s: byte %d is %s, %v; want %s", kind, offset, text, err, want)
			}
			found, err := p.Definition(t.Context(), p.path("a.x"), at)
			if err != nil || len(found.List) != 1 || found.List[0].Start != at {
				t.Errorf("%s: byte %d comes back as %+v, %v", kind, offset, found, err)
			}
		}
	}
}

func TestEdits(t *testing.T) {
	edit := func(at, text string) string {
		at = strings.NewReplacer(":", `,"character":`, "-", `},"end":{"line":`).Replace(at)
		return `{"range":{"start":{"line":` + at + `}},"newText":"` + text + `"}`
	}
	for _, row := range []struct{ answer, after, problem string }{
		{`{"changes":{"URI":[` + edit("0:4-0:5", "Z") + "," + edit("0:0-0:3", "") + `]}}`, "bZc\nsecond\n", ""},
		{`{"documentChanges":[{"textDocument":{"uri":"URI","version":1},"edits":[` + edit("1:0-2:0", "") + `]}]}`, "a😀b語c\n", ""},
		{`{"changes":{"URI":[` + edit("2:0-2:0", "1") + "," + edit("2:0-2:0", "2") + `]}}`, "a😀b語c\nsecond\n12", ""},
		{`{"changes":{"URI":[` + edit("3:0-3:0", "end") + `]}}`, "a😀b語c\nsecond\nend", ""},
		{`{"changes":{"URI":[` + edit("0:0-0:4", "") + "," + edit("0:3-0:5", "") + `]}}`, "", "overlap"},
		{`{"changes":{"URI":[` + edit("1:0-0:0", "") + `]}}`, "", "overlap"},
		{`{"changes":{"URI":[` + edit("4:0-4:1", "") + `]}}`, "", "line 5 is not in the file"},
		{`{"changes":{"URI":[` + edit("9:0-9:1", "") + `]}}`, "", "line 10 is not in the file"},
		{`{"changes":{"file:///etc/hosts":[` + edit("0:0-0:1", "") + `]}}`, "", "outside of the workspace"},
		{`{"changes":{"DIR/../../hosts":[` + edit("0:0-0:1", "") + `]}}`, "", "outside of the workspace"},
		{`{"changes":{"DIR/link":[` + edit("0:0-0:1", "") + `]}}`, "", "outside of the workspace"},
		{`{"changes":{"https://example.com/a":[]}}`, "", "is no file"},
		{`{"changes":{"URI":[` + edit("0:0-0:1", "") + `],"DIR/./a.x":[` + edit("0:0-0:1", "") + `]}}`, "", "two names"},
		{`{"documentChanges":[{"kind":"create","uri":"DIR/b.x"}]}`, "", "it would create files"},
		{`{"documentChanges":[{"textDocument":{"uri":"URI"},"edits":[]},{"textDocument":{"uri":"URI"},"edits":[]}]}`, "", "twice"},
	} {
		t.Run(row.answer, func(t *testing.T) {
			p := faked(t, row.answer)
			if err := os.Symlink("/etc/hosts", p.path("link")); err != nil {
				t.Fatal(err)
			}
			edits, err := p.Rename(t.Context(), p.path("a.x"), lsp.Position{}, "new")
			if row.problem != "" {
				if err == nil || !strings.Contains(err.Error(), row.problem) {
					t.Errorf("%+v, %v", edits, err)
				}
				return
			}
			if err != nil || len(edits) != 1 || edits[0].After != row.after || edits[0].Path != p.path("a.x") {
				t.Errorf("%+v, %v; want %q", edits, err, row.after)
			}
		})
	}
}

func TestPulledDiagnostics(t *testing.T) {
	p := faked(t, "pull")
	r, err := p.Diagnostics(t.Context(), p.path("a.x"), 10*time.Second)
	want := lsp.Diagnostic{
		Location: lsp.Location{Path: p.path("a.x"), Start: lsp.Position{Byte: 1}, End: lsp.Position{Byte: 1}, Text: "a😀b語c"},
		Severity: lsp.Warning, Source: "fake", Code: "12", Message: "pulled",
	}
	if err != nil || !r.Settled || len(r.List) != 1 || r.List[0] != want {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStartedAgain checks that a server that ended twice is there again after a pause.
func TestStartedAgain(t *testing.T) {
	p := faked(t, "dies twice")
	if _, err := p.hover(); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("at first: %v", err)
	}
	began := time.Now()
	if got, err := p.hover(); err != nil || got != "here" || p.starts() != 3 || time.Since(began) < time.Second {
		t.Errorf("then: %q, %v, %d starts after %v", got, err, p.starts(), time.Since(began))
	}
}

// TestFirstDiagnosis checks that diagnoses of a half-loaded project do not count for all of it: inspan waits for the
// server, and the report says if that takes too long.
func TestFirstDiagnosis(t *testing.T) {
	for kind, want := range map[string]lsp.Report{"loads": {Settled: true}, "loads on": {Loading: true}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := faked(t, kind)
			p.SetLimits(0, 2*time.Second)
			r, err := p.Diagnostics(t.Context(), p.path("a.x"), time.Second)
			found := map[string]string{"loads": "all", "loads on": "half"}[kind]
			if err != nil || r.Settled != want.Settled || r.Loading != want.Loading || len(r.List) != 1 || r.List[0].Message != found {
				t.Errorf("%+v, %v; want %q", r, err, found)
			}
		})
	}
}

// TestLocalServers checks that a server of the project is used if PATH has none, that the question names it, and that
// the server in PATH comes first.
func TestLocalServers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := "#!/bin/sh\nexec '" + self + "' fake '" + `{"contents":"the local one"}` + "'\n"
	for _, folder := range []string{"node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"} {
		p := faked(t, "echo")
		p.Servers[0].Command = []string{"language-server-of-a-test"}
		path := folder + "/language-server-of-a-test"
		p.put(path, program)
		if err := os.Chmod(p.path(path), 0o755); err != nil {
			t.Fatal(err)
		}
		list, err := p.Needs(t.Context(), p.path("a.x"))
		if err != nil || len(list) != 2 || list[0].Command[0] != "language-server-of-a-test" || list[1].Command[0] != p.path(path) {
			t.Errorf("%s: it needs %+v, %v", folder, list, err)
		}
		if got, err := p.hover(); err != nil || got != "the local one" {
			t.Errorf("%s: %q, %v", folder, got, err)
		}
	}
	p := faked(t, `{"contents":"the one in PATH"}`)
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/language-server-of-a-test", []byte(strings.ReplaceAll(program, "the local one", "the one in PATH")),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	p.Servers[0].Command = []string{"language-server-of-a-test"}
	p.put("node_modules/.bin/language-server-of-a-test", program)
	if got, err := p.hover(); err != nil || got != "the one in PATH" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNames checks what can be the name of a symbol.
func TestNames(t *testing.T) {
	for _, tc := range []struct{ path, names, not string }{
		{"a.go", "x Total _a größe x1", "1x a-b a.b func a$ x! type"},
		{"a.py", "x __init__ 名前", "class x? a-b None"},
		{"a.ts", "$x #private a$b", "new 1 a-b"},
		{"a.rs", "r#type 'a x", "fn a-b"},
		{"a.rb", "empty? save! name= @x", "a?b 1a"},
		{"a.sh", "my-func x.y", "-x"},
		{"a.hs", "x' foldl'", "'x a-b"},
		{"a.cpp", "~Cart ns::x", "class a-b"},
		{"a.md", "Any-thing 1", ""},
	} {
		for name := range strings.FieldsSeq(tc.names) {
			if err := lsp.CheckName(tc.path, name); err != nil {
				t.Errorf("%s: %v", tc.path, err)
			}
		}
		for name := range strings.FieldsSeq(tc.not) {
			if lsp.CheckName(tc.path, name) == nil {
				t.Errorf("%s: %q is taken", tc.path, name)
			}
		}
	}
	for _, name := range []string{"a b", "a\nb", " a", "a;rm", "a\u202eb"} {
		if lsp.CheckName("a.go", name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestDiagnosticsThatNeverCome(t *testing.T) {
	p := faked(t, "echo")
	p.SetLimits(0, 300*time.Millisecond)
	r, err := p.Diagnostics(t.Context(), p.path("a.x"), 300*time.Millisecond)
	if err != nil || r.Settled || len(r.List) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProgramsThatAreNotThere(t *testing.T) {
	p := faked(t, "echo")
	working := p.Servers[0]
	none := working
	none.Name, none.Command = "none", []string{"no-such-language-server", "--stdio"}
	p.Servers = []lsp.Server{none, working}
	needs := func() string {
		list, err := p.Needs(t.Context(), p.path("a.x"))
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		return strings.Join(names, " ")
	}
	if got := needs(); got != "none fake" {
		t.Errorf("at first it needs %q", got)
	}
	if _, err := p.hover(); err != nil {
		t.Fatal(err)
	}
	if got := needs(); got != "" {
		t.Errorf("when it runs it needs %q", got)
	}
	alone := faked(t, "echo")
	alone.Servers = []lsp.Server{none}
	for range 2 {
		if _, err := alone.hover(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no-such-language-server") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := alone.Needs(t.Context(), alone.path("a.x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := alone.Needs(t.Context(), alone.path("b.unknown")); !errors.Is(err, lsp.ErrNoServer) {
		t.Errorf("error %v", err)
	}
}

func TestFilesThatAreNotServed(t *testing.T) {
	p := faked(t, "echo")
	p.put("latin.x", "caf\xe9")
	p.put("big.x", strings.Repeat("x", 5<<20))
	if err := os.Mkdir(p.path("dir.x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		p.path("latin.x"): "not UTF-8", p.path("big.x"): "larger than 4 MiB", p.path("dir.x"): "not a regular file",
		p.path("gone.x"): "no such file", "/etc/hosts.x": "outside of the workspace", p.Env.Root + "x/a.x": "outside of the workspace",
	} {
		if _, err := p.Hover(t.Context(), path, lsp.Position{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOneServerForEachProject(t *testing.T) {
	p := faked(t, "echo")
	for _, name := range []string{"one/mark", "two/deep/mark"} {
		p.put(name, "")
	}
	for _, name := range []string{"a.x", "one/a.x", "one/deep/b.x", "two/c.x", "two/deep/d.x", "two/deep/er/e.x"} {
		p.put(name, "text\n")
		if _, err := p.Hover(t.Context(), p.path(name), lsp.Position{}); err != nil {
			t.Error(name, err)
		}
	}
	for name, want := range map[string]int{"": 1, "one": 1, "two": 0, "two/deep": 1} {
		data, _ := os.ReadFile(p.path(name + "/started"))
		if got := strings.Count(string(data), "\n"); got != want {
			t.Errorf("%d servers in %q, want %d", got, name, want)
		}
	}
}

// TestTooManyServers needs one server less than there are projects.
func TestTooManyServers(t *testing.T) {
	p := faked(t, "echo")
	var pids []int
	for i := range 9 {
		dir := strconv.Itoa(i)
		p.put(dir+"/mark", "")
		p.put(dir+"/a.x", "text\n")
		if _, err := p.Hover(t.Context(), p.path(dir+"/a.x"), lsp.Position{}); err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(p.path(dir + "/started"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		pids = append(pids, pid)
	}
	testkit.WaitFor(t, "the server that was used least to end", func() bool { return syscall.Kill(pids[0], 0) != nil })
	p.Close()
	for i, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("server %d runs", i)
		}
	}
}

func TestCloseEndsTheStubborn(t *testing.T) {
	p := faked(t, "stubborn")
	if _, err := p.hover(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.Close()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := syscall.Kill(p.pids()[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it runs: %v", err)
	}
	if _, err := p.hover(); err == nil {
		t.Error("it works when it is closed")
	}
}

func TestCloseWhileStarting(t *testing.T) {
	p := faked(t, "silent")
	failed := make(chan error)
	go func() {
		_, err := p.hover()
		failed <- err
	}()
	testkit.WaitFor(t, "a server", func() bool {
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
		return p.starts() > 0
	})
	began := time.Now()
	p.Close()
	if err := <-failed; err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestCancelledQuery(t *testing.T) {
	p := faked(t, "never")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := p.Hover(ctx, p.path("a.x"), lsp.Position{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
