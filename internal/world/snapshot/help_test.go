package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func resolved(t testing.TB, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func newStore(t testing.TB) *Store {
	t.Helper()
	top := resolved(t, t.TempDir())
	root := filepath.Join(top, "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Store{Dir: filepath.Join(top, "store"), Root: root}
}

// lay makes the entries of a table below root: a path that ends with a slash is a folder, a text that starts with "-> "
// a link.
func lay(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case path[len(path)-1] == '/':
			err = os.MkdirAll(full, 0o755)
		case len(text) > 3 && text[:3] == "-> ":
			err = os.Symlink(text[3:], full)
		default:
			err = os.WriteFile(full, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// state describes all that is below root, by slash path.
func state(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch info.Mode().Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %.8x", len(data), sha256.Sum256(data))
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text = "-> " + target
		}
		out[filepath.ToSlash(rel)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func take(t testing.TB, s *Store) string {
	t.Helper()
	c, err := s.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// during takes checkpoints around something.
func during(t testing.TB, s *Store, do func()) Span {
	t.Helper()
	before := take(t, s)
	do()
	return Span{before, take(t, s)}
}

func restore(t testing.TB, s *Store, to string, force bool, spans ...Span) Restored {
	t.Helper()
	r, err := s.Restore(context.Background(), to, spans, force)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// whys lists paths and reasons.
func whys(list []Change) map[string]string {
	out := map[string]string{}
	for _, c := range list {
		out[c.Path] = c.Why
	}
	return out
}

// kinds lists paths with their kinds of change.
func kinds(list []Change) map[string]Kind {
	out := map[string]Kind{}
	for _, c := range list {
		out[c.Path] = c.Kind
	}
	return out
}

// reportPeak reports how much memory the process ever took, where the system
// tells.
func reportPeak(b *testing.B) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "VmHWM:" {
			if kib, err := strconv.Atoi(string(f[1])); err == nil {
				b.ReportMetric(float64(kib)/1024, "peak-MiB")
			}
		}
	}
}

// cpu is how many ticks of 10 ms of processor time the process took, where the
// system tells.
func cpu() (ticks float64) {
	data, err := os.ReadFile("/proc/self/stat")
	if f := bytes.Fields(data); err == nil && len(f) > 15 {
		for _, field := range f[13:15] {
			n, _ := strconv.ParseFloat(string(field), 64)
			ticks += n
		}
	}
	return ticks
}
