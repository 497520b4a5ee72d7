package gitcopies_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestFoldersBeside checks that boxes have an additional folder like the workspace: writable in the workspace box
// except for files that name programs, readable in others, with secrets closed in each.
func TestFoldersBeside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	boxes.Put(t, dir, map[string]string{
		"ws/plain": "plain", "lib/plain": "lib", "lib/.env": "PASSWORD=bnk4-secret-value-9\n", "lib/.git/hooks/old": "", "lib/sub/.envrc": "",
		"lib/deep/in/.git/config": "", "lib/deep/in/.git/HEAD": "ref: refs/heads/main\n",
		"other/plain": "other", "home/x": "",
	})
	lib := filepath.Join(dir, "lib")
	for _, words := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", lib}, words...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(filepath.Join(dir, "ws"), nil, sandbox.Options{
		Self: self, State: filepath.Join(dir, "state"),
		Map: places.Map{Home: filepath.Join(dir, "home"), State: []string{filepath.Join(dir, "state")}, Also: []string{lib}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, env) })
	boxes.Need(t, env, tool.BoxWorkspace)
	at := "cd " + lib + " && "
	for _, tt := range []struct {
		box  tool.Box
		text string
		fine bool
	}{
		{boxes.Writable, at + "echo x >new && mkdir -p d/e && echo y >d/e/f && mv d moved && cat moved/e/f plain", true},
		{tool.Box{Level: tool.BoxRead}, at + "cat plain new", true},
		{tool.Box{Level: tool.BoxRead}, at + "echo x >more", false},
		{tool.Box{Level: tool.BoxRead}, "cat " + lib + "/.env", false},
		{boxes.Writable, "cat " + lib + "/.env", false},
		{boxes.Writable, at + "echo x >.git/hooks/pre-commit", false},
		{boxes.Writable, at + "echo x >>sub/.envrc", false},
		{boxes.Writable, at + "mv deep gone", false},
		{boxes.Writable, "cat " + filepath.Join(dir, "other", "plain"), false},
	} {
		if code, out, _ := boxes.Run(t, env, tt.box, tt.text); (code == 0) != tt.fine {
			t.Errorf("%s, %s: exit code %d: %s", tt.box.Level, tt.text, code, out)
		}
	}
	_, _, refused := boxes.Run(t, env, boxes.Writable, at+"echo 'touch /x' >.envrc; mkdir -p moved/.vscode && echo '{}' >moved/.vscode/tasks.json")
	for _, name := range []string{".envrc", "moved/.vscode/tasks.json"} {
		if _, err := os.Lstat(filepath.Join(lib, name)); err == nil || !strings.Contains(strings.Join(refused, "\n"), filepath.Dir(filepath.Join(lib, name))) {
			t.Errorf("%s stays, and the box says %q", name, refused)
		}
	}
	if _, _, refused := boxes.Run(t, env, boxes.Writable, at+"git init -q made"); len(refused) != 1 ||
		!strings.Contains(refused[0], "did not keep "+filepath.Join(lib, "made/.git")) {
		t.Errorf("a new repository there: %q", refused)
	}
	if _, _, refused := boxes.Run(t, env, boxes.Writable, at+"git init -q --bare b; while echo '[core] fsmonitor = x' >>b/config; do sleep 0.01; done"); !strings.Contains(
		strings.Join(refused, "\n"), "b/config was put back each time") {
		t.Errorf("a bare one there: %q", refused)
	}
	if env.Walls.Throwaway {
		throw := tool.Box{Level: tool.BoxWorkspace, Throwaway: true}
		if code, out, _ := boxes.Run(t, env, throw, at+"cat plain && ! echo x >thrown"); code != 0 {
			t.Errorf("a throwaway copy: %s", out)
		}
		boxes.Succeeds(t, env, mixedBox, at+"git add new && git -c user.name=a -c user.email=a@b commit -q -m two && true >moved/z")
		out, err := exec.CommandContext(t.Context(), "git", "-C", lib, "log", "--format=%s").CombinedOutput()
		if err != nil || string(out) != "two\none\n" {
			t.Errorf("the repository has %q, %v", out, err)
		}
	}
}

// TestPackageOfMany works in one folder of a repository: a commit is taken over, together with the person's changes
// elsewhere, and a checkout if it needs no files there. A checkout that does leaves the branch as it is.
func TestPackageOfMany(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
		cmd.Dir, cmd.Env = top, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(`git init -qb main && git config user.name a && git config user.email a@b && mkdir pkg && echo 1 >pkg/f && echo 1 >top && git add -A && git commit -qm one
		git checkout -qb near && echo 2 >pkg/f && git commit -qam near && git checkout -q main && git checkout -qb far && echo 2 >top && echo 2 >pkg/f && git commit -qam far
		git checkout -qb without && git rm -q top && git commit -qm without && git checkout -q main`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(filepath.Join(top, "pkg"), nil, sandbox.Options{Self: self, Pool: &sandbox.Pool{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, env) })
	boxes.Need(t, env, tool.BoxWorkspace)
	if !env.Walls.Throwaway {
		t.Skip("NO OVERLAYS HERE")
	}
	for _, c := range []struct{ first, text, refused, want string }{
		{"", "git checkout -qb new && echo 3 >f && git commit -qam two", "", "new two"},
		{"echo 5 >top", "git commit -qam three", "", "new three"},
		{"git reset -q --hard && git checkout -q main", "git checkout -q near", "", "near near"},
		{"git checkout -q main", "git checkout far", "/top lies outside of the workspace", "main one"},
		{"git checkout -q -f main", "git checkout without", "/top lies outside of the workspace", "main one"},
		{"git checkout -q -f main", "git branch -D far", "", "main one"},
	} {
		if c.first != "" {
			git(c.first)
		}
		_, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace, Git: true, Read: []string{top}}, c.text)
		if got := git("echo $(git rev-parse --abbrev-ref HEAD) $(git log -1 --format=%s)"); got != c.want || (len(refused) > 0) != (c.refused != "") ||
			!strings.Contains(strings.Join(refused, " "), c.refused) {
			t.Errorf("%s: the repository is at %q, refused %q: %s", c.text, got, refused, out)
		}
	}
}
