package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"

	"github.com/google/go-cmp/cmp"
)

// TestInstalledElsewhere checks that the environment of a program is opened wherever it is, except for a whole top
// folder or a parent of the home folder.
func TestInstalledElsewhere(t *testing.T) {
	top := t.TempDir()
	t.Setenv("HOME", filepath.Join(top, "people", "ann"))
	t.Setenv("USERPROFILE", filepath.Join(top, "people", "ann"))
	for _, name := range []string{
		"people/ann/x", "people/pyvenv.cfg", "people/bin/run", "v/pyvenv.cfg", "v/bin/srv", "app/package.json", "app/build/main.js", "bare/bin/run",
	} {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]string{"v/bin/srv": "v", "app/build/main.js": "app", "bare/bin/run": "bare/bin", "people/bin/run": "people/bin"} {
		got := keep.Installed([]string{filepath.Join(top, filepath.FromSlash(program))})
		if len(got) != 1 || got[0] != filepath.Join(top, filepath.FromSlash(want)) {
			t.Errorf("%s opens %q, not %s", program, got, want)
		}
	}
}

func TestInstalled(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	at := func(words ...string) string { return filepath.Join(append([]string{home}, words...)...) }
	for _, path := range []string{at("bin", "node"), at("x", "node_modules", "a", "node_modules", "b", "index.js"), at("run.sh")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	got := keep.Installed([]string{
		at("bin", "node"), "-x", at("x", "node_modules", "a", "node_modules", "b", "index.js"), at("bin"), at("gone"),
		"bin/node", at("bin", "node"), at("run.sh"),
	})
	if diff := cmp.Diff([]string{at("bin"), at("x", "node_modules"), at("run.sh")}, got); diff != "" {
		t.Error(diff)
	}
}
