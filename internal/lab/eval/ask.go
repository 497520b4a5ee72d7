package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

// ask sends a prompt to a model in a session of its own, without a workspace, and returns its last message.
// Empty means the model of the settings.
func (w *work) ask(ctx context.Context, model, prompt string) (string, error) {
	dir, err := os.MkdirTemp("", "inspan-grade-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	args := []string{"detached", "--cwd=" + dir, "--mode=plan", "--label=eval=" + w.h.ID, "--label=grader=rubric", "--max-turns=3"}
	if model != "" {
		args = append(args, "--model="+model)
	}
	start, err := w.Table.Detach(ctx, w.Program, args, running.Order{
		Text: prompt, Unattended: true, Foreign: w.apart(), Unapproved: true,
		Vars: w.vars(place{root: dir}),
	})
	if err != nil {
		return "", err
	}
	if start.Session == "" {
		return "", errors.New(cmp.Or(words.OneLine(string(start.Printed), 300), fmt.Sprintf("it ended with code %d", start.Code)))
	}
	if _, err := w.exit(ctx, &Task{}, start.Session, start.Ended); err != nil {
		return "", err
	}
	s, err := w.look(ctx, start.Session, dir)
	return s.answer, err
}
