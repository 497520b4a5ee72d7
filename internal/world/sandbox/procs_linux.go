package sandbox

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// keepDescriptors marks every open file of this process close-on-exec. Go does so for its own files, but not
// for inherited ones. Kernels before 5.11 don't support it; then those are passed on.
func keepDescriptors() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// leaves reports whether the process left descendants behind.
func (d *direct) leaves() bool { return d.marksAlive() }

// marksAlive reports whether any process with the mark runs.
func (d *direct) marksAlive() bool { return len(processes.Marked(d.mark)) > 0 }
