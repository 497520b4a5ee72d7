package sandbox

import (
	"github.com/inspan/inspan/tool"
)

// Sealing starts programs that call [Seal] before they do anything: as they can reach nothing from
// then on, they need no box. Nil: such programs have to be started in a box here.
func Sealing() tool.Procs { return newProcs("/", Options{Pool: &Pool{}}) }
