package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The supported format of git's configuration, a strict subset of git-config(1), section "Configuration file".
var (
	gitSection     = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\["\\])*)")?\]$`)
	gitSettingLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*(.*))?$`)
)

// GitInert returns nil if the configuration file of a repository is proven inert: git, when it only reads, runs
// no program because of it. The error names the first key that is not known to be harmless, or the unsupported
// line.
func GitInert(file string) error { return inertGit(file, harmlessKey) }

// GitInertBare is [GitInert] for a repository without a work tree.
func GitInertBare(file string) error {
	return inertGit(file, func(key, value string) bool { return key == "core.bare" || harmlessKey(key, value) })
}

func inertGit(file string, harmless func(key, value string) bool) error {
	prefix := ""
	for n, line := range strings.Split(file, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := gitSection.FindStringSubmatch(line); m != nil {
			prefix = strings.ToLower(m[1]) + "."
			if m[2] != "" {
				prefix += "*."
			}
			continue
		}
		m := gitSettingLine.FindStringSubmatch(line)
		if m == nil || prefix == "" || strings.HasSuffix(line, `\`) {
			return fmt.Errorf("line %d of git's configuration is not understood", n+1)
		}
		if key := prefix + strings.ToLower(m[1]); !harmless(key, m[2]) {
			return fmt.Errorf("git's configuration sets %s, which is not known to be harmless", key)
		}
	}
	return nil
}

// GitSetting is one setting in a git configuration file. The key is in lower case, without the quoted part.
type GitSetting struct{ Key, Value string }

// GitNames lists the settings in a git configuration file that name programs, a folder of them, or further
// files. It reads unsupported content as far as it can.
func GitNames(file string) []GitSetting {
	var out []GitSetting
	section := ""
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			section, line = strings.ToLower(strings.Fields(head + " -")[0]), strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		s := GitSetting{section + "." + strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)}
		if s.Value == "" {
			continue
		}
		if s.IsPath() || gitProgram(s.Key) || strings.HasPrefix(s.Value, "!") {
			out = append(out, s)
		}
	}
	return out
}

// IsPath reports whether the value is one path, and not a command.
func (s GitSetting) IsPath() bool {
	return slices.Contains([]string{"core.hookspath", "include.path", "includeif.path"}, s.Key)
}

// gitProgram reports whether a key, in lower case, names a program.
func gitProgram(key string) bool {
	return strings.HasPrefix(key, "pager.") || slices.ContainsFunc([]string{
		"pager", "editor", "sshcommand", "fsmonitor", "askpass", "helper", "external", "command", "textconv", "clean",
		"smudge", "process", "driver", "cmd", "program", "difffilter", "hook", "pack", ".path", "proxy", "tunnel", "httpd", "smtpserver",
	}, func(p string) bool { return strings.HasSuffix(key, p) })
}

// GitOption reports whether a setting KEY=VALUE of git -c makes no git command run a program or access another
// repository. It overrides all others, so settings that keep git from reading submodules are not accepted.
func GitOption(setting string) bool {
	key, value, ok := strings.Cut(setting, "=")
	parts := strings.Split(strings.ToLower(key), ".")
	if len(parts) < 2 {
		return false
	}
	last := parts[len(parts)-1]
	switch parts[0] + "." + last {
	case "diff.ignoresubmodules", "core.bare", "help.autocorrect":
		return false
	case "commit.gpgsign", "tag.gpgsign":
		return ok && strings.EqualFold(value, "false")
	case "core.editor", "sequence.editor":
		return len(parts) == 2 && (value == "true" || value == ":") // harmless shell builtins
	}
	switch parts[0] {
	case "remote", "submodule", "branch", "extensions":
		return false
	}
	if len(parts) > 2 {
		return harmlessKey(parts[0]+".*."+last, value)
	}
	return harmlessKey(parts[0]+"."+last, value)
}

// harmlessKey reports whether a key, with * for the quoted part, runs nothing and leads nowhere.
func harmlessKey(key, value string) bool {
	switch key {
	case "core.bare":
		return strings.TrimSpace(value) == "false"
	case "remote.*.url", "remote.*.pushurl", "submodule.*.url":
		return !strings.Contains(value, "::") && !strings.HasPrefix(strings.TrimSpace(value), "-") && !strings.Contains(value, "\"")
	case "extensions.objectformat", "extensions.refstorage", "extensions.compatobjectformat":
		return true
	case "core.repositoryformatversion", "core.filemode", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode",
		"core.symlinks", "core.autocrlf", "core.eol",
		"core.safecrlf", "core.abbrev", "core.quotepath", "core.commentchar", "core.whitespace", "core.untrackedcache", "core.preloadindex",
		"core.compression", "core.checkstat",
		"core.trustctime", "core.longpaths", "core.protecthfs", "core.protectntfs", "core.sharedrepository", "core.splitindex",
		"core.commitgraph", "core.multipackindex",
		"remote.*.fetch", "remote.*.push", "remote.*.tagopt", "remote.*.prune", "remote.*.mirror", "remote.pushdefault", "remote.*.gh-resolved",
		"submodule.*.active", "submodule.active",
		"user.name", "user.email", "user.useconfigonly", "author.name", "author.email", "committer.name", "committer.email",
		"http.extraheader", "http.*.extraheader", // of the token that GitHub's checkout stores
		"init.defaultbranch", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags", "fetch.prune",
		"fetch.prunetags", "fetch.parallel",
		"merge.ff", "merge.conflictstyle", "rebase.autosquash", "rebase.autostash", "rerere.enabled", "rerere.autoupdate", "commit.gpgsign",
		"commit.verbose", "tag.gpgsign", "tag.sort",
		"diff.algorithm", "diff.renames", "diff.colormoved", "diff.mnemonicprefix", "diff.noprefix", "diff.context", "diff.ignoresubmodules",
		"status.showuntrackedfiles", "status.short",
		"status.branch", "log.date", "log.decorate", "log.abbrevcommit", "log.follow", "index.version", "gc.auto", "maintenance.auto",
		"maintenance.strategy", "pack.threads", "feature.manyfiles",
		"gui.wmstate", "gui.geometry", "advice.detachedhead", "help.autocorrect", "lfs.repositoryformatversion", "lfs.*.access", "github.user", "vscode-merge-base":
		return true
	}
	first, _, _ := strings.Cut(key, ".")
	switch first {
	case "branch", "color", "column", "advice":
		return true
	}
	return false
}
