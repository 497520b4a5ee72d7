package app

import (
	"fmt"
	"path/filepath"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/connect"
	"github.com/inspan/inspan/internal/permission"
)

// Open reads the settings as [config.Open] does, and has those check them who make rules, servers
// and logins of them.
func Open(self string) (*config.Installation, error) {
	set, err := config.Open(self)
	if err != nil {
		return nil, err
	}
	path, err := config.Path()
	if err == nil {
		err = check(path, set.Config)
	}
	if err == nil {
		err = checkOrganisation(set.Organisation)
	}
	if err != nil {
		return nil, config.Error{Err: err}
	}
	return set, nil
}

// Settings reads one settings file, with the checks of [Open].
func Settings(path string) (config.Config, error) {
	c, err := config.Load(path)
	if err == nil {
		err = check(path, c)
	}
	return c, err
}

// SettingsFile is the person's settings file, or that of the project in root, to be changed with the checks
// of [Open].
func SettingsFile(set *config.Installation, root string, project bool) config.File {
	if project {
		return config.File{Path: filepath.Join(root, config.ProjectFile), Project: true, Check: permission.CheckProject}
	}
	return config.File{Path: set.ConfigPath, Check: func(path string) error {
		_, err := Settings(path)
		return err
	}}
}

// Organisation reads the settings of the organisation, with the checks of [Open].
func Organisation() (config.Organisation, error) {
	o, err := config.LoadOrganisation(config.OrganisationFile)
	if err == nil {
		err = checkOrganisation(o)
	}
	return o, err
}

func check(path string, c config.Config) error {
	err := permission.CheckRules(config.AllRules(c.Allow, c.Ask, c.Deny, c.Rules))
	if err == nil {
		err = connect.Check(c)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func checkOrganisation(o config.Organisation) error {
	if err := permission.CheckRules(config.AllRules(o.Allow, o.Ask, o.Deny, o.Rules)); err != nil {
		return fmt.Errorf("%s: %w", config.OrganisationFile, err)
	}
	return nil
}
