package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/store"
)

// lastDeeds is the number of deeds shown of a failed session.
const lastDeeds = 25

// Failures writes the deeds of the failed trials of a run, for a person or a model that looks for an improvement:
// each event has a number that a proposal can name. Held-out runs are refused.
func Failures(ctx context.Context, out io.Writer, sessions store.Store, r Run) error {
	if r.Split == HeldOut {
		return errors.New("nothing is learned from held-out tasks; use a run of train or dev tasks")
	}
	for _, trial := range r.Trials {
		if trial.Outcome != Failed {
			continue
		}
		if _, err := fmt.Fprintf(out, "task %s, try %d: %s\n", text.Line(trial.Task), trial.Try, text.Line(trial.Reason)); err != nil {
			return err
		}
		for _, check := range trial.Checks {
			if !check.Passed {
				fmt.Fprintf(out, "  check %s: %s\n", text.Line(check.Name), text.Line(check.Note))
			}
		}
		if trial.Session == "" {
			continue
		}
		if err := writeDeeds(ctx, out, sessions, trial.Session); err != nil {
			return err
		}
	}
	return nil
}

// writeDeeds writes the last deeds of a session.
func writeDeeds(ctx context.Context, out io.Writer, sessions store.Store, session string) error {
	h, err := deeds(ctx, sessions, session)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(out, "  session %s is gone\n", session)
		return err
	}
	if err != nil {
		return err
	}
	for _, d := range h.done[max(0, len(h.done)-lastDeeds):] {
		if _, err := fmt.Fprintf(out, "  %s:%d  %s  %s\n", session, d.Seq, d.Kind, d.Text); err != nil {
			return err
		}
	}
	return nil
}
