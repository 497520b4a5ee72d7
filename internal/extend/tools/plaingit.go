package tools

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// plainGit reports whether a command is git that writes its repository and runs nothing but the repository's
// own hooks. Only such a command may get a writable repository, which has files that name programs.
func plainGit(e tool.Effect) bool {
	if e.Words == nil {
		return false
	}
	if e.Words.WithoutRedirects != nil {
		e.Words = e.Words.WithoutRedirects
	}
	argv := withoutSettings(e.Words.Argv)
	words := e.Words.Prefix
	if len(words) == 0 && e.Words.Exact {
		words = argv // no rule may name it, such as rebase
	}
	if len(words) > 1 && words[0] == "git" && words[1] == "filter-branch" {
		return plainFilter(argv[2:])
	}
	if len(words) < 2 || words[0] != "git" || !slices.Contains([]string{
		"add", "commit", "checkout", "switch", "restore", "reset", "stash", "merge", "branch", "tag", "mv", "rm", "cherry-pick", "revert",
		"apply", "notes", "clean",
		"fetch", "pull", "push", "rebase", "worktree", "gc",
	}, words[1]) {
		return false
	}
	if argv == nil {
		return plainText(words[1], e.Text)
	}
	for _, w := range argv[2:] {
		if runsMore(words[1], w) {
			return false
		}
	}
	return true
}

// withoutSettings omits harmless settings before the subcommand.
func withoutSettings(argv []string) []string {
	for len(argv) > 2 && argv[0] == "git" && argv[1] == "-c" && shell.GitOption(argv[2]) {
		argv = append([]string{"git"}, argv[3:]...)
	}
	return argv
}

// plainFilter reports whether words of filter-branch only say which filters run over which commits. The command
// of a filter is judged separately.
func plainFilter(words []string) bool {
	some := false
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w {
		case "-f", "--force", "--prune-empty", "--", "--all", "--branches", "--tags":
		case "--env-filter", "--tree-filter", "--index-filter", "--msg-filter":
			i, some = i+1, true
		default:
			if strings.HasPrefix(w, "-") {
				return false
			}
		}
	}
	return some
}

// plainText is for a command with unknown words, which could be options, so commands with options that run programs
// don't qualify.
func plainText(sub, text string) bool {
	if reaches(sub) || sub == "rebase" {
		return false
	}
	return !strings.Contains(text, "--exec") && !strings.Contains(text, " -x") && (namesCommit(sub) || !strings.Contains(text, " -c"))
}

// reaches reports whether a subcommand talks to another repository.
func reaches(sub string) bool { return sub == "fetch" || sub == "pull" || sub == "push" }

// namesCommit reports whether -c and -C of a subcommand name a branch or a commit. Those of git itself come
// before it.
func namesCommit(sub string) bool { return sub == "switch" || sub == "branch" || sub == "commit" }

// runsMore reports whether a word makes a subcommand run a program, wait for input, or work on another
// repository, even one in the workspace: its hooks would run as well. Git accepts any prefix of a long option.
func runsMore(sub, word string) bool {
	if reaches(sub) && (strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/") ||
		strings.HasPrefix(word, "file:") || strings.Contains(word, "::")) {
		return true
	}
	if long, _, _ := strings.Cut(word, "="); strings.HasPrefix(word, "--") {
		return len(long) > 3 && slices.ContainsFunc([]string{
			"--exec-path", "--config-env", "--exec", "--interactive", "--git-dir", "--work-tree",
			"--upload-pack", "--receive-pack",
		}, func(o string) bool {
			return strings.HasPrefix(o, long)
		})
	}
	if !strings.HasPrefix(word, "-") {
		return false
	}
	if sub == "rebase" {
		return strings.ContainsAny(word, "xi")
	}
	return strings.HasPrefix(word, "-x") || word == "-i" || !namesCommit(sub) &&
		(strings.HasPrefix(word, "-c") || strings.HasPrefix(word, "-C"))
}

// subcommand returns the git subcommand of a command; empty if it is not git.
func subcommand(e tool.Effect) string {
	if e.Words == nil {
		return ""
	}
	if argv := withoutSettings(e.Words.Argv); len(argv) > 1 && argv[0] == "git" {
		return argv[1]
	}
	return ""
}
