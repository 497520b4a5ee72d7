package gitcopies

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/gitfiles"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// Copy is a copy of a git directory, as seen from outside of the box.
type Copy struct {
	path, workspace string
	list            []gitfiles.Kind
	upper           *os.Root // the changes
	real            *os.Root // the git directory
	index           *os.File // before the box; nil means it did not exist
	since           time.Time
	given           map[string]paths.Stamp // files of upper that were taken over, with their stamps at that time
	told            map[string]bool
}

// Open records the state of a workspace's git directory before a box, and opens the overlay folder over it.
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

// Close closes the open files.
func (h *Copy) Close() {
	if h.upper != nil {
		_ = h.upper.Close()
	}
	if h.real != nil {
		_ = h.real.Close()
	}
	_ = h.index.Close() // fails if there is none
}

// TakeOver takes over the changes of one copy. Objects come first: other files may refer to them. It returns
// the rejected changes, in words.
func (h *Copy) TakeOver() []string {
	g := &transfer{Copy: h, states: map[string]bool{}}
	g.walk(".")
	if len(g.changes) == 0 {
		return g.said
	}
	// The state of an operation is rejected with any of its files.
	g.changes = slices.DeleteFunc(g.changes, func(c change) bool { return g.states[g.stateOf(c.name)] })
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
