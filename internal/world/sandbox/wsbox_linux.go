package sandbox

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// A keeper of a workspace box is the first process of new namespaces, of mounts and of
// processes. When it dies, the kernel kills all others in them. Each of its commands has IPC to
// itself. The network is that of the session. A read box is made in the same way if it is to
// see the session's temporary files, or if the kernel's Landlock can't keep signals inside.
// Nothing in it can be written.

// ownTemp is where a read box that is made of mounts has temporary files of its
// own.
const ownTemp = "/run/tmp"

// prepareScene makes the file system of the box, unless it stands.
func (k *keeper) prepareScene() error {
	if !k.order.Stands {
		if err := k.furnish(); err != nil {
			return err
		}
	}
	k.order.Env = with(k.order.Env, k.order.temporary(ownTemp)...)
	k.order.Env = with(k.order.Env, k.order.layered()...)
	return setup("offer the proxy", k.proxied())
}

// furnish makes it.
func (k *keeper) furnish() error {
	if err := k.use(); err != nil {
		return setup("lock the folder for temporary files", err)
	}
	var s scene
	if err := s.collect(k.order); err != nil {
		return err
	}
	if err := s.found(k.order); err != nil {
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
	return setup("set limits", k.limitSelf())
}

// temporary is the variables that say where temporary files go. A read box can't write
// the session's, so it has a folder of its own unless its command is to see all of the session's.
func (o order) temporary(own string) []string {
	dir := "/tmp"
	if o.Level == tool.BoxRead && (o.Tmp != "" || o.Scene) && !o.AllTmp {
		dir = own
	}
	return []string{"TMPDIR=" + dir, "TMP=" + dir, "TEMP=" + dir}
}

// use keeps the session's folders for temporary files and caches while the box is open.
func (k *keeper) use() error {
	for _, dir := range []string{k.order.Tmp, k.order.Cache} {
		if dir == "" {
			continue
		}
		lock, err := paths.LockFolder(dir, true)
		if err != nil {
			return err
		}
		k.using = append(k.using, lock)
	}
	return nil
}

// enterScene puts the current thread into the box. Landlock is a second wall
// behind the mounts, where the kernel has it.
func (k *keeper) enterScene() error {
	// The keeper's own would outlive the command.
	if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
		return setup("part from the IPC of the machine", err)
	}
	abi := k.abi()
	var rules *ruleset
	if abi >= leastABI {
		var err error
		if rules, err = k.workspaceRules(abi); err != nil {
			return setup("restrict files", err)
		}
		defer rules.close()
	}
	if err := dropPrivileges(); err != nil {
		return setup("drop privileges", err)
	}
	if rules != nil {
		if err := rules.enforce(); err != nil {
			return setup("restrict files", err)
		}
	}
	if k.order.Level == tool.BoxRead {
		return setup("restrict system calls", filter(readCalls()))
	}
	return setup("restrict system calls", k.filterConnects(workspaceCalls()))
}

func (k *keeper) workspaceRules(abi int) (*ruleset, error) {
	rules, err := newRuleset(abi, true)
	if err != nil {
		return nil, err
	}
	if err := rules.allowPath("/", mayRead); err != nil {
		return nil, err
	}
	writable := append([]string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/tty", cacheDir}, k.order.Write...)
	for _, c := range k.order.Copies {
		writable = append(writable, c.Path)
	}
	if k.order.Level == tool.BoxRead {
		writable = []string{ownTemp, "/dev/pts", "/dev/tty"}
	}
	for _, path := range writable {
		if err := rules.allowPath(path, rules.files); err != nil {
			return nil, err
		}
	}
	return rules, rules.allowDevices()
}

// proxied offers the proxy to those that use one, if hosts are open. What is on
// this machine is reached without any.
func (k *keeper) proxied() error {
	const near = "localhost,127.0.0.1,::1,[::1]"
	var vars []string
	if k.order.Proxy {
		port, err := k.offer()
		if err != nil {
			return err
		}
		address := "http://127.0.0.1:" + strconv.Itoa(port)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			vars = append(vars, name+"="+address)
		}
	}
	k.order.Env = with(k.order.Env, append(vars, "NO_PROXY="+near, "no_proxy="+near)...)
	return nil
}

// offer listens for those who want to use the proxy. Connections of this box are
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
	line, err := encode(report{Op: opConn, N: k.number})
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
		if k.ours(conn) {
			k.send(line, unix.UnixRights(conn))
		}
		_ = unix.Close(conn)
	}
}

// sweep renames what appeared in the workspace and must not stay. It is done
// here only if nobody is left who would do it outside, so nothing can be told.
func (k *keeper) sweep() {
	b := &boxes{o: Options{Map: k.order.Map}, root: k.order.Root}
	if k.order.Box.Init {
		b.making(1)
	}
	held := b.anchors(k.order.Box)
	defer paths.CloseFolders(held)
	before := k.order.View.Before
	b.sweepAll(b.appeared(k.order.Box, before, held, func(path string) bool { return b.others(path, before) }), held)
}
