package sandbox

import (
	"errors"
	"os/exec"

	"github.com/inspan/inspan/internal/world/sandbox/keeper"
)

// Keeper is to be called first in main by every program whose path is used as [Options.Self], tests included.
// If this process was started as a keeper, it works as one until it is no longer needed, and the caller must
// exit with the code. Otherwise it does nothing.
//
// A keeper starts one command after another, supervises each with all its descendants, and ends them on request
// or when the connection to its starter ends, however the starter died. The first process of every container is
// also a keeper. In a workspace box the program also serves Go's build cache.
func Keeper() (ran bool, code int) {
	return keeper.Run(func(program string) (string, error) {
		path, err := exec.LookPath(program)
		if errors.Is(err, exec.ErrDot) {
			err = nil
		}
		return path, err
	})
}
