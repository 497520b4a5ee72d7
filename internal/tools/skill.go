package tools

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/tool"
)

//go:embed skill.md
var skillDoc string

type skillArgs struct {
	Name string `json:"name" jsonschema:"the skill, as the prompt lists it"`
	Args string `json:"args,omitempty" jsonschema:"what the skill is to work on"`
	File string `json:"file,omitempty" jsonschema:"path of a file of the skill, to read it instead"`
}

// Skill returns the tool that shows a model the skills of a library. It has no
// effects, as it reads nothing but the folders of the library.
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
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return nil, nil }
	return t
}

// skillFile shows a file of a skill, also of a manual one: after a person has
// invoked it, it may send the model there.
func skillFile(l *skill.Library, in skillArgs) (tool.Result, error) {
	data, err := l.File(in.Name, in.File)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !skill.IsText(data):
		return tool.Result{}, fmt.Errorf("%s is no text, but has %s of something else; use it by its path in the folder of the skill", in.File, count(len(data), "byte"))
	}
	return tool.Text(string(data)), nil
}
