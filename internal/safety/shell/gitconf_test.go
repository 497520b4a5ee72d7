package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/shell"
)

const usual = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = git@github.com:someone/thing.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = Ann "the Fan" O'Hara
	email = ann@example.com
`

func TestGitInert(t *testing.T) {
	for name, file := range map[string]string{
		"empty": "", "usual": usual, "comments": "# a\n; b\n[color]\n\tui\n", "windows lines": strings.ReplaceAll(usual, "\n", "\r\n"),
		"a checkout of GitHub": usual + "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic eDp5\n[gc]\n\tauto = 0\n",
		"deprecated section":   "[branch.main]\n\tremote = origin\n",
	} {
		if err := shell.GitInert(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOption checks which settings a command line may give.
func TestGitOption(t *testing.T) {
	for want, list := range map[bool][]string{
		true: {
			"user.name=Ann", "user.email=a@b", "User.Name=x", "user.name=", "init.defaultBranch=main", "color.ui=never", "color.diff.meta=red",
			"core.quotePath=false", "advice.detachedHead=false",
			"commit.gpgsign=false", "tag.gpgSign=FALSE", "core.autocrlf=input", "pull.rebase", "merge.conflictStyle=diff3",
		},
		false: {
			"", "user", "core.pager=x", "core.hooksPath=x", "alias.x=!x", "commit.gpgsign=true", "commit.gpgsign", "diff.ignoreSubmodules=none",
			"remote.origin.url=./x", "branch.main.remote=./x", "submodule.x.url=y",
			"core.bare=false", "extensions.objectFormat=sha256", "help.autocorrect=1", "protocol.ext.allow=always", "include.path=x",
			"core.sshCommand=x", "filter.x.clean=y", "user.x.name=y",
		},
	} {
		for _, setting := range list {
			if got := shell.GitOption(setting); got != want {
				t.Errorf("%q: %t", setting, got)
			}
		}
	}
}

func TestNotInert(t *testing.T) {
	bare := strings.Replace(usual, "bare = false", "bare = true", 1)
	if shell.GitInert(bare) == nil || shell.GitInertBare(bare) != nil || shell.GitInertBare(bare+"[core]\n\tfsmonitor = ./evil\n") == nil {
		t.Error("a repository without a work tree")
	}
	for _, add := range []string{
		"[core]\n\tfsmonitor = ./evil\n", "[core]\n\tFSMonitor = ./evil\n", "[CORE]\n\tfsmonitor\n", "[diff]\n\texternal = ./evil\n",
		"[diff \"x\"]\n\tcommand = ./evil\n",
		"[diff \"x\"]\n\ttextconv = ./evil\n", "[filter \"x\"]\n\tclean = ./evil\n", "[filter \"x\"]\n\tprocess = ./evil\n",
		"[include]\n\tpath = ../evil\n",
		"[includeIf \"gitdir:/\"]\n\tpath = ../evil\n", "[core]\n\thooksPath = hooks\n", "[alias]\n\tstatus = !./evil\n",
		"[core]\n\tpager = ./evil\n", "[pager]\n\tlog = ./evil\n",
		"[gpg]\n\tprogram = ./evil\n", "[log]\n\tshowSignature = true\n", "[core]\n\tsshCommand = ./evil\n", "[core]\n\tworktree = ..\n",
		"[core]\n\tbare = true\n", "[core]\n\tattributesFile = x\n",
		"[remote \"o\"]\n\turl = ext::./evil\n", "[remote \"o\"]\n\tpromisor = true\n", "[remote \"o\"]\n\tuploadpack = ./evil\n",
		"[extensions]\n\tpartialClone = o\n", "[extensions]\n\tworktreeConfig = true\n",
		"[merge \"x\"]\n\tdriver = ./evil\n", "[credential]\n\thelper = ./evil\n", "[url \"ext::x\"]\n\tinsteadOf = a\n",
		"[core]\n\tfilemode = true \\\nfsmonitor = ./evil\n", "[core] fsmonitor = ./evil\n",
		"[core]\n\teditor = ./evil\n", "[sequence]\n\teditor = ./evil\n", "[trailer \"x\"]\n\tcommand = ./evil\n",
		"[submodule \"x\"]\n\tupdate = !./evil\n", "[interactive]\n\tdiffFilter = ./evil\n", "[browser \"x\"]\n\tcmd = y\n",
	} {
		if err := shell.GitInert(usual + add); err == nil {
			t.Errorf("taken for inert: %q", add)
		}
	}
}

// TestLikeGit checks the parser against git: whatever git reads out of a file that was taken for inert is a key of the
// list.
func FuzzLikeGit(f *testing.F) {
	f.Add(usual)
	f.Add("[core]\n\tfsmonitor = x\n")
	f.Add("[a \"b\\\"c\"]\nd=e")
	f.Add("[core]a=b\n[x]\n y = z \\\n [core]\n fsmonitor = 1")
	f.Fuzz(func(t *testing.T, text string) {
		if shell.GitInert(text) != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", path, "--includes", "--list", "--name-only").Output()
		if err != nil {
			return // git refuses the file, and so refuses to run
		}
		for key := range strings.Lines(string(out)) {
			if again := shell.GitInert(asFile(strings.TrimSpace(key))); again != nil {
				t.Errorf("%q holds %s: %v", text, key, again)
			}
		}
	})
}

// asFile writes a key as a file of its own.
func asFile(key string) string {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	if first < 0 {
		return "?"
	}
	head := "[" + key[:first] + "]"
	if last > first {
		head = "[" + key[:first] + ` "x"]`
	}
	value := "x"
	if strings.EqualFold(key, "core.bare") {
		value = "false"
	}
	return head + "\n" + key[last+1:] + " = " + value + "\n"
}
