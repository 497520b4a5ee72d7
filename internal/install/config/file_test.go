//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/install/config"
)

// TestNothingWaitsOrGrows checks that special files in place of settings are refused at once, and that a link to a
// settings file is accepted.
func TestNothingWaitsOrGrows(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"it is not a regular file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"it is not a regular":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"regular file":             func(path string) error { return os.Mkdir(path, 0o700) },
		"longer than 1048576":      func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("#", 1<<20+1)), 0o600) },
	} {
		root := t.TempDir()
		path := filepath.Join(root, config.ProjectFile)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		want := path + ": "
		_, project := config.LoadProject(filepath.Join(root, config.ProjectFile))
		_, own := config.Load(path)
		_, shown := config.Settings(path)
		_, raw := config.ReadFile(path)
		for _, err := range []error{project, own, shown, raw} {
			if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	dir := t.TempDir()
	real, path := filepath.Join(dir, "dotfiles"), filepath.Join(dir, "sub", "config.toml")
	if err := os.WriteFile(real, []byte("mode='plan'"+strings.Repeat("#", 1<<20-11)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(path); err != nil || c.Mode != "plan" {
		t.Error(c.Mode, err)
	}
}
