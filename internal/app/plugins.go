package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/plugin"
	"github.com/inspan/inspan/internal/words"
)

// Plugins is where plugins are kept.
func (a *App) Plugins() *plugin.Store {
	dir := filepath.Join(a.StateDir, "plugins")
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &plugin.Store{Dir: dir, Git: git}
}

// git runs git in a folder, without walls and without anybody to ask, and returns
// what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	printed, complaints, code, err := run(ctx, nil, append([]string{"git", "-C", dir}, args...)...)
	if err == nil && code != 0 {
		err = errors.New(words.OneLine(cmp.Or(strings.TrimSpace(complaints), fmt.Sprintf("it ended with %d", code)), 500))
	}
	return string(printed), err
}

// enabled is a plugin that sessions use.
type enabled struct {
	plugin.Plugin
	plugin.Parts
}

// enabledPlugins are those that were enabled when this process first asked, and what
// is wrong with them.
func (a *App) enabledPlugins() ([]enabled, []string) {
	a.pluginsOnce.Do(func() {
		list, err := a.Plugins().List(context.Background())
		if err != nil {
			a.pluginProblems = append(a.pluginProblems, err.Error())
		}
		for _, p := range list {
			a.pluginProblems = append(a.pluginProblems, p.Problems...)
			if p.Enabled {
				parts := p.Parts()
				a.plugins = append(a.plugins, enabled{p, parts})
				a.pluginProblems = append(a.pluginProblems, parts.Problems...)
			}
		}
	})
	return a.plugins, a.pluginProblems
}
