package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// tryWalls finds out which boxes work, by building each around a program that does nothing.
func (ps *procs) tryWalls() tool.Walls {
	if ps.boxes.o.Self == "" {
		return tool.Walls{Why: "this program starts processes without keepers"}
	}
	if ps.boxes.engine != nil {
		if _, err := ps.boxes.engine.image(); err != nil {
			return tool.Walls{Why: err.Error()}
		}
		if err := ps.boxes.tryBox(tool.Box{Level: tool.BoxRead}); err != nil {
			return tool.Walls{Why: err.Error()}
		}
		if err := ps.boxes.tryBox(tool.Box{Level: tool.BoxWorkspace}); err != nil {
			return tool.Walls{Read: true, Why: err.Error()}
		}
		return tool.Walls{Read: true, Workspace: true, NoThrowaway: errContained.Error()}
	}
	var w tool.Walls
	var why []string
	try := func(level tool.Level) bool {
		err := ps.boxes.tryBox(tool.Box{Level: level})
		if err != nil {
			why = append(why, fmt.Sprintf("%s box: %v", level, err))
		}
		return err == nil
	}
	w.Read = try(tool.BoxRead)
	w.Workspace = try(tool.BoxWorkspace)
	w.Hosts = w.Workspace
	if w.Workspace {
		err := ps.boxes.tryBox(tool.Box{Level: tool.BoxWorkspace, Throwaway: true})
		if w.Throwaway = err == nil; err != nil {
			w.NoThrowaway = err.Error()
		}
	}
	if !w.Read {
		why = append(why, walls.LandlockHint())
	}
	if !w.Workspace {
		why = append(why, walls.NamespaceHint())
	}
	w.Why = strings.Join(why, "; ")
	return w
}

// tryBox builds a box around an empty command. It does not scan the workspace: one that is too big for boxes
// makes Start fail instead.
func (b *boxes) tryBox(box tool.Box) error {
	o := b.o
	o.Map.Also = nil // not scanned, like the workspace
	empty := &boxes{Workspace: &sensitive.Workspace{Root: "/usr", Places: o.Map, State: o.State}, o: o, engine: b.engine, temp: &files.Temp{}}
	empty.Copies = empty.overlays
	program := nothingProgram()
	if _, err := os.Stat("/usr"); err != nil || b.engine != nil {
		empty.Root = b.Root
	}
	if b.engine != nil {
		program = "true"
	}
	defer func() { _ = empty.close() }()
	k := &supervised{boxes: empty, bare: true}
	k.command.Box = box
	k.command.Env = []string{}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	done := make(chan error, 1)
	err := k.launchPath(program, func(code int, err error) {
		if err == nil && code != 0 {
			err = fmt.Errorf("%s ended with code %d", program, code)
		}
		done <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		k.await(patience)
		return err
	case <-ctx.Done():
		k.kill()
		return ctx.Err()
	}
}

func nothingProgram() string {
	for _, path := range []string{"/usr/bin/true", "/bin/true"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/sh" // with empty input it does nothing
}
