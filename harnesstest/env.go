// Package harnesstest has a test suite for each public interface. Authors of an implementation run its suite.
//
// Run a suite from a test of your own, once for each way to open your implementation. It needs the package
// testing, so it does not belong in a program.
//
// # Compatibility
//
// Suites grow. An implementation that passes today can fail with a later version, which then names the sentence
// of the interface that it breaks. Fields of cases are only added.
package harnesstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestEnv proves that the result of open keeps the contracts of [tool.Env]. Open is called once for each test
// and returns an environment with an empty workspace of its own, which it also cleans up. If Procs is set, the
// environment must have a POSIX sh; without it, tests of links and processes are skipped. Tests that wait for
// seconds run in parallel.
func TestEnv(t *testing.T, open func(t *testing.T) tool.Env) {
	tests := []struct {
		name string
		test func(t *testing.T, w *world)
	}{
		{"Resolve", testResolve},
		{"ResolveLinks", testResolveLinks},
		{"Open", testOpen},
		{"OpenPipe", testOpenPipe},
		{"ChangeCreates", testChangeCreates},
		{"ChangeKeepsMode", testChangeKeepsMode},
		{"ChangeKeepsLinks", testChangeKeepsLinks},
		{"ChangeExact", testChangeExact},
		{"ChangeIf", testChangeIf},
		{"ChangeOnce", testChangeOnce},
		{"ChangeWhole", testChangeWhole},
		{"ChangeRemove", testChangeRemove},
		{"ChangeFails", testChangeFails},
		{"Exit", testExit},
		{"Environment", testEnvironment},
		{"Streams", testStreams},
		{"BigOutput", testBigOutput},
		{"Report", testReport},
		{"ReportAtEnd", testReportAtEnd},
		{"Terminal", testTerminal},
		{"StartFails", testStartFails},
		{"CancelAsks", testCancelAsks},
		{"CancelKills", testCancelKills},
		{"CancelGroup", testCancelGroup},
		{"Kill", testKill},
		{"Descendants", testDescendants},
		{"ManyProcesses", testManyProcesses},
		{"Blobs", testBlobs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, &world{Env: open(t)}) })
	}
}

// world is an environment with shortcuts for tests.
type world struct{ tool.Env }

func (w *world) path(name string) string { return filepath.Join(w.Root, name) }

// write writes a file, which must work.
func (w *world) write(t *testing.T, name, data string) {
	t.Helper()
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path(name), Data: []byte(data)}); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}

// read returns the content of a file and its mode.
func (w *world) read(t *testing.T, name string) (string, fs.FileMode) {
	t.Helper()
	f, err := w.Files.Open(t.Context(), w.path(name))
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatalf("stat %s: %v", name, err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(data), info.Mode()
}

func (w *world) want(t *testing.T, name, data string) {
	t.Helper()
	if got, _ := w.read(t, name); got != data {
		t.Errorf("%s holds %q, want %q", name, got, data)
	}
}

// names lists a directory.
func (w *world) names(t *testing.T, dir string) []string {
	t.Helper()
	f, err := w.Files.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		t.Fatalf("a directory opens as %T, which is no fs.ReadDirFile", f)
	}
	entries, err := d.ReadDir(-1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// sh runs a script that must succeed and returns its output.
func (w *world) sh(t *testing.T, script string) string {
	t.Helper()
	if w.Procs == nil {
		t.Skip("no processes here")
	}
	var out bytes.Buffer
	p, err := w.Procs.Start(t.Context(), tool.Command{Args: []string{"sh", "-c", script}, Dir: w.Root, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Fatalf("%s: exit code %d, %v: %s", script, code, err, &out)
	}
	return out.String()
}

func testResolve(t *testing.T, w *world) {
	w.write(t, "dir/file", "x")
	for path, want := range map[string]string{
		w.Root:                            w.Root,
		w.path("dir/file"):                w.path("dir/file"),
		w.Root + "/dir/./..//dir/file":    w.path("dir/file"),
		w.path("missing/deep/file"):       w.path("missing/deep/file"),
		w.Root + "/missing/../dir/file":   w.path("dir/file"),
		w.path("dir/file/below"):          w.path("dir/file/below"),
		w.Root + "/" + "dir" + "/":        w.path("dir"),
		w.Root + "/dir/../../../../../..": "/",
	} {
		if got, err := w.Files.Resolve(t.Context(), path); got != want || err != nil {
			t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	if got, err := w.Files.Resolve(t.Context(), "dir/file"); err == nil {
		t.Errorf("a relative path resolves to %q", got)
	}
	if got, err := w.Files.Resolve(t.Context(), w.path("a\x00b")); err == nil {
		t.Errorf("a path with a NUL byte resolves to %q", got)
	}
}

func testResolveLinks(t *testing.T, w *world) {
	w.write(t, "a/b/file", "x")
	w.sh(t, `ln -s a/b rel; ln -s "$PWD/a" abs; ln -s abs/b chain; ln -s nowhere/x dangling; ln -s loop2 loop; ln -s loop loop2`)
	for path, want := range map[string]string{
		w.path("rel/file"):           w.path("a/b/file"),
		w.path("abs/b/file"):         w.path("a/b/file"),
		w.path("chain/file"):         w.path("a/b/file"),
		w.path("chain/new"):          w.path("a/b/new"),
		w.path("dangling"):           w.path("nowhere/x"),
		w.Root + "/rel/../b/file":    w.path("a/b/file"), // leaves a/b, not rel
		w.Root + "/rel/../../a/b":    w.path("a/b"),
		w.Root + "/rel/missing/../b": w.path("a/b/b"),
	} {
		if got, err := w.Files.Resolve(t.Context(), path); got != want || err != nil {
			t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	if got, err := w.Files.Resolve(t.Context(), w.path("loop/x")); err == nil {
		t.Errorf("a ring of links resolves to %q", got)
	}
}

func testOpen(t *testing.T, w *world) {
	w.write(t, "dir/file", "content")
	w.want(t, "dir/file", "content")
	if got := w.names(t, w.Root); !slices.Equal(got, []string{"dir"}) {
		t.Errorf("names of the root: %q", got)
	}
	_, err := w.Files.Open(t.Context(), w.path("missing"))
	var pe *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pe) {
		t.Errorf("open a missing file: %T %v, want a PathError that is ErrNotExist", err, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Files.Open(ctx, w.path("dir/file")); !errors.Is(err, context.Canceled) {
		t.Errorf("open after cancel: %v", err)
	}
}

// testOpenPipe checks that a named pipe without a writer does not hang Open.
func testOpenPipe(t *testing.T, w *world) {
	w.sh(t, "mkfifo pipe")
	f, err := w.Files.Open(t.Context(), w.path("pipe"))
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		t.Errorf("a named pipe looks like %v, %v", info.Mode(), err)
	}
}

func testChangeCreates(t *testing.T, w *world) {
	w.write(t, "new/deep/file", "x")
	if _, mode := w.read(t, "new/deep/file"); mode.Perm()&0o600 != 0o600 || mode.Perm()&0o133 != 0 {
		t.Errorf("mode of a new file is %v, want 0644 less the umask", mode)
	}
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("run"), Data: nil, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if data, mode := w.read(t, "run"); data != "" || mode.Perm()&0o700 != 0o700 {
		t.Errorf("got %q with mode %v, want an empty file that can be run", data, mode)
	}
	if got := w.names(t, w.path("new/deep")); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left beside the file: %q", got)
	}
}

func testChangeKeepsMode(t *testing.T, w *world) {
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("f"), Data: []byte("a"), Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("f"), Data: []byte("b"), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if data, mode := w.read(t, "f"); data != "b" || mode.Perm() != 0o700 {
		t.Errorf("got %q with mode %v, want b with 0700", data, mode)
	}
}

func testChangeKeepsLinks(t *testing.T, w *world) {
	w.write(t, "real", "1")
	w.sh(t, `ln -s real soft; ln -s born unborn; echo 1 >hard; ln hard hard2; chmod 640 hard`)
	w.write(t, "soft", "2")
	w.want(t, "real", "2")
	w.write(t, "unborn", "3")
	w.want(t, "born", "3")
	w.write(t, "hard2", "much longer")
	w.write(t, "hard2", "4")
	w.want(t, "hard", "4")
	if _, mode := w.read(t, "hard"); mode.Perm() != 0o640 {
		t.Errorf("mode of the linked file became %v", mode)
	}
	w.sh(t, `test -L soft && test -L unborn && test hard -ef hard2`)
}

// testChangeExact checks that an exact change reaches its path or nothing, whatever links say by then.
func testChangeExact(t *testing.T, w *world) {
	w.write(t, "real/a", "old")
	w.sh(t, "ln -s real link; ln -s real/a file")
	for _, name := range []string{"link/a", "link/new", "file"} {
		if err := w.Files.Change(t.Context(), tool.Change{Path: w.path(name), Data: []byte("new"), Exact: true}); !errors.Is(err,
			tool.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", name, err)
		}
	}
	w.want(t, "real/a", "old")
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("real/a"), Data: []byte("new"), Exact: true}); err != nil {
		t.Error(err)
	}
	w.want(t, "real/a", "new")
}

func testChangeIf(t *testing.T, w *world) {
	ctx, path := t.Context(), w.path("f")
	digest := func(s string) string { return tool.Digest([]byte(s)) }
	steps := []struct {
		change tool.Change
		ok     bool
		after  string
	}{
		{tool.Change{IfDigest: digest("")}, false, ""},
		{tool.Change{IfDigest: tool.NoFile, Data: []byte("1")}, true, "1"},
		{tool.Change{IfDigest: tool.NoFile, Data: []byte("2")}, false, "1"},
		{tool.Change{IfDigest: digest("x"), Data: []byte("2")}, false, "1"},
		{tool.Change{IfDigest: digest("1"), Data: []byte("2")}, true, "2"},
		{tool.Change{IfDigest: digest("1"), Remove: true}, false, "2"},
		{tool.Change{IfDigest: digest("2"), Remove: true}, true, ""},
	}
	for i, step := range steps {
		step.change.Path = path
		err := w.Files.Change(ctx, step.change)
		if step.ok != (err == nil) || !step.ok && !errors.Is(err, tool.ErrChanged) {
			t.Errorf("step %d: %v", i, err)
		}
		if step.after == "" {
			if got := w.names(t, w.Root); len(got) > 0 {
				t.Errorf("step %d left %q", i, got)
			}
			continue
		}
		w.want(t, "f", step.after)
	}
}

// testChangeOnce checks that of many changes that expect the same state, one wins.
func testChangeOnce(t *testing.T, w *world) {
	for _, cond := range []string{tool.NoFile, tool.Digest([]byte("start"))} {
		if cond != tool.NoFile {
			w.write(t, "f", "start")
		}
		errs := make([]error, 8)
		var wait sync.WaitGroup
		for i := range errs {
			wait.Go(func() {
				errs[i] = w.Files.Change(t.Context(), tool.Change{Path: w.path("f"), Data: []byte{byte('0' + i)}, IfDigest: cond})
			})
		}
		wait.Wait()
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won >= 0:
				t.Errorf("both %d and %d changed the file", won, i)
			case err == nil:
				won = i
			case !errors.Is(err, tool.ErrChanged):
				t.Error(err)
			}
		}
		w.want(t, "f", fmt.Sprint(won))
	}
}

// testChangeWhole checks that a reader sees the old or the new content.
func testChangeWhole(t *testing.T, w *world) {
	a, b := strings.Repeat("a", 200_000), strings.Repeat("b", 100_000)
	w.write(t, "f", a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 {
			data := []string{a, b}[i%2]
			if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("f"), Data: []byte(data)}); err != nil {
				t.Error(err)
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		if got, _ := w.read(t, "f"); got != a && got != b {
			t.Fatalf("read a mixture of %d bytes", len(got))
		}
	}
	if got := w.names(t, w.Root); !slices.Equal(got, []string{"f"}) {
		t.Errorf("left beside the file: %q", got)
	}
}

func testChangeRemove(t *testing.T, w *world) {
	w.write(t, "dir/sub/file", "x")
	w.write(t, "file", "x")
	for _, name := range []string{"dir", "file"} {
		if err := w.Files.Change(t.Context(), tool.Change{Path: w.path(name), Remove: true}); err != nil {
			t.Error(err)
		}
	}
	if got := w.names(t, w.Root); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if err := w.Files.Change(t.Context(), tool.Change{Path: w.path("file"), Remove: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove what is gone: %v", err)
	}
}

func testChangeFails(t *testing.T, w *world) {
	w.write(t, "dir/file", "x")
	for _, name := range []string{"dir", "dir/file/below", "."} {
		if err := w.Files.Change(t.Context(), tool.Change{Path: w.path(name), Data: []byte("y")}); err == nil {
			t.Errorf("wrote to %s", name)
		}
	}
	if err := w.Files.Change(t.Context(), tool.Change{Path: "relative", Data: []byte("y")}); err == nil {
		t.Error("wrote to a relative path")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Files.Change(ctx, tool.Change{Path: w.path("dir/file"), Data: []byte("y")}); !errors.Is(err, context.Canceled) {
		t.Errorf("change after cancel: %v", err)
	}
	w.want(t, "dir/file", "x")
}

func testBlobs(t *testing.T, w *world) {
	if w.Blobs == nil {
		t.Skip("no blobs here")
	}
	name, err := w.Blobs.Put(t.Context(), strings.NewReader("hello"))
	const want = "sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if name != want || err != nil {
		t.Fatalf("Put: %q, %v", name, err)
	}
	r, err := w.Blobs.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); string(data) != "hello" || err != nil {
		t.Errorf("Get: %q, %v", data, err)
	}
	if _, err := w.Blobs.Get(t.Context(), strings.Replace(want, "2cf2", "0000", 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of nothing: %v", err)
	}
}
