package keep

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Home returns the user's home folder, absolute and without links; empty if there is none, as for some
// services.
func Home() string {
	dir, err := os.UserHomeDir()
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// AtHome returns a path below the user's home folder; empty if there is none.
func AtHome(parts ...string) string {
	home := Home()
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.Join(parts...))
}

// Real resolves the links in the existing part of a path.
func Real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(Real(dir), filepath.Base(path))
}

// Programs lists the folders below the user's home in which programs are looked up, without links, except the
// home itself.
func Programs() []string {
	home := Home()
	if home == "" {
		return nil
	}
	var out []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(dir) {
			real = filepath.Clean(dir)
		}
		if strings.HasPrefix(real, home+string(filepath.Separator)) && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// Moved maps the usual names of folders of the user's home to their locations elsewhere according to the
// environment, without links.
func Moved() map[string]string {
	home, out := Home(), map[string]string{}
	for name, variable := range map[string]string{
		".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME", ".cargo": "CARGO_HOME", ".gradle": "GRADLE_USER_HOME",
		".docker": "DOCKER_CONFIG", ".gnupg": "GNUPGHOME", ".nvm": "NVM_DIR", ".pyenv": "PYENV_ROOT", ".ipython": "IPYTHONDIR",
		".jupyter": "JUPYTER_CONFIG_DIR", ".config/gh": "GH_CONFIG_DIR", ".config/gcloud": "CLOUDSDK_CONFIG", ".azure": "AZURE_CONFIG_DIR",
	} {
		dir := os.Getenv(variable)
		if !filepath.IsAbs(dir) {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if dir = filepath.Clean(dir); dir != filepath.Join(home, name) && dir != home {
			out[name] = dir
		}
	}
	return out
}
