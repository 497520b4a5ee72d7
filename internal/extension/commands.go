package extension

import (
	"path/filepath"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/skill"
)

// Commands lists the slash commands that are markdown files: those of the
// workspace, of its other agents' folder, and the user's. Of two with one name the
// first counts. Warn is told of files that are none.
func (s *Set) Commands(root string, warn func(string)) []skill.Command {
	dir, _ := config.Dir()
	out, warnings := skill.Commands([]skill.Folder{
		{Path: filepath.Join(root, ".inspan", "commands"), Source: "project"},
		{Path: filepath.Join(root, ".claude", "commands"), Source: "project"},
		{Path: filepath.Join(dir, "commands"), Source: "user"},
		{Path: keep.AtHome(".claude", "commands"), Source: "user"},
	})
	for _, w := range warnings {
		warn(w)
	}
	for _, p := range s.Plugins() {
		out = append(out, p.Commands...)
	}
	return out
}
