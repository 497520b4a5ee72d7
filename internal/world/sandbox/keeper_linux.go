package sandbox

import (
	"errors"
	"os/exec"

	"github.com/inspan/inspan/internal/world/sandbox/keeper"
)

// Keeper is to be called first of all by every program whose path is given as
// [Options.Self], tests included. If this process was started to be a keeper,
// it is one until it is no longer needed, and the caller must exit with the
// code; else nothing happens.
//
// A keeper starts one command after another, watches over each and all its
// descendants, and ends them when it is told to or when the connection to the one who
// started it ends, in whatever way that one died. The first process of every container
// is one too. In a workspace box the program also serves the go command its build cache.
func Keeper() (ran bool, code int) {
	return keeper.Run(func(program string) (string, error) {
		path, err := exec.LookPath(program)
		if errors.Is(err, exec.ErrDot) {
			err = nil
		}
		return path, err
	})
}
