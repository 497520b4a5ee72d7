package sandbox

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A keeper of a workspace box is the first process of new namespaces: of
// users, mounts, processes, IPC and network. When it dies, the kernel kills
// all others in them.

// prepareWorkspace makes the file system of the box and its network.
func (k *keeper) prepareWorkspace() error {
	var s scene
	if err := s.collect(k.order); err != nil {
		return err
	}
	if err := s.found(); err != nil {
		return err
	}
	if err := s.blanks(k.order); err != nil {
		return err
	}
	if err := s.build(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	k.order.Env = with(k.order.Env, "TMPDIR=/tmp", "TMP=/tmp", "TEMP=/tmp")
	if err := setup("start the loopback network", loopback()); err != nil {
		return err
	}
	if k.order.Proxy {
		port, err := k.offer()
		if err != nil {
			return setup("offer the proxy", err)
		}
		address := "http://127.0.0.1:" + strconv.Itoa(port)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			k.order.Env = with(k.order.Env, name+"="+address)
		}
		k.order.Env = with(k.order.Env, "NO_PROXY=", "no_proxy=")
	}
	return setup("set limits", k.limitSelf())
}

// enterWorkspace puts the current thread into the workspace box. Landlock is a
// second wall behind the mounts, where the kernel has it.
func (k *keeper) enterWorkspace() error {
	abi := k.abi()
	var rules *ruleset
	if abi >= leastABI {
		var err error
		if rules, err = k.workspaceRules(abi); err != nil {
			return setup("restrict files", err)
		}
	}
	if err := dropPrivileges(); err != nil {
		return setup("drop privileges", err)
	}
	if rules != nil {
		if err := rules.enforce(); err != nil {
			return setup("restrict files", err)
		}
	}
	return setup("restrict system calls", filter(workspaceCalls()))
}

func (k *keeper) workspaceRules(abi int) (*ruleset, error) {
	rules, err := newRuleset(abi, true)
	if err != nil {
		return nil, err
	}
	if err := rules.allowPath("/", mayRead); err != nil {
		return nil, err
	}
	for _, path := range append([]string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/tty", cacheDir}, k.order.Write...) {
		if err := rules.allowPath(path, rules.files); err != nil {
			return nil, err
		}
	}
	return rules, rules.allowDevices()
}

// loopback starts the network inside of this machine, which is all there is.
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

// offer listens for those who want to use the proxy. Their connections are
// handed to the other side as they are.
func (k *keeper) offer() (port int, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := unix.Listen(fd, 128); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	go k.accept(fd)
	return name.(*unix.SockaddrInet4).Port, nil
}

func (k *keeper) accept(listener int) {
	line, err := encode(report{Op: opConn})
	if err != nil {
		return
	}
	<-k.begun // the start is told first
	for {
		conn, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ECONNABORTED) {
				continue
			}
			return
		}
		k.send(line, unix.UnixRights(conn))
		_ = unix.Close(conn)
	}
}

// sweep renames what appeared in the workspace and must not stay. It is done
// here only if nobody is left who would do it outside, so nothing can be told.
func (k *keeper) sweep() {
	b := &boxes{o: Options{Map: k.order.Map}, root: k.order.Root}
	held := b.anchors(k.order.Box)
	defer release(held)
	before := k.order.View.Before
	b.sweepAll(b.appeared(k.order.Box, before, held, func(path string) bool { return b.others(path, before) }), held)
}
