package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func guarded(t testing.TB) tool.Env {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Map: places.Map{Home: "/nonexistent"}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestGuardedEnv checks that guarding changes nothing else.
func TestGuardedEnv(t *testing.T) {
	harnesstest.TestEnv(t, func(t *testing.T) tool.Env { return guarded(t) })
}

func TestFilesGuard(t *testing.T) {
	env := guarded(t)
	for _, name := range []string{".env", ".git/config", "sub/.git/HEAD", "k/a.pem", "plain", ".vscode/settings.json"} {
		path := filepath.Join(env.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(env.Root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", filepath.Join(env.Root, "dir")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ read, change bool }{
		".env": {}, "k/a.pem": {}, "link": {}, "plain": {true, true}, "fresh/file": {true, true}, ".vscode/settings.json": {true, true},
		".git/config": {true, false}, "dir/config": {true, false}, "dir/hooks/new": {true, false}, ".inspan/new": {true, false},
		"n/.git/HEAD": {true, false},
	} {
		path := filepath.Join(env.Root, name)
		err := env.Files.Change(t.Context(), tool.Change{Path: path, Data: []byte("new")})
		if want.change != (err == nil) || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("change %s: %v", name, err)
		}
		f, err := env.Files.Open(t.Context(), path)
		if err == nil {
			f.Close()
		}
		if errors.Is(err, fs.ErrPermission) == want.read {
			t.Errorf("open %s: %v", name, err)
		}
	}
	for name, want := range map[string]bool{"sub": false, ".git": false, "k": false, "fresh": true, "plain": true} {
		err := env.Files.Change(t.Context(), tool.Change{Path: filepath.Join(env.Root, name), Remove: true})
		if want != (err == nil) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(env.Root, ".env")); string(data) != "old" || err != nil {
		t.Errorf(".env holds %q, %v", data, err)
	}
}

// TestFilesSwap exchanges a folder for a link while files in it are changed:
// none of the changes may land behind the link.
func TestFilesSwap(t *testing.T) {
	rounds := 10000
	if testing.Short() {
		rounds = 500
	}
	env := guarded(t)
	in := func(name string) string { return filepath.Join(env.Root, name) }
	for _, dir := range []string{".git", "a"} {
		if err := os.Mkdir(in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in(".git/id_rsa"), []byte("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", in("b")); err != nil {
		t.Fatal(err)
	}
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, _, _ = os.Rename(in("a"), in("c")), os.Rename(in("b"), in("a")), os.Rename(in("c"), in("b"))
			_, _, _ = os.Rename(in("a"), in("c")), os.Rename(in("b"), in("a")), os.Rename(in("c"), in("b"))
		}
	}()
	good := 0
	for i := range rounds {
		if i%10 == 0 && env.Files.Change(t.Context(), tool.Change{Path: in("a/hooked"), Data: []byte("x")}) == nil {
			good++
		}
		if f, err := env.Files.Open(t.Context(), in("a/id_rsa")); err == nil {
			f.Close()
			t.Fatal("opened a secret through a link")
		}
	}
	close(stop)
	<-swapped
	if _, err := os.Lstat(in(".git/hooked")); err == nil {
		t.Error("a change landed in the repository")
	}
	if good == 0 {
		t.Error("no change was made at all")
	}
}
