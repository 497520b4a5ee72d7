package equipment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// SkillFolders returns the existing folders of skills outside of a workspace that its programs may read, as skills
// refer to files and programs in them: the person's own, and those of the project above the workspace. Root may be
// empty.
func (s *Set) SkillFolders(root string) []string {
	var out []string
	for _, f := range s.Skills(root).Folders {
		at := keep.Real(f.Path)
		whole := text.Inside(at, keep.Home()) // a home, or a folder above it, is not a folder of skills
		mine := f.Source == skill.FromUser || f.Source == skill.FromProject && text.Inside(keep.Real(f.Within), at) && !text.Inside(at, keep.Real(root))
		if info, err := os.Stat(at); mine && filepath.IsAbs(at) && !whole && err == nil && info.IsDir() && !text.Inside(root, at) {
			out = append(out, at)
		}
	}
	return out
}

// Skills returns the library of a workspace: those of its project, the user's, and built-in ones. The first of two
// with the same name counts.
func (s *Set) Skills(root string) *skill.Library {
	if s.Config.Skills.Off {
		return &skill.Library{}
	}
	folders := append(ofProject(root, "skills", ".inspan", ".agents", ".claude"), s.own("skills", ".agents", ".claude")...)
	for _, path := range s.Config.Skills.Folders {
		folders = append(folders, skill.Folder{Path: path, Source: "user"})
	}
	for _, p := range s.Plugins() {
		for _, f := range p.Skills {
			f.Root = p.Dir
			folders = append(folders, f)
		}
	}
	return &skill.Library{Folders: folders, Builtin: !s.Config.Skills.NoBuiltin, Heads: filepath.Join(s.StateDir, "skill-heads")}
}

// ofProject returns the folders of that name in the workspace and in the folders above it up to the top of its
// repository, below the given folders of each. Those of the workspace come first.
func ofProject(root, name string, below ...string) (out []skill.Folder) {
	within := keep.Repository(root)
	for _, at := range keep.ProjectFolders(root) {
		for _, dir := range below {
			out = append(out, skill.Folder{Path: filepath.Join(at, dir, name), Source: skill.FromProject, Within: within})
		}
	}
	return out
}

// own returns the person's folders of that name: next to the settings, and in the home folders that other
// agents read too.
func (s *Set) own(name string, home ...string) []skill.Folder {
	out := []skill.Folder{{Path: filepath.Join(filepath.Dir(s.ConfigPath), name), Source: skill.FromUser}}
	if s.Apart {
		return out
	}
	for _, other := range home {
		out = append(out, skill.Folder{Path: keep.AtHome(other, name), Source: skill.FromUser})
	}
	return out
}

// Loaded returns the text of the skills that a role begins with.
func Loaded(l *skill.Library, names []string) string {
	var texts []string
	for _, name := range names {
		if text, _, err := l.Invoke(name, ""); err == nil {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// skillGrants is a hook that allows the calls that a loaded skill declares, until the person's next message.
// Skills from a repository allow nothing.
type skillGrants struct {
	library *skill.Library
	places  places.Map

	mu    sync.Mutex
	rules []policy.Rule
}

// Grants returns a hook that allows the calls that loaded skills of a library declare; none if skills are off.
func (s *Set) Grants(l *skill.Library, at places.Map) []tool.Hook {
	if s.Config.Skills.Off {
		return nil
	}
	return []tool.Hook{&skillGrants{library: l, places: at}}
}

// At implements [tool.Hook].
func (g *skillGrants) At(ctx context.Context, p tool.Point) (tool.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p.Moment == tool.PromptSaid:
		g.rules = nil
	case p.Moment == tool.AfterCall && p.Call.Name == "skill" && p.Failed == "":
		g.add(p.Call)
	case p.Moment == tool.BeforeCall && len(g.rules) > 0:
		v, err := policy.Policy{Map: g.places, Rules: g.rules}.Judge(ctx, p.Call, p.Effects)
		if err == nil && v.Action == tool.Allow {
			return tool.Outcome{Action: tool.Allow, By: v.By, Reason: v.Reason}, nil
		}
	}
	return tool.Outcome{}, nil
}

// add adds the grants of the skill that a call loaded.
func (g *skillGrants) add(c *tool.Call) {
	args, err := tool.Args[struct {
		Name string `json:"name"`
		File string `json:"file"`
	}](c)
	if err != nil || args.File != "" {
		return
	}
	skills, _ := g.library.List()
	i := slices.IndexFunc(skills, func(s skill.Skill) bool { return strings.EqualFold(s.Name, args.Name) })
	if i < 0 || skills[i].Source == "project" || skills[i].Manual {
		return
	}
	for _, written := range skills[i].Tools {
		rules, _ := foreign.Rules(tool.Allow, written)
		for _, text := range rules {
			if r, err := policy.ParseRule(tool.Allow, text, "skill "+skills[i].Name); err == nil {
				g.rules = append(g.rules, r)
			}
		}
	}
}
