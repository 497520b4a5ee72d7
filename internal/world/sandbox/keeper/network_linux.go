package keeper

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// NetworkName is the name of the process that holds a network namespace open.
const NetworkName = "inspan-holder" // the whole command line of a holder

// holdNetwork runs a holder. It returns the exit code.
func holdNetwork() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	w, err := protocol.NewWire(keeperFD)
	if err != nil {
		return 1
	}
	failed := walls.During("start the loopback network", loopback())
	for {
		var r protocol.Request
		if w.Lines.Next(&r) != nil {
			return 0
		}
		theirs := w.Lines.Take()
		if failed != nil {
			w.Tell(failure(failed))
			return 1
		}
		keeper, handle, err := startKeeper(theirs, r.Throw)
		_ = unix.Close(theirs)
		if err != nil {
			w.Tell(failure(walls.During("start a keeper", err)))
			continue
		}
		line, err := protocol.Encode(protocol.Report{Op: protocol.OpStarted, Pid: keeper.Pid})
		if err == nil {
			w.Send(line, unix.UnixRights(handle))
		}
		_ = unix.Close(handle)
		go func() { _, _ = keeper.Wait() }()
	}
}

// startKeeper starts a keeper in this process's network. It returns a handle that signals the keeper's end. A
// keeper that discards the changes of its box mounts an overlay, whose work folder needs a privilege.
func startKeeper(conn int, throw bool) (keeper *os.Process, handle int, err error) {
	theirs, err := unix.FcntlInt(uintptr(conn), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, -1, err
	}
	file := os.NewFile(uintptr(theirs), "keeper")
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, -1, err
	}
	defer null.Close()
	handle = -1
	caps := []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE}
	if throw {
		caps = append(caps, unix.CAP_DAC_OVERRIDE)
	}
	keeper, err = os.StartProcess("/proc/self/exe", []string{Name}, &os.ProcAttr{
		Dir: "/", Env: Environ(), Files: []*os.File{null, null, null, file},
		Sys: &syscall.SysProcAttr{
			Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, PidFD: &handle,
			AmbientCaps: caps,
		},
	})
	if err == nil && handle < 0 {
		err = errors.New("the kernel has no handles of processes")
	}
	return keeper, handle, err
}

// loopback enables the loopback network, the only one inside.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
