package worktree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/world/worktree"
)

// bench is a workspace in a repository, and a store.
type bench struct {
	*testing.T
	root  string
	store *worktree.Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, root: resolved(t, t.TempDir()), store: &worktree.Store{Dir: filepath.Join(t.TempDir(), "trees"), Git: git}}
	b.git("init", "--quiet")
	b.write("a.txt", "one\ntwo\nthree\n")
	b.write("sub/b.txt", "b\n")
	b.write(".gitignore", "ignored/\n")
	b.commit()
	return b
}

func resolved(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// git runs git as users of a store do.
func git(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, int, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, exit.ExitCode(), fmt.Errorf("%w: %s", err, complaint.String())
	}
	if err != nil {
		return out, -1, err
	}
	return out, 0, nil
}

func (b *bench) git(args ...string) string { b.Helper(); return b.gitIn(b.root, args...) }

func (b *bench) gitIn(dir string, args ...string) string {
	b.Helper()
	out, _, err := git(b.Context(), dir, nil, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	if err != nil {
		b.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

func (b *bench) commit() { b.Helper(); b.git("add", "-A"); b.git("commit", "--quiet", "-m", "c") }

func (b *bench) write(path, text string) { b.Helper(); put(b.T, filepath.Join(b.root, path), text) }

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) make(name string) worktree.Tree {
	b.Helper()
	tree, err := b.store.Make(b.Context(), b.root, name)
	if err != nil {
		b.Fatal(err)
	}
	return tree
}

func (b *bench) changes(tree worktree.Tree) (map[string]worktree.Change, string) {
	b.Helper()
	list, now, err := b.store.Changes(b.Context(), tree)
	if err != nil {
		b.Fatal(err)
	}
	out := map[string]worktree.Change{}
	for _, c := range list {
		if _, twice := out[c.Path]; twice {
			b.Errorf("%q is listed twice", c.Path)
		}
		out[c.Path] = c
	}
	return out, now
}

// files are all files of a folder, by path, links as where they lead.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" && d.IsDir() {
			return fs.SkipDir
		}
		if err != nil || d.Name() == ".git" {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch d.Type() {
		case 0:
			data, err := os.ReadFile(path)
			info, _ := d.Info()
			out[rel] = fmt.Sprintf("%v %s", info.Mode().Perm()&0o100, data)
			return err
		case fs.ModeSymlink:
			out[rel], err = os.Readlink(path)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// state is all that must not change of a workspace and its repository.
func (b *bench) state() string {
	b.Helper()
	index, err := os.ReadFile(filepath.Join(b.root, ".git", "index"))
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Sprint(files(b.T, b.root), string(index), b.git("for-each-ref"), b.git("stash", "list"), b.git("symbolic-ref", "HEAD"))
}

// TestBring checks which ignored files a copy gets, that they are the copy's own, and which it reports as missing.
func TestBring(t *testing.T) {
	b := newBench(t)
	b.write(".gitignore", "node_modules/\nbuild/\n*.env\n*.log\n")
	b.write(worktree.Included, "*.env\nsub/*.log\n# nothing else\n")
	b.commit()
	b.write("node_modules/dep/index.js", "dep")
	b.write("node_modules/.bin/run", "#!/bin/sh\n")
	b.write("sub/build/out", "built")
	b.write("local.env", "A=1")
	b.write("sub/x.log", "listed")
	b.write("y.log", "not listed")
	b.write("build/huge", "")
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.Chmod(filepath.Join(b.root, "node_modules/.bin/run"), 0o755),
		os.Symlink("../dep/index.js", filepath.Join(b.root, "node_modules/.bin/link")),
		os.Symlink(outside, filepath.Join(b.root, "node_modules/out")),
		os.Truncate(filepath.Join(b.root, "build/huge"), 600<<20),
		os.MkdirAll(filepath.Join(outside, "secret"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree := b.make("a")
	if got := strings.Join(tree.Lent, " "); got != "local.env sub/x.log sub/build node_modules" {
		t.Errorf("lent: %s", got)
	}
	if got := strings.Join(tree.Missing, " "); got != "build (600 MiB in 2 files)" {
		t.Errorf("missing: %s", got)
	}
	got := files(t, tree.Root)
	for path, want := range map[string]string{
		"node_modules/dep/index.js": "---------- dep", "node_modules/.bin/run": "---x------ #!/bin/sh\n", "node_modules/.bin/link": "../dep/index.js",
		"node_modules/out": outside, "sub/build/out": "---------- built", "local.env": "---------- A=1", "y.log": "", "build/huge": "",
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
	put(t, filepath.Join(tree.Root, "node_modules/dep/index.js"), "changed")
	if data, err := os.ReadFile(filepath.Join(b.root, "node_modules/dep/index.js")); string(data) != "dep" {
		t.Errorf("the workspace has %q, %v", data, err)
	}
	if changes, _ := b.changes(tree); len(changes) > 0 {
		t.Errorf("it is to be merged: %v", changes)
	}

	b.store.Within = 1
	tree = b.make("b")
	if got := files(t, tree.Root); got["sub/build/out"] != "" || len(tree.Lent) > 0 || len(tree.Missing) != 5 ||
		!strings.Contains(tree.Missing[0], "copying was over after 1ns") {
		t.Errorf("without time: %q, lent %q, missing %q", got["sub/build/out"], tree.Lent, tree.Missing)
	}
}

const odd = "o d\n\"ü\t*?[x]"

// TestMake checks that a copy has the content of the workspace, and that the workspace stays as it is.
func TestMake(t *testing.T) {
	b := newBench(t)
	b.write("gone.txt", "x")
	b.write("folder/inner", "x")
	b.write("forced.log", "x")
	b.write("same.txt", "x")
	b.commit()
	b.write(".gitignore", "ignored/\n*.log\n")
	b.write("a.txt", "one\n2\nthree\n") // changed
	b.write("staged.txt", "staged")
	b.git("add", "staged.txt")
	b.write("staged.txt", "staged, and changed since")
	b.write("forced.log", "tracked, though ignored")
	b.write(odd, "odd")
	b.write("ignored/x", "no")
	b.write("new.log", "no")
	b.write("bin", "\x00\xff\r\n")
	for _, err := range []error{
		os.Remove(filepath.Join(b.root, "gone.txt")), os.RemoveAll(filepath.Join(b.root, "folder")),
		os.Symlink("sub", filepath.Join(b.root, "folder")), // beyond which git knows a file
		os.Symlink("nowhere", filepath.Join(b.root, "link")),
		os.Chmod(filepath.Join(b.root, "sub/b.txt"), 0o755),
		os.Remove(filepath.Join(b.root, "same.txt")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.write("same.txt/now a folder", "x")
	before := b.state()
	tree := b.make("session/" + odd)
	if after := b.state(); after != before {
		t.Errorf("the workspace or its repository was changed:\n%s\nwas\n%s", after, before)
	}
	want := files(t, b.root)
	delete(want, "new.log") // a file that git ignores
	if got := files(t, tree.Root); !reflect.DeepEqual(got, want) {
		t.Errorf("the copy has\n%v\nwant\n%v", got, want)
	}
	if status := b.gitIn(tree.Root, "status", "--porcelain"); status != "" {
		t.Errorf("the copy begins with changes: %s", status)
	}
	if got, _ := b.changes(tree); len(got) != 0 {
		t.Errorf("changes of nothing: %v", got)
	}
	if subjects := b.gitIn(tree.Root, "log", "--format=%s"); subjects != "The workspace\nc\nc\n" {
		t.Errorf("its history is %q", subjects)
	}
}

// TestMakeOfUnfinishedMerge checks that a file in conflict is copied as it stands.
func TestMakeOfUnfinishedMerge(t *testing.T) {
	b := newBench(t)
	b.git("checkout", "--quiet", "-b", "other")
	b.write("a.txt", "other\n")
	b.commit()
	b.git("checkout", "--quiet", "-")
	b.write("a.txt", "mine\n")
	b.commit()
	if _, code, _ := git(t.Context(), b.root, nil, "-c", "user.name=t", "-c", "user.email=t@example.com", "merge", "other"); code != 1 {
		t.Fatalf("git merge ended with %d", code)
	}
	tree := b.make("x")
	if got, want := files(t, tree.Root), files(t, b.root); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWithoutCommits checks that a repository need not have a commit, an index or a name for its user.
func TestWithoutCommits(t *testing.T) {
	b := &bench{T: t, root: resolved(t, t.TempDir()), store: &worktree.Store{Dir: t.TempDir(), Git: git}}
	b.git("init", "--quiet")
	for i, want := range []int{0, 1} {
		if i > 0 {
			b.write("new.txt", "x")
		}
		if got := files(t, b.make(fmt.Sprint(i)).Root); len(got) != want {
			t.Errorf("%v", got)
		}
	}
}

// TestSubfolder checks that a workspace below the top of its repository has its counterpart, and that changes outside
// it are reported and not merged.
func TestSubfolder(t *testing.T) {
	b := newBench(t)
	top := b.root
	b.root = filepath.Join(top, "sub")
	tree := b.make("x")
	put(t, filepath.Join(tree.Root, "b.txt"), "B\n")
	put(t, filepath.Join(tree.Root, "..", "a.txt"), "A\n")
	got, _ := b.changes(tree)
	if c := got["b.txt"]; len(got) != 2 || c.Theirs == nil || string(c.Theirs.Data) != "B\n" ||
		got["../a.txt"].Why != "outside of the workspace" {
		t.Errorf("%+v", got)
	}
	b.root = filepath.Join(top, "ignored", "deep")
	if err := os.MkdirAll(b.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(b.make("y").Root); err != nil || !info.IsDir() {
		t.Errorf("an ignored workspace: %v", err)
	}
}

// TestLinkedWorktree checks that a workspace may itself be a worktree.
func TestLinkedWorktree(t *testing.T) {
	b := newBench(t)
	main := b.root
	b.root = filepath.Join(resolved(t, t.TempDir()), "linked")
	b.gitIn(main, "worktree", "add", "--quiet", "--detach", b.root)
	b.write("a.txt", "in the linked one\n")
	tree := b.make("x")
	put(t, filepath.Join(tree.Root, "a.txt"), "mine\n")
	if got, _ := b.changes(tree); len(got) != 1 || string(got["a.txt"].Base.Data) != "in the linked one\n" {
		t.Errorf("%+v", got)
	}
}

// TestAgain checks that a name means one copy, at the same base, whatever was done in it, and that another name or
// workspace means another.
func TestAgain(t *testing.T) {
	b := newBench(t)
	first := b.make("x")
	put(t, filepath.Join(first.Root, "mine"), "mine")
	b.gitIn(first.Root, "add", "-A")
	b.gitIn(first.Root, "commit", "--quiet", "-m", "mine")
	b.write("a.txt", "later\n")
	if again := b.make("x"); again.Root != first.Root || again.Base != first.Base {
		t.Errorf("%+v, was %+v", again, first)
	}
	if _, err := os.Stat(filepath.Join(first.Root, "mine")); err != nil {
		t.Error(err)
	}
	if other := b.make("y"); other.Root == first.Root {
		t.Error("two names, one copy")
	}
	if _, found, err := b.store.Find(t.Context(), b.root, "z"); found || err != nil {
		t.Errorf("found what was never made: %v", err)
	}
}

// TestHalfMade checks that a copy whose making was interrupted after any run of git is made again.
func TestHalfMade(t *testing.T) {
	for last := 1; ; last++ {
		b := newBench(t)
		b.write("new.txt", "new")
		runs := 0
		broken := errors.New("broken off")
		b.store.Git = func(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, int, error) {
			if runs++; runs >= last {
				return nil, -1, broken
			}
			return git(ctx, dir, stdin, args...)
		}
		_, err := b.store.Make(t.Context(), b.root, "x")
		b.store.Git = git
		if err == nil {
			if last < 6 {
				t.Errorf("made with %d runs of git", runs)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if _, found, err := b.store.Find(t.Context(), b.root, "x"); found || err != nil {
			t.Errorf("after %d runs: found %v, %v", last, found, err)
		}
		if got, want := files(t, b.make("x").Root), files(t, b.root); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d runs: %v, want %v", last, got, want)
		}
		if n := strings.Count(b.git("worktree", "list", "--porcelain"), "worktree "); n != 2 {
			t.Errorf("after %d runs: git knows %d worktrees", last, n)
		}
	}
}

// TestDamaged checks that a copy whose folder was lost is made again, and that one whose .git leads elsewhere is still
// the same copy.
func TestDamaged(t *testing.T) {
	b := newBench(t)
	tree := b.make("x")
	if err := os.RemoveAll(filepath.Dir(filepath.Join(tree.Root, "x"))); err != nil {
		t.Fatal(err)
	}
	again := b.make("x")
	if _, err := os.Stat(filepath.Join(again.Root, "a.txt")); err != nil {
		t.Error(err)
	}
	evil := filepath.Join(t.TempDir(), "evil")
	marker := filepath.Join(t.TempDir(), "ran")
	b.gitIn(filepath.Dir(evil), "init", "--quiet", evil)
	b.gitIn(evil, "config", "core.fsmonitor", "touch "+marker)
	b.gitIn(evil, "config", "filter.x.clean", "touch "+marker)
	put(t, filepath.Join(again.Root, ".git"), "gitdir: "+evil+"/.git\n")
	put(t, filepath.Join(again.Root, ".gitattributes"), "* filter=x\n")
	put(t, filepath.Join(again.Root, "a.txt"), "mine\n")
	if got, _ := b.changes(again); len(got) != 2 || got["a.txt"].Theirs == nil {
		t.Errorf("%+v", got)
	}
	if err := b.store.Remove(t.Context(), b.root, "x"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the copy ran")
	}
}

// TestNoProgramRuns checks that hooks do not run, and that a repository whose settings name programs is refused, now
// and later.
func TestNoProgramRuns(t *testing.T) {
	b := newBench(t)
	marker := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-commit"} {
		path := filepath.Join(b.root, ".git", "hooks", hook)
		put(t, path, "#!/bin/sh\ntouch '"+marker+"'\n")
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree := b.make("x")
	b.changes(tree)
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook ran")
	}
	b.git("config", "filter.x.clean", "touch "+marker)
	if _, _, err := b.store.Changes(t.Context(), tree); err == nil || !strings.Contains(err.Error(), "filter") {
		t.Errorf("changes: %v", err)
	}
	if _, err := b.store.Make(t.Context(), b.root, "y"); err == nil || !strings.Contains(err.Error(), "filter") {
		t.Errorf("make: %v", err)
	}
}

// TestNoRepository checks the errors without a repository, and with a store inside the workspace.
func TestNoRepository(t *testing.T) {
	s := &worktree.Store{Dir: t.TempDir(), Git: git}
	if _, err := s.Make(t.Context(), t.TempDir(), "x"); !errors.Is(err, worktree.ErrNoRepository) {
		t.Errorf("%v", err)
	}
	b := newBench(t)
	b.store.Dir = filepath.Join(b.root, "trees")
	if _, err := b.store.Make(t.Context(), b.root, "x"); err == nil || !strings.Contains(err.Error(), "in the workspace") {
		t.Errorf("%v", err)
	}
	put(t, filepath.Join(b.root, "sub", ".git"), "nonsense")
	if _, err := s.Make(t.Context(), filepath.Join(b.root, "sub"), "x"); err == nil || !strings.Contains(err.Error(), "not understood") {
		t.Errorf("%v", err)
	}
}

// TestRemove checks that a copy is removed with all its content, that others stay, and that a second removal is not an
// error.
func TestRemove(t *testing.T) {
	b := newBench(t)
	lost := filepath.Join(resolved(t, t.TempDir()), "of the person, on a disk that is away")
	b.git("worktree", "add", "--quiet", "--detach", lost)
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	tree, other := b.make("x"), b.make("y")
	put(t, filepath.Join(tree.Root, "closed/x"), "x")
	if err := os.Chmod(filepath.Join(tree.Root, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.store.Remove(t.Context(), b.root, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(tree.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(other.Root); err != nil {
		t.Error(err)
	}
	list := b.git("worktree", "list", "--porcelain")
	if !strings.Contains(list, lost) || !strings.Contains(list, other.Root) || strings.Contains(list, tree.Root) {
		t.Errorf("git knows %s", list)
	}
	entries, err := os.ReadDir(b.store.Dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the store: %v, %v", entries, err)
	}
}

// TestAtOnce checks that copies can be made side by side.
func TestAtOnce(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			tree, err := b.store.Make(t.Context(), b.root, fmt.Sprint(i/2))
			if err != nil {
				t.Error(err)
				return
			}
			if _, _, err := b.store.Changes(t.Context(), tree); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(b.git("worktree", "list", "--porcelain"), "worktree "); n != 5 {
		t.Errorf("git knows %d worktrees, want ours and 4", n)
	}
}

// TestSubmodule checks that the copy is known to lack the content of a submodule, that the recorded commit of the
// submodule stays, and that a change of it is reported.
func TestSubmodule(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	b.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.root, "module")
	b.commit()
	put(t, filepath.Join(b.root, "module", "a.txt"), "changed in it\n")
	tree := b.make("x")
	if !slices.Equal(tree.Left, []string{"module/"}) {
		t.Errorf("the copy lacks %q", tree.Left)
	}
	if got, _ := b.changes(tree); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	b.gitIn(tree.Root, "update-index", "--cacheinfo", "160000,"+strings.TrimSpace(b.git("rev-parse", "HEAD"))+",module")
	if got, _ := b.changes(tree); len(got) != 1 || got["module"].Why != "a submodule" {
		t.Errorf("%+v", got)
	}
	if err := b.store.Remove(t.Context(), b.root, "x"); err != nil {
		t.Error(err)
	}
}
