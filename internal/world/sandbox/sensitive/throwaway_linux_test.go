package sensitive_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

var throwaway = tool.Box{Level: tool.BoxWorkspace, Throwaway: true}

// thrown opens a throwaway workspace, and returns it with its content.
func thrown(t *testing.T) (env tool.Env, home, state string, before map[string]string) {
	t.Helper()
	env, home, state = boxes.New(t)
	if !env.Walls.Throwaway {
		t.Skipf("A WORKSPACE CAN'T BE THROWN AWAY HERE: %s", env.Walls.NoThrowaway)
	}
	boxes.Put(t, env.Root, map[string]string{"dir/deep/one": "1", "dir/two": "2", "big": strings.Repeat("x", 1<<20)})
	if err := errors.Join(os.Link(filepath.Join(env.Root, "plain"), filepath.Join(home, "linked")),
		os.Symlink("plain", filepath.Join(env.Root, "soft")), os.Chmod(env.Root, 0o750)); err != nil {
		t.Fatal(err)
	}
	return env, home, state, snapshot(t, filepath.Dir(env.Root))
}

// snapshot is all that is below a folder: modes, times, content. Caches are left out.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path == filepath.Join(dir, "state", "cache") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out[path] = text + to
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			out[path] = text + info.ModTime().String() + string(data)
			return err
		}
		if !strings.HasSuffix(path, "/state") {
			text += info.ModTime().String()
		}
		out[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, env tool.Env, before map[string]string, what string) {
	t.Helper()
	if diff := cmp.Diff(before, snapshot(t, filepath.Dir(env.Root))); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// TestThrowaway checks that a box sees the workspace as it is, changes anything there, and leaves it as it was, to the
// byte and the time.
func TestThrowaway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // so that what is left is ours
	env, _, _, before := thrown(t)
	code, out, told := boxes.Run(t, env, throwaway, `set -e
test "$PWD" = "`+env.Root+`"; test "$(stat -c %a .)" = 750
test "$(cat plain dir/deep/one)" = plain1
echo more >>plain; test "$(tail -1 soft)" = plainmore
echo new >new; mkdir -p made/deep; echo x >made/deep/x; ln -s new link; mkfifo pipe
rm -r dir; mkdir dir; echo again >dir/two; test "$(ls dir)" = two
mv new moved; chmod 600 big; truncate -s 10 big; touch -d yesterday a/b/ok
rm -rf a/b/ok; ln plain hard
git init -q fresh >/dev/null; (cd fresh; git config user.email a@b; git config user.name a; git commit -q --allow-empty -m x)
mkdir -p .vscode; echo "{}" >.vscode/tasks.json
test "$(cat moved)" = new; echo said >/tmp/kept`)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if len(told) != 1 || !strings.Contains(told[0], "threw away") {
		t.Errorf("%q is told", told)
	}
	same(t, env, before, "afterwards")
	// Nothing of it is there in the next box; the session's temporary files are.
	code, out, _ = boxes.Run(t, env, throwaway, "test ! -e moved && test ! -e made && test -e dir/deep/one && cat plain /tmp/kept")
	if code != 0 || out != "plainsaid\n" {
		t.Errorf("the next box: exit code %d, %q", code, out)
	}
	// The next one sees outside changes, whoever made them.
	boxes.Put(t, env.Root, map[string]string{"plain": "dirty", "untracked": "u"})
	if code, out, _ = boxes.Run(t, env, throwaway, "cat plain untracked; rm untracked"); out != "dirtyu" {
		t.Errorf("a later box: exit code %d, %q", code, out)
	}
	testkit.WaitFor(t, "what was thrown away to be removed", func() bool {
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "inspan-session-*", "thrown-*"))
		return err == nil && len(left) == 0
	})
}

// TestThrowawayHolds tries to get something out of such a box. Each script ends with 0 if
// it believes that it did.
func TestThrowawayHolds(t *testing.T) {
	t.Parallel()
	env, home, state, before := thrown(t)
	const py = "python3 -c "
	for name, attempt := range map[string]string{
		"the repository's hooks":    "echo x >.git/hooks/new",
		"the repository's settings": "echo x >>.git/config",
		"its own .git away":         "mv .git gone",
		"read a secret":             "cat .env",
		"read a secret moved":       "mv a/b other && cat other/.env",
		"write outside":             "echo x >'" + home + "/new'",
		"write through a link":      "ln -s '" + home + "' out && echo x >out/new",
		"write the state":           "echo x >'" + state + "/new'",
		"mount a tmpfs":             "mount -t tmpfs tmpfs dir",
		"bind the folder below":     "mount --bind '" + filepath.Dir(env.Root) + "' dir",
		"unmount the overlay":       "cd / && umount '" + env.Root + "'",
		"unmount lazily":            "cd / && umount -l '" + env.Root + "'",
		"remount it":                "mount -o remount,rw '" + env.Root + "'",
		"namespaces of its own":     "unshare -Urm true",
		"another root":              "chroot / true",
		"leave by a descriptor": py +
			`'import os; fd = os.open("/proc/self/root", os.O_RDONLY); os.chdir("/proc/self/fd/%d/../../../../'"$HOME"'" % fd); open("x", "w")'`,
		"the keeper's root":        "ls /proc/1/root/ && echo x >/proc/1/root" + home + "/new",
		"the keeper's descriptors": "ls /proc/1/fd/*/ /proc/1/cwd/ | grep .",
		"where it is thrown to": "d=$(sed -n 's/.*upperdir=\\([^,]*\\).*/\\1/p' /proc/self/mountinfo | head -1); test -n \"$d\" && echo x " +
			">\"$d/x\"",
		"by the number of a file": py +
			`'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); b = ctypes.create_string_buffer(136); ctypes.cast(b, ` +
			`ctypes.POINTER(ctypes.c_uint))[0] = 128; m = ctypes.c_int(); r = l.name_to_handle_at(-100, b"plain", b, ctypes.byref(m), 0); fd = ` +
			`l.open_by_handle_at(os.open(".", 0), b, 2); raise SystemExit(fd < 0)'`,
		"by io_uring": py +
			`'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(512)) < 0)'`,
		"by the new mount interface": py + `'import ctypes; l = ctypes.CDLL(None); raise SystemExit(l.syscall(428, -100, b".", 1) < 0)'`,
	} {
		code, out, _ := boxes.Run(t, env, throwaway, attempt, "HOME="+home)
		if code == 0 {
			t.Errorf("%s: got through\n%s", name, out)
		}
		same(t, env, before, name)
	}
	// These have an effect, for as long as the box is open and there alone.
	for name, effect := range map[string]string{
		"a hard link":           "ln plain hard && echo x >>hard",
		"a link that was there": "echo x >>plain && test $(stat -c %h plain) -ge 1",
		"an open descriptor":    "exec 7<>plain; rm plain; echo x >&7; echo y >/proc/self/fd/7",
		"a mapping":             py + `'import mmap; f = open("big", "r+b"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b"y"; m.flush()'`,
		"a mode by descriptor":  py + `'import os; os.fchmod(os.open("plain", os.O_RDONLY), 0o777)'`,
		"reopening":             py + `'import os; fd = os.open("plain", os.O_RDONLY); open("/proc/self/fd/%d" % fd, "w").write("x")'`,
		"exchanged names":       "mv -T dir/two swapped && ln -s /etc dir/two",
		"what the kernel notes": py + `'import os; os.setxattr("dir", "user.overlay.redirect", b"/etc")' 2>/dev/null; test ! -e dir/passwd`,
		"a whiteout":            "rm -r dir && test ! -e dir",
		"a daemon":              "setsid sh -c 'sleep 0.2; echo late >late' >/dev/null 2>&1 & disown; exit 0",
	} {
		if code, out, _ := boxes.Run(t, env, throwaway, effect); code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
		same(t, env, before, name)
	}
}

// TestThrowawayIsNoWider checks that such a box can't have any other permanent write access.
func TestThrowawayIsNoWider(t *testing.T) {
	env, home, _, _ := thrown(t)
	for name, box := range map[string]tool.Box{
		"a folder":     {Level: tool.BoxWorkspace, Throwaway: true, Write: []string{home}},
		"the same":     {Level: tool.BoxWorkspace, Throwaway: true, Write: []string{env.Root}},
		"a host":       {Level: tool.BoxWorkspace, Throwaway: true, Hosts: []string{"example.com"}},
		"git":          {Level: tool.BoxWorkspace, Throwaway: true, Git: true},
		"repositories": {Level: tool.BoxWorkspace, Throwaway: true, Init: true},
		"no walls":     {Level: tool.BoxNone, Throwaway: true},
		"to read":      {Level: tool.BoxRead, Throwaway: true},
	} {
		_, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Box: box})
		if !errors.Is(err, tool.ErrNoBox) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := boxes.Unwalled(t).Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Box: throwaway}); !errors.Is(err,
		tool.ErrNoBox) {
		t.Errorf("without a keeper: %v", err)
	}
}

// TestThrowawayIsNotKept checks that a job in such a box ends with the session.
func TestThrowawayIsNotKept(t *testing.T) {
	env, _, _, before := thrown(t)
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sh", "-c", "echo x >new; sleep 60"}, Dir: env.Root, Box: throwaway})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.(ability.Keepable).Keep(filepath.Join(t.TempDir(), "out"), func(ability.Kept) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "throwaway") {
		t.Errorf("kept: %v", err)
	}
	p.Kill()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	same(t, env, before, "after it was killed")
}

// TestThrowawayNeedsAPlace checks that a box is refused, and nothing else is built, where the kernel can't make one.
func TestThrowawayNeedsAPlace(t *testing.T) {
	env, _, _, _ := thrown(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(env.Root, "tmp") // so what is thrown away would lie in the workspace
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	inner, err := sandbox.Local(env.Root, nil, sandbox.Options{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, inner) })
	_, err = inner.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Box: throwaway})
	if !errors.Is(err, tool.ErrNoBox) {
		t.Errorf("with temporary files in the workspace: %v", err)
	}
}

// TestThrowawayReachesNobody checks that such a box reaches no socket of others in the workspace, and that nothing in
// it runs as its owner.
func TestThrowawayReachesNobody(t *testing.T) {
	env, _, _, _ := thrown(t)
	l, err := net.Listen("unix", filepath.Join(env.Root, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connect := "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"sock\")'"
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxNone}, connect); code != 0 {
		t.Errorf("not even without a box: %s", out)
	}
	for _, text := range []string{
		connect, "chmod 4755 plain && test -u plain",
		"bash -c 'exec 9<>/dev/tcp/192.0.2.1/80'", "kill -0 " + strconv.Itoa(os.Getpid()),
	} {
		if code, out, _ := boxes.Run(t, env, throwaway, text); code == 0 {
			t.Errorf("%s: got through\n%s", text, out)
		}
	}
}
