package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// TestStatusLineIsBoxed checks that the command of a status line runs in the sandbox, as a hook does.
func TestStatusLineIsBoxed(t *testing.T) {
	home := keep.Real(t.TempDir())
	root, mark := filepath.Join(home, "shop"), filepath.Join(home, "mark")
	t.Setenv("HOME", home)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(home, "state"))
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(home, "settings"))
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := app.Load(sandbox.Self())
	if err != nil {
		t.Fatal(err)
	}
	if why, err := a.Permission.Unwalled(); err != nil || why != "" {
		t.Skip(why, err)
	}
	a.Config.TUI.StatusLine = "touch made " + mark + "; tr a-z A-Z"
	line := &app.StatusLine{App: a}
	defer func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		if printed, err := line.Run(t.Context(), root, "auto", "state"); err != nil || strings.TrimSpace(printed) != "STATE" {
			t.Fatalf("%q, %v", printed, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "made")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it wrote outside of the workspace")
	}
}
