package sensitive_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestSweepStaysInside checks that a removal does not follow links that a process puts in place of folders meanwhile.
func TestSweepStaysInside(t *testing.T) {
	t.Parallel()
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, home, map[string]string{"victim/.bashrc": "mine"})
	text := `for i in $(seq 0 199); do mkdir -p d/a$i; echo x >d/a$i/.bashrc; done
python3 - <<'X' &
import os, time
end = time.time() + 0.5
while time.time() < end:
    for i in range(200):
        try:
            os.rename(f"d/a{i}", f"d/b{i}"); os.symlink(os.environ["OUT"] + "/victim", f"d/a{i}")
            os.remove(f"d/a{i}"); os.rename(f"d/b{i}", f"d/a{i}")
        except OSError: pass
for i in range(0, 200, 2):
    os.rename(f"d/a{i}", f"d/b{i}"); os.symlink(os.environ["OUT"] + "/victim", f"d/a{i}")
X
wait`
	text = strings.Replace(text, "\nwait", "\nexec >/dev/null 2>&1; sleep 0.1", 1)
	_, _, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text, "OUT="+home)
	if boxes.Gone(filepath.Join(home, "victim/.bashrc")) {
		t.Errorf("a file outside was taken away: %q", refused)
	}
	if !boxes.Gone(filepath.Join(env.Root, "d/a1/.bashrc")) {
		t.Error("nothing was taken away")
	}
	if len(refused) > 10 {
		t.Errorf("%d lines", len(refused))
	}
}

// TestSweepLinks checks the targets of links with sensitive names.
func TestSweepLinks(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{"cfg/envrc": "old", "agents/x": "old"})
	if err := errors.Join(os.Symlink("cfg/envrc", filepath.Join(env.Root, ".envrc")), os.Symlink("agents", filepath.Join(env.Root, ".claude")),
		os.Symlink("cfg/none", filepath.Join(env.Root, ".npmrc"))); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"echo x >>.envrc": false, "echo x >>cfg/envrc": false, "echo x >.claude/y": false,
		"mv agents b": false, "echo x >cfg/other": true, "mv cfg cfg2": false,
	} {
		if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); want != (code == 0) || len(refused) > 0 {
			t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
		}
	}
	for text, path := range map[string]string{
		"rm .envrc; echo x >.envrc": ".envrc",
		"rm .claude; mkdir .claude": ".claude", "echo x >cfg/none": "cfg/none",
	} {
		if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); code != 0 ||
			len(refused) == 0 || !boxes.Gone(filepath.Join(env.Root, path)) {
			t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
		}
	}
	if _, _, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "ln -s cfg .husky"); len(refused) == 0 ||
		boxes.Gone(filepath.Join(env.Root, "cfg")) {
		t.Errorf("what a new link leads to has gone: %q", refused)
	}
}

// TestSweepMany checks that places are taken away from among very many folders,
// and that later boxes say why they can't be built.
func TestSweepMany(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 50,000 folders")
	}
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	_, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace},
		"mkdir -p x/n/.vscode && python3 -c 'import os; [os.makedirs(f\"m/{i//1000}/{i}\") for i in range(50010)]'")
	if len(refused) == 0 || !boxes.Gone(filepath.Join(env.Root, "x/n/.vscode")) {
		t.Errorf("refused %q\n%s", refused, out)
	}
	for range 2 {
		if _, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Box: tool.Box{Level: tool.BoxRead}}); !errors.Is(err,
			tool.ErrNoBox) {
			t.Error(err)
		}
	}
}

// TestRules checks what rules close to reading and to changes.
func TestRules(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{
		"deep/hidden.txt": "secret",
		"deep/closed.txt": "text", "deep/open.txt": "text", "dir/hidden/f": "secret",
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := places.Map{Hidden: []string{"/**/hidden.txt", env.Root + "/dir/hidden/**"}, Closed: []string{env.Root + "/deep/closed.txt"}}
	ruled, err := sandbox.Local(env.Root, nil, sandbox.Options{Self: self, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"cat deep/hidden.txt": false, "cat dir/hidden/f": false, "echo x >>deep/closed.txt": false,
		"cat deep/closed.txt && echo x >>deep/open.txt": true,
	} {
		if code, out, _ := boxes.Run(t, ruled, tool.Box{Level: tool.BoxWorkspace}, text); want != (code == 0) {
			t.Errorf("%s: exit code %d\n%s", text, code, out)
		}
		if code, _, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); code != 0 {
			t.Errorf("%s: refused without rules", text)
		}
	}
	for _, name := range []string{"deep/hidden.txt", "dir/hidden/f"} {
		if code, _, _ := boxes.Run(t, ruled, tool.Box{Level: tool.BoxRead}, "cat "+name); code == 0 {
			t.Errorf("read box: read %s", name)
		}
	}
}

// TestInit checks that a repository stays that a box makes which may, and only
// as long as it names no programs.
func TestInit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"git init -q && git config user.name x && git config user.email x@y && git add plain && git commit -qm one && git log --oneline": true,
		"git init -q sub/new": true,
		"git init -q --bare sub/o.git && git clone -q sub/o.git c && cd c && git -c user.name=x -c user.email=x@y commit -qm one --allow-empty " +
			"&& git push -q origin HEAD:x && cd .. && git init -q": true,
		"git init -q --bare o.git && echo x >o.git/hooks/update":                              false,
		"git init -q --bare o.git && git -C o.git config core.fsmonitor ./x":                  false,
		"git init -q --bare o.git && mkdir o.git/.vscode && echo x >o.git/.vscode/tasks.json": false,
		"git init -q --bare o.git && cp -r o.git/. . && git init -q":                          false,
		"git init -q && git config core.fsmonitor ./x":                                        false,
		"git init -q && echo x >.git/hooks/post-commit":                                       false,
		"git init -q && mv .git g && ln -s g .git":                                            false, "git init -q && echo x >.git/commondir": false,
		"git init -q && mv .git g && echo gitdir: g >.git": false, "git init -q && git config core.hooksPath .": false,
	} {
		for _, init := range []bool{true, false} {
			env, home, _ := boxes.New(t)
			boxes.Need(t, env, tool.BoxWorkspace)
			if err := os.RemoveAll(filepath.Join(env.Root, ".git")); err != nil {
				t.Fatal(err)
			}
			code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace, Git: true, Init: init}, text, "HOME="+home)
			if code != 0 || (want && init) != (len(refused) == 0) {
				t.Errorf("%s: may %v: exit code %d, refused %q\n%s", text, init, code, refused, out)
			}
			if _, err := os.Lstat(filepath.Join(env.Root, ".git/config")); init && want && !strings.Contains(text, "new") && err != nil {
				t.Error(err)
			}
		}
	}
	env, _, _ := boxes.New(t)
	if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace, Git: true, Init: true},
		"echo x >.git/hooks/old || mv .git g"); code == 0 || len(refused) > 0 {
		t.Errorf("the repository that was there: exit code %d, refused %q\n%s", code, refused, out)
	}
}

// TestInitBelow checks that a box without the repository of the workspace makes
// repositories below it and none in its place, and that pushing works there.
func TestInitBelow(t *testing.T) {
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if err := os.RemoveAll(filepath.Join(env.Root, ".git")); err != nil {
		t.Fatal(err)
	}
	box := tool.Box{Level: tool.BoxWorkspace, Init: true}
	const me = "git -c user.name=x -c user.email=x@y "
	code, out, refused := boxes.Run(t, env, box, "git init -q --bare o.git && git clone -q o.git c && cd c && "+me+
		"commit -qm one --allow-empty && git push -q origin HEAD:x", "HOME="+home)
	if code != 0 || len(refused) > 0 {
		t.Fatalf("exit code %d, refused %q\n%s", code, refused, out)
	}
	if code, out, refused := boxes.Run(t, env, box, "git clone -q -b x o.git d && cd d && "+me+
		"commit -qm two --allow-empty && git push -q origin HEAD:x && ! echo x >../o.git/hooks/update", "HOME="+home); code != 0 ||
		len(refused) > 0 {
		t.Errorf("to one that was there: exit code %d, refused %q\n%s", code, refused, out)
	}
	code, out, refused = boxes.Run(t, env, box,
		"git init -q; for i in $(seq 9000); do test -e .git || exit 0; sleep 0.02; done; exit 1", "HOME="+home)
	if code != 0 || len(refused) == 0 {
		t.Errorf("in the place of that of the workspace: exit code %d, refused %q\n%s", code, refused, out)
	}
}

// TestInitBesideAJob checks that a repository stays also while a job runs that
// was there before it, and that the job does not make it name programs.
func TestInitBesideAJob(t *testing.T) {
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if err := os.RemoveAll(filepath.Join(env.Root, ".git")); err != nil {
		t.Fatal(err)
	}
	boxes.Background(t, env, boxes.Writable,
		"until test -e /tmp/go; do sleep 0.02; done; echo x >.git/hooks/post-commit; printf '[core]\nfsmonitor=x\n"+
			"' >>.git/config; sed -i 's/plain/..\\/\\/x/' .git/index; touch /tmp/gone; exec sleep 60")
	init := tool.Box{Level: tool.BoxWorkspace, Git: true, Init: true}
	code, out, refused := boxes.Run(t, env, init,
		"git init -q && git config user.name x && git config user.email x@y && git add plain && git commit -qm one && sleep 0.2 && git "+
			"log", "HOME="+home)
	if code != 0 || len(refused) > 0 {
		t.Fatalf("exit code %d, refused %q\n%s", code, refused, out)
	}
	boxes.Succeeds(t, env, boxes.Writable, "touch /tmp/go; until test -e /tmp/gone; do sleep 0.02; done")
	testkit.WaitFor(t, "the programs that the job names in the new repository to be taken away", func() bool {
		return boxes.Gone(filepath.Join(env.Root, ".git/hooks/post-commit")) && boxes.Gone(filepath.Join(env.Root, ".git/config")) &&
			boxes.Gone(filepath.Join(env.Root, ".git/index"))
	})
	boxes.Succeeds(t, env, tool.Box{Level: tool.BoxRead}, "git log --oneline | grep one", "HOME="+home)
}
