package knowledge

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/prompt"
	"github.com/inspan/inspan/tool"
)

// reader reads instruction files for a workspace, and what they import: nothing
// that tools may not read, and from folders above the workspace or elsewhere
// only files of instructions, so that one that came with a repository can't put
// a private file before the model.
func (k *Base) reader(root string) func(path string) ([]byte, error) {
	at := k.Places(root)
	return func(path string) ([]byte, error) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		named := instructions(path) && instructions(real)
		if !named && !tool.Inside(root, real) || at.Of(real).Guard == places.Secret {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		return readInstructions(real)
	}
}

func instructions(path string) bool {
	return slices.Contains([]string{"agents.md", "claude.md"}, strings.ToLower(filepath.Base(path)))
}

// readInstructions reads an instruction file, unless it belongs to another
// user: anybody can put a file into a directory like /tmp.
func readInstructions(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if !ours(info) {
		return nil, fmt.Errorf("%s belongs to another user", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxInstructions))
}

// maxInstructions is how much of one instruction file is read, in bytes. What is
// used of all of them together is less.
const maxInstructions = 8 * prompt.MaxInstructions
