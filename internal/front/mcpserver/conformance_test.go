package mcpserver_test

import (
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit"
)

var update = flag.Bool("update", false, "write down how the conformance suite ends")

// peer runs one of them and returns its output.
func peer(t *testing.T, within time.Duration, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	bin := filepath.Join(dir, "node_modules", ".bin")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node22"), append([]string{filepath.Join(bin, args[0])}, args[1:]...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestConformance runs all scenarios of the official suite for servers, over our transport, behind our gate, with
// the fixtures that they want. A verdict of the suite may cover no checks, so the number of passed checks of each
// scenario counts.
func TestConformance(t *testing.T) {
	dir := testkit.Dir(t)
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.Extend(prepared, extended)
		url := h.listen(&netguard.Gate{}) + "/mcp"
		out := t.TempDir()
		printed, err := peer(t, 4*time.Minute, dir, "conformance", "server",
			"--url", url, "--spec-version", revision, "--suite", "all", "-o", out)
		if err != nil {
			t.Errorf("the suite is not content: %v", err)
		}
		testkit.Hold(t, out, filepath.Join("testdata", "conformance-"+revision+".txt"), *update, printed)
	})
}
