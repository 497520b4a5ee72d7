package sandbox

import (
	"errors"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// A box whose workspace is thrown away sees an overlay in its place: what it reads comes
// from the workspace, what it changes goes to a folder among the session's temporary files,
// which no box sees. The workspace itself is not among the mounts of such a box.
//
// That folder lies with the temporary files and not in memory, as a build can need a lot, and
// as memory has the attributes that overlays need only since Linux 6.6.

// thrownAway is what those who ran a command in such a box are told, after "the sandbox".
const thrownAway = "threw away what the command changed in the workspace; everything there is as before"

var (
	errThrown    = errors.New("it runs in a throwaway copy of the workspace, which ends with the session")
	errContained = errors.New("throwaway copies of the workspace are unavailable in containers")
	errWider     = errors.New("a box whose workspace is thrown away opens nothing else to change or to reach")
)

// throwable checks what a box asks for whose workspace is thrown away.
func (b *boxes) throwable(box tool.Box) error {
	switch {
	case !box.Throwaway:
		return nil
	case b.engine != nil:
		return errContained
	case b.o.level(box) != tool.BoxWorkspace || len(box.Write)+len(box.Hosts) > 0 || box.Git || box.Init:
		return errWider
	}
	return nil
}

// discard makes the folder for what the box changes. It goes with the box.
func (k *supervised) discard() error {
	dir, err := k.boxes.temp.MakeOverlay(k.order.Root)
	if err != nil {
		return err
	}
	k.order.Throwaway = dir
	k.undo = append(k.undo, func() { _ = paths.RemoveAll(dir) })
	return nil
}
