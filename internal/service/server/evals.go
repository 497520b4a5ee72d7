package server

import (
	"errors"

	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
)

// Runs of evaluations belong to the person's own terminal, like the sessions of [Visit.ours]: a server with
// [Server.Ours] shows their state to visitors who see all tenants. Their trials are sessions like all others.

// mostEvals is the number of runs on the board.
const mostEvals = 3

// evalFolder returns the folder of the runs that the visitor sees; false means none.
func (c *call) evalFolder() (eval.Folder, bool) {
	return eval.FolderIn(c.State), c.seesOurs() && c.State != ""
}

// evals returns the last runs.
func (c *call) evals() ([]eval.Standing, error) {
	f, sees := c.evalFolder()
	if !sees {
		return nil, nil
	}
	return f.Recent(c, mostEvals)
}

func (c *call) evalRun(in one) (eval.Standing, error) {
	f, sees := c.evalFolder()
	if !sees {
		return eval.Standing{}, Missing("run", in.ID)
	}
	s, err := f.Standing(c, in.ID)
	if _, none := errors.AsType[words.Misuse](err); none {
		return s, Missing("run", in.ID)
	}
	return s, err
}
