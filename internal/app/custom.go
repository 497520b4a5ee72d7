package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

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
// of the user and, as far as their content is trusted, of the workspace. Where
// there are many, two tools stand for them.
//
// Rare are built-in tools that are always behind those two: the window is too small
// for all.
func (a *App) extra(root, sum string, env tool.Env, own, rare []tool.Tool, window int, wrap func([]tool.Tool) []tool.Tool, warn func(string)) func(context.Context) (shown, hidden []tool.Tool) {
	var mu sync.Mutex
	trusted := map[string]string{} // digests by path
	set := &custom.Set{
		Env: env, Secret: a.granted, Warn: warn,
		Folders: []custom.Folder{
			{Dir: filepath.Join(filepath.Dir(a.ConfigPath), "tools"), Source: "user"},
			{Dir: filepath.Join(root, ".inspan", "tools"), Source: "project", Trusted: func(path, digest string) bool {
				mu.Lock()
				defer mu.Unlock()
				return digest != "" && trusted[path] == digest
			}},
		},
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		set.Folders = append(set.Folders, p.Tools...)
	}
	for _, t := range slices.Concat(own, rare) {
		set.Reserved = append(set.Reserved, t.Name)
	}
	set.Reserved = append(set.Reserved, "tool_search", "call_tool")
	return func(ctx context.Context) (shown, hidden []tool.Tool) {
		review, err := a.Review(root, sum)
		mu.Lock()
		clear(trusted)
		if err == nil {
			for _, i := range review.Trusted {
				trusted[filepath.Join(root, filepath.FromSlash(i.Path))] = i.Digest
			}
		}
		mu.Unlock()
		list := slices.Concat(rare, wrap(set.Tools(ctx)))
		if rare == nil && described(list) <= allowance(window) {
			return list, nil
		}
		return tools.Deferred(list), list
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
