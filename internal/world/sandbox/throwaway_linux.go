package sandbox

import (
	"errors"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// A box with a throwaway workspace sees an overlay in its place: reads come from the workspace, changes go to a
// folder among the session's temporary files, which no box sees. The workspace itself is not mounted in such a
// box.
//
// The folder is among the temporary files and not in memory: a build can need much space, and tmpfs supports
// the attributes that overlays need only since Linux 6.6.

// thrownAway is the note about a command in such a box, after "the sandbox".
const thrownAway = "threw away what the command changed in the workspace; everything there is as before"

var (
	errThrown    = errors.New("it runs in a throwaway copy of the workspace, which ends with the session")
	errContained = errors.New("throwaway copies of the workspace are unavailable in containers")
	errWider     = errors.New("a box whose workspace is thrown away opens nothing else to change or to reach")
)

// throwable checks whether a box with a throwaway workspace is possible.
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

// discard creates the folder for the changes of the box. It is removed with the box.
func (k *supervised) discard() error {
	dir, err := k.boxes.temp.MakeOverlay(k.order.Root)
	if err != nil {
		return err
	}
	k.order.Throwaway = dir
	k.undo = append(k.undo, func() { _ = keep.RemoveAll(dir) })
	return nil
}
