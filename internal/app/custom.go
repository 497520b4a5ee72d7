package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/inspan/inspan/internal/consent"
	"github.com/inspan/inspan/internal/custom"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// extra are the tools of a session that come and go: the programs in the folders
// of the user and, as far as their content is trusted, of the workspace, and the
// tools of MCP servers.
type extra struct {
	root, sum string
	env       tool.Env
	own       []tool.Tool // that are always there
	hub       *Hub        // nil: there are no servers
	wrap      func([]tool.Tool) []tool.Tool
	warn      func(string)

	mu      sync.Mutex
	trusted map[string]string // digests by path
}

// extra returns what lists them.
func (a *App) extra(x *extra) func(context.Context) []tool.Tool {
	set := &custom.Set{
		Env: x.env, Secret: a.granted, Warn: x.warn,
		Folders: []custom.Folder{
			{Dir: a.ownTools(), Source: "user"},
			{Dir: filepath.Join(x.root, ".inspan", "tools"), Source: "project", Trusted: x.trusts},
		},
		Reserved: []string{"tool_search", "call_tool"},
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		set.Folders = append(set.Folders, p.Tools...)
	}
	for _, t := range x.own {
		set.Reserved = append(set.Reserved, t.Name)
	}
	var always []tool.Tool
	if x.hub != nil {
		always = tools.Servers(x.hub.Manager, a.flow(x.hub.Manager))
		for _, t := range always {
			set.Reserved = append(set.Reserved, t.Name)
		}
	}
	return func(ctx context.Context) []tool.Tool {
		review, err := a.Review(x.root, x.sum)
		x.learn(review, err)
		return slices.Concat(always, x.wrap(slices.Concat(set.Tools(ctx), x.served(ctx))))
	}
}

// OwnTools tells how many programs in the folders of tools can be used in the folder root,
// and what is wrong with the others.
func (a *App) OwnTools(ctx context.Context, root string) (usable int, problems []string, err error) {
	env, err := a.Env(root)
	if err != nil {
		return 0, nil, err
	}
	come := a.extra(&extra{
		root: env.Root, env: env, wrap: func(list []tool.Tool) []tool.Tool { return list },
		warn: func(text string) { problems = append(problems, text) },
	})
	usable = len(come(ctx))
	return usable, problems, env.Close()
}

// served are the tools of the servers.
func (x *extra) served(ctx context.Context) []tool.Tool {
	if x.hub == nil {
		return nil
	}
	x.hub.Revive(ctx)
	return x.hub.Tools()
}

// trusts reports whether the content of a program of the workspace is trusted.
func (x *extra) trusts(path, digest string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return digest != "" && x.trusted[path] == digest
}

// learn takes over what of the workspace is trusted now.
func (x *extra) learn(review consent.Review, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trusted = map[string]string{}
	if err != nil {
		return
	}
	for _, i := range review.Trusted {
		x.trusted[filepath.Join(x.root, filepath.FromSlash(i.Path))] = i.Digest
	}
}

// granted is the value of a variable that the settings give to a tool.
func (a *App) granted(w custom.Want) (value string, ok bool) {
	if !slices.Contains(a.Config.ToolSecrets[w.Source][w.Tool], w.Name) {
		return "", false
	}
	return os.Getenv(w.Name), true
}
