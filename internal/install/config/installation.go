package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// ErrSettings says that settings, a model or a key are missing or wrong.
var ErrSettings = errors.New("configuration")

// Error is an error that is [ErrSettings], with a text of its own.
type Error struct{ Err error }

func (e Error) Error() string        { return e.Err.Error() }
func (e Error) Unwrap() error        { return e.Err }
func (e Error) Is(target error) bool { return target == ErrSettings }

// Installation is inspan as it is set up for a person: its settings, and where its files lie.
type Installation struct {
	Config       Config
	ConfigPath   string // the settings file, whether it exists or not; without links
	StateDir     string // everything inspan keeps; without links
	Self         string // the program that keeps processes, see sandbox.Options, and runs scripts; empty: none does
	Organisation Organisation
	Warnings     []string // about the environment

	set       []Setting           // by the environment
	providers map[string]Provider // as the file has them; nil until they are known
}

// Scripts reports whether agents with these levers can run scripts: the lever is on, and there is a program
// that runs them. Unattended is as in [event.Lever.Active].
func (i *Installation) Scripts(levers event.Levers, unattended bool) bool {
	return i.Self != "" && levers.Script.Active(unattended)
}

// Where says where a person's files lie.
type Where struct {
	Settings string // the settings file, whether it exists or not
	State    string // the folder of everything inspan keeps
}

// Here is where they lie as the environment has it.
func Here() (Where, error) {
	path, err := Path()
	state, missing := StateDir()
	if err = cmp.Or(err, missing); err != nil {
		return Where{}, fmt.Errorf("%w; set HOME, or INSPAN_STATE_DIR for settings and sessions", err)
	}
	return Where{path, state}, nil
}

// Open reads the settings of the organisation and the user, and what the environment says.
// Every error is [ErrSettings]. The caller has the rules, servers and logins in them checked.
func Open(self string, at Where) (*Installation, error) {
	c, err := Load(at.Settings)
	if err != nil {
		return nil, Error{err}
	}
	set, warnings, err := c.Over(os.Environ())
	if err != nil {
		return nil, Error{err}
	}
	org, err := LoadOrganisation(OrganisationFile)
	if err != nil {
		return nil, Error{err}
	}
	// What is judged has no links, and what keeps it apart must not have any either.
	return &Installation{
		Config: c, ConfigPath: keep.Real(at.Settings), StateDir: keep.Real(at.State), Self: self, Organisation: org, Warnings: warnings,
		set: set, providers: c.Providers,
	}, nil
}

// Path is where the user's settings are, whether they exist or not.
func Path() (string, error) {
	dir, err := Dir()
	return filepath.Join(dir, "config.toml"), err
}

// Aim gives the provider of a model what the environment has for it, and no other, see
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

// Settings lists what is set for a workspace: by the organisation, by the user, by
// the preset and the environment, and by the workspace itself, in force or not.
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

// Sets reports whether a variable of the environment sets something.
func (i *Installation) Sets(variable string) bool {
	return slices.ContainsFunc(i.set, func(s Setting) bool { return s.File == variable })
}

// SessionsDir is the folder of sessions.
func (i *Installation) SessionsDir() string { return filepath.Join(i.StateDir, "sessions") }

// CheckpointDir is the folder that keeps the checkpoints of a workspace.
func (i *Installation) CheckpointDir(root string) string {
	return filepath.Join(i.StateDir, "snapshots", tool.Digest([]byte(root)))
}

// PluginsDir is the folder of plugins, absolute.
func (i *Installation) PluginsDir() string {
	dir := filepath.Join(i.StateDir, "plugins")
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// ConsentDir is the folder of what the person agreed to for longer than a session.
func (i *Installation) ConsentDir() string { return filepath.Join(i.StateDir, "consent") }

// ToolsDir is the folder of the person's tools, which run from there. The boxes open it for them;
// what the model asks for is judged without it.
func (i *Installation) ToolsDir() string { return filepath.Join(filepath.Dir(i.ConfigPath), "tools") }

// WrittenDir is the folder of the tools that models have written and nobody has approved, each in a
// folder of its own. The boxes open it for them, as ToolsDir. It can be removed at any time.
func (i *Installation) WrittenDir() string { return filepath.Join(i.StateDir, "written") }

// Local are the ranges of private addresses that the person lets tools and servers reach.
func (i *Installation) Local() []netip.Prefix {
	local, _ := i.Config.Sandbox.Ranges() // they were read when the settings were
	return local
}
