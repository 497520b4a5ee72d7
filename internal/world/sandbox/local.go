package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Local returns the environment of this machine. Root is the workspace, an existing directory; blobs may be
// nil. With the zero Options there is no sandbox: tools may read, change and start anything that the user may.
// With [Options.Self] its Walls say which boxes were found to work.
//
// With [Options.Container] every command runs in a container, whatever box it requests; files are those of the
// machine.
//
// Processes get the environment of this process, without likely secrets and variables that would mislead the
// judges. They inherit no open files: descriptors that this process was itself started with are marked
// close-on-exec.
//
// On Linux all processes in the workspace boxes of one environment share a loopback network and a folder for
// temporary files. They see it as /tmp and /var/tmp, and so do its files. Both are created when first needed,
// and end with [tool.Env.Close] or with this process.
func Local(root string, blobs tool.Blobs, o Options) (tool.Env, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return tool.Env{}, fmt.Errorf("open workspace: %w", err)
	}
	resolved, err := paths.Resolve(abs)
	if err != nil {
		return tool.Env{}, fmt.Errorf("open workspace: %w", err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return tool.Env{}, fmt.Errorf("open workspace: %w", err)
	}
	if !info.IsDir() {
		return tool.Env{}, fmt.Errorf("open workspace: %s is not a directory", resolved)
	}
	keepDescriptors()
	if o.Pool == nil {
		o.Pool = &Pool{}
	}
	look := &files.Looker{}
	o.look = look
	if files.Guards(o.Map) {
		o.Map.Root = resolved
		o.Map = look.Sees(o.Map).Indexed()
	}
	ps := newProcs(resolved, o)
	env := tool.Env{Root: resolved, Folders: o.Map.Also, Procs: ps, Blobs: blobs, Walls: o.Pool.known(o, ps.where, ps.tryWalls)}
	own := ps.sessionTemp()
	if own == nil || !env.Walls.Workspace {
		env.Files = files.New(o.Map, look, nil)
		return env, nil
	}
	env.Files, env.Temporary = files.New(o.Map, look, own), own.Temporary
	return env, nil
}
