package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/command"
	"github.com/inspan/inspan/internal/config"
)

// maxCommands is how many files of one folder are read.
const maxCommands = 500

// Commands lists the slash commands that are markdown files: those of the
// workspace, of its other agents' folder, and the user's. Of two with one name the
// first counts. Warn is told of files that are none.
func (a *App) Commands(root string, warn func(string)) []command.Command {
	var out []command.Command
	taken := map[string]bool{}
	dir, _ := config.Dir()
	for _, at := range []struct{ path, source string }{
		{filepath.Join(root, ".inspan", "commands"), "project"},
		{filepath.Join(root, ".claude", "commands"), "project"},
		{filepath.Join(dir, "commands"), "user"},
		{filepath.Join(home(), ".claude", "commands"), "user"},
	} {
		for _, c := range commandsIn(at.path, at.source, warn) {
			if !taken[c.Name] {
				taken[c.Name] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// commandsIn reads a folder of commands. Links are not followed.
func commandsIn(dir, source string, warn func(string)) []command.Command {
	var out []command.Command
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".md") {
			return nil // there may be no folder
		}
		if seen++; seen > maxCommands {
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Size() > command.MaxSize {
			warn(path + ": it is too long for a command")
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			warn(err.Error())
			return nil
		}
		c, err := command.Parse(filepath.ToSlash(rel), source, data)
		if err != nil {
			warn(path + ": " + err.Error())
			return nil
		}
		out = append(out, c)
		return nil
	})
	return out
}
