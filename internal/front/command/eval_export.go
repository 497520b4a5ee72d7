package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/eval"
)

// export writes a run in another format. For held-out tasks that is a look, which counts. Omitted parts are
// listed on errs.
func (c *comparisons) export(ctx context.Context, name, shape string, errs io.Writer) (err error) {
	if err := wordOf("--as", shape, eval.Shapes()); err != nil {
		return err
	}
	if shape == eval.ShapeHarbor && c.File == "" {
		return misused("a job of Harbor is a folder; name one that is not there with --out")
	}
	run, err := c.run(name)
	if err != nil {
		return err
	}
	if err := run.CanExport(shape); err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); err == nil { // before the look counts
		return misused("--out: %s already exists", c.File)
	}
	planned := c.How.Planned * max(1, run.Tries)
	if n := planned - len(run.Trials); n > 0 {
		fmt.Fprintf(errs, "%s not ended and left out.\n", text.Counted(n, "trial has", "trials have"))
	}
	if err := c.count(ctx, run, run); err != nil {
		return err
	}
	if run.Split == eval.HeldOut {
		fmt.Fprintln(errs, "These tasks are held out: this counts as a look at them.")
	}
	if shape == eval.ShapeHarbor {
		return run.Harbor(ctx, c.File, planned, c.Sessions)
	}
	out := c.Out
	if c.File != "" {
		f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	left, err := run.Lines(out, shape)
	if left > 0 {
		fmt.Fprintf(errs, "%s left out: they broke, or are a further try of a task.\n", text.Counted(left, "trial is", "trials are"))
	}
	return err
}
