package text

import (
	"path/filepath"
	"strings"
)

// Inside reports whether path is dir or below it. Both must be resolved. Nothing is inside an empty dir.
func Inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
