package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// RunAsInit is to be called by a program before it starts anything. In process 1, as in a container without an
// init, it runs the program in a child. This process passes signals on to the child and reaps orphans. When the
// child has ended, the caller must exit with the code. In any other process it does nothing.
func RunAsInit() (ran bool, code int) {
	if os.Getpid() != 1 {
		return false, 0
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: childAttributes(),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "inspan is process 1 here and can't start itself in a child: %v\n", err)
		return true, 1
	}
	go func() {
		for s := range signals {
			if s != unix.SIGCHLD && s != unix.SIGURG { // these two concern only this process
				_ = child.Signal(s) // fails if the child has ended; then this process ends too
			}
		}
	}()
	for {
		var ws syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &ws, 0, nil); {
		case pid == child.Pid:
			return true, processes.ExitCode(ws)
		case err != nil && !errors.Is(err, syscall.EINTR):
			return true, 1
		}
	}
}

// childAttributes puts a child into its own process group, with the terminal if there is one, so that no key
// interrupts it twice.
func childAttributes() *syscall.SysProcAttr {
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err != nil {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Foreground: true, Ctty: 0}
}
