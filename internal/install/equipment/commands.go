package equipment

import (
	"path/filepath"

	"github.com/inspan/inspan/internal/extend/skill"
)

// Commands lists the slash commands in markdown files: those of the workspace, of other agents' folders in it,
// and the user's. The first of two with the same name counts. Warn is called for invalid files.
func (s *Set) Commands(root string, warn func(string)) []skill.Command {
	out, warnings := skill.Commands(append([]skill.Folder{
		{Path: filepath.Join(root, ".inspan", "commands"), Source: "project"},
		{Path: filepath.Join(root, ".claude", "commands"), Source: "project"},
	}, s.own("commands", ".claude")...))
	for _, w := range warnings {
		warn(w)
	}
	for _, p := range s.Plugins() {
		out = append(out, p.Commands...)
	}
	return out
}
