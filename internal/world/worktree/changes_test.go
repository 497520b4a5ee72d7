package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/worktree"
)

// TestLeftOut checks that files that are too large and nested repositories are reported.
func TestLeftOut(t *testing.T) {
	b := newBench(t)
	b.write("large", strings.Repeat("x", worktree.MaxFile+1))
	b.write("largest", strings.Repeat("x", worktree.MaxFile))
	b.write("nested/x", "x")
	b.gitIn(filepath.Join(b.root, "nested"), "init", "--quiet")
	tree := b.make("x")
	if got := tree.Left; !slices.Equal(got, []string{"large", "nested/"}) {
		t.Errorf("%q", got)
	}
	put(t, filepath.Join(tree.Root, "big"), strings.Repeat("y", worktree.MaxFile+1))
	put(t, filepath.Join(tree.Root, "committed"), strings.Repeat("z", worktree.MaxFile+1))
	b.gitIn(tree.Root, "add", "committed")
	put(t, filepath.Join(tree.Root, "own/x"), "x")
	b.gitIn(filepath.Join(tree.Root, "own"), "init", "--quiet")
	got, _ := b.changes(tree)
	for path, want := range map[string]string{
		"big":       "larger than 20 MiB",
		"committed": "larger than 20 MiB", "own": "a repository of its own",
	} {
		if got[path].Why != want || got[path].Theirs != nil {
			t.Errorf("%s: %q", path, got[path].Why)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d changes", len(got))
	}
}

// TestChanges checks the report for each kind of change, committed or not, and that merged changes do not come again.
func TestChanges(t *testing.T) {
	b := newBench(t)
	b.write("moved", "m\n")
	b.write("tool", "#!/bin/sh\n")
	b.write(odd, "odd\n")
	b.commit()
	tree := b.make("x")
	at := func(path string) string { return filepath.Join(tree.Root, path) }
	put(t, at("a.txt"), "one\nTWO\nthree\n")
	put(t, at("committed.txt"), "c")
	b.gitIn(tree.Root, "add", "-A")
	b.gitIn(tree.Root, "commit", "--quiet", "-m", "mine")
	put(t, at(odd), "ODD\n")
	put(t, at("bin"), "\x00\xff\r\n")
	put(t, at("ignored/x"), "no")
	for _, err := range []error{
		os.Rename(at("moved"), at("moved there")), os.Chmod(at("tool"), 0o755),
		os.Symlink("a.txt", at("link")), os.Remove(at("sub/b.txt")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, now := b.changes(tree)
	blob := func(text string, exec bool) *worktree.Blob { return &worktree.Blob{Data: []byte(text), Exec: exec} }
	want := map[string]worktree.Change{
		"a.txt":         {Base: blob("one\ntwo\nthree\n", false), Theirs: blob("one\nTWO\nthree\n", false)},
		"committed.txt": {Theirs: blob("c", false)},
		odd:             {Base: blob("odd\n", false), Theirs: blob("ODD\n", false)},
		"bin":           {Theirs: blob("\x00\xff\r\n", false)},
		"moved":         {Base: blob("m\n", false)},
		"moved there":   {Theirs: blob("m\n", false)},
		"tool":          {Base: blob("#!/bin/sh\n", false), Theirs: blob("#!/bin/sh\n", true)},
		"link":          {Why: "a symbolic link"},
		"sub/b.txt":     {Base: blob("b\n", false)},
	}
	for path, c := range want {
		c.Path = path
		want[path] = c
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if err := b.store.Rebase(t.Context(), tree, now); err != nil {
		t.Fatal(err)
	}
	put(t, at("a.txt"), "one\nTWO\nTHREE\n")
	tree = b.make("x")
	got, _ = b.changes(tree)
	if c := got["a.txt"]; len(got) != 1 || string(c.Base.Data) != "one\nTWO\nthree\n" {
		t.Errorf("after it was taken over: %+v", got)
	}
}

// TestSameTick checks that a change is seen that leaves size and time as they were when git looked last.
func TestSameTick(t *testing.T) {
	b := newBench(t)
	for i := range 30 {
		tree := b.make(fmt.Sprint(i))
		put(t, filepath.Join(tree.Root, "a.txt"), "ONE\ntwo\nthree\n")
		if got, _ := b.changes(tree); len(got) != 1 {
			t.Fatalf("copy %d: %d changes", i, len(got))
		}
	}
}

// TestLineEnds checks that files come with the line ends that the workspace has.
func TestLineEnds(t *testing.T) {
	b := newBench(t)
	b.git("config", "core.autocrlf", "true")
	b.write("dos.txt", "one\r\ntwo\r\n")
	b.commit()
	tree := b.make("x")
	if got := files(t, tree.Root)["dos.txt"]; !strings.HasSuffix(got, "one\r\ntwo\r\n") {
		t.Errorf("the copy has %q", got)
	}
	put(t, filepath.Join(tree.Root, "dos.txt"), "one\r\n2\r\n")
	got, _ := b.changes(tree)
	if c := got["dos.txt"]; len(got) != 1 || string(c.Base.Data) != "one\r\ntwo\r\n" || string(c.Theirs.Data) != "one\r\n2\r\n" {
		t.Errorf("%+v", got)
	}
}

func TestMerge(t *testing.T) {
	s := &worktree.Store{Dir: t.TempDir(), Git: git}
	const base = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	dos := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }
	for name, tc := range map[string]struct {
		ours, base, theirs, want string
		hunks                    []worktree.Hunk
	}{
		"both, apart": {change("2", "two"), base, change("8", "eight"), change("2", "two", "8", "eight"), nil},
		"only theirs": {base, base, change("8", "eight"), change("8", "eight"), nil},
		"only ours":   {change("8", "eight"), base, base, change("8", "eight"), nil},
		"the same":    {change("8", "x"), base, change("8", "x"), change("8", "x"), nil},
		"both, the same line": {
			change("5", "ours"), base, change("5", "theirs"), "",
			[]worktree.Hunk{{Line: 5, Ours: "ours\n", Theirs: "theirs\n"}},
		},
		"two conflicts": {
			change("2", "a", "8", "b"), base, change("2", "c", "8", "d"), "",
			[]worktree.Hunk{{2, "a\n", "c\n"}, {8, "b\n", "d\n"}},
		},
		"added on both sides":     {"x\n", "", "y\n", "", []worktree.Hunk{{1, "x\n", "y\n"}}},
		"no end of line":          {"x", "b", "y", "", []worktree.Hunk{{1, "x\n", "y\n"}}},
		"line ends":               {dos(change("2", "two")), base, change("8", "eight"), dos(change("2", "two", "8", "eight")), nil},
		"line ends of the copy":   {dos(base), dos(base), dos(change("8", "x")), dos(change("8", "x")), nil},
		"markers in the text":     {change("2", "<<<<<<< a"), base, change("8", ">>>>>>> b"), change("2", "<<<<<<< a", "8", ">>>>>>> b"), nil},
		"markers in a conflict":   {change("5", "======="), base, change("5", "<<<<<<<"), "", []worktree.Hunk{{5, "=======\n", "<<<<<<<\n"}}},
		"looks like an option":    {"--x\n", "", "", "--x\n", nil},
		"an empty file on a side": {"", base, base + "10\n", "", []worktree.Hunk{{1, "", base + "10\n"}}},
	} {
		merged, hunks, err := s.Merge(t.Context(), []byte(tc.ours), []byte(tc.base), []byte(tc.theirs))
		if err != nil || string(merged) != tc.want || !slices.Equal(hunks, tc.hunks) {
			t.Errorf("%s: %q %+v %v", name, merged, hunks, err)
		}
	}
	if _, _, err := s.Merge(t.Context(), []byte("a\x00"), []byte("b\x00"), []byte("c\x00")); err == nil {
		t.Error("binary files were merged")
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestExec checks that a file system or setting without permissions does not take them from files.
func TestExec(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has none")
	}
	b := newBench(t)
	b.write("tool", "x")
	if err := os.Chmod(filepath.Join(b.root, "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.commit()
	b.git("config", "core.filemode", "false")
	if err := os.Chmod(filepath.Join(b.root, "tool"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.write("tool", "y")
	tree := b.make("x")
	put(t, filepath.Join(tree.Root, "tool"), "z")
	got, _ := b.changes(tree)
	if c := got["tool"]; c.Base == nil || !c.Base.Exec || !c.Theirs.Exec {
		t.Errorf("%+v", c)
	}
}
