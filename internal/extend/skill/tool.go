package skill

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed tool.md
var toolDoc string

type toolArgs struct {
	Name string `json:"name" jsonschema:"skill"`
	Args string `json:"args,omitempty" jsonschema:"its subject"`
	File string `json:"file,omitempty" jsonschema:"file of it to read instead"`
}

// Tool returns the tool that shows a model the skills of the library.
func (l *Library) Tool() tool.Tool { return l.tool("skill", false) }

// Typed returns the tool for a person, who may invoke manual skills too, under another name.
func (l *Library) Typed(name string) tool.Tool { return l.tool(name, true) }

func (l *Library) tool(name string, typed bool) tool.Tool {
	t := tool.New(name, toolDoc, func(_ context.Context, _ *tool.Call, in toolArgs) (tool.Result, error) {
		if in.File != "" {
			return l.fileResult(in)
		}
		text, s, err := l.Invoke(in.Name, in.Args)
		if err != nil {
			return tool.Result{}, err
		}
		if s.Manual && !typed {
			return tool.Result{}, fmt.Errorf("only a person may invoke the skill %s; if it is needed, ask them to type /%s", s.Name, s.Name)
		}
		r := tool.Text(text)
		r.Lasting = "skill " + s.Name
		return r, nil
	})
	t.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) { return l.effects(ctx, c) }
	return t
}

// effects returns which file of the workspace a call reads, since a skill that came with it may be a link to
// anywhere. Skills in the person's own folders are their own.
func (l *Library) effects(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
	in, err := tool.Args[toolArgs](c)
	if err != nil {
		return nil, err
	}
	list, _ := l.List()
	i := slices.IndexFunc(list, func(s Skill) bool { return strings.EqualFold(s.Name, in.Name) })
	if i < 0 || list[i].Source != FromProject {
		return nil, nil
	}
	path, err := c.Env.Files.Resolve(ctx, filepath.Join(list[i].Dir, cmp.Or(in.File, "SKILL.md")))
	if err != nil {
		return nil, err
	}
	return []tool.Effect{{Kind: tool.Read, Path: path}}, nil
}

// fileResult shows a file of a skill, even of a manual one: after a person has invoked it, it may refer the
// model to the file.
func (l *Library) fileResult(in toolArgs) (tool.Result, error) {
	data, err := l.File(in.Name, in.File)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !IsText(data):
		return tool.Result{}, fmt.Errorf("%s is not text (%s); use it by its path in the folder of the skill",
			in.File, text.Count(len(data), "byte"))
	}
	return tool.Text(string(data)), nil
}
