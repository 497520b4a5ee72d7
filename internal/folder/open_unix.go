//go:build unix

package folder

import "syscall"

// nonblock lets open return at once, also for a pipe that nobody writes to.
const nonblock = syscall.O_NONBLOCK
