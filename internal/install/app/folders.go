package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
)

// folders returns the extra folders of a session, without links: its own, those of the settings and those of
// the options. An unusable folder of the settings is left out, with a warning.
func (a *App) folders(o Options, at inspan.SessionSpec, warn func(string)) ([]string, error) {
	var out []string
	add := func(dir string) {
		if !slices.Contains(out, dir) && dir != at.Root {
			out = append(out, dir)
		}
	}
	if !o.OnlyFolders {
		for _, dir := range at.Folders {
			add(dir)
		}
	}
	if !a.Permission.Guests && !o.Elsewhere {
		for _, path := range a.Config.Folders {
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				path = keep.AtHome(rest)
			}
			dir, err := a.Folder(path)
			if err != nil {
				warn("folders: " + err.Error() + "; it is left out")
				continue
			}
			add(dir)
		}
	}
	for _, path := range o.Folders {
		dir, err := a.Folder(path)
		if err != nil {
			return nil, misused("--add-dir: %w", err)
		}
		add(dir)
	}
	return out, nil
}

// Folder returns the path, without links, of a folder that a session may use like its workspace.
func (a *App) Folder(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(dir)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s does not exist", path)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", path)
	case slices.Contains([]string{"/", "/tmp", "/var/tmp", "/dev", "/run", "/proc", "/sys"}, dir):
		return "", fmt.Errorf("%s can't be opened as a whole: commands in the sandbox have their own; name a folder in it, or use --preset container on a "+
			"throwaway machine", dir)
	}
	if at := a.Permission.Places("").Of(dir); at.Guard == places.Secret || at.Guard == places.Frozen {
		return "", fmt.Errorf("a session can't use %s: it %s", dir, at.Why)
	}
	return dir, nil
}
