package gitcopies

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/gitfiles"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// Copy is a copy as the other side of the box has it.
type Copy struct {
	path, workspace string
	list            []gitfiles.Kind
	upper           *os.Root // what differs
	real            *os.Root // the git directory
	index           *os.File // as it was; nil: there was none
	since           time.Time
	given           map[string]paths.Stamp // files of upper that were taken over, as they were then
	told            map[string]bool
}

// Open holds a git directory of a workspace as it is before a box, and the folder of an overlay over it.
func Open(git, workspace, overlay string, list []gitfiles.Kind) (*Copy, error) {
	h := &Copy{path: git, workspace: workspace, list: list, since: time.Now(), given: map[string]paths.Stamp{}, told: map[string]bool{}}
	var err error
	h.upper, err = os.OpenRoot(filepath.Join(overlay, walls.OverlayUpper))
	if err == nil {
		h.real, err = os.OpenRoot(git)
	}
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("open %s: %w", git, err)
	}
	h.index, _ = h.real.Open("index")
	return h, nil
}

// Close gives up what is held.
func (h *Copy) Close() {
	if h.upper != nil {
		_ = h.upper.Close()
	}
	if h.real != nil {
		_ = h.real.Close()
	}
	_ = h.index.Close() // says so if there is none
}

// TakeOver takes over one copy. Objects come first: what else comes may need them.
func (h *Copy) TakeOver() []string {
	g := &transfer{Copy: h, states: map[string]bool{}}
	g.walk(".")
	if len(g.changes) == 0 {
		return g.said
	}
	g.dropStates()
	if err := g.objects(); err != nil {
		g.say("could not take over objects of " + h.path + ": " + err.Error())
		return g.said
	}
	if err := g.rest(); err != nil {
		g.say("did not keep what was changed in " + h.path + ": " + err.Error())
	}
	h.since = time.Now()
	return g.said
}
