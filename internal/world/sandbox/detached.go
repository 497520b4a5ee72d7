package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// endTick is how often End checks whether a process has ended.
const endTick = 10 * time.Millisecond

// End ends a process that this one did not start: it requests termination, and kills the process after the
// grace period. Still reports whether the process id still refers to the same running process; it is called
// before each signal. End returns once Still returns false, and reports whether the process was killed.
func End(ctx context.Context, pid int, grace time.Duration, still func() bool) (killed bool, err error) {
	p, err := os.FindProcess(pid) // the handle, where the system has handles, makes a reused id harmless
	if err != nil {
		return false, fmt.Errorf("end process %d: %w", pid, err)
	}
	defer func() { err = errors.Join(err, p.Release()) }()
	if !still() {
		return false, nil
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("end process %d: %w", pid, err)
	}
	if endedWithin(ctx, grace, still) || ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	if !endedWithin(ctx, grace, still) {
		return true, errors.Join(fmt.Errorf("process %d does not end", pid), ctx.Err())
	}
	return true, nil
}

// endedWithin waits until still returns false, at most for a duration.
func endedWithin(ctx context.Context, wait time.Duration, still func() bool) bool {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	tick := time.NewTicker(endTick)
	defer tick.Stop()
	for still() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return !still()
		}
	}
	return true
}
