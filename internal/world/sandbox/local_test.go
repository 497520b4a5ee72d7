package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestLocal(t *testing.T) {
	harnesstest.TestEnv(t, func(t *testing.T) tool.Env { return boxes.Unwalled(t) })
}

func TestKept(t *testing.T) {
	harnesstest.TestEnv(t, func(t *testing.T) tool.Env { return boxes.Kept(t) })
}

func TestLocalNeedsDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, file + "-missing"} {
		if env, err := sandbox.Local(root, nil, sandbox.Options{}); err == nil {
			t.Errorf("opened %s as %s", root, env.Root)
		}
	}
}

// TestChangesOfSessions checks that no change is lost if several sessions change the same file at once.
func TestChangesOfSessions(t *testing.T) {
	const sessions, changes = 6, 20
	root := t.TempDir()
	path := filepath.Join(root, "f")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range sessions {
		env, err := sandbox.Local(root, nil, sandbox.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for done := 0; done < changes; {
				before, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				switch err := env.Files.Change(t.Context(), tool.Change{Path: path, Data: append(before, '.'), IfDigest: tool.Digest(before)}); {
				case err == nil:
					done++
				case !errors.Is(err, tool.ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if data, err := os.ReadFile(path); err != nil || len(data) != sessions*changes {
		t.Errorf("%d of %d changes, %v", len(data), sessions*changes, err)
	}
}

// TestFailedChange checks that a failing change leaves the old file and no other.
func TestFailedChange(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	env := boxes.Unwalled(t)
	path := filepath.Join(env.Root, "f")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(env.Root, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(env.Root, 0o755) }()
	if err := env.Files.Change(t.Context(), tool.Change{Path: path, Data: []byte("new")}); err == nil {
		t.Error("changed a file in a directory without write permission")
	}
	if data, err := os.ReadFile(path); string(data) != "old" || err != nil {
		t.Errorf("the file holds %q, %v", data, err)
	}
}
