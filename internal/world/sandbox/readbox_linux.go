package sandbox

import (
	"os"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// prepareRead makes the folder for temporary files, unless it stands.
func (k *keeper) prepareRead() error {
	dir := k.order.Temp
	if dir == "" {
		return nil
	}
	if dir != k.temp {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return walls.During("make a temporary folder", err)
		}
		k.temp = dir
	}
	k.order.Env = processes.SetVars(k.order.Env, "TMPDIR="+dir, "TMP="+dir, "TEMP="+dir)
	return walls.During("set limits", k.order.Limits.ApplyHere())
}

// enterRead puts the current thread into the read box.
func (k *keeper) enterRead() error {
	if k.rules == nil {
		rules, err := walls.ReadRules(k.order.Plan)
		if k.rules = rules; err != nil {
			return err
		}
	}
	if err := walls.DropPrivileges(); err != nil {
		return walls.During("drop privileges", err)
	}
	if err := k.rules.Enforce(); err != nil {
		return walls.During("restrict files", err)
	}
	return walls.During("restrict system calls", walls.Filter(tool.BoxRead))
}

// abi returns the version of Landlock to build with.
func (k *keeper) abi() int { return walls.UsableABI(k.order.ABI) }
