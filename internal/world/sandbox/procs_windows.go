package sandbox

import (
	"context"
	"errors"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/tool"
)

// Keeper does nothing: there are no keepers on Windows. See the version for Linux.
func Keeper() (ran bool, code int) { return false, 0 }

// procs implements [tool.Procs] without support for processes.
type procs struct{}

func newProcs(string, Options) *procs { return &procs{} }

func (p *procs) tryWalls() tool.Walls {
	return tool.Walls{Why: "there are no processes on Windows; run inside WSL"}
}

var errUnsupported = errors.New("starting processes is not supported on Windows; run inside WSL")

// Start implements [tool.Procs]: it always fails.
func (p *procs) Start(context.Context, tool.Command) (tool.Process, error) {
	return nil, errUnsupported
}

func (p *procs) sessionTemp() *files.Temp { return nil }

func keepDescriptors() {}
