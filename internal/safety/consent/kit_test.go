package consent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/inspan/inspan/internal/safety/consent"
)

// hostile builds a workspace with one trap for each kind of file known to run
// something. It returns the root and the canary: no file whose path starts
// with it may ever exist.
func hostile(t testing.TB) (root, canary string) {
	t.Helper()
	dir := t.TempDir()
	root, canary = filepath.Join(dir, "workspace"), filepath.Join(dir, "canary")
	archive, err := txtar.ParseFile("testdata/hostile.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		text := strings.ReplaceAll(string(f.Data), "CANARY", canary)
		write(t, root, f.Name, text)
		if strings.HasPrefix(text, "#!") {
			chmod(t, filepath.Join(root, f.Name), 0o755)
		}
	}
	write(t, dir, "outside/secret", "a secret that nobody asked for")
	link(t, "../../../outside/secret", filepath.Join(root, ".inspan/tools/leak"))
	link(t, "../../../outside", filepath.Join(root, ".inspan/plugins/far"))
	link(t, "../../../outside/secret", filepath.Join(root, ".claude/skills/leak"))
	return root, canary
}

func write(t testing.TB, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, root string) []consent.Item {
	t.Helper()
	items, err := consent.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	return items
}
