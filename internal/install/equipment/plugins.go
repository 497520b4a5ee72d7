// Package equipment is what an agent is equipped with: the tools of its session, which of them its
// model is told of, and what people, workspaces and plugins add to inspan, as far as that is
// trusted: skills, slash commands, kinds of agents, tools and hooks.
package equipment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// Set is what extends an installation: what people, workspaces and plugins bring. The plugins are
// those that were enabled when the process first asked.
type Set struct {
	*config.Installation
	Consent *consent.Store
	Env     func(root string) (tool.Env, error) // the world that programs of a workspace run in
	// Apart says that the folder of the settings file is not that of the command: nothing
	// counts that lies in the person's home.
	Apart bool

	once     sync.Once
	plugins  []plugin.Enabled
	problems []string
}

// Store is where plugins are kept.
func (s *Set) Store() *plugin.Store { return &plugin.Store{Dir: s.PluginsDir(), Git: git} }

// Plugins are the enabled ones.
func (s *Set) Plugins() []plugin.Enabled {
	s.once.Do(func() { s.plugins, s.problems = s.Store().Enabled(context.Background()) })
	return s.plugins
}

// Problems is what is wrong with plugins.
func (s *Set) Problems() []string {
	s.Plugins()
	return s.problems
}

// git runs git in a folder, without walls and without anybody to ask, and returns
// what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	printed, complaints, code, err := sandbox.Capture(ctx, nil, append([]string{"git", "-C", dir}, args...)...)
	if err == nil && code != 0 {
		err = errors.New(words.OneLine(cmp.Or(strings.TrimSpace(complaints), fmt.Sprintf("it ended with %d", code)), 500))
	}
	return string(printed), err
}
