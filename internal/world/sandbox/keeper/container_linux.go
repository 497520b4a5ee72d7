package keeper

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// callHome connects the keeper in a container to inspan.
func callHome() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.Connect(fd, &unix.SockaddrUnix{Name: ContainerFolder + ContainerSocket})
}

// prepareInside verifies the container and finds the program.
func (c *command) prepareInside() error {
	if err := c.inspect(); err != nil {
		return walls.During("check the container", err)
	}
	if c.order.Image {
		c.order.Env = processes.SetVars(imageEnviron(os.Environ()), c.order.Env...)
	}
	if c.order.Level != tool.BoxNone {
		c.order.Env = processes.SetVars(c.order.Env, c.order.TempVars("/run")...)
		if err := c.order.Limits.ApplyHere(); err != nil {
			return walls.During("set limits", err)
		}
	}
	return c.lookUp()
}

// imageEnviron returns the image's environment, with a writable home.
func imageEnviron(own []string) []string {
	env := slices.DeleteFunc(slices.Clone(own), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return secret.Named(name) || processes.UserInfo.MatchString(value)
	})
	if unix.Access(os.Getenv("HOME"), unix.W_OK) != nil {
		env = processes.SetVars(env, "HOME=/tmp")
	}
	return env
}

// lookUp finds the program in the container.
func (c *command) lookUp() error {
	for _, kv := range c.order.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return err
			}
		}
	}
	if strings.Contains(c.order.Path, "/") {
		return nil // relative to its working directory
	}
	path, err := c.lookPath(c.order.Path)
	if err != nil {
		return syscall.ENOENT
	}
	c.order.Path = path
	return nil
}

// inspect verifies the options that the engine was given.
func (c *command) inspect() error {
	if c.order.Level == tool.BoxNone {
		return nil
	}
	for _, w := range c.order.Walls {
		if err := w.Check(); err != nil {
			return err
		}
	}
	if err := walls.CheckReadOnly("/"); err != nil {
		return err
	}
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			return fmt.Errorf("there is a network, %s", i.Name)
		}
	}
	return nil
}

// enterInside removes privileges from the current thread that no engine was asked to remove, and the system
// calls that no box has.
func (c *command) enterInside() error {
	if c.order.Level == tool.BoxNone {
		return nil
	}
	if err := walls.DropPrivileges(); err != nil {
		return walls.During("drop privileges", err)
	}
	if !walls.CanFilter() {
		return nil // the engine has its own filter
	}
	return walls.During("restrict system calls", walls.Filter(c.order.Level))
}

// killAll kills the family. In a container some of its processes may be out of reach, for example under another
// user; they die with the container's first process.
func (c *command) killAll() {
	if c.order.Container {
		go func() {
			late := time.NewTimer(processes.TermGrace)
			defer late.Stop()
			select {
			case <-c.family.Done:
			case <-late.C:
				os.Exit(1)
			}
		}()
	}
	c.family.Kill()
}

// Paths in a container.
const (
	ContainerProgram = "/.inspan-keeper" // the keeper, and its name
	ContainerFolder  = "/.inspan-door"   // the folder of the socket that it connects to
	ContainerSocket  = "/socket"         // the socket's name in the folder
)
