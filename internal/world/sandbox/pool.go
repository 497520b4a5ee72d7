package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// Pool is what the environments of one program share: which boxes were seen to work, and the
// processors. The zero value is ready. It is safe for concurrent use.
type Pool struct {
	trying sync.Mutex // held while boxes are tried
	walls  *tool.Walls

	starts keep.Turns // of processes, as walls take a processor to build
}

// overlays reports whether boxes with overlays were seen to work.
func (p *Pool) overlays() bool {
	p.trying.Lock()
	defer p.trying.Unlock()
	return p.walls != nil && p.walls.Throwaway
}

// tried is what is kept of a try between programs.
type tried struct {
	Where string // it was made
	Walls tool.Walls
}

// known returns which boxes work: as seen before here, or by an earlier program
// on this very system, or as try finds out. A system that has changed since
// makes Start fail, never a box weaker.
func (p *Pool) known(o Options, whereabouts func() string, try func() tool.Walls) tool.Walls {
	p.trying.Lock()
	defer p.trying.Unlock()
	if p.walls != nil {
		return *p.walls
	}
	where, file := whereabouts(), filepath.Join(o.State, wallsFile(o))
	var old tried
	if raw, err := keep.Read(file); err == nil && o.State != "" &&
		json.Unmarshal(raw, &old) == nil && old.Where == where && where != "" && old.Walls.Why == "" {
		p.walls = &old.Walls
		return old.Walls
	}
	found := try()
	p.walls = &found
	if o.State != "" && found.Why == "" {
		if raw, err := json.Marshal(tried{where, found}); err == nil && os.MkdirAll(o.State, 0o700) == nil {
			_ = keep.Write(file, raw) // kept or not, it can be found out again
		}
	}
	return found
}

// wallsFile is where a try is kept.
func wallsFile(o Options) string {
	if o.Container != nil {
		return "walls-container.json"
	}
	return "walls.json"
}
