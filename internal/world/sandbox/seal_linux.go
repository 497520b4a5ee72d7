package sandbox

import (
	"github.com/inspan/inspan/tool"
)

// Sealing starts programs that call [Seal] first: as they can access nothing from then on, they need no box. Nil
// means such programs must be started in a box on this machine.
func Sealing() tool.Procs { return newProcs("/", Options{Pool: &Pool{}}) }
