package app

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/install/providers"
)

// Open reads the settings as [config.Open] does. The packages that use rules, servers and logins check them.
func Open(self string) (*config.Installation, error) {
	at, err := config.Here()
	if err != nil {
		return nil, err
	}
	return open(self, at)
}

func open(self string, at config.Where) (*config.Installation, error) {
	set, err := config.Open(self, at)
	if err != nil {
		return nil, err
	}
	if err = config.Faulty(at.Settings, check(set.Config)); err == nil {
		err = config.Faulty(config.OrganisationFile, checkOrganisation(set.Organisation))
	}
	if err != nil {
		return nil, config.Error{Err: err}
	}
	return set, nil
}

// Settings reads one settings file, with the checks of [Open].
func Settings(path string) (config.Config, error) {
	c, err := config.Load(path)
	return c, config.Faulty(path, err, check(c))
}

// SettingsFile returns the person's settings file, or that of the project in root, for changes that pass the
// checks of [Open] and name known models.
func SettingsFile(set *config.Installation, root string, project bool) config.File {
	if project {
		return config.File{Path: filepath.Join(root, config.ProjectFile), Project: true, Check: permission.CheckProject}
	}
	return config.File{Path: set.ConfigPath, Check: func(path string) error {
		c, err := config.Load(path)
		return config.Faulty(path, err, check(c), providers.CheckModels(c))
	}}
}

// Set changes one setting in the person's file as 'inspan config set' does, and reports where it is now set.
func Set(set *config.Installation, key, value string) (told string, err error) {
	file, change := SettingsFile(set, "", false), config.Change{Key: key, Values: []string{value}}
	if err := file.Set(change); err != nil {
		return "", err
	}
	done, shadow := file.Describe(change)
	return strings.TrimSpace(done + " " + shadow), nil
}

// Organisation reads the organisation's settings, with the checks of [Open].
func Organisation() (config.Organisation, error) {
	o, err := config.LoadOrganisation(config.OrganisationFile)
	return o, config.Faulty(config.OrganisationFile, err, checkOrganisation(o))
}

// check returns an error for each invalid setting; it begins with the key.
func check(c config.Config) error {
	return errors.Join(permission.CheckRules(c.Allow, c.Ask, c.Deny, c.Rules), connect.Check(c), providers.Check(c))
}

func checkOrganisation(o config.Organisation) error {
	return permission.CheckRules(o.Allow, o.Ask, o.Deny, o.Rules)
}
