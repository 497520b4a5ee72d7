//go:build unix

package keep_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestNothingWaits checks that pipes, as a folder and in one, are opened at once or not at all, and that no link leads
// out.
func TestNothingWaits(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if _, err := keep.OpenFolder(pipe); !errors.Is(err, keep.ErrNoFolder) {
		t.Errorf("a pipe as a folder: %v", err)
	}
	if _, err := keep.OpenFolder(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing as a folder: %v", err)
	}
	root, err := keep.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	f, err := keep.OpenFile(root, "pipe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := keep.OpenFile(root, "out"); err == nil {
		t.Error("a link led out")
	}
	if _, err := keep.Read(pipe); err == nil {
		t.Error("a pipe was read as a file")
	}
	if _, err := keep.Read(dir); err == nil {
		t.Error("a folder was read as a file")
	}
	if _, err := keep.Read(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	text := strings.Repeat("long ", 100_000)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := keep.Read(filepath.Join(dir, "file")); err != nil || string(data) != text {
		t.Errorf("%d of %d bytes, %v", len(data), len(text), err)
	}
	if data, err := keep.Read("/proc/self/status"); err == nil && len(data) == 0 {
		t.Error("a file of the kernel is empty")
	}
}

// TestHome checks that the home folder is where it is, by whatever name, or nowhere.
func TestHome(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir("ann", 0o700), os.Symlink("ann", "link")); err != nil {
		t.Fatal(err)
	}
	ann := filepath.Join(here, "ann")
	for home, want := range map[string]string{
		"": "", "ann": ann, "./link": ann,
		filepath.Join(here, "link"): ann, "/not/there": "/not/there",
	} {
		t.Setenv("HOME", home)
		if got := keep.Home(); got != want {
			t.Errorf("HOME %q: %q, want %q", home, got, want)
		}
	}
}

func TestRepository(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := keep.Repository(below); got != below {
		t.Errorf("without one: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", ".git"), []byte("gitdir: elsewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{below, filepath.Dir(below)} {
		if got := keep.Repository(at); got != filepath.Join(dir, "a") {
			t.Errorf("of %s: %s", at, got)
		}
	}
	t.Setenv("HOME", filepath.Join(dir, "a"))
	if got := keep.Repository(below); got != below {
		t.Errorf("a home in git: %s", got)
	}
}
