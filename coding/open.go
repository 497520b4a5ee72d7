package coding

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/tool"
)

// open checks the options and wires an installation for them. Root is the workspace, an absolute path without
// links.
func (o Options) open() (a *app.App, root string, err error) {
	if err := cmp.Or(o.Sandbox.check(), o.check()); err != nil {
		return nil, "", err
	}
	if o.Env != nil {
		root = o.Env.Root
	} else if root, err = workspace(o.Root); err != nil {
		return nil, "", fmt.Errorf("option Root: %w", err)
	}
	set, err := o.installation()
	if err != nil {
		return nil, "", err
	}
	set.Config.Sandbox.Off = set.Config.Sandbox.Off || o.Sandbox.off
	if err := o.skills(&set.Config.Skills); err != nil {
		return nil, "", fmt.Errorf("option Skills: %w", err)
	}
	a = app.New(set)
	a.Providers.Given = o.Model
	a.Providers.Advice = providers.Advice{
		NoModel: ": set option Model, name one in the settings, or set a key such as ANTHROPIC_API_KEY in the environment",
		Choose:  " (option Model names another one)",
	}
	if !o.Personal {
		a.Extensions.Apart, a.Knowledge.Apart, a.Permission.Closed = true, true, personal()
	}
	if o.Env != nil {
		return a, root, nil
	}
	for _, dir := range append([]string{set.StateDir, filepath.Dir(set.ConfigPath)}, a.Permission.Closed...) {
		if text.Inside(dir, root) {
			return nil, "", fmt.Errorf("option Root: %s lies in %s, which holds settings or state, and is closed to tools", root, dir)
		}
	}
	return a, root, nil
}

func (o Options) check() error {
	if err := o.Mode.Check(); err != nil {
		return fmt.Errorf("option Mode: %w", err)
	}
	if err := o.rules(); err != nil {
		return err
	}
	if err := o.tools(); err != nil {
		return fmt.Errorf("option Tools: %w", err)
	}
	for _, s := range o.Servers {
		if err := mcp.Given(s).From(mcp.Client).Check(); err != nil {
			return fmt.Errorf("option Servers: %w", err)
		}
	}
	if o.Container != "" && o.Sandbox.off {
		return errors.New("option Container needs coding.Init, and Sandbox is NoSandbox")
	}
	if o.Env != nil && (o.Root != "" || o.Container != "" || o.Env.Files == nil || !filepath.IsAbs(o.Env.Root)) {
		return errors.New("option Env has Files and an absolute Root, and excludes the options Root and Container")
	}
	if o.Personal && o.Settings != "" {
		return errors.New("options Personal and Settings name different settings: set one of them")
	}
	return nil
}

// rules checks that the rules can be read, and name existing tools. With a person's settings there can be tools
// of any name.
func (o Options) rules() error {
	var known []string
	if o.Settings == "" && !o.Personal {
		known = equipment.Names()
		for _, t := range o.Tools {
			known = append(known, t.Name)
		}
	}
	names := map[tool.Action]string{tool.Allow: "option Allow", tool.Ask: "option Ask", tool.Deny: "option Deny"}
	return permission.Line{Allow: o.Allow, Ask: o.Ask, Deny: o.Deny}.Check(func(list tool.Action) string { return names[list] }, known)
}

// tools checks that models can call the tools by their names.
func (o Options) tools() error {
	taken := map[string]bool{}
	for i, t := range o.Tools {
		switch {
		case !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(t.Name):
			return fmt.Errorf("tool %d: %q is not a name of 1 to 64 letters, digits, _ and -", i+1, t.Name)
		case taken[t.Name]:
			return fmt.Errorf("two tools are called %s", t.Name)
		}
		taken[t.Name] = true
	}
	return nil
}

// workspace returns the path of a folder, absolute and without links.
func workspace(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	return dir, folder(dir)
}

// folder returns an error if there is no folder at path.
func folder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	}
	return nil
}

// installation returns the installation that the options describe.
func (o Options) installation() (*config.Installation, error) {
	state, err := o.state()
	if err != nil {
		return nil, fmt.Errorf("option State: %w", err)
	}
	if o.Personal {
		set, err := app.Open(o.Sandbox.self)
		if err != nil {
			return nil, fmt.Errorf("option Personal: %w", err)
		}
		set.StateDir = state
		return set, nil
	}
	set := &config.Installation{StateDir: state, ConfigPath: filepath.Join(state, "settings", "config.toml"), Self: o.Sandbox.self}
	if set.Organisation, err = app.Organisation(); err != nil {
		return nil, err
	}
	if o.Settings == "" {
		return set, nil
	}
	path, err := filepath.Abs(o.Settings)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		set.ConfigPath = keep.Real(path)
		set.Config, err = app.Settings(path)
	}
	if err != nil {
		return nil, fmt.Errorf("option Settings: %w", err)
	}
	return set, nil
}

// state returns the agent's state folder, without links.
func (o Options) state() (string, error) {
	if o.State != "" {
		dir, err := filepath.Abs(o.State)
		if err == nil {
			err = folder(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it is created when needed
		}
		return keep.Real(dir), err
	}
	dir, err := config.StateDir()
	if err != nil {
		return "", fmt.Errorf("%w; set this option, or HOME", err)
	}
	if o.Personal {
		return keep.Real(dir), nil
	}
	program, err := os.Executable()
	return filepath.Join(keep.Real(dir), "embedded", filepath.Base(program)), err
}

// personal lists the folders of the command's settings and state, as far as known.
func personal() []string {
	var out []string
	for _, find := range []func() (string, error){config.Dir, config.StateDir} {
		if dir, err := find(); err == nil {
			out = append(out, keep.Real(dir))
		}
	}
	return out
}

// skills adds the folders of skills.
func (o Options) skills(to *config.Skills) error {
	to.Folders = slices.Clone(to.Folders)
	for _, dir := range o.Skills {
		abs, err := filepath.Abs(dir)
		if err == nil {
			err = folder(abs)
		}
		if err != nil {
			return err
		}
		to.Folders = append(to.Folders, abs)
	}
	return nil
}
