package gitcopies_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

// plainBox is the box of a call that is git alone, mixedBox that of one where git is among others.
var (
	plainBox = tool.Box{Level: tool.BoxWorkspace, Git: true}
	mixedBox = tool.Box{Level: tool.BoxWorkspace, Git: true, Mixed: true}
)

// IsRepository makes the workspace one with some commits, and a person's git outside of boxes.
func IsRepository(t *testing.T) (env tool.Env, outside func(text string) string) {
	t.Helper()
	env, _, _ = boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if !env.Walls.Throwaway {
		t.Skipf("NO OVERLAYS HERE: %s", env.Walls.NoThrowaway)
	}
	outside = func(text string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", text)
		cmd.Dir = env.Root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+filepath.Dir(env.Root), "GIT_EDITOR=true")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", text, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	outside("rm -rf .git sub keys a .env .mcp.json; git init -qb main . && git config user.name x && git config user.email x@y && " +
		"git add . && git commit -qm one && git branch side && echo 2 >plain && git commit -qam two && git checkout -q side && " +
		"echo s >side && echo 3 >plain && git add . && git commit -qm three && git checkout -q main")
	return env, outside
}

// TestGitCopies has git work in boxes, call after call, as people do. Its results are in the repository after each
// call, without any report.
func TestGitCopies(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]string{
		"commit":        {"echo 4 >new && git add new", "git commit -qm four", "test $(git rev-list --count HEAD) = 3"},
		"amend":         {"git commit -q --amend -m other", "test \"$(git log -1 --format=%s)\" = other"},
		"stash":         {"echo 9 >plain && git stash -q", "test $(cat plain) = 2", "git stash pop -q", "test $(cat plain) = 9"},
		"tag, branch":   {"git tag v1 && git tag -am x v2 && git branch a/b && git branch -m a/b a", "git branch -qD a && git tag -d v1", "test \"$(git tag)\" = v2"},
		"packed":        {"git pack-refs --all", "git branch -qD side", "! git rev-parse -q --verify side", "git branch deep/er && git pack-refs --all --prune", "git rev-parse deep/er"},
		"gc":            {"git gc -q --prune=now", "test -z \"$(find .git/objects -type f -path '*/objects/??/*')\"", "git log -1 && git commit -q --allow-empty -m x", "git repack -adq", "test $(ls .git/objects/pack/*.pack | wc -l) = 1"},
		"merge":         {"! git merge -q side", "echo both >plain && git add plain && git status", "git commit -qm merged", "test $(git rev-list --count HEAD) = 4"},
		"merge, undone": {"! git merge -q side", "git merge --abort", "test -z \"$(git status --porcelain)\""},
		"rebase":        {"! git rebase -q side", "echo both >plain && git add plain", "GIT_EDITOR=true git rebase --continue", "test ! -e .git/rebase-merge && test $(git rev-list --count HEAD) = 3"},
		"rebase -i": {
			"GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -i HEAD~1", "git commit -q --amend -m edited", "GIT_EDITOR=true git rebase --continue",
			"test \"$(git log -1 --format=%s)\" = edited",
		},
		"rebase, undone": {"! git rebase -q side", "git rebase --abort", "test $(git symbolic-ref --short HEAD) = main"},
		"rebase -x":      {"git rebase -q -x 'test -e plain' HEAD~1", "test ! -e .git/rebase-merge"},
		"am":             {"git format-patch -q -1 -o p && git reset -q --hard HEAD~1", "git am -q p/*.patch", "test $(cat plain) = 2"},
		"am, conflict":   {"git format-patch -q -1 -o p side", "! git am -q -3 p/*.patch", "echo x >plain && git add plain && git am --continue", "test $(git rev-list --count HEAD) = 3"},
		"cherry-pick":    {"! git cherry-pick side", "echo x >plain && git add plain", "git cherry-pick --continue --no-edit || git commit -qm x", "test $(git rev-list --count HEAD) = 3"},
		"revert two":     {"! git revert --no-edit HEAD~1 HEAD", "git revert --abort", "test $(git rev-list --count HEAD) = 2"},
		"bisect":         {"git bisect start HEAD HEAD~1", "git bisect reset", "test $(git symbolic-ref --short HEAD) = main"},
		"worktree": {
			"git worktree add -q wt -b tree", "cd wt && echo w >w && git add w && git commit -qm w", "test \"$(git log -1 --format=%s tree)\" = w",
			"git worktree remove wt", "test ! -e wt && test $(git worktree list | wc -l) = 1",
		},
		"notes, reflog": {"git notes add -m x", "git notes show", "git reflog expire --expire=now --all", "test -z \"$(git reflog)\""},
		"switch":        {"git switch -q side", "test $(cat plain) = 3", "git switch -q -", "git checkout -q --detach", "git checkout -q main"},
		"sparse index":  {"git update-index --split-index", "echo x >y && git add y && git commit -qm y", "test -z \"$(git status --porcelain)\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, outside := IsRepository(t)
			for _, step := range steps {
				if code, out, refused := boxes.Run(t, env, mixedBox, step, "GIT_EDITOR=true"); code != 0 || len(refused) > 0 {
					t.Fatalf("%s: exit code %d, refused %q\n%s", step, code, refused, out)
				}
			}
			outside(steps[len(steps)-1])
			if left := outside("git fsck --no-dangling --no-progress; find .git -name '*.lock' -o -name 'tmp_*' -o -name '*.inspan-*'"); strings.Contains(left, ".git/") {
				t.Errorf("it leaves %s", left)
			}
		})
	}
}

// gitTree lists the files of the repository with their content.
func gitTree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, ".git"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if out[path] = "a link"; d.Type().IsRegular() {
			out[path] = boxes.Text(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGitCopiesHold has a box leave files that would make an outside git run a program, lead it elsewhere, or destroy
// the repository. Each time the repository stays as it was, and there is a report.
func TestGitCopiesHold(t *testing.T) {
	t.Parallel()
	env, outside := IsRepository(t)
	id := outside("git rev-parse side")
	outside("mkdir other && git init -q --bare other/x && mv other /tmp/other-$$ && mv /tmp/other-$$ ../other; git gc -q; git commit -q --allow-empty -m loose; git worktree add -q ../tree")
	state := "mkdir -p .git/rebase-merge && echo 'pick " + id + " 2' >.git/rebase-merge/git-rebase-todo && echo refs/heads/main >.git/rebase-merge/head-name && "
	sequence := "mkdir -p .git/sequencer && echo 'pick " + id + " 2' >.git/sequencer/todo && echo " + id + " >.git/sequencer/head && "
	for name, text := range map[string]string{
		"settings":              "git config core.fsmonitor ./evil",
		"settings by a rename":  "cp .git/config c && echo '[core] pager = evil' >>c && mv c .git/config",
		"settings that include": "printf '[include]\\n path = ../c\\n' >>.git/config",
		"a remote":              "git remote add o https://x",
		"a branch of elsewhere": "git config branch.main.remote https://x",
		"an alias in a branch":  "printf '[branch \"x\"]\\n merge = x\\\\\\n[alias]\\n' >>.git/config",
		"of a worktree":         "echo x >.git/config.worktree",
		"common folder":         "echo ../../other/x >.git/commondir",
		"attributes":            "mkdir -p .git/info && echo '* filter=x' >.git/info/attributes",
		"grafts":                "echo x >.git/info/grafts",
		"alternates":            "mkdir -p .git/objects/info && echo ../../../other/x/objects >.git/objects/info/alternates",
		"remotes of old":        "mkdir -p .git/remotes && echo 'URL: ext::evil' >.git/remotes/o",
		"strategy":              state + "echo x/../evil >.git/rebase-merge/strategy",
		"strategy's options":    state + "echo ' --x=evil' >.git/rebase-merge/strategy_opts",
		"key":                   state + "echo -Sx >.git/rebase-merge/gpg_sign_opt",
		"exec":                  state + "echo 'exec ./evil' >>.git/rebase-merge/git-rebase-todo",
		"exec after a CR":       state + "printf 'x\\t./evil\\n' >>.git/rebase-merge/git-rebase-todo",
		"author":                state + "echo \"GIT_AUTHOR_NAME='x'; ./evil\" >.git/rebase-merge/author-script",
		"what nobody knows":     state + "echo x >.git/rebase-merge/later",
		"strategy of a pick":    sequence + "printf '[options]\\n\\tstrategy = evil\\n' >.git/sequencer/opts",
		"key of a pick":         sequence + "printf '[options]\\n\\tgpg-sign = x\\n' >.git/sequencer/opts",
		"include of a pick":     sequence + "printf '[include]\\n\\tpath = x\\n' >.git/sequencer/opts",
		"options of an am":      "mkdir -p .git/rebase-apply && echo \" '--x=evil'\" >.git/rebase-apply/apply-opt",
		"words of a bisect":     "echo '$(./evil)' >.git/BISECT_NAMES",
		"start of a bisect":     "echo '--exec=x' >.git/BISECT_START",
		"a worktree elsewhere": "mkdir -p .git/worktrees/e && echo ../.. >.git/worktrees/e/commondir && echo /etc/.git >.git/worktrees/e/gitdir && " +
			"echo ref: refs/heads/main >.git/worktrees/e/HEAD",
		"a worktree of another": "mkdir -p .git/worktrees/e && echo /x >.git/worktrees/e/commondir && echo $PWD/e/.git >.git/worktrees/e/gitdir",
		"another's worktree":    "echo /x >.git/worktrees/tree/commondir; echo /x/.git >.git/worktrees/tree/gitdir",
		"a module":              "mkdir -p .git/modules/m && git init -q --bare .git/modules/m/x && echo x >.git/modules/m/config",
		"head as a link":        "ln -sf ../plain .git/HEAD",
		"a reference as a link": "rm -f .git/refs/heads/x; ln -s ../../../plain .git/refs/heads/x",
		"a reference of text":   "echo 'gitdir: x' >.git/refs/heads/x",
		"a pipe":                "mkfifo .git/MERGE_MSG",
		"an index of text":      "echo x >.git/index",
		"a new file of git":     "echo x >.git/programs",
	} {
		before := gitTree(t, env.Root)
		code, out, refused := boxes.Run(t, env, mixedBox, text)
		if after := gitTree(t, env.Root); !maps.Equal(before, after) || len(refused) == 0 || code != 0 {
			t.Errorf("%s: exit code %d, refused %q\n%s", name, code, refused, out)
			for path, data := range after {
				if before[path] != data {
					t.Errorf("%s holds %q", path, data)
				}
			}
		}
	}
	before := gitTree(t, env.Root)
	boxes.Run(t, env, mixedBox, "ln .git/config c && echo x >>c; ln .git/HEAD c && echo x >>c; chmod 777 .git/config; "+
		"rm -rf .git/objects .git/HEAD .git/config .git/worktrees .git/packed-refs; rm -rf .git; rm -f .git/hooks/*")
	after := gitTree(t, env.Root)
	for path := range before {
		if _, ok := after[path]; !ok && strings.Contains(path, "/objects/") && !strings.Contains(path, "/info/") {
			t.Errorf("a box removed %s", path)
		}
	}
	outside("git reset -q --hard && git fsck --full --no-dangling --no-progress && git log -1 side && git worktree list | grep tree")
}

// TestGitCopiesAreTakenOverAtTheEnd checks that nothing outside sees a box's changes of a repository before the command
// has ended, that a process that runs on delivers the rest when it ends, and that changes of others in the meantime
// stay.
func TestGitCopiesAreTakenOverAtTheEnd(t *testing.T) {
	t.Parallel()
	env, outside := IsRepository(t)
	const meets = "touch ready; until test -e go; do sleep 0.01; done; rm -f go"
	run := func(text string, meanwhile func()) (refused []string) {
		t.Helper()
		p, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"bash", "-c", text}, Dir: env.Root, Box: mixedBox, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
		})
		if err != nil {
			t.Fatal(err)
		}
		testkit.WaitFor(t, "the command", func() bool { return os.Remove(filepath.Join(env.Root, "ready")) == nil })
		meanwhile()
		boxes.Put(t, env.Root, map[string]string{"go": ""})
		if code, err := p.Wait(); err != nil || code != 0 {
			t.Errorf("%s: %d, %v", text, code, err)
		}
		return p.(interface{ Refused() []string }).Refused()
	}
	before := gitTree(t, env.Root)
	if refused := run("echo ../x >.git/commondir; "+meets+"; rm .git/commondir; git commit -q --allow-empty -m end", func() {
		if !maps.Equal(before, gitTree(t, env.Root)) {
			t.Error("the repository is another while the command runs")
		}
	}); len(refused) > 0 || outside("git log -1 --format=%s") != "end" {
		t.Errorf("refused %q", refused)
	}
	// A person's prompt that only looks changes nothing; a person who commits wins.
	if refused := run("echo 5 >plain; git commit -qam box; "+meets, func() { outside("touch plain; git status") }); len(refused) > 0 ||
		outside("git log -1 --format=%s") != "box" {
		t.Errorf("refused %q", refused)
	}
	if refused := run("git commit -q --allow-empty -m lost; "+meets, func() { outside("git commit -q --allow-empty -m person") }); len(refused) != 1 ||
		outside("git log -1 --format=%s") != "person" {
		t.Errorf("refused %q", refused)
	}
	// A process that a command leaves running delivers its later work when it ends.
	p, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{"bash", "-c", "git commit -q --allow-empty -m first; (" + meets + "; git tag later) >/dev/null 2>&1 & disown"},
		Dir:  env.Root, Box: mixedBox, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil || outside("git log -1 --format=%s") != "first" {
		t.Error("what has ended is not taken over while something is left running", err)
	}
	boxes.Put(t, env.Root, map[string]string{"go": ""})
	testkit.WaitFor(t, "the tag", func() bool {
		return exec.Command("git", "-C", env.Root, "rev-parse", "-q", "--verify", "later").Run() == nil
	})
}

// TestNestsAreSettled has a command make repositories below the workspace whose settings name programs, in every
// possible way, and run on: these settings are removed while it still runs.
func TestNestsAreSettled(t *testing.T) {
	t.Parallel()
	env, _ := IsRepository(t)
	const evil = "printf '[core]\\n\\tfsmonitor = ./wicked\\n' >>"
	for name, text := range map[string]string{
		"at once":            "git init -q n/a && " + evil + "n/a/.git/config",
		"by a rename":        "git init -q --bare x && mkdir -p n && " + evil + "x/config; mv x n/.git",
		"of its folder":      "git init -q x/y && " + evil + "x/y/.git/config; mv x n",
		"unpacked":           "git init -q /tmp/x && " + evil + "/tmp/x/.git/config && mkdir n && tar -cC /tmp x | tar -xC n; rm -r /tmp/x",
		"deep":               "mkdir -p n/1/2/3 && git init -q n/1/2/3 && " + evil + "n/1/2/3/.git/config",
		"bare":               "git init -q --bare n/b.git && " + evil + "n/b.git/config",
		"by a link":          "git init -q --bare n/b && echo gitdir: b >n/.git && " + evil + "n/b/config",
		"with a common one":  "git init -q --bare n/c && " + evil + "n/c/config; mkdir n/d && cp n/c/HEAD n/d/ && echo ../c >n/d/commondir",
		"hooks":              "git init -q n && echo wicked >n/.git/hooks/post-checkout",
		"attributes":         "git init -q n && mkdir -p n/.git/info && echo '* filter=wicked' >n/.git/info/attributes",
		"again and again":    "git init -q n; for i in 1 2 3; do " + evil + "n/.git/config; done",
		"settings in place":  "git init -q n; dd if=/dev/stdin of=n/.git/config conv=notrunc <<<'[core] fsmonitor = ./wicked ' 2>/dev/null",
		"in an old folder":   "mkdir -p old && git init -q old && " + evil + "old/.git/config",
		"as a link to a dir": "git init -q --bare n/e && " + evil + "n/e/config && ln -s e n/.git",
	} {
		p, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"bash", "-c", text + "; touch ready; until test -e go; do sleep 0.01; done; rm -rf go n x old"},
			Dir:  env.Root, Box: tool.Box{Level: tool.BoxWorkspace}, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
		})
		if err != nil {
			t.Fatal(err)
		}
		testkit.WaitFor(t, name, func() bool { return os.Remove(filepath.Join(env.Root, "ready")) == nil })
		testkit.WaitFor(t, name+": no program is named", func() bool {
			out, err := exec.Command("grep", "-rlE", "wicked", env.Root).Output()
			return err != nil && len(out) == 0
		})
		boxes.Put(t, env.Root, map[string]string{"go": ""})
		if _, err := p.Wait(); err != nil {
			t.Error(name, err)
		}
	}
	// What names none stays while the command runs, as tests of programs that use git need it.
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "git init -q n && cd n && git config user.name x && git config user.email x@y && "+
		"echo 1 >f && git add f && git commit -qm x && git clone -q . ../m && git -C ../m log -1"); code != 0 {
		t.Error(out)
	}
}

// TestNestsAreNotSeen looks from outside at repositories that a running command has made: none is there
// for a git outside, however the command made it, and the command finds its own.
func TestNestsAreNotSeen(t *testing.T) {
	t.Parallel()
	env, _ := IsRepository(t)
	for name, text := range map[string]string{
		"made":            "git init -q n && cd n",
		"made by its dir": "mkdir -p n && cd n && git --git-dir=.git --work-tree=. init -q",
		"moved":           "mkdir n && git init -q --bare x && rm -r x/hooks && git -C x config core.bare false && mv x n/.git && cd n",
		"moved by a call": `mkdir n; git init -q /tmp/x; perl -e 'rename("/tmp/x/.git", "n/.git") and die; rename("/tmp/x", "n/x")'; cp -r /tmp/x/.git n; rm -r /tmp/x; cd n`,
		"made again":      "git init -q n && rm -r n && git init -q n && mv n n2 && mv n2 n && cd n",
		"by a descriptor": `mkdir n; perl -e 'chdir "n"; mkdir ".git/" or die "$!"; mkdir(".git") and die'; git init -q n; cd n`,
	} {
		p, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"bash", "-c", text + " && git config core.fsmonitor false && git rev-parse --git-dir >../said; touch ../ready; until test -e ../go; do sleep 0.01; done; cd ..; rm -r go n"},
			Dir:  env.Root, Box: tool.Box{Level: tool.BoxWorkspace}, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
		})
		if err != nil {
			t.Fatal(err)
		}
		testkit.WaitFor(t, name, func() bool { return os.Remove(filepath.Join(env.Root, "ready")) == nil })
		if said, _ := os.ReadFile(filepath.Join(env.Root, "said")); string(said) != ".git\n" {
			t.Errorf("%s: the command finds %q", name, said)
		}
		if entries, err := os.ReadDir(filepath.Join(env.Root, "n/.git")); err != nil || len(entries) > 0 {
			t.Errorf("%s: outside there are %v, %v", name, entries, err)
		}
		boxes.Put(t, env.Root, map[string]string{"go": ""})
		if code, err := p.Wait(); err != nil || code != 0 || !boxes.Gone(filepath.Join(env.Root, "n")) {
			t.Errorf("%s: ended with %d, %v; it is gone: %v", name, code, err, boxes.Gone(filepath.Join(env.Root, "n")))
		}
	}
	_, _, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "git init -q n")
	if len(refused) != 1 || !strings.Contains(refused[0], "did not keep "+filepath.Join(env.Root, "n/.git")) || !boxes.Gone(filepath.Join(env.Root, "n/.git")) {
		t.Errorf("told %q", refused)
	}
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace},
		"for i in {1..200}; do mkdir -p many/$i/.git; done; ! mkdir -p many/201/.git && rm -r many && mkdir -p many/.git && rm -r many"); code != 0 {
		t.Errorf("200 at once, and no more: %s", out)
	}
	code, _, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace},
		"git init -q --bare b; for i in {1..500}; do echo '[core] fsmonitor = x' >>b/config; sleep 0.01; done; touch whole")
	if code == 0 || !boxes.Gone(filepath.Join(env.Root, "whole")) || !strings.Contains(strings.Join(refused, "\n"), "b/config was put back each time") {
		t.Errorf("settings could be put back again and again: %d, %d times", code, len(refused))
	}
}

// TestOurGitBesideAJob has a job swap the files that lead git to its settings, over and over, while inspan's and the
// person's git work on the same repository: no filter of the job ever runs.
func TestOurGitBesideAJob(t *testing.T) {
	t.Parallel()
	env, outside := IsRepository(t)
	mark := filepath.Join(filepath.Dir(env.Root), "ran")
	outside("mkdir cg && cp -r .git/objects .git/refs cg && cp .git/config cg/config && printf '[filter \"w\"]\\n\\tclean = touch " + mark +
		"\\n[core]\\n\\tfsmonitor = touch " + mark + "\\n' >>cg/config && echo '* filter=w' >.gitattributes && echo 7 >plain")
	p, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{"bash", "-c", "until test -e go; do echo ../cg >.git/commondir; cp cg/config .git/config; touch ready; rm -f .git/commondir; done"},
		Dir:  env.Root, Box: mixedBox, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, "the job", func() bool { return !boxes.Gone(filepath.Join(env.Root, "ready")) })
	store := &worktree.Store{Dir: filepath.Join(filepath.Dir(env.Root), "trees"), Git: sandbox.Git}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := store.Make(t.Context(), env.Root, name); err != nil {
			t.Error(err)
		}
		outside("git status; git add plain; git stash -q; git stash pop -q")
	}
	boxes.Put(t, env.Root, map[string]string{"go": ""})
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	outside("git status; git diff")
	if !boxes.Gone(mark) {
		t.Error("a program of the job ran outside of its box")
	}
}

// TestGitAround has sessions in a package of a repository, in a submodule and in a worktree work
// with git, and in places whose repository is not theirs.
func TestGitAround(t *testing.T) {
	t.Parallel()
	env, outside := IsRepository(t)
	outside("git init -qb main ../lib && git -C ../lib -c user.name=x -c user.email=x@y commit -qm l --allow-empty && " +
		"git -c protocol.file.allow=always submodule add -q ../lib deep/lib && git -C deep/lib config user.name x && git -C deep/lib config user.email x@y && " +
		"mkdir -p packages/a && echo 1 >packages/a/f && echo 2 >other && git add . && git commit -qm all && git worktree add -q ../tree && " +
		"mkdir foreign && echo gitdir: ../.git >foreign/.git")
	base := filepath.Dir(env.Root)
	work := "echo new >new && git add new && git commit -qm new && git status --porcelain . && git log -1 --format=%s"
	for dir, want := range map[string]bool{
		"ws/packages/a": true, "ws/deep/lib": true, "tree": true, "ws/foreign": false, "home": false,
	} {
		root := filepath.Join(base, dir)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		inner, err := sandbox.Local(root, nil, sandbox.Options{Self: self, Map: places.Map{Home: filepath.Join(base, "home")}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inner.Close() })
		box := plainBox
		if dir == "ws/packages/a" {
			box.Read = []string{env.Root}
		}
		before := gitTree(t, env.Root)
		code, out, refused := boxes.Run(t, inner, box, work)
		switch {
		case want && (code != 0 || len(refused) > 0 || strings.TrimSpace(out) != "new"):
			t.Errorf("%s: exit code %d, refused %q\n%s", dir, code, refused, out)
		case want:
			out, err := exec.Command("git", "-C", root, "log", "-1", "--format=%s").Output()
			if err != nil || string(out) != "new\n" {
				t.Errorf("%s: outside the last commit is %q, %v", dir, out, err)
			}
		case code == 0 || !maps.Equal(before, gitTree(t, env.Root)):
			t.Errorf("%s: exit code %d\n%s", dir, code, out)
		}
	}
	// From the top, too.
	if code, out, refused := boxes.Run(t, env, mixedBox, "cd deep/lib && git commit -q --allow-empty -m in && cd ../.. && git add deep/lib && git commit -qm sub"); code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	outside("git -C deep/lib log -1 --format=%s | grep in && git log -1 --format=%s | grep sub")
}
