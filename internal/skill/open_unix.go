//go:build unix

package skill

import "syscall"

// nonblock lets open return at once, also for a pipe that nobody writes to.
const nonblock = syscall.O_NONBLOCK
