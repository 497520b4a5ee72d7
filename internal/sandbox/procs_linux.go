package sandbox

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// keepDescriptors marks every open file of this process close-on-exec. Go does
// so for its own, but not for those it was started with. Kernels before 5.11
// cannot; then those are passed on.
func keepDescriptors() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// leaves reports whether the process left descendants behind.
func (d *direct) leaves() bool { return d.marksAlive() }

// marksAlive reports whether any process with the mark runs.
func (d *direct) marksAlive() bool { return len(marked(d.mark)) > 0 }

// killMarked kills every process with the mark in its environment. Killing and
// forking race, so it looks again until none is left.
func killMarked(mark string) {
	for range 10 {
		pids := marked(mark)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// marked returns the processes that were started with the mark in their
// environment and have not ended. Those of other users cannot be seen, nor
// can those that overwrote their environment.
func marked(mark string) []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	needle := []byte("/" + mark + "/")
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", dir.Name(), "environ"))
		if err == nil && bytes.Contains(env, needle) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killSession kills what is left of a session whose leader has ended.
func killSession(id int) {
	for range 10 {
		none := true
		for _, s := range stats() {
			if s.session == id {
				none = false
				_ = syscall.Kill(s.pid, syscall.SIGKILL)
			}
		}
		if none {
			return
		}
	}
}
