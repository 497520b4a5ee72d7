// Package boxes opens workspaces for tests of the sandbox, and runs scripts in sandboxes. A test binary that
// starts boxes calls [sandbox.Keeper] first in TestMain.
package boxes

import (
	"os"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Unwalled opens an environment without a sandbox.
func Unwalled(t testing.TB) tool.Env {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// Kept opens an environment with keepers.
func Kept(t testing.TB) tool.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	return env
}
