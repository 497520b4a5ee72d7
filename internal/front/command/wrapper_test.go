//go:build unix

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
)

// TestWrapper has a published wrapper of Claude Code, its SDK for Python, drive inspan
// through whole conversations.
func TestWrapper(t *testing.T) {
	uv := filepath.Join(testkit.Uv(t), "uv")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, claude := filepath.Join(dir, "inspan"), filepath.Join(dir, "claude")
	// The SDK asks for a version, and hands over options that are those of Claude Code.
	shim := "#!/bin/sh\n[ \"$1\" = -v ] && echo '2.9.9 (Claude Code)' && exit\nexec " + bin +
		" run --model script --mode auto --output claude-stream-json --input-format stream-json\n"
	if err := os.WriteFile(claude, []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), uv, "run", "--quiet", "--no-project",
		"--with", "claude-agent-sdk==0.2.187", "python", "testdata/wrapper.py", claude, work)
	cmd.Env = append(os.Environ(), "INSPAN_STATE_DIR="+filepath.Join(dir, "state"), "INSPAN_CONFIG_DIR="+filepath.Join(dir, "config"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "Failed to fetch") {
		t.Skipf("the registry can't be reached: %s", out)
	}
	if n := strings.Count(string(out), "ok "); err != nil || n != 3 {
		t.Errorf("%v: %s", err, out)
	}
}
