package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// Pool is shared by the environments of one program: which boxes were found to work, and turns on the
// processors. The zero value is ready. It is safe for concurrent use.
type Pool struct {
	trying sync.Mutex // held while boxes are tried
	walls  *tool.Walls

	starts keep.Turns // turns for starting processes, as building a box occupies a processor
}

// overlays reports whether boxes with overlays were found to work.
func (p *Pool) overlays() bool {
	p.trying.Lock()
	defer p.trying.Unlock()
	return p.walls != nil && p.walls.Throwaway
}

// tried is the stored result of a try, for other programs.
type tried struct {
	Where string // where it was made
	Walls tool.Walls
}

// known returns which boxes work: from an earlier try here, from another program on exactly this system, or
// from try. If the system has changed since, Start fails; a box is never weaker.
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
			_ = keep.Write(file, raw) // on failure it is tried again
		}
	}
	return found
}

// wallsFile returns the path of the stored result.
func wallsFile(o Options) string {
	if o.Container != nil {
		return "walls-container.json"
	}
	return "walls.json"
}
