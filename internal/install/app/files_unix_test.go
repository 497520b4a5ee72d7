//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
)

// TestPipesForServers checks that nothing waits for a pipe, or reads a device, in the place of a file that names
// servers.
func TestPipesForServers(t *testing.T) {
	a, root := served(t, 1, "")
	if err := os.Mkdir(filepath.Join(root, ".inspan"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, ".mcp.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/tty", filepath.Join(root, ".inspan", "mcp.json")); err != nil {
		t.Fatal(err)
	}
	list := a.Hubs.Servers(root, "", nil, func(text string) { t.Error(text) })
	if len(list) != 1 || list[0].Source != mcp.User {
		t.Errorf("%+v", list)
	}
}

// TestHooksNameTheirFileOnce checks what is said of hooks that do not run, and that a file of them that can't be read
// opens no session.
func TestHooksNameTheirFileOnce(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".claude", "settings.json")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	a := load(t, "model = \"script/commands\"\nsandbox.off = true\nclaude_hooks = true\n")
	t.Setenv("HOME", home)
	for text, opens := range map[string]bool{`{"hooks":{"PreToolUse":[3]}}`: true, `{"hooks":3}`: false, strings.Repeat(" ", 1<<20+1): false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said []string
		s, err := a.Host(app.Options{}, func(text string) {
			if strings.Contains(text, "can't be read") {
				said = append(said, text)
			}
		}).New(t.Context(), t.TempDir())
		if (err == nil) != opens {
			t.Errorf("%.30q: %v", text, err)
		}
		if err != nil { // nothing runs without guards that can't be read
			said = append(said, err.Error())
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if len(said) != 1 || strings.Count(said[0], path) != 1 {
			t.Errorf("%.30q: %q", text, said)
		}
	}
}
