package knowledge_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/knowledge"
)

func TestFiles(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "*.log\n/out/\n", "a.go": "", "a.log": "", "out/x": "", "sub/.gitignore": "!keep.log\n", "sub/keep.log": "",
		"sub/b.log": "", "sub/out/y": "",
		".git/config": "", ".git/info/exclude": "mine\n", "mine": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := knowledge.Files(t.Context(), root)
	slices.Sort(got)
	if diff := cmp.Diff([]string{".gitignore", "a.go", "sub/.gitignore", "sub/keep.log", "sub/out/y"}, got); diff != "" {
		t.Error(diff)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if got := knowledge.Files(over, root); len(got) > 0 {
		t.Errorf("without time there are %v", got)
	}
	if got := knowledge.Files(t.Context(), filepath.Join(root, "a.go")); len(got) > 0 {
		t.Errorf("below a file there are %v", got)
	}
}
