package equipment

import (
	"github.com/inspan/inspan/internal/extend/skill"
)

// Commands lists the slash commands in markdown files: those of the project, even in other agents' folders, and the
// user's. The first of two with the same name counts. Warn is called for invalid files.
func (s *Set) Commands(root string, warn func(string)) []skill.Command {
	out, warnings := skill.Commands(append(ofProject(root, "commands", ".inspan", ".claude"), s.own("commands", ".claude")...))
	for _, w := range warnings {
		warn(w)
	}
	for _, p := range s.Plugins() {
		out = append(out, p.Commands...)
	}
	return out
}
