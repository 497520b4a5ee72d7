//go:build unix && !linux

package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// Keeper does nothing: there are no keepers on this platform. See the version for Linux.
func Keeper() (ran bool, code int) { return false, 0 }

// boxes builds the sandboxes of processes: on macOS with Seatbelt, on other platforms none.
type boxes struct {
	o    Options
	Root string
}

func newProcs(root string, o Options) *procs {
	return &procs{mark: rand.Text(), boxes: boxes{o: o, Root: root}}
}

func (b *boxes) options() Options { return b.o }

// sessionTemp returns nil: each box has its own folder for temporary files.
func (b *boxes) sessionTemp() *files.Temp { return nil }

func (b *boxes) close() error { return nil }

// noContainers is the reason for rejecting containers: their first process must be this program, built for
// Linux.
const noContainers = "commands run in containers on Linux only"

// noThrowaway is the reason why the workspace can't be discarded.
const noThrowaway = "a throwaway copy of the workspace takes Linux"

// describe returns the container engine and image in use; nothing without containers.
func describe(o Options) []Check {
	if o.Container == nil {
		return nil
	}
	return []Check{{Name: "container engine", Text: noContainers}}
}

const seatbelt = "/usr/bin/sandbox-exec"

// runner returns the runner for the command.
func (b *boxes) runner(_ context.Context, c tool.Command, mark string) (runner, error) {
	if b.o.Container != nil {
		return nil, fmt.Errorf("%w: %s", tool.ErrNoBox, noContainers)
	}
	level := b.o.level(c.Box)
	if c.Box.Throwaway {
		return nil, fmt.Errorf("%w: %s", tool.ErrNoBox, noThrowaway)
	}
	if level == tool.BoxNone {
		return &direct{mark: mark}, nil
	}
	if runtime.GOOS != "darwin" || b.o.Self == "" {
		return nil, fmt.Errorf("%w: there are no walls on %s yet", tool.ErrNoBox, runtime.GOOS)
	}
	if level == tool.BoxRead || level == tool.BoxWorkspace && len(c.Box.Hosts) == 0 {
		c.Box.Level = level
		return &belted{boxes: b, box: c.Box, direct: direct{mark: mark}}, nil
	}
	return nil, fmt.Errorf("%w: no single hosts can be opened on %s yet", tool.ErrNoBox, runtime.GOOS)
}

// tryWalls tries both boxes.
func (ps *procs) tryWalls() tool.Walls {
	if ps.boxes.o.Container != nil {
		return tool.Walls{Why: noContainers}
	}
	if runtime.GOOS != "darwin" || ps.boxes.o.Self == "" {
		return tool.Walls{Why: "there are no walls on " + runtime.GOOS + " yet"}
	}
	w := tool.Walls{NoThrowaway: noThrowaway}
	for level, ok := range map[tool.Level]*bool{tool.BoxRead: &w.Read, tool.BoxWorkspace: &w.Workspace} {
		text := walls.SeatbeltProfile(ps.boxes.o.Map, ps.boxes.Root, tool.Box{Level: level}, "/private/tmp/none")
		if err := exec.Command(seatbelt, "-p", text, "/usr/bin/true").Run(); err == nil {
			*ok = true
		} else {
			w.Why = "sandbox-exec does not work: " + err.Error()
		}
	}
	return w
}

// belted runs a process inside a Seatbelt profile. There is no keeper on this platform, so it is supervised
// like any other.
type belted struct {
	direct
	boxes *boxes
	box   tool.Box
}

// launch implements runner.
func (b *belted) launch(cmd *exec.Cmd, e WaitForEnd, ended func(int, error)) error {
	temp, err := os.MkdirTemp("", "inspan-")
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(temp); err == nil {
		temp = real
	}
	text := walls.SeatbeltProfile(b.boxes.o.Map, b.boxes.Root, b.box, temp)
	cmd.Args = append([]string{seatbelt, "-p", text, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = seatbelt
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	err = b.direct.launch(cmd, e, func(code int, err error) {
		_ = os.RemoveAll(temp)
		ended(code, err)
	})
	if err != nil {
		_ = os.RemoveAll(temp)
	}
	return err
}
