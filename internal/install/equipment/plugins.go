// Package equipment provides an agent's equipment: the tools of its session, which of them requests describe,
// and the additions from people, workspaces and plugins, as far as they are trusted: skills, slash commands,
// agent roles, tools and hooks.
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

// Set is the extensions of an installation, from people, workspaces and plugins. The plugins are those that
// were enabled when the process first asked.
type Set struct {
	*config.Installation
	Consent *consent.Store
	Env     func(root string) (tool.Env, error) // environment for programs of a workspace
	// Apart says that the settings file is not in the command's folder: content in the person's home is
	// ignored.
	Apart bool
	// Unplugged says that plugins are ignored too, as a person installed them next to the settings.
	Unplugged bool

	once     sync.Once
	plugins  []plugin.Enabled
	problems []string
}

// Store returns the store of plugins.
func (s *Set) Store() *plugin.Store { return &plugin.Store{Dir: s.PluginsDir(), Git: git} }

// Plugins returns the enabled plugins.
func (s *Set) Plugins() []plugin.Enabled {
	if s.Unplugged {
		return nil
	}
	s.once.Do(func() { s.plugins, s.problems = s.Store().Enabled(context.Background()) })
	return s.plugins
}

// Problems returns the problems of plugins.
func (s *Set) Problems() []string {
	s.Plugins()
	return s.problems
}

// git runs git in a folder, outside of the sandbox and without prompts, and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	printed, complaints, code, err := sandbox.Capture(ctx, nil, append([]string{"git", "-C", dir}, args...)...)
	if err == nil && code != 0 {
		err = errors.New(words.OneLine(cmp.Or(strings.TrimSpace(complaints), fmt.Sprintf("it ended with %d", code)), 500))
	}
	return string(printed), err
}
