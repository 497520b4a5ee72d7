package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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

// callHome connects the keeper of a container with those outside.
func callHome() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.Connect(fd, &unix.SockaddrUnix{Name: insideDoor + doorSocket})
}

// prepareInside looks whether the walls stand and finds the program.
func (k *keeper) prepareInside() error {
	if err := k.inspect(); err != nil {
		return walls.During("check the container", err)
	}
	if k.order.Image {
		k.order.Env = processes.SetVars(imageEnviron(os.Environ()), k.order.Env...)
	}
	if k.order.Level != tool.BoxNone {
		k.order.Env = processes.SetVars(k.order.Env, k.order.TempVars("/run")...)
		if err := k.order.Limits.ApplyHere(); err != nil {
			return walls.During("set limits", err)
		}
	}
	return k.lookUp()
}

// imageEnviron is what the image says, and a home that can be written.
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
func (k *keeper) lookUp() error {
	for _, kv := range k.order.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return err
			}
		}
	}
	if strings.Contains(k.order.Path, "/") {
		return nil // relative to where it will run
	}
	path, err := exec.LookPath(k.order.Path)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return syscall.ENOENT
	}
	k.order.Path = path
	return nil
}

// inspect proves what the engine was asked for.
func (k *keeper) inspect() error {
	if k.order.Level == tool.BoxNone {
		return nil
	}
	for _, w := range k.order.Walls {
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

// enterInside takes from the current thread what no engine was asked to give,
// and the system calls that no box has.
func (k *keeper) enterInside() error {
	if k.order.Level == tool.BoxNone {
		return nil
	}
	if err := walls.DropPrivileges(); err != nil {
		return walls.During("drop privileges", err)
	}
	if !walls.CanFilter() {
		return nil // the engine has a filter of its own
	}
	return walls.During("restrict system calls", walls.Filter(k.order.Level))
}

// killAll kills the family. In a container some of it can be out of reach, as
// what became another user there; it dies with its first process.
func (k *keeper) killAll() {
	if k.order.Container {
		go func() {
			late := time.NewTimer(processes.TermGrace)
			defer late.Stop()
			select {
			case <-k.family.Done:
			case <-late.C:
				os.Exit(1)
			}
		}()
	}
	k.family.Kill()
}
