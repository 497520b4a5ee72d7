package app

import (
	"path/filepath"

	"github.com/inspan/inspan/internal/config"
)

// ConfigPath is where the user's settings are, whether they exist or not.
func ConfigPath() (string, error) {
	dir, err := config.Dir()
	return filepath.Join(dir, "config.toml"), err
}

// Settings lists what is set for a workspace: by the organisation, by the user, by
// the preset and the environment, and by the workspace itself.
func (a *App) Settings(root string) ([]config.Setting, error) {
	var out []config.Setting
	for _, path := range []string{config.OrganisationFile, a.ConfigPath, filepath.Join(root, config.ProjectFile)} {
		list, err := config.Settings(path)
		if err != nil {
			return nil, configError{err}
		}
		out = append(out, list...)
		if path == a.ConfigPath {
			out = append(out, a.set...)
		}
	}
	return out, nil
}
