package permission

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

// EnvOf returns the environment for a session's tools, sandboxed if the machine supports it. The further
// folders have the same access as root.
func (s *Set) EnvOf(root string, folders []string, blobs tool.Blobs, rules []inspan.Rule, image string, out *Outlet) (tool.Env, error) {
	closed, err := parsed(rules)
	if err != nil {
		return tool.Env{}, err
	}
	box := s.Config.Sandbox
	at := s.Places(root)
	at.Also = folders
	walls := s.walls(policy.Close(at.Indexed(), closed), image)
	if walls.Registries, walls.Fetches, walls.Near = policy.Registries(closed); out == nil {
		walls.Registries, walls.Fetches, walls.Near = nil, nil, nil // encrypted requests can't be inspected
	} else {
		walls.Swap, walls.Vars, walls.Shown = out.swap, out.vars, append(slices.Clone(walls.Shown), out.dir)
	}
	env, err := sandbox.Local(root, blobs, walls)
	if err == nil && box.Off {
		env = env.Unwalled()
		env.Walls = tool.Walls{Why: "it is switched off"}
	}
	env.HTTP = s.http()
	return env, err
}

// Env returns the environment for programs of a workspace.
func (s *Set) Env(root string) (tool.Env, error) {
	rules, err := s.Rules(root)
	if err != nil {
		return tool.Env{}, err
	}
	return s.EnvOf(root, nil, nil, rules, "", nil)
}

// Unwalled returns the reason why commands run without a sandbox on this machine; empty means they run in one.
func (s *Set) Unwalled() (why string, err error) {
	env, err := s.Env("/")
	switch {
	case err != nil:
		return "", err
	case env.Walls.Workspace:
		return "", env.Close()
	}
	return cmp.Or(env.Walls.Why, "there is none"), env.Close()
}

// Guard returns the guard of the network: it admits public hosts, and those in ranges that the person opens.
func (s *Set) Guard() *netguard.Guard { return &netguard.Guard{Local: s.Local()} }

// http returns the client of the tools.
func (s *Set) http() *http.Client {
	g := s.Guard()
	g.MaxBytes = tools.MaxBody
	return g.Unredirected()
}

// walls returns the options of the sandbox. Processes without special needs get the sandbox of the workspace. Image
// is their container image; empty means that of the settings.
func (s *Set) walls(m places.Map, image string) sandbox.Options {
	box := s.Config.Sandbox
	var container *sandbox.Container
	if image = cmp.Or(image, box.Container); image != "" {
		container = &sandbox.Container{Image: image, Engine: box.Engine}
	}
	return sandbox.Options{
		Container: container,
		Guard:     s.Guard(),
		Shown:     s.Shown(m.Root),
		Nice:      s.Nice,
		Alone:     s.Guests,
		Results:   !s.Guests && len(s.Foreign) == 0,
		Self:      s.Self, Map: m, State: s.StateDir, Default: tool.BoxWorkspace, Environ: box.Environment, Keys: s.keys(), Pool: &s.pool,
		Limits: sandbox.Limits{
			CPU: time.Duration(box.CPU) * time.Second, Memory: box.Memory << 20, Processes: box.Processes, FileSize: box.FileSize << 20,
		},
	}
}

// TrySandbox tests the sandbox by trying to escape it.
func (s *Set) TrySandbox(ctx context.Context) []sandbox.Check {
	return sandbox.Probe(ctx, s.walls(s.Places(""), ""))
}

// TryChildren starts processes in each way that sessions do, and reads their output to the end.
func (s *Set) TryChildren(ctx context.Context) []sandbox.Check {
	return sandbox.Children(ctx, s.walls(s.Places(""), ""))
}

// Places returns the places of the machine for the judges.
func (s *Set) Places(root string) places.Map {
	return places.Map{
		Root: root, Home: keep.Home(), Programs: keep.Programs(), Moved: keep.Moved(), Settings: filepath.Dir(s.ConfigPath),
		State: append([]string{s.StateDir}, s.Closed...), Shared: append(s.shared(), s.ToolsDir(), s.WrittenDir()), Open: s.public(root),
		Apart: s.Foreign, Git: worktree.Named(root),
	}.Indexed()
}

// private lists the places that no tool of a session reads or changes.
func (s *Set) private() []string {
	return append([]string{s.StateDir, filepath.Dir(s.ConfigPath)}, s.Closed...)
}

// shared lists the private places that tools may read: plugins and scripts of skills run from there,
// and settings given for one run may be a file of the workspace.
func (s *Set) shared() []string {
	return append([]string{s.PluginsDir(), filepath.Join(filepath.Dir(s.ConfigPath), "skills")}, s.frozen...)
}

// public makes the globs of the settings absolute.
func (s *Set) public(root string) []string {
	var out []string
	for _, glob := range s.Config.Public {
		switch {
		case strings.HasPrefix(glob, "~/"):
			if glob = keep.AtHome(glob[2:]); glob == "" {
				continue
			}
		case !filepath.IsAbs(glob):
			glob = filepath.Join(root, glob)
		}
		out = append(out, glob)
	}
	return out
}
