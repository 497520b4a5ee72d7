package walls_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestPlacesOutOfReach checks that places that can't be closed where they are are closed all the same, and keep no box
// from being built: in a closed place, in an unowned folder, next to visible files.
func TestPlacesOutOfReach(t *testing.T) {
	env, home, state := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{"shut/.env": "secret", "shut/.git/config": "", "deep/shut/a/b/.env": "secret", "deep/open": "ok"})
	boxes.Put(t, state, map[string]string{"inner/x": "secret", "plugins/p/run": "shown", "plugins/q/run": "secret"})
	for _, dir := range []string{"shut", "deep/shut/a"} {
		path := filepath.Join(env.Root, dir)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The parent folder is the workspace, so that all places are inside it.
	root := filepath.Dir(env.Root)
	m := places.Map{Home: home, State: []string{state, filepath.Join(state, "inner")}, Shared: []string{filepath.Join(state, "plugins")}}
	wide, err := sandbox.Local(root, nil, sandbox.Options{Self: self, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		boxes.Need(t, env, level)
		box := tool.Box{Level: level, Read: []string{filepath.Join(state, "plugins/p")}}
		for text, want := range map[string]bool{
			"grep ok ws/deep/open": true, "chmod 700 ws/shut; grep secret ws/shut/.env": false,
			"chmod 700 ws/deep/shut/a; grep secret ws/deep/shut/a/b/.env": false,
			"grep secret state/inner/x":                                   false, "grep secret state/session": false,
			"grep shown state/plugins/p/run":  true,
			"grep secret state/plugins/q/run": false,
			"echo x >state/new":               false, "echo x >state/plugins/p/run": false,
		} {
			if code, out, _ := boxes.Run(t, wide, box, text); want != (code == 0) {
				t.Errorf("%s box: %s: exit code %d\n%s", level, text, code, out)
			}
		}
	}
}

// TestSudoers checks a case of Debian's /etc: a closed file that only root reads in a folder that all may read.
func TestSudoers(t *testing.T) {
	const dir = "/etc/sudoers.d"
	if _, err := os.Lstat(dir); os.Geteuid() != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Skip("NO ROOT, OR THERE ARE RULES OF SUDO THAT WE LEAVE ALONE")
	}
	before, _, _ := boxes.New(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/README", []byte("secret"), 0o440)); err != nil {
		t.Fatal(err)
	}
	env, _, _ := boxes.New(t)
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		boxes.Need(t, before, level)
		if code, out, _ := boxes.Run(t, env, tool.Box{Level: level}, "ls /etc >/dev/null && ! cat /etc/sudoers.d/README"); code != 0 {
			t.Errorf("%s box: exit code %d\n%s", level, code, out)
		}
	}
}

// TestClosedByAnyName checks that closed places of the workspace stay closed below a folder whose name is not UTF-8.
func TestClosedByAnyName(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	dir := filepath.Join(env.Root, "caf\xe9")
	boxes.Put(t, dir, map[string]string{".git/HEAD": "ref: refs/heads/x\n", ".git/config": "[core]\n", ".env": "secret", "plain": "plain"})
	boxes.Succeeds(t, env, boxes.Writable, "cd caf* && cat plain && touch new && ! touch .git/x && ! cat .env")
	boxes.Succeeds(t, env, tool.Box{Level: tool.BoxRead}, "cd caf* && cat plain && ! cat .env")
}
