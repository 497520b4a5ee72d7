package tools

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// runsHooks describes the repository's hooks that git would run with a call outside of the sandbox, for a person
// who is asked about it; empty means none, or the call runs no git. They also run with the person's rights, and the
// session may have written them.
func runsHooks(ctx context.Context, env tool.Env, effects []tool.Effect) string {
	git := slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Words != nil && len(e.Words.Argv) > 0 && path.Base(e.Words.Argv[0]) == "git"
	})
	if !git {
		return ""
	}
	top := repositoryTop(ctx, env)
	_, common, err := gitFolders(ctx, env, top)
	if top == "" || err != nil {
		return ""
	}
	dir := filepath.Join(common, "hooks")
	if config, err := readSmall(ctx, env, filepath.Join(common, "config")); err == nil {
		switch at := strings.Trim(gitSetting(config, "[core]", "hooksPath"), `"`); {
		case filepath.IsAbs(at):
			dir = at
		case at != "":
			dir = filepath.Join(top, at)
		}
	}
	var names []string
	entries, _ := readDir(ctx, env.Files, dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.Ext(e.Name()) != ".sample" {
			names = append(names, e.Name())
		}
	}
	if names == nil {
		return ""
	}
	if rel, err := filepath.Rel(env.Root, dir); err == nil {
		dir = rel
	}
	return ", where git also runs the hooks in " + dir + " (" + strings.Join(names, ", ") + ") and whatever they call"
}

// repositoryTop returns the folder with the repository of the workspace, the workspace itself or one above it;
// empty means there is none.
func repositoryTop(ctx context.Context, env tool.Env) string {
	top := env.Root
	for !exists(ctx, env, filepath.Join(top, ".git")) {
		if top == filepath.Dir(top) {
			return ""
		}
		top = filepath.Dir(top)
	}
	return top
}
