package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/tool"
)

// TestMakingIsKnownBefore checks that all boxes of a session know of one that may make repositories before its command
// can run. Otherwise a parallel job removes what git has half made.
func TestMakingIsKnownBefore(t *testing.T) {
	root := t.TempDir()
	git := filepath.Join(root, ".git")
	b := &boxes{Workspace: &sensitive.Workspace{Root: root}}
	k := &supervised{boxes: b, command: tool.Command{Box: tool.Box{Level: tool.BoxWorkspace, Git: true, Init: true}}}
	o := b.outside(k)
	if err := os.Mkdir(git, 0o755); err != nil {
		t.Fatal(err)
	}
	if made, open := b.MadeHere(git, false); !made || !open {
		t.Errorf("before it is open: made %v, open %v", made, open)
	}
	o.start()
	o.finish()
	if made, open := b.MadeHere(git, false); !made || open {
		t.Errorf("after it: made %v, open %v", made, open)
	}
}
