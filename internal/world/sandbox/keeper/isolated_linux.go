package keeper

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/ports"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// A keeper of a workspace box is the first process of new mount and process namespaces. When it dies, the
// kernel kills all other processes in them. Each of its commands has its own IPC namespace. The network is that
// of the session. A read box is made in the same way if it may see the session's temporary files, or if the
// kernel's Landlock can't confine signals. Nothing in it is writable.

// prepareScene creates the file system of the box, unless it exists.
func (c *command) prepareScene() error {
	if !c.order.Stands {
		if err := c.lockFolders(); err != nil {
			return walls.During("lock the folder for temporary files", err)
		}
		if err := c.order.EnterMounts(); err != nil {
			return err
		}
		if err := walls.During("set limits", c.order.Limits.ApplyHere()); err != nil {
			return err
		}
	}
	c.order.Env = processes.SetVars(c.order.Env, c.order.TempVars(walls.OwnTemp)...)
	c.order.Env = processes.SetVars(c.order.Env, c.order.GoCacheVars()...)
	return walls.During("offer the proxy", c.setProxyVars())
}

// lockFolders locks the session's folders for temporary files and caches while the box is open.
func (c *command) lockFolders() error {
	for _, dir := range []string{c.order.Tmp, c.order.Cache} {
		if dir == "" {
			continue
		}
		lock, err := paths.LockFolder(dir, true)
		if err != nil {
			return err
		}
		c.locks = append(c.locks, lock)
	}
	return nil
}

// enterScene puts the current thread into the box. Landlock is a second barrier in addition to the mounts, if
// the kernel supports it.
func (c *command) enterScene() error {
	// The keeper's IPC namespace would outlive the command.
	if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
		return walls.During("leave the IPC namespace of the machine", err)
	}
	rules, err := walls.WorkspaceRules(c.order.Plan)
	if err != nil {
		return walls.During("restrict files", err)
	}
	defer rules.Close()
	if err := walls.DropPrivileges(); err != nil {
		return walls.During("drop privileges", err)
	}
	if err := rules.Enforce(); err != nil {
		return walls.During("restrict files", err)
	}
	if c.order.Level == tool.BoxRead {
		return walls.During("restrict system calls", walls.Filter(tool.BoxRead))
	}
	return walls.During("restrict system calls", c.filterCalls())
}

// setProxyVars sets the proxy variables, if hosts are open. This machine is reached directly.
func (c *command) setProxyVars() error {
	const near = "localhost,127.0.0.1,::1,[::1]"
	var vars []string
	if c.order.Proxy {
		port, err := c.listenForProxy()
		if err != nil {
			return err
		}
		address := "http://127.0.0.1:" + strconv.Itoa(port)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			vars = append(vars, name+"="+address)
		}
		var java []string
		for _, scheme := range []string{"http", "https"} {
			java = append(java, "-D"+scheme+".proxyHost=127.0.0.1", "-D"+scheme+".proxyPort="+strconv.Itoa(port))
		}
		vars = append(vars, processes.WithOptions(c.order.Env, processes.MavenOptions, java...))
	}
	c.order.Env = processes.SetVars(c.order.Env, append(vars, "NO_PROXY="+near, "no_proxy="+near)...)
	return nil
}

// listenForProxy listens for clients of the proxy. It passes connections of this box to inspan unchanged.
func (c *command) listenForProxy() (port int, err error) {
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
	go c.accept(fd)
	return name.(*unix.SockaddrInet4).Port, nil
}

func (c *command) accept(listener int) {
	line, err := protocol.Encode(protocol.Report{Op: protocol.OpConnection, N: c.number})
	if err != nil {
		return
	}
	<-c.begun // the start is reported first
	for {
		conn, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ECONNABORTED) {
				continue
			}
			return
		}
		if ports.MadeHere(conn) {
			c.Send(line, unix.UnixRights(conn))
		}
		_ = unix.Close(conn)
	}
}

// sweep renames new sensitive places in the workspace. It is needed only if inspan is gone, so nothing is
// reported.
func (c *command) sweep() {
	w := &sensitive.Workspace{Root: c.order.Root, Places: c.order.Map}
	if c.order.Box.Init {
		w.CountMakers(1)
	}
	held := w.OpenFolders(c.order.Box)
	defer paths.CloseFolders(held)
	before := c.order.View.Before
	w.TakeAwayAll(w.Appeared(c.order.Box, before, held, func(path string) bool { return w.ChangedOutside(path, before) }), held)
}
