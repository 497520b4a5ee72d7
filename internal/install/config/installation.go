package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// ErrSettings says that settings, a model or a key are missing or invalid.
var ErrSettings = errors.New("configuration")

// Error is an [ErrSettings] with its own text.
type Error struct{ Err error }

func (e Error) Error() string        { return e.Err.Error() }
func (e Error) Unwrap() error        { return e.Err }
func (e Error) Is(target error) bool { return target == ErrSettings }

// Installation is a person's installation of inspan: its settings, and the places of its files.
type Installation struct {
	Config       Config
	ConfigPath   string // the settings file, whether it exists or not; without links
	StateDir     string // everything that inspan stores; without links
	Self         string // the program that supervises processes, see sandbox.Options, and runs scripts; empty means none
	Organisation Organisation
	Warnings     []string // about the environment

	set       []Setting           // from the environment
	providers map[string]Provider // as in the file; nil until first needed
}

// Scripts reports whether agents with these levers can run scripts: the lever is on, and Self is set.
// Unattended is as in [event.Lever.Active].
func (i *Installation) Scripts(levers event.Levers, unattended bool) bool {
	return i.Self != "" && levers.Script.Active(unattended)
}

// Where is the location of a person's files.
type Where struct {
	Settings string // the settings file, whether it exists or not
	State    string // the folder of everything that inspan stores
}

// Here returns the location according to the environment.
func Here() (Where, error) {
	path, err := Path()
	state, missing := StateDir()
	if err = cmp.Or(err, missing); err != nil {
		return Where{}, fmt.Errorf("%w; set HOME, or INSPAN_STATE_DIR for settings and sessions", err)
	}
	return Where{path, state}, nil
}

// Open reads the settings of the organisation, the user and the environment. Every error is [ErrSettings]. The
// caller must check the rules, servers and logins in them.
func Open(self string, at Where) (*Installation, error) {
	c, set, warnings, err := loaded(at.Settings)
	if err != nil {
		return nil, Error{err}
	}
	org, err := LoadOrganisation(OrganisationFile)
	if err != nil {
		return nil, Error{err}
	}
	// Judged paths have no links, so the protected paths must not have any either.
	return &Installation{
		Config: c, ConfigPath: keep.Real(at.Settings), StateDir: keep.Real(at.State), Self: self, Organisation: org, Warnings: warnings,
		set: set, providers: c.Providers,
	}, nil
}

// Path returns the path of the user's settings, whether the file exists or not.
func Path() (string, error) {
	dir, err := Dir()
	return filepath.Join(dir, "config.toml"), err
}

// Aim sets the address and the key of a model's provider, and of no other, from the environment, see
// [Config.Aim].
func (i *Installation) Aim(model string, route func(name string) (string, error)) error {
	if i.providers == nil {
		i.providers = i.Config.Providers
	}
	i.Config.Providers = i.providers
	if err := i.Config.Aim(model, route); err != nil {
		return Error{err}
	}
	return nil
}

// Settings lists the settings for a workspace: from the organisation, the user, the preset, the environment and
// the workspace, in force or not.
func (i *Installation) Settings(root string) ([]Setting, error) {
	var out []Setting
	for _, path := range []string{OrganisationFile, i.ConfigPath, filepath.Join(root, ProjectFile)} {
		list, err := Settings(path)
		if err != nil {
			return nil, Error{err}
		}
		out = append(out, list...)
		if path == i.ConfigPath {
			out = append(out, i.set...)
		}
	}
	return out, nil
}

// Sets reports whether an environment variable sets a setting.
func (i *Installation) Sets(variable string) bool {
	return slices.ContainsFunc(i.set, func(s Setting) bool { return s.File == variable })
}

// SessionsDir returns the folder of sessions.
func (i *Installation) SessionsDir() string { return filepath.Join(i.StateDir, "sessions") }

// CheckpointDir returns the folder of a workspace's checkpoints.
func (i *Installation) CheckpointDir(root string) string {
	return filepath.Join(i.StateDir, "snapshots", tool.Digest([]byte(root)))
}

// PluginsDir returns the folder of plugins, an absolute path.
func (i *Installation) PluginsDir() string {
	dir := filepath.Join(i.StateDir, "plugins")
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// ConsentDir returns the folder of the person's lasting approvals.
func (i *Installation) ConsentDir() string { return filepath.Join(i.StateDir, "consent") }

// ToolsDir returns the folder of the person's tools, which run from there. Sandboxes of tools can read it;
// calls of the model are judged without it.
func (i *Installation) ToolsDir() string { return filepath.Join(filepath.Dir(i.ConfigPath), "tools") }

// WrittenDir returns the folder of unapproved tools that models wrote, each in its own folder. Sandboxes of
// tools can read it, as ToolsDir. It can be removed at any time.
func (i *Installation) WrittenDir() string { return filepath.Join(i.StateDir, "written") }

// Local returns the private address ranges that tools and servers may reach.
func (i *Installation) Local() []netip.Prefix {
	local, _ := i.Config.Sandbox.Ranges() // validated when the settings were read
	return local
}
