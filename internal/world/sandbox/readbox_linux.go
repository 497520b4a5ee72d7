package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareRead makes the folder for temporary files, unless it stands.
func (k *keeper) prepareRead() error {
	dir := k.order.Temp
	if dir == "" {
		return nil
	}
	if dir != k.temp {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return setup("make a temporary folder", err)
		}
		k.temp = dir
	}
	k.order.Env = with(k.order.Env, "TMPDIR="+dir, "TMP="+dir, "TEMP="+dir)
	return setup("set limits", k.limitSelf())
}

// enterRead puts the current thread into the read box.
func (k *keeper) enterRead() error {
	if abi := k.abi(); abi < leastSignals {
		return setup("keep signals inside", fmt.Errorf("the kernel's Landlock is version %d, which can't", abi))
	}
	if k.rules == nil {
		if err := k.readRules(); err != nil {
			return err
		}
	}
	if err := dropPrivileges(); err != nil {
		return setup("drop privileges", err)
	}
	if err := k.rules.enforce(); err != nil {
		return setup("restrict files", err)
	}
	return setup("restrict system calls", filter(readCalls()))
}

// readRules makes the wall around all commands of the keeper for which it is the same.
func (k *keeper) readRules() error {
	rules, err := newRuleset(k.abi(), false)
	if k.rules = rules; err != nil {
		return setup("restrict files", err)
	}
	for _, g := range k.order.Read {
		if err := rules.allowGrant(g); err != nil {
			return setup("open "+g.Path+" for reading", err)
		}
	}
	if err := rules.allowDevices(); err != nil {
		return setup("open devices", err)
	}
	if k.order.Temp != "" {
		if err := rules.allowPath(k.order.Temp, rules.files); err != nil {
			return setup("open the temporary folder", err)
		}
	}
	return nil
}

// abi returns the version of Landlock to build with.
func (k *keeper) abi() int { return usableABI(k.order.ABI) }

// usableABI is the version of Landlock that the kernel has, and no higher one than most; 0
// stands for any, below 0 for none.
func usableABI(most int) int {
	switch abi := landlockABI(); {
	case most < 0:
		return 0
	case most > 0:
		return min(most, abi)
	default:
		return abi
	}
}

// allowDevices opens the devices that hold nothing.
func (r *ruleset) allowDevices() error {
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		if err := r.allowPath(path, mayUse); err != nil {
			return err
		}
	}
	for _, path := range []string{"/dev/random", "/dev/urandom"} {
		if err := r.allowPath(path, unix.LANDLOCK_ACCESS_FS_READ_FILE); err != nil {
			return err
		}
	}
	return r.allowPath("/dev", unix.LANDLOCK_ACCESS_FS_READ_DIR)
}

// limitSelf sets the limits that the keeper can bear itself; the command
// inherits them.
func (k *keeper) limitSelf() error {
	l := k.order.Limits
	for resource, n := range map[int]uint64{unix.RLIMIT_CPU: l.CPU, unix.RLIMIT_FSIZE: l.FileSize, unix.RLIMIT_NOFILE: l.OpenFiles} {
		if n > 0 {
			if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				return err
			}
		}
	}
	return syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{})
}

// limit sets the limits that the keeper could not live with. They come a
// moment after the start: they are no wall.
func (k *keeper) limit(pid int) {
	l := k.order.Limits
	for resource, n := range map[int]uint64{unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_NPROC: l.Processes} {
		if n > 0 {
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
		}
	}
}
