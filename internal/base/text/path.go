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

// Below returns a path relative to dir if it is inside, else as it is.
func Below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && Inside(dir, path) {
		return rel
	}
	return path
}
