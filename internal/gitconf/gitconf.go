// Package gitconf tells whether the configuration file of a repository is
// inert: whether git, when it only reads, runs no program because of it. It is
// a proof: only a strict form of the file and a list of keys are understood.
// The form is that of git-config(1), section "Configuration file".
package gitconf

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	section = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\["\\])*)")?\]$`)
	setting = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*(.*))?$`)
)

// Inert returns nil if all keys of the file are known to be harmless for
// commands that only read. The error names the first that is not.
func Inert(file string) error { return inert(file, harmless) }

// InertBare is [Inert] for a repository without a work tree.
func InertBare(file string) error {
	return inert(file, func(key, value string) bool { return key == "core.bare" || harmless(key, value) })
}

func inert(file string, harmless func(key, value string) bool) error {
	prefix := ""
	for n, line := range strings.Split(file, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := section.FindStringSubmatch(line); m != nil {
			prefix = strings.ToLower(m[1]) + "."
			if m[2] != "" {
				prefix += "*."
			}
			continue
		}
		m := setting.FindStringSubmatch(line)
		if m == nil || prefix == "" || strings.HasSuffix(line, `\`) {
			return fmt.Errorf("line %d of git's configuration is not understood", n+1)
		}
		if key := prefix + strings.ToLower(m[1]); !harmless(key, m[2]) {
			return fmt.Errorf("git's configuration sets %s, which is not known to be harmless", key)
		}
	}
	return nil
}

// Option reports whether a setting KEY=VALUE, as git -c takes it, makes no command of git run
// a program or reach another repository. It overrules all others, so what keeps
// git from looking into submodules is not among them.
func Option(setting string) bool {
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
		return len(parts) == 2 && (value == "true" || value == ":") // of the shell, it does nothing
	}
	switch parts[0] {
	case "remote", "submodule", "branch", "extensions":
		return false
	}
	if len(parts) > 2 {
		return harmless(parts[0]+".*."+last, value)
	}
	return harmless(parts[0]+"."+last, value)
}

// harmless reports whether a key, with * for the part in quotes, runs nothing
// and leads nowhere.
func harmless(key, value string) bool {
	switch key {
	case "core.bare":
		return strings.TrimSpace(value) == "false"
	case "remote.*.url", "remote.*.pushurl", "submodule.*.url":
		return !strings.Contains(value, "::") && !strings.HasPrefix(strings.TrimSpace(value), "-") && !strings.Contains(value, "\"")
	case "extensions.objectformat", "extensions.refstorage", "extensions.compatobjectformat":
		return true
	case "core.repositoryformatversion", "core.filemode", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol",
		"core.safecrlf", "core.abbrev", "core.quotepath", "core.commentchar", "core.whitespace", "core.untrackedcache", "core.preloadindex", "core.compression", "core.checkstat",
		"core.trustctime", "core.longpaths", "core.protecthfs", "core.protectntfs", "core.sharedrepository", "core.splitindex", "core.commitgraph", "core.multipackindex",
		"remote.*.fetch", "remote.*.push", "remote.*.tagopt", "remote.*.prune", "remote.*.mirror", "remote.pushdefault", "remote.*.gh-resolved", "submodule.*.active", "submodule.active",
		"user.name", "user.email", "user.useconfigonly", "author.name", "author.email", "committer.name", "committer.email",
		"init.defaultbranch", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags", "fetch.prune", "fetch.prunetags", "fetch.parallel",
		"merge.ff", "merge.conflictstyle", "rebase.autosquash", "rebase.autostash", "rerere.enabled", "rerere.autoupdate", "commit.gpgsign", "commit.verbose", "tag.gpgsign", "tag.sort",
		"diff.algorithm", "diff.renames", "diff.colormoved", "diff.mnemonicprefix", "diff.noprefix", "diff.context", "diff.ignoresubmodules", "status.showuntrackedfiles", "status.short",
		"status.branch", "log.date", "log.decorate", "log.abbrevcommit", "log.follow", "index.version", "gc.auto", "maintenance.auto", "maintenance.strategy", "pack.threads", "feature.manyfiles",
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
