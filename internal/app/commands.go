package app

import (
	"path/filepath"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/skill"
)

// Commands lists the slash commands that are markdown files: those of the
// workspace, of its other agents' folder, and the user's. Of two with one name the
// first counts. Warn is told of files that are none.
func (a *App) Commands(root string, warn func(string)) []skill.Command {
	dir, _ := config.Dir()
	out, warnings := skill.Commands([]skill.Folder{
		{Path: filepath.Join(root, ".inspan", "commands"), Source: "project"},
		{Path: filepath.Join(root, ".claude", "commands"), Source: "project"},
		{Path: filepath.Join(dir, "commands"), Source: "user"},
		{Path: atHome(".claude", "commands"), Source: "user"},
	})
	for _, w := range warnings {
		warn(w)
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		out = append(out, p.Commands...)
	}
	return out
}
