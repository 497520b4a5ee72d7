package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/worktree"
)

// TestNamed checks that files that the person's git or the repository's settings run in the workspace ask before they
// are changed, made or replaced, and that other settings close nothing.
func TestNamed(t *testing.T) {
	dir := keep.Real(t.TempDir())
	root, home := filepath.Join(dir, "top/ws"), filepath.Join(dir, "home")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for name, text := range map[string]string{
		"top/.git/config": "[remote \"origin\"]\n\turl = ../ws/remote\n[filter \"x\"]\n\tclean = python3 ws/tools/clean.py %f\n" +
			"[commit]\n\ttemplate = ws/message\n[include]\n\tpath = ../ws/more\n",
		"top/ws/more":             "[diff \"y\"]\n\ttextconv = ws/show\n",
		"top/ws/tools/clean.py":   "",
		"top/ws/python3.txt":      "",
		"home/.gitconfig":         "[core]\n\thooksPath = ws/hooks\n\tfsmonitor = " + root + "/watch\n\tpager = less -R\n[alias]\n\tst = status\n\tgo = \"!ws/go now\"\n",
		"home/.config/git/config": "[credential]\n\thelper = !" + root + "/helper\n[sequence]\n\teditor=ws/edit\n[blame]\n\tignoreRevsFile = ws/revs\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := worktree.Named(root)
	want := strings.Fields("edit go helper hooks more show tools/clean.py watch")
	for i := range want {
		want[i] = filepath.Join(root, want[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("git runs %q, want %q", got, want)
	}
	m := places.Map{Root: root, Home: home, Git: got}.Indexed()
	if at := m.Of(filepath.Join(root, "hooks/pre-commit")); at.Guard != places.Guarded || at.Why != "is what settings of git have it run" {
		t.Errorf("a new hook is %+v", at)
	}
	if got := worktree.Named(""); got != nil {
		t.Errorf("without a workspace: %q", got)
	}
}
