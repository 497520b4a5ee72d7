package sensitive_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
)

// TestUnsafeSubmodule checks that the index of a submodule counts, however deep its folder is, and that a branch named
// index is no index.
func TestUnsafeSubmodule(t *testing.T) {
	root := t.TempDir()
	git := filepath.Join(root, ".git")
	module := filepath.Join(git, "modules", "lib", "x")
	cmd := exec.Command("sh", "-ec", `
		git init -q .
		git init -q sub
		cd sub
		mkdir pgit
		echo x >pgit/x
		git add .
		git -c user.name=a -c user.email=a@b commit -qm x
		git branch index
		git update-ref refs/remotes/origin/index HEAD
		git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/index
		mkdir ../.git/modules/lib -p
		mv .git ../.git/modules/lib/x`)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	index := filepath.Join(module, "index")
	listed := func() (found bool) {
		for _, s := range sensitive.Unsafe(git) {
			if filepath.Base(s.Path) == "index" {
				found = found || s.Path == index
				if s.Path != index {
					t.Errorf("%s is listed", s.Path)
				}
			}
		}
		return found
	}
	if listed() {
		t.Error("git's own index is listed")
	}
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(index, bytes.Replace(data, []byte("pgit/x"), []byte(".git/x"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if !listed() {
		t.Error("the index that lists .git/x is not listed")
	}
}
