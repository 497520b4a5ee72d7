package tools_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// spy keeps the commands that are started, and starts them.
type spy struct {
	tool.Procs
	boxes []tool.Box
	vars  [][]string
}

func (s *spy) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	s.boxes, s.vars = append(s.boxes, c.Box), append(s.vars, c.Vars)
	c.Box = tool.Box{}
	return s.Procs.Start(ctx, c)
}

// TestBox checks that a command gets the walls that its effects were judged by.
func TestBox(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs = procs
	s.env.Walls = tool.Walls{Read: true, Workspace: true, Hosts: true}
	gitRepository(t, s.env.Root)
	none, read, workspace := tool.BoxNone, tool.BoxRead, tool.BoxWorkspace
	for _, tt := range []struct {
		mode tool.Mode
		args args
		want tool.Box
	}{
		{"ask", args{"command": "ls"}, tool.Box{Level: read}},
		{"auto", args{"command": "ls | head"}, tool.Box{Level: read}},
		{"ask", args{"command": "ls /srv"}, tool.Box{Level: read, Read: []string{"/srv"}}},
		{"ask", args{"command": "for f in $(echo /x); do cat $f; done"}, tool.Box{Level: read}},
		{"ask", args{"command": "git status"}, tool.Box{Level: read}},
		{"ask", args{"command": "mkdir -p d"}, tool.Box{Level: workspace, Write: []string{s.path("d")}}},
		{"auto", args{"command": "go version && true"}, tool.Box{Level: workspace}},
		{"ask", args{"command": "ls", "network": []any{"example.com"}}, tool.Box{Level: workspace, Hosts: []string{"example.com"}}},
		{"ask", args{"command": "ls", "outside": true}, tool.Box{Level: none}},
		{"ask", args{"command": "git init sub"}, tool.Box{Level: workspace, Git: true, Init: true}},
		{
			"auto",
			args{"command": "mkdir -p new && git init -q -b main new && git config user.email a@b && git add -A"},
			tool.Box{Level: workspace, Write: []string{s.path("new")}, Git: true, Init: true},
		},
		{"ask", args{"command": "git init --template=x sub"}, tool.Box{Level: none}},
		{"ask", args{"command": "git init sub && ./x"}, tool.Box{Level: none}},
		{"auto", args{"command": "(D=$(mktemp -d); cd $D && git init -q .)"}, tool.Box{Level: workspace, Git: true, Init: true}},
		{"ask", args{"command": "D=$(mktemp -d -p .); git init -q ."}, tool.Box{Level: none}},
		{"ask", args{"command": "GIT_TEMPLATE_DIR=x git init sub"}, tool.Box{Level: none}},
		{"ask", args{"command": "git clone x"}, tool.Box{Level: workspace, Git: true, Init: true}},
		{"ask", args{"command": "git clone x y && cd y && git push origin HEAD:z"}, tool.Box{Level: workspace, Init: true}},
		{"ask", args{"command": "git clone https://example.com/x"}, tool.Box{Level: none}},
		{"ask", args{"command": "git clone -u ./x y"}, tool.Box{Level: none}},
		{"yolo", args{"command": "ls"}, tool.Box{Level: none}},
		{"ask", args{"command": "git stash list; git tag v1"}, tool.Box{Level: workspace, Git: true}},
		{"ask", args{"command": "git tag v2; true > x"}, tool.Box{Level: workspace, Write: []string{s.path("x")}, Git: true}},
		{"ask", args{"command": "true", "interactive": true}, tool.Box{Level: workspace}},
		{"ask", args{"command": "git init sub && git config core.editor x"}, tool.Box{Level: none}},
	} {
		s.mode = tt.mode
		s.run("bash", tt.args)
		if diff := cmp.Diff(tt.want, procs.boxes[len(procs.boxes)-1]); diff != "" {
			t.Errorf("%s %v: %s", tt.mode, tt.args, diff)
		}
	}
	s.mode, s.env.Walls = "ask", tool.Walls{}
	s.run("bash", args{"command": "ls"})
	if got := procs.boxes[len(procs.boxes)-1]; got.Level != none {
		t.Errorf("without walls: %+v", got)
	}
}

// TestThrowawayBox checks which box a command gets in a reading mode if the session may have throwaway copies of the
// workspace, and the effects that are reported.
func TestThrowawayBox(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs = procs
	all := tool.Walls{Read: true, Workspace: true, Hosts: true, Throwaway: true}
	older := tool.Walls{Workspace: true, Hosts: true, Throwaway: true}
	gitRepository(t, s.env.Root)
	thrown := tool.Box{Level: tool.BoxWorkspace, Throwaway: true}
	for _, tt := range []struct {
		line  string
		walls tool.Walls
		mode  tool.Mode
		may   bool
		want  tool.Box
	}{
		{"go version && true", all, "plan", true, thrown},
		{"go version > out; echo x > d/y", all, "plan", true, thrown},
		{"cat /srv/x; ./x > /srv/none/x", all, "plan", true, tool.Box{Level: tool.BoxWorkspace, Throwaway: true, Read: []string{"/srv/x"}}},
		{"git tag v1", all, "plan", true, thrown},
		{"git init sub", all, "plan", true, thrown},
		{"ls", all, "plan", true, tool.Box{Level: tool.BoxRead}},
		{"git status", all, "plan", true, tool.Box{Level: tool.BoxRead}},
		{"ls", older, "plan", true, thrown},
		{"go version", all, "auto", true, tool.Box{Level: tool.BoxWorkspace}},
		{"go version", all, "plan", false, tool.Box{Level: tool.BoxWorkspace}},
		{"go version", tool.Walls{Read: true, Workspace: true}, "plan", true, tool.Box{Level: tool.BoxWorkspace}},
	} {
		s.mode, s.env.Walls, s.env.Throwaway = tt.mode, tt.walls, tt.may
		s.run("bash", args{"command": tt.line})
		if diff := cmp.Diff(tt.want, procs.boxes[len(procs.boxes)-1]); diff != "" {
			t.Errorf("%s %s: %s", tt.mode, tt.line, diff)
		}
		for _, e := range s.effects("bash", args{"command": tt.line}) {
			gone := tt.want.Throwaway && (e.Kind == tool.Execute || e.Kind == tool.Write && text.Inside(s.env.Root, e.Path))
			if e.Throwaway != gone {
				t.Errorf("%s %s: %+v", tt.mode, tt.line, e)
			}
		}
	}
}

// TestRepositoryIsForPlainGit checks which commands get the repository.
func TestRepositoryIsForPlainGit(t *testing.T) {
	t.Setenv("FILTER_BRANCH_SQUELCH_WARNING", "1") // filter-branch waits ten seconds after its warning
	s := newSession(t)
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs = procs
	s.env.Walls = tool.Walls{Read: true, Workspace: true, Hosts: true}
	gitRepository(t, s.env.Root)
	s.mode = "yes"
	for want, lines := range map[bool][]string{
		true: {
			"git tag v1", "git add -A", "echo z > z && git add z && git commit -m z", `git commit -m "$(cat z)"`,
			`git commit -qm "$(printf %s a)" && git status`, "git switch -c b2", "git checkout -b b3 && touch y", "git branch -C b2 b4",
			"git rebase b2", "git stash", "git stash pop", "git worktree list; git notes list; git gc", "git commit -m x 2>&1 | tail -5",
			"git clean -fd", "git cherry-pick b2", "git rm --cached x", "git merge --no-edit b2", "cd . && git reset -q",
			"git fetch origin", "git push -u origin b2", "git -c user.name=x -c user.email=x@y commit -m z",
			"git -c init.defaultBranch=m -c commit.gpgsign=false tag v2",
			"git filter-branch -f --index-filter 'git rm -q --cached --ignore-unmatch x' HEAD >/dev/null 2>&1; git status",
			"git filter-branch --msg-filter 'sed s/a/b/' -- --all",
			`for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm "c$i"; done`, "git add -A; git commit -m x > log.txt 2>&1; cat log.txt",
			`M=hello; git commit -m "$M"`, "git -c core.editor=true commit -m a",
			"GIT_AUTHOR_DATE='2020-01-01 10:00' GIT_COMMITTER_DATE=2020-01-01 git commit -m b", "GIT_EDITOR=true git commit --amend",
			"for N in a b; do git tag t$N; done", "git rebase b2 > out",
		},
		false: {
			"git tag v3; true | ./x", "git status > s", "mkdir -p d", "git -c core.editor=./x commit", "git -C . tag v4",
			"git --git-dir=.git tag v5", "git --exec-path=. tag v6", "git --work-tree=. tag v7", "./git tag v8", "git rebase --exec ./x b2",
			"git rebase --exe ./x b2", "git rebase -qx ./x b2", "git rebase -i b2", `git rebase "$x"`, "git add -i", "git add --interactive",
			"git fetch --upload-pack=./x origin", "git push --receive-pack ./x o", "git push ./bare", "git fetch ext::./x",
			`git push "$x"`, `git commit -m "$(./x)"`, "GIT_EDITOR=./x git commit", "git bisect run ./x", "git submodule foreach ./x",
			"git difftool", "git config unset a.b", "eval git tag v9", "git tag v10; git nothing", "sh -c 'git tag; ./x'",
			"git -c commit.gpgsign=true commit -m x", `git -c user.name="$x" commit -m x`, "git -c user.name=x -c core.editor=./x commit",
			"git filter-branch --index-filter ./x", "git filter-branch --index-filter 'git rm x; ./x' HEAD",
			"git filter-branch --setup ./x --index-filter 'git rm x'", `git filter-branch --index-filter "$x"`,
			"git filter-branch -d /tmp/x --tree-filter true", "git filter-branch --commit-filter true --tree-filter true",
			"git commit -m x > .git/config", `git commit -m x > "$x"`, "for i in x .git/config; do git commit -m x > $i; done",
			"for i in x; do git tag t$i; ./x; done", "PATH=.; git tag v12", "git -c core.editor=./true commit", "M=1 git tag v13",
			"git filter-branch", `git "$x"`, "git-tag v11",
		},
	} {
		for _, line := range lines {
			s.run("bash", args{"command": line})
			if got := procs.boxes[len(procs.boxes)-1]; got.Git != want || got.Level != tool.BoxWorkspace {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
}

// TestCopiesAreForAnyLine checks that where boxes have copies of repositories, a line has one if it names git, whatever
// else it runs, and that plain git keeps the environment of plain git.
func TestCopiesAreForAnyLine(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs = procs
	s.env.Walls = tool.Walls{Read: true, Workspace: true, Hosts: true, Throwaway: true}
	gitRepository(t, s.env.Root)
	s.mode = "yes"
	for line, want := range map[string][2]bool{
		"git tag a": {true, false}, "git tag b; true | ./x": {true, true}, "./x && git add -A && git commit -m x": {true, true},
		"sh -c 'git tag; ./x'": {true, true}, "git rebase -i b2": {true, true}, "git am x.patch": {true, true}, "git -C . tag v4": {true, true},
		"./x": {false, false}, "cat .gitignore; ./x": {false, false},
	} {
		s.run("bash", args{"command": line})
		if got := procs.boxes[len(procs.boxes)-1]; [2]bool{got.Git, got.Mixed} != want || got.Level != tool.BoxWorkspace {
			t.Errorf("%s: %+v", line, got)
		}
	}
	// From a package of the repository git looks at all of its work tree.
	top := s.env.Root
	s.env.Root = filepath.Join(top, "packages", "a")
	s.cwd = s.env.Root
	if err := os.MkdirAll(s.env.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"git status": true, "git commit -m x": true, "ls": false} {
		reads := slices.ContainsFunc(s.effects("bash", args{"command": line}), func(e tool.Effect) bool { return e.Kind == tool.Read && e.Path == top })
		if reads != want {
			t.Errorf("%s: reads the repository: %t", line, reads)
		}
	}
}

// TestRemotesNearby checks that a call whose repositories are all of this machine asks for no host.
func TestRemotesNearby(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.env.Walls = tool.Walls{Read: true, Workspace: true, Hosts: true}
	for line, asks := range map[string]bool{
		"git init -q --bare o.git && git clone -q o.git a && cd a && git push -q origin HEAD:x": false,
		"git clone ../o.git a && cd a && git fetch -q origin":                                   false, "git clone o.git": false,
		"git clone o.git a && cd a && git push origin x": false, "git push origin x": true, "git init && git push origin x": true,
		"git clone host:o.git a": true, "git clone o.git a && git push https://example.com/x": true,
		"git init --bare o.git; git clone o.git a; git -C a remote add b https://example.com/x; git -C a push b": true,
		"npm install --offline ./x": false, "npm install x": true, "pip install --no-index x": false,
	} {
		network := slices.ContainsFunc(s.effects("bash", args{"command": line}), func(e tool.Effect) bool { return e.Kind == tool.Network })
		if network != asks {
			t.Errorf("%s: asks for a host: %t", line, network)
		}
	}
}

// TestReadersDoNotInherit checks that variables exported by an earlier command do not mislead a reading command.
func TestReadersDoNotInherit(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.env.Walls = tool.Walls{Read: true, Workspace: true}
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs = procs
	s.run("bash", args{"command": "export MINE=1 GIT_DIR=/x BASH_ENV=/x LESSOPEN=x GREP_OPTIONS=-r LD_PRELOAD= PATH=./bin:" +
		s.path("bin") + ":$PATH"})
	s.run("bash", args{"command": "ls"})
	env := procs.vars[len(procs.vars)-1]
	joined := "\n" + strings.Join(env, "\n") + "\n"
	for _, name := range []string{"GIT_DIR", "BASH_ENV", "LESSOPEN", "GREP_OPTIONS", "LD_PRELOAD"} {
		if strings.Contains(joined, "\n"+name+"=") {
			t.Errorf("a reader inherits %s", name)
		}
	}
	if !strings.Contains(joined, "\nMINE=1\n") || strings.Contains(joined, s.path("bin")) || strings.Contains(joined, "./bin") {
		t.Errorf("a reader gets %s", joined)
	}
	if got := s.run("bash", args{"command": "echo $MINE"}); !strings.HasPrefix(got, "1\n") {
		t.Errorf("got %q", got)
	}
}

// TestHomeOfCommands checks that a changed HOME, or another variable that locates settings, does not invalidate a
// proof.
func TestHomeOfCommands(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.env.Walls = tool.Walls{Read: true, Workspace: true}
	procs := &spy{Procs: s.env.Procs}
	s.env.Procs, s.mode = procs, "auto"
	gitRepository(t, s.env.Root)
	s.run("bash", args{"command": "export HOME=$PWD/made XDG_CONFIG_HOME=$PWD GIT_AUTHOR_NAME=me DOCKER_CONFIG=$PWD npm_config_prefix=$PWD " +
		"MINE=1 PATH=/tmp/x:$PATH; mkdir made; echo found > made/f"})
	inherited := func(line string) string {
		s.run("bash", args{"command": line})
		return "\n" + strings.Join(procs.vars[len(procs.vars)-1], "\n") + "\n"
	}
	for _, line := range []string{"ls", "git status", "git tag v1"} {
		got := inherited(line)
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "DOCKER_CONFIG", "npm_config_prefix"} {
			if strings.Contains(got, "\n"+name+"=") {
				t.Errorf("%s inherits %s", line, name)
			}
		}
		if !strings.Contains(got, "\nMINE=1\n") || !strings.Contains(got, "\nGIT_AUTHOR_NAME=me\n") || strings.Contains(got, "/tmp/x") {
			t.Errorf("%s gets %s", line, got)
		}
	}
	if got := inherited("./none || true"); !strings.Contains(got, "\nHOME="+s.path("made")+"\n") {
		t.Errorf("an ordinary command gets %s", got)
	}
	says(t, s.run("bash", args{"command": "cat ~/f"}), "found")
	for line, want := range map[string]string{
		"cat ~/f":       s.path("made/f"),
		`cat "$HOME/f"`: s.path("made/f"), "cd; cat f": s.path("made/f"), "echo x > ~/g": s.path("made/g"),
	} {
		effects := s.effects("bash", args{"command": line})
		reaches := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Path == want })
		proven := !slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Execute && e.Class == tool.Unproven })
		if !reaches || proven {
			t.Errorf("%s: %+v", line, effects)
		}
	}
	if !tool.ReadOnly(s.effects("bash", args{"command": "ls -l"})) {
		t.Error("what has nothing to do with HOME is not proven")
	}
}

// TestGitThatNamesPrograms checks that git which only reads is not proven to where the repository names programs.
func TestGitThatNamesPrograms(t *testing.T) {
	t.Parallel()
	inert := func(s *session, line string) bool {
		return tool.ReadOnly(s.effects("bash", args{"command": line}))
	}
	for name, tt := range map[string]struct {
		make  func(t *testing.T, root string)
		inert bool
	}{
		"fresh":           {gitRepository, true},
		"no repository":   {func(*testing.T, string) {}, true},
		"a remote":        {func(t *testing.T, root string) { git(t, root, "remote", "add", "o", "https://example.com/x") }, true},
		"a monitor":       {func(t *testing.T, root string) { git(t, root, "config", "core.fsmonitor", "./evil") }, false},
		"an include":      {func(t *testing.T, root string) { git(t, root, "config", "include.path", "../evil") }, false},
		"a filter":        {func(t *testing.T, root string) { git(t, root, "config", "filter.x.clean", "./evil") }, false},
		"worktree config": {func(t *testing.T, root string) { git(t, root, "config", "extensions.worktreeConfig", "true") }, false},
		"a work tree": {func(t *testing.T, root string) {
			main := t.TempDir()
			git(t, main, "commit", "-q", "--allow-empty", "-m", "x")
			git(t, main, "worktree", "add", "-q", filepath.Join(root, "tree"))
			move(t, filepath.Join(root, "tree", ".git"), filepath.Join(root, ".git"))
		}, true},
		"a work tree of a repository with a monitor": {func(t *testing.T, root string) {
			main := t.TempDir()
			git(t, main, "commit", "-q", "--allow-empty", "-m", "x")
			git(t, main, "worktree", "add", "-q", filepath.Join(root, "tree"))
			git(t, main, "config", "core.fsmonitor", "./evil")
			move(t, filepath.Join(root, "tree", ".git"), filepath.Join(root, ".git"))
		}, false},
		"submodules that are looked into": {func(t *testing.T, root string) {
			gitRepository(t, root)
			write(t, filepath.Join(root, ".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = y\n\tignore = none\n")
		}, false},
		"a link": {func(t *testing.T, root string) {
			write(t, filepath.Join(root, ".git"), "gitdir: ../elsewhere\n")
		}, true}, // nothing is there, so git fails
		"no git file": {func(t *testing.T, root string) { write(t, filepath.Join(root, ".git"), "hello\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			tt.make(t, s.env.Root)
			if got := inert(s, "git status && git diff"); got != tt.inert {
				t.Errorf("proven to read: %v; effects %+v", got, s.effects("bash", args{"command": "git status"}))
			}
			if !inert(s, "ls") {
				t.Error("other readers are not proven")
			}
			if s.env.Walls = (tool.Walls{Read: true, Workspace: true}); !inert(s, "git status && git -C . log && cd . && git diff") {
				t.Error("walls that hold whatever git runs are not enough")
			}
		})
	}
}

func gitRepository(t *testing.T, root string) { git(t, root, "status") }

// git runs git in a repository, and makes the repository if there is none.
func git(t *testing.T, root string, words ...string) {
	t.Helper()
	for _, w := range [][]string{{"init", "-q"}, words} {
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, w...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", w, err, out)
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
