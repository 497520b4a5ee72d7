package keeper

import (
	"os"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// prepareRead creates the folder for temporary files, unless it exists.
func (c *command) prepareRead() error {
	dir := c.order.Temp
	if dir == "" {
		return nil
	}
	if dir != c.temp {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return walls.During("make a temporary folder", err)
		}
		c.temp = dir
	}
	c.order.Env = processes.SetVars(c.order.Env, "TMPDIR="+dir, "TMP="+dir, "TEMP="+dir)
	return walls.During("set limits", c.order.Limits.ApplyHere())
}

// enterRead puts the current thread into the read box.
func (c *command) enterRead() error {
	if c.rules == nil {
		rules, err := walls.ReadRules(c.order.Plan)
		if c.rules = rules; err != nil {
			return err
		}
	}
	if err := walls.DropPrivileges(); err != nil {
		return walls.During("drop privileges", err)
	}
	if err := c.rules.Enforce(); err != nil {
		return walls.During("restrict files", err)
	}
	return walls.During("restrict system calls", walls.Filter(tool.BoxRead))
}
