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
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Parts of a window beyond which the descriptions of tools that are not built in
// are deferred, and what that comes to where the window is not known.
const (
	mostDescribed = 10
	fewDescribed  = 20_000 // tokens
)

// extra are the tools of a session that come and go: the programs in the folders
// of the user and, as far as their content is trusted, of the workspace, and the
// tools of MCP servers. Where there are many, two tools stand for them.
type extra struct {
	root, sum string
	env       tool.Env
	own       []tool.Tool // that are always there
	rare      []tool.Tool // built-in ones that are always deferred: the window is too small for all
	window    int
	hub       *Hub // nil: there are no servers
	habits    bool // tools are called by names that models know from elsewhere too
	wait      bool // for servers that were never met: nobody sits there
	wrap      func([]tool.Tool) []tool.Tool
	warn      func(string)

	mu      sync.Mutex
	trusted map[string]string // digests by path
}

// extra returns what [inspan.Agent] has as Extra.
func (a *App) extra(x *extra) func(context.Context) (shown, hidden []tool.Tool) {
	set := &custom.Set{
		Env: x.env, Secret: a.granted, Warn: x.warn,
		Folders: []custom.Folder{
			{Dir: filepath.Join(filepath.Dir(a.ConfigPath), "tools"), Source: "user"},
			{Dir: filepath.Join(x.root, ".inspan", "tools"), Source: "project", Trusted: x.trusts},
		},
		Reserved: []string{"tool_search", "call_tool"},
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		set.Folders = append(set.Folders, p.Tools...)
	}
	for _, t := range slices.Concat(x.own, x.rare) {
		set.Reserved = append(set.Reserved, t.Name)
	}
	var always []tool.Tool
	if x.hub != nil {
		always = tools.Servers(x.hub.Manager, a.flow(x.hub.Manager))
		for _, t := range always {
			set.Reserved = append(set.Reserved, t.Name)
		}
	}
	return func(ctx context.Context) (shown, hidden []tool.Tool) {
		review, err := a.Review(x.root, x.sum)
		x.learn(review, err)
		list := slices.Concat(x.rare, always, x.wrap(slices.Concat(set.Tools(ctx), x.served(ctx))))
		if x.rare == nil && described(list) <= allowance(x.window) {
			return list, x.usual(x.own, list)
		}
		return tools.Deferred(list), slices.Concat(list, x.usual(x.own, list))
	}
}

// usual are the tools under the names that models know from elsewhere.
func (x *extra) usual(lists ...[]tool.Tool) []tool.Tool {
	if !x.habits {
		return nil
	}
	return tools.Usual(slices.Concat(lists...))
}

// served are the tools of the servers.
func (x *extra) served(ctx context.Context) []tool.Tool {
	if x.hub == nil {
		return nil
	}
	x.hub.Revive(ctx)
	if x.wait {
		ctx, cancel := context.WithTimeout(ctx, unattendedWait)
		defer cancel()
		x.hub.Meet(ctx)
	}
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

// fitting parts tools into those that a model is always told of and those that a
// small window has no room for.
func fitting(list []tool.Tool, window int) (shown, rare []tool.Tool) {
	if described(list) <= allowance(window) {
		return list, nil
	}
	for _, t := range list {
		if slices.Contains([]string{"read_file", "write_file", "edit_file", "edit_lines", "list_files", "find_files", "search_files", "bash", "todo", "ask_user", "skill"}, t.Name) {
			shown = append(shown, t)
		} else {
			rare = append(rare, t)
		}
	}
	return shown, rare
}

func allowance(window int) int {
	if window == 0 {
		return fewDescribed
	}
	return window / mostDescribed
}

// described is about how many tokens the descriptions of tools take.
func described(list []tool.Tool) int {
	req := llm.Request{}
	for _, t := range list {
		req.Tools = append(req.Tools, t.Spec())
	}
	return req.Tokens()
}

// granted is the value of a variable that the settings give to a tool.
func (a *App) granted(w custom.Want) (value string, ok bool) {
	if !slices.Contains(a.Config.ToolSecrets[w.Source][w.Tool], w.Name) {
		return "", false
	}
	return os.Getenv(w.Name), true
}
