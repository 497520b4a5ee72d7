package equipment

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// Roles lists the roles of agents that a session in a workspace can spawn: those of its project, the
// user's, and built-in ones. Warn is called for invalid files.
func (s *Set) Roles(root string, warn func(string)) []skill.Role {
	list, warnings := skill.Roles(append(ofProject(root, "agents", ".inspan", ".agents", ".claude"), s.own("agents", ".claude")...))
	for _, w := range warnings {
		warn(w)
	}
	own, _ := skill.Roles(s.own("agents", ".claude"))
	for _, mine := range own { // a file of the same name must not remove its guard
		i := slices.IndexFunc(list, func(r skill.Role) bool { return strings.EqualFold(r.Name, mine.Name) })
		if mine.Hooks != nil && i >= 0 && list[i].Source == skill.FromProject {
			warn("the kind of agent " + list[i].Name + " of this folder is ignored, because your own kind of that name has hooks")
			list[i] = mine
		}
	}
	for _, p := range s.Plugins() {
		list = append(list, p.Agents...)
	}
	if s.Config.Agents.Corpus && !slices.ContainsFunc(list, func(r skill.Role) bool { return strings.EqualFold(r.Name, corpus.Kind) }) {
		list = append(list, CorpusRole())
	}
	return list
}

// Pick returns a function that selects the tools of a role.
func Pick(role skill.Role) func([]tool.Tool) []tool.Tool {
	without := ours(role.Without, foreign.DeniedTools)
	// A file may allow only some uses of a tool, as in "Bash(git log:*)". Granting the whole tool would be more.
	patterned := func(written string) bool { return strings.Contains(written, "(") }
	kind := ours(slices.DeleteFunc(slices.Clone(role.Tools), patterned), foreign.OwnTools)
	return func(list []tool.Tool) []tool.Tool {
		return slices.DeleteFunc(slices.Clone(list), func(t tool.Tool) bool {
			return slices.Contains(without, t.Name) || role.Tools != nil && !slices.Contains(kind, t.Name)
		})
	}
}

// ours converts tool names of Claude Code or inspan in a file to inspan's names.
func ours(written []string, standsFor func(name string) []string) []string {
	var out []string
	for _, name := range written {
		name, _, _ = strings.Cut(name, "(")
		out = append(out, standsFor(strings.TrimSpace(name))...)
	}
	return out
}
