package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/tool"
)

//go:embed skill.md
var skillDoc string

type skillArgs struct {
	Name string `json:"name" jsonschema:"skill"`
	Args string `json:"args,omitempty" jsonschema:"what it is to work on"`
	File string `json:"file,omitempty" jsonschema:"file of it to read instead"`
}

// Skill returns the tool that shows a model the skills of a library.
func Skill(l *skill.Library) tool.Tool {
	t := tool.New("skill", skillDoc, func(_ context.Context, _ *tool.Call, in skillArgs) (tool.Result, error) {
		if in.File != "" {
			return skillFile(l, in)
		}
		text, s, err := l.Invoke(in.Name, in.Args)
		if err != nil {
			return tool.Result{}, err
		}
		if s.Manual {
			return tool.Result{}, fmt.Errorf("only a person may invoke the skill %s; if it is needed, ask them to type /%s", s.Name, s.Name)
		}
		r := tool.Text(text)
		r.Lasting = "skill " + s.Name
		return r, nil
	})
	t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) { return skillEffects(ctx, c, l) }
	return t
}

// skillEffects tells which file of the workspace a call reads: a skill that came with
// it may be a link to anywhere. Those of the person's own folders are theirs.
func skillEffects(ctx context.Context, c *tool.Call, l *skill.Library) ([]tool.Effect, error) {
	in, err := tool.Args[skillArgs](c)
	if err != nil {
		return nil, err
	}
	list, _ := l.List()
	i := slices.IndexFunc(list, func(s skill.Skill) bool { return strings.EqualFold(s.Name, in.Name) })
	if i < 0 || list[i].Source != "project" {
		return nil, nil
	}
	path, err := resolve(ctx, c, filepath.Join(list[i].Dir, cmp.Or(in.File, "SKILL.md")))
	if err != nil {
		return nil, err
	}
	return []tool.Effect{{Kind: tool.Read, Path: path}}, nil
}

// skillFile shows a file of a skill, also of a manual one: after a person has
// invoked it, it may send the model there.
func skillFile(l *skill.Library, in skillArgs) (tool.Result, error) {
	data, err := l.File(in.Name, in.File)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !skill.IsText(data):
		return tool.Result{}, fmt.Errorf("%s is no text, but has %s of something else; use it by its path in the folder of the skill",
			in.File, text.Count(len(data), "byte"))
	}
	return tool.Text(string(data)), nil
}
