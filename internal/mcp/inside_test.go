package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/keep"

	"github.com/google/go-cmp/cmp"
)

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
