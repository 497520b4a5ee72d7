package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
)

// Command returns the path of the inspan command, built from this tree with the flags of a release. All tests
// that run it as a process share one file: the first builds it, and the others find it up to date. They may run
// it or link to it, and must not change it.
func Command(t testing.TB) string {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var command = sync.OnceValues(func() (string, error) {
	top, err := repository()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, ".build")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := keep.LockFile(context.Background(), filepath.Join(dir, "lock"), 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // the system releases it in any case
	path := filepath.Join(dir, "inspan")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", path, "./cmd/inspan")
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of the command: %w\n%s", err, out)
	}
	return path, nil
})
