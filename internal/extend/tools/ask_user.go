package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
)

//go:embed ask_user.md
var askUserDoc string

const maxOptions = 8

type askArgs struct {
	Question string   `json:"question" jsonschema:"the question, and what depends on the answer"`
	Options  []string `json:"options,omitempty" jsonschema:"answers to choose from"`
}

// askUser waits for the person: a call with the effect Question gets its answer before it runs.
func askUser() tool.Tool {
	t := tool.New("ask_user", askUserDoc, func(_ context.Context, c *tool.Call, _ askArgs) (tool.Result, error) {
		if c.Answer == "" {
			return tool.Result{}, errors.New("the person gave no answer; decide yourself and say what you decided")
		}
		return tool.Text("The person answers: " + c.Answer), nil
	})
	t.Effects = withArgs(func(_ context.Context, _ *tool.Call, in askArgs) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Question, Text: in.Question}}, nil
	})
	t.Preview = withArgs(func(_ context.Context, _ *tool.Call, in askArgs) (string, error) {
		lines := []string{in.Question}
		for i, o := range in.Options[:min(len(in.Options), maxOptions)] {
			lines = append(lines, fmt.Sprintf("%d. %s", i+1, o))
		}
		return strings.Join(lines, "\n"), nil
	})
	return t
}
