package keep_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/base/keep"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// mode fails if anybody else may do something with a file or a keep.
func mode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	if runtime.GOOS != "windows" && info.Mode() != want {
		t.Errorf("%s: %s, want %s", path, info.Mode(), want)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, keep.MakeDir(dir))
	mode(t, dir, fs.ModeDir|0o700)
	mode(t, filepath.Dir(dir), fs.ModeDir|0o700)
	path := filepath.Join(dir, "x")
	for _, text := range []string{"long and new", "old", ""} {
		must(t, keep.Write(path, []byte(text)))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
		mode(t, path, 0o600)
		must(t, os.Chmod(path, 0o644)) // and the next one is private again
	}
	if got := names(t, dir); !slices.Equal(got, []string{"x"}) {
		t.Error(got)
	}
}

// TestWriteReplacesLinks leaves the targets of links alone.
func TestWriteReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	other, path := filepath.Join(dir, "other"), filepath.Join(dir, "x")
	must(t, os.WriteFile(other, []byte("theirs"), 0o600))
	if err := os.Symlink("other", path); err != nil {
		t.Skip(err)
	}
	must(t, keep.Write(path, []byte("mine")))
	mode(t, path, 0o600)
	if got, err := os.ReadFile(other); err != nil || string(got) != "theirs" {
		t.Error(got, err)
	}
}

// TestWriteFails where it can't write, and leaves nothing behind.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "full", "of"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, path := range []string{"full", "file/x", "missing/x", "x\x00", strings.Repeat("x", 4000)} {
		if err := keep.Write(filepath.Join(dir, path), []byte("x")); err == nil {
			t.Errorf("%.20q was written", path)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"file", "full"}) {
		t.Error(got)
	}
}

// TestWriteAtOnce has readers and writers that know nothing of each other: all read
// something whole.
func TestWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 10_000*(i+1)) }
	must(t, keep.Write(path, content(0)))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 20 {
				if err := keep.Write(path, content(i)); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 50 {
				got, err := os.ReadFile(path)
				if err != nil || len(got) == 0 || !bytes.Equal(got, content(int(got[0]-'a'))) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	all.Wait()
	if got := names(t, dir); !slices.Equal(got, []string{"x"}) {
		t.Error(got)
	}
}

func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o755))
	must(t, os.Chmod(open, 0o755))
	must(t, keep.MakeDir(open))
	mode(t, open, fs.ModeDir|0o755)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	bad := []string{"", filepath.Join(dir, "file"), filepath.Join(dir, "file", "x"), filepath.Join(dir, "x\x00")}
	if os.Symlink("nowhere", filepath.Join(dir, "link")) == nil {
		bad = append(bad, filepath.Join(dir, "link"), filepath.Join(dir, "link", "x"))
	}
	for _, path := range bad {
		if err := keep.MakeDir(path); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	t.Chdir(dir)
	must(t, keep.MakeDir(filepath.Join("new", "er")))
	mode(t, "new", fs.ModeDir|0o700)
}

func TestMakeDirAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c", "d")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := keep.MakeDir(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mode(t, dir, fs.ModeDir|0o700)
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, keep.Write(path, []byte("x")))
	for range 2 {
		must(t, keep.Remove(path))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	must(t, keep.Remove(filepath.Join(dir, "missing", "x")))
	must(t, os.MkdirAll(filepath.Join(dir, "full", "of"), 0o700))
	if err := keep.Remove(filepath.Join(dir, "full")); err == nil {
		t.Error("a folder with something in it is removed")
	}
}

// TestSweep removes leftovers of writers of this file, even if the path looks like a pattern.
func TestSweep(t *testing.T) {
	for _, folder := range []string{"plain", "[a]*", "."} {
		dir := filepath.Join(t.TempDir(), folder)
		must(t, os.MkdirAll(filepath.Join(dir, "x.new-FOLDER"), 0o700))
		for _, name := range []string{"x", "x.new-ONE", "x.new-TWO", "xx.new-OTHER", "y.new-OTHER", "x.newer"} {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		keep.Sweep(filepath.Join(dir, "x"))
		if got := names(t, dir); !slices.Equal(got, []string{"x", "x.new-FOLDER", "x.newer", "xx.new-OTHER", "y.new-OTHER"}) {
			t.Error(got)
		}
	}
	keep.Sweep(filepath.Join(t.TempDir(), "missing", "x"))
}
