package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// unseen reports whether a command makes a shell, or git, run other commands that its words don't show. Rules can't
// look into other programs, such as interpreters, scripts and make.
func unseen(argv []string) bool {
	name, args := path.Base(argv[0]), argv[1:]
	if usual := usualGit(argv); usual != nil {
		name, args = "git", usual[1:]
	}
	if isShell(name) {
		return readsScript(args)
	}
	switch name {
	case ".", "source":
		return true
	case "hash":
		return slices.ContainsFunc(args, func(w string) bool { return hasShortOption(w, 'p') })
	case "enable":
		return slices.ContainsFunc(args, func(w string) bool { return hasShortOption(w, 'f') })
	case "git":
		return gitUnseen(args)
	}
	return false
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// scriptOf returns the file that a shell, source or . runs, and its arguments; empty if the command runs none.
func scriptOf(argv []string) []string {
	name, args := path.Base(argv[0]), argv[1:]
	if !isShell(name) && name != "." && name != "source" {
		return nil
	}
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+")) {
		option := args[0]
		args = args[1:]
		switch {
		case option == "-" || option == "--":
			return args
		case hasShortOption(option, 'c'):
			return nil // the text is also listed among the commands
		case option == "--rcfile" || option == "--init-file" || !strings.HasPrefix(option, "--") && strings.ContainsAny(option, "oO"):
			args = args[min(1, len(args)):]
		}
	}
	return args
}

// readsScript reports whether a shell with these arguments runs commands from standard input or a device.
func readsScript(args []string) bool {
	for _, w := range args {
		switch {
		case w == "-c":
			return false // the text is also listed among the commands
		case w == "-" || hasShortOption(w, 's') || strings.HasPrefix(w, "/dev/") || strings.HasPrefix(w, "/proc/"):
			return true
		case !strings.HasPrefix(w, "-"):
			return false
		}
	}
	return true
}

// changesFolder reports whether a command may change the working folder of commands after it or inside it.
func changesFolder(w *tool.Words) bool {
	return w == nil || len(w.Argv) == 0 || slices.ContainsFunc(w.Argv, func(w string) bool {
		return slices.Contains([]string{"cd", "pushd", "popd", "foreach", "-execdir", "-okdir"}, w) ||
			hasShortOption(w, 'C') || hasShortOption(w, 'D') || strings.HasPrefix(w, "--chdir")
	})
}

// hasShortOption reports whether a word such as -xp is a cluster of short options with this letter.
func hasShortOption(w string, letter rune) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsRune(w[1:], letter)
}

// gitUnseen reports whether options make git take programs or aliases from another place.
func gitUnseen(args []string) bool {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n := min(len(args), optionWords("git", args[0]))
		if strings.HasPrefix(args[0], "--config-env") || strings.HasPrefix(args[0], "--exec-path=") {
			return true
		}
		if args[0] == "-c" && n == 2 {
			key := strings.ToLower(args[1])
			if strings.HasPrefix(key, "include") || strings.HasPrefix(key, "core.hookspath") {
				return true
			}
		}
		args = args[n:]
	}
	return false
}

// usualName returns the usual form of a command that other programs and words name too, such as npm run for npm
// run-script. It returns nil if there is no other.
func usualName(argv []string) []string {
	name, args := path.Base(argv[0]), argv[1:]
	switch {
	case strings.HasPrefix(name, "python") && len(args) > 1 && args[0] == "-m" && args[1] == "pip":
		return append([]string{"pip"}, args[2:]...)
	case strings.HasPrefix(name, "pip3"):
		return append([]string{"pip"}, args...)
	case len(args) == 0:
	case name == "cargo" && strings.HasPrefix(args[0], "+"):
		return append([]string{name}, args[1:]...)
	case (name == "docker" || name == "podman") && (args[0] == "container" || args[0] == "image"):
		return append([]string{name}, args[1:]...)
	case name == "npm":
		usual := map[string]string{
			"run-script": "run", "rum": "run", "urn": "run", "i": "install", "in": "install", "ins": "install", "add": "install", "x": "exec",
			"t": "test", "tst": "test", "un": "uninstall", "rm": "uninstall", "remove": "uninstall",
		}[args[0]]
		if usual != "" {
			return append([]string{name, usual}, args[1:]...)
		}
	}
	return nil
}

// usualGit returns the usual form of a git command: git X for git-X, and push for the commands that push runs. It
// returns nil if the command is not git or already has its usual form.
func usualGit(argv []string) []string {
	name, args := path.Base(argv[0]), argv[1:]
	rest, dashed := strings.CutPrefix(name, "git-")
	if dashed {
		args = append([]string{rest}, args...)
	} else if name != "git" {
		return nil
	}
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		at += optionWords("git", args[at])
	}
	pushes := at < len(args) && (args[at] == "send-pack" || args[at] == "http-push")
	if !dashed && !pushes {
		return nil
	}
	out := append([]string{"git"}, args...)
	if pushes {
		out[1+at] = "push"
	}
	return out
}
