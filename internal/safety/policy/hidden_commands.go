package policy

import (
	"path"
	"slices"
	"strings"
)

// unseen reports whether a command makes a shell, or git, run other commands that its words don't show. Rules can't
// look into other programs, such as interpreters, scripts and make.
func unseen(argv []string) bool {
	name, args := path.Base(argv[0]), argv[1:]
	if usual := usualGit(argv); usual != nil {
		name, args = "git", usual[1:]
	}
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh":
		return readsScript(args)
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
