package tools_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// repository makes one with a commit and a remote.
func (s *session) repository() {
	s.t.Helper()
	remote := s.t.TempDir()
	for _, argv := range [][]string{
		{"git", "init", "-q", "--bare", remote},
		{"git", "init", "-q", "-b", "main"},
		{"git", "config", "user.name", "Ann"},
		{"git", "config", "user.email", "ann@example.com"},
		{"git", "remote", "add", "origin", remote},
	} {
		cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
		cmd.Dir = s.env.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	s.put("a.txt", "one\n")
}

// TestGit walks through the life of a change in a real repository.
func TestGit(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.repository()
	for _, step := range []struct {
		args args
		want string // in what it prints
	}{
		{args{"action": "status"}, "?? a.txt"},
		{args{"action": "commit", "paths": []string{"a.txt"}, "message": "Begin\n\nIt's the \"first\" $(rm -rf /) `x`."}, "a.txt"},
		{args{"action": "log", "stat": true, "max": 1}, "Ann: Begin"},
		{args{"action": "show", "ref": "HEAD"}, "It's the \"first\" $(rm -rf /) `x`."},
		{args{"action": "branch", "name": "work"}, "work"},
		{args{"action": "branches"}, "* work"},
		{args{"action": "blame", "paths": []string{"a.txt"}}, "(Ann"},
		{args{"action": "push"}, "work"},
		{args{"action": "commit", "amend": true, "message": "Start"}, "Start"},
		{args{"action": "push", "force": true}, "forced update"},
		{args{"action": "worktree", "path": "trees/other", "name": "other"}, "other"},
		{args{"action": "worktrees"}, "[other]"},
		{args{"action": "remove_worktree", "path": "trees/other"}, "done"},
		{args{"action": "delete_branch", "name": "other"}, "Deleted branch other"},
		{args{"action": "switch", "name": "main"}, "main"},
		{args{"action": "diff", "ref": "main", "to": "work", "stat": true, "paths": []string{"a.txt"}}, ""},
		{args{"action": "pull", "remote": "origin", "name": "work"}, ""},
		{args{"action": "diff", "staged": true}, ""},
		{args{"action": "clone", "url": s.env.Root, "path": "copy"}, "Cloning into 'copy'"},
	} {
		res, err := s.try(t.Context(), "git", step.args)
		text := res.Parts.Text()
		if want := step.want; err != nil && step.args["action"] != "pull" || want != "done" && !strings.Contains(text, want) {
			t.Errorf("%v: %s\n%v, want %q", step.args, text, err, want)
		}
	}
	if _, err := os.Stat(s.path("copy/a.txt")); err != nil {
		t.Error(err)
	}
}

// TestGitRefuses checks which arguments never become a command line.
func TestGitRefuses(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.repository()
	for want, a := range map[string]args{
		"main is protected":                {"action": "push", "name": "main"},
		"refs/heads/main\" is not a plain": {"action": "push", "name": "refs/heads/main"},
		"release/2 is protected":           {"action": "push", "name": "release/2"},
		`"work:main" is not a plain`:       {"action": "push", "name": "work:main"},
		`"+work" is not a plain`:           {"action": "push", "name": "+work"},
		`"HEAD" is not a plain`:            {"action": "push", "name": "HEAD"},
		`"@" is not a plain`:               {"action": "push", "name": "@"},
		`"heads/main" is not a plain`:      {"action": "push", "name": "heads/main"},
		"release/a/b is protected":         {"action": "push", "name": "release/a/b"},
		`"--upload-pack=x" looks like`:     {"action": "clone", "url": "--upload-pack=x"},
		`"-x" looks like an option`:        {"action": "show", "ref": "-x"},
		"a commit needs a message":         {"action": "commit", "paths": []string{"."}},
		"blame needs one path":             {"action": "blame"},
		`"rebase" is none of`:              {"action": "rebase"},
		"branch needs the name":            {"action": "branch"},
		"a clone needs a url":              {"action": "clone"},
		"a worktree needs the path":        {"action": "worktree", "name": "x"},
		"give the path of its folder":      {"action": "remove_worktree"},
	} {
		s.fails("git", a, want)
	}
	// A checked-out file is as protected as a named one.
	s.fails("git", args{"action": "push"}, "main is protected")
}

// TestGitIsJudged checks the effects of an action that judges see.
func TestGitIsJudged(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.repository()
	for _, tc := range []struct {
		args args
		want tool.Effect // one of the effects
		read bool        // it only reads
	}{
		{args{"action": "status"}, tool.Effect{Kind: tool.Execute, Text: "git status --short --branch", Class: tool.ProvenRead}, true},
		{args{"action": "log"}, tool.Effect{
			Kind: tool.Execute, Text: "git log '--max-count=20' '--date=short' '--format=%h %ad %an: %s'",
			Class: tool.ProvenRead,
		}, true},
		{
			args{"action": "diff", "staged": true, "paths": []string{"a b"}},
			tool.Effect{Kind: tool.Execute, Text: "git diff --staged -- 'a b'", Class: tool.ProvenRead},
			true,
		},
		{args{"action": "blame", "paths": []string{"a.txt"}}, tool.Effect{
			Kind: tool.Execute,
			Text: "git blame '--date=short' -- a.txt", Class: tool.ProvenRead,
		}, true},
		{args{"action": "commit", "message": "x"}, tool.Effect{Kind: tool.Execute, Text: "git commit '--message=x'"}, false},
		{args{"action": "clone", "url": "https://example.com/a.git"}, tool.Effect{Kind: tool.Network, Text: "example.com"}, false},
		{args{"action": "clone", "url": "git@example.com:a.git"}, tool.Effect{Kind: tool.External, Text: "run outside the sandbox"}, false},
		{args{"action": "push", "name": "work"}, tool.Effect{Kind: tool.External, Text: "run outside the sandbox"}, false},
	} {
		gitTool, c := s.call("git", tc.args)
		_, inner, err := gitTool.Resolve(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var a args
		if err := json.Unmarshal(inner, &a); err != nil {
			t.Fatal(err)
		}
		effects, found := s.effects("bash", a), false
		for _, e := range effects {
			e.Words = nil
			found = found || e == tc.want
		}
		if !found || tool.ReadOnly(effects) != tc.read {
			t.Errorf("%v: %+v, want %+v", tc.args, effects, tc.want)
		}
	}
}

// TestGitTells checks that a commit of paths takes nothing else that was staged, that names are reported as they are,
// and that a rebase in progress is reported.
func TestGitTells(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.repository()
	s.run("git", args{"action": "commit", "paths": []string{"a.txt"}, "message": "Begin"})
	s.put("größe.txt", "x\n")
	s.put("b.txt", "b\n")
	s.run("bash", args{"command": "git add b.txt"})
	says(t, s.run("git", args{"action": "status"}), "A  b.txt", "?? größe.txt")
	s.run("git", args{"action": "commit", "paths": []string{"größe.txt"}, "message": "Second"})
	says(t, s.run("git", args{"action": "show", "stat": true}), "größe.txt", "1 file changed")
	says(t, s.run("git", args{"action": "status"}), "A  b.txt")
	s.run("bash", args{"command": "git commit -qm third; git switch -q -c side HEAD~1; echo other > b.txt; git add b.txt; git commit -qm " +
		"side; git rebase main"})
	says(t, s.run("git", args{"action": "status"}), "rebase in progress", "b.txt")
}
