package tools

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// makesRepository reports whether git must make a repository in the workspace: the sandbox prevents that
// otherwise. A repository in the session's own temporary folder does not count: nothing outside of the sandbox
// follows it.
func makesRepository(c *tool.Call, in bashArgs, effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		if !inits(e) {
			return false
		}
		to := initTarget(e)
		return in.Outside || !c.Env.Walls.Workspace || !filepath.IsAbs(to) || !c.Env.IsTemporary(filepath.Clean(to), true)
	})
}

// inits reports whether a command is git that makes a repository.
func inits(e tool.Effect) bool {
	if e.Words == nil || len(e.Words.Argv) == 0 || path.Base(e.Words.Argv[0]) != "git" {
		return false
	}
	for _, w := range withoutSettings(e.Words.Argv)[1:] {
		if w == "init" || w == "clone" {
			return true
		}
		if !strings.HasPrefix(w, "-") {
			break
		}
	}
	return false
}

// initTarget returns where git init or git clone makes a repository, if the words name it.
func initTarget(e tool.Effect) string {
	argv := withoutSettings(e.Words.Argv)
	if len(argv) < 3 {
		return ""
	}
	var folders []string
	for i := 2; i < len(argv); i++ {
		switch {
		case argv[i] == "-b":
			i++
		case !strings.HasPrefix(argv[i], "-"):
			folders = append(folders, argv[i])
		}
	}
	switch {
	case argv[1] == "init" && len(folders) == 1:
		return folders[0]
	case argv[1] == "clone" && len(folders) == 2:
		return folders[1]
	}
	return ""
}

// unasked says how to make a repository without a question, if other programs of the call are the reason for
// one.
func unasked(c *tool.Call, in bashArgs, effects []tool.Effect) string {
	if in.Outside || !c.Env.Walls.Workspace || slices.ContainsFunc(effects, func(e tool.Effect) bool { return inits(e) && !plainInit(e) }) {
		return ""
	}
	return " (a call of git alone makes one in the workspace without approval, and git init /tmp/NAME one in the session's own /tmp)"
}

// temporary reports whether a command makes a temporary file or folder and nothing else, in a place that no
// variable of the call or of earlier ones determines.
func temporary(e tool.Effect) bool {
	return e.Words != nil && e.Words.Exact && slices.Contains([]string{"mktemp", "mktemp -d"}, strings.Join(e.Words.Argv, " "))
}

// plainInit reports whether a command is plain git, or makes a repository and sets its author.
func plainInit(e tool.Effect) bool {
	if plainGit(e) || e.Words == nil || !e.Words.Exact {
		return plainGit(e)
	}
	argv := withoutSettings(e.Words.Argv)
	if len(argv) < 2 || argv[0] != "git" {
		return false
	}
	words := argv[2:]
	switch argv[1] {
	case "clone":
		_, ok := shell.Cloned(words)
		return ok
	case "init":
		for _, w := range words {
			if strings.HasPrefix(w, "-") && w != "-q" && w != "--quiet" && w != "--bare" && w != "-b" && !strings.HasPrefix(w, "--initial-branch") {
				return false
			}
		}
		return true
	case "config":
		if len(words) == 3 && words[0] == "--local" {
			words = words[1:]
		}
		return len(words) == 2 && (words[0] == "user.name" || words[0] == "user.email")
	}
	return false
}

// nearby omits effects that a call that clones folders does not need: hosts for fetching and pushing by the
// name of a remote. Its repositories have no other remotes than those folders. Pushes says that it pushes to
// one, whose hooks then run.
func nearby(effects []tool.Effect) (out []tool.Effect, pushes bool) {
	clones := slices.ContainsFunc(effects, func(e tool.Effect) bool { return subcommand(e) == "clone" })
	sub := "" // git subcommand to which the effects belong
	for _, e := range effects {
		if e.Kind == tool.Execute {
			sub = subcommand(e)
		}
		if e.Kind == tool.Network && e.Text == "*" && !e.FromArgument && clones && reaches(sub) {
			pushes = pushes || sub == "push"
			continue
		}
		out = append(out, e)
	}
	return out, pushes
}
