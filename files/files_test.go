package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/files"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestEnvironment holds the tree in memory against the contract of environments, empty and over other files.
func TestEnvironment(t *testing.T) {
	harnesstest.TestEnv(t, func(*testing.T) tool.Env { return files.New(nil).Env() })
	harnesstest.TestEnv(t, func(*testing.T) tool.Env { return files.New(fstest.MapFS{}).Env() })
}

// read returns the content of a file, or the error.
func read(t *testing.T, m *files.Memory, name string) string {
	t.Helper()
	f, err := m.Open(t.Context(), files.Root+"/"+name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, info.Size())
	if _, err := f.Read(data); err != nil && len(data) > 0 {
		t.Fatal(err)
	}
	return string(data)
}

// names lists a folder.
func names(t *testing.T, m *files.Memory, dir string) (list []string) {
	t.Helper()
	f, err := m.Open(t.Context(), files.Root+"/"+dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.(fs.ReadDirFile).ReadDir(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestOverOtherFiles changes a tree over a folder in every way. The folder stays as it is, and the changes made on a
// copy of it give the tree.
func TestOverOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "1", "sub/b": "2", "sub/c": "3", "old/d": "4", "old/deep/e": "5"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	m := files.New(os.DirFS(dir))
	change := func(c tool.Change, name string) {
		t.Helper()
		c.Path = files.Root + "/" + name
		if err := m.Change(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	change(tool.Change{Data: []byte("new")}, "a")
	change(tool.Change{Remove: true}, "sub/b")
	change(tool.Change{Remove: true}, "old")
	change(tool.Change{Data: []byte("again")}, "old/deep/f")
	change(tool.Change{Data: []byte("x"), Mode: 0o755}, "bin/run")
	for name, want := range map[string]string{"a": "new", "sub/c": "3", "old/deep/f": "again"} {
		if got := read(t, m, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][]string{".": {"a", "bin", "old", "sub"}, "sub": {"c"}, "old": {"deep"}, "old/deep": {"f"}} {
		if got := names(t, m, name); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	for _, gone := range []string{"sub/b", "old/d", "old/deep/e"} {
		if got := read(t, m, gone); !strings.Contains(got, "not exist") {
			t.Errorf("%s: %s", gone, got)
		}
		if _, err := os.Stat(filepath.Join(dir, gone)); err != nil {
			t.Errorf("the folder was changed: %v", err)
		}
	}
	again := files.New(os.DirFS(dir))
	for _, c := range m.Changes() {
		if err := again.Change(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range []string{".", "sub", "old", "old/deep", "bin"} {
		if got, want := names(t, again, dir), names(t, m, dir); !slices.Equal(got, want) {
			t.Errorf("%s has %q after the changes, want %q", dir, got, want)
		}
	}
	if err := m.Change(t.Context(), tool.Change{Path: "/etc/passwd", Data: []byte("x")}); err == nil {
		t.Error("a file outside of the tree was changed")
	}
}

// TestAgentInMemory lets an agent read, search, write, edit and delete files that are nowhere but in memory.
func TestAgentInMemory(t *testing.T) {
	m := files.New(fstest.MapFS{"notes/plan.md": {Data: []byte("Ship on Monday.\n")}})
	agent := &inspan.Agent{Model: &script.Model{}, Env: m.Env(), Tools: files.Tools(), Mode: tool.ModeEdit}
	task := strings.Join([]string{
		`call: search_files {"pattern":"Monday"}`,
		`call: read_file {"path":"notes/plan.md"}`,
		`call: edit_file {"path":"notes/plan.md","old":"Monday","new":"Tuesday"}`,
		`call: write_file {"path":"done.md","content":"x\n"}`,
		`call: find_files {"pattern":"**/*.md"}`,
		"say: done",
	}, "\n")
	var found, listed bool
	for e, err := range agent.Run(t.Context(), task) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Ended); is {
			text := b.Parts.Text()
			if b.Outcome != event.OutcomeOK {
				t.Errorf("%s: %s", b.Outcome, text)
			}
			found = found || strings.Contains(text, "notes/plan.md") && strings.Contains(text, "Monday")
			listed = listed || strings.Contains(text, "done.md") && strings.Contains(text, "notes/plan.md")
		}
	}
	if got := read(t, m, "notes/plan.md"); got != "Ship on Tuesday.\n" || !found || !listed {
		t.Errorf("%q, found %t, listed %t", got, found, listed)
	}
	if list := m.Changes(); len(list) != 2 || list[0].Path != files.Root+"/done.md" {
		t.Errorf("changes: %+v", list)
	}
}
