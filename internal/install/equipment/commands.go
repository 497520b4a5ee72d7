package equipment

import (
	"path/filepath"

	"github.com/inspan/inspan/internal/extend/skill"
)

// Commands lists the slash commands that are markdown files: those of the
// workspace, of its other agents' folder, and the user's. Of two with one name the
// first counts. Warn is told of files that are none.
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
