package walls_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestWalls(t *testing.T) {
	env, _, _ := boxes.New(t)
	if w := env.Walls; !w.Read || !w.Workspace || !w.Hosts || w.Why != "" {
		t.Logf("THIS MACHINE CAN'T BUILD ALL BOXES: %+v", w)
	}
	if w := boxes.Unwalled(t).Walls; w.Read || w.Workspace || w.Hosts || w.Why == "" {
		t.Errorf("walls without a keeper: %+v", w)
	}
}

// TestNoKeeper checks that no box is weaker than requested.
func TestNoKeeper(t *testing.T) {
	env := boxes.Unwalled(t)
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		_, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Box: tool.Box{Level: level}})
		if !errors.Is(err, tool.ErrNoBox) {
			t.Errorf("%s: %v", level, err)
		}
	}
	env, _, _ = boxes.New(t)
	if _, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{"true"}, Dir: env.Root,
		Box: tool.Box{Level: "paper"},
	}); !errors.Is(err, tool.ErrNoBox) {
		t.Errorf("unknown level: %v", err)
	}
}

// outsider is the target that attempts try to reach.
func outsider(t *testing.T, home string) []string {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		buf := make([]byte, 16)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(buf[:n], from)
		}
	}()
	name := "inspan-test-" + filepath.Base(filepath.Dir(home)) + fmt.Sprint(os.Getpid())
	for _, at := range []string{"@" + name, filepath.Join(home, "s")} {
		l, err := net.Listen("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	d, err := net.ListenPacket("unixgram", filepath.Join(home, "d"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return []string{
		"OUT=" + home, "HOST=" + fmt.Sprint(os.Getpid()), "ABSTRACT=" + name, "STATE=" + filepath.Join(filepath.Dir(home), "state"),
		"PORT=" + fmt.Sprint(tcp.Addr().(*net.TCPAddr).Port), "UDP=" + fmt.Sprint(udp.LocalAddr().(*net.UDPAddr).Port),
	}
}

// TestEscapes tries to get out of each box, and first without one.
func TestEscapes(t *testing.T) {
	tried, through := 0, 0
	defer func() { t.Logf("escapes: %d attempts, %d got through", tried, through) }()
	for i, a := range attempts() {
		if testing.Short() && i%4 != 0 {
			continue // make test-long tries them all
		}
		t.Run(a.name, func(t *testing.T) {
			for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
				env, home, _ := boxes.New(t)
				boxes.Need(t, env, level)
				code, out, refused := boxes.Run(t, env, tool.Box{Level: level}, a.script, outsider(t, home)...)
				tried++
				stopped := level == tool.BoxRead && a.read || level == tool.BoxWorkspace && a.workspace
				if level == tool.BoxNone && code != 0 && (os.Geteuid() == 0 || !strings.Contains(out, "not permitted")) {
					t.Errorf("has no effect without a box: %s", out)
				}
				if stopped == (code == 0) {
					through++
					t.Errorf("%s box: exit code %d, stopped should be %v\n%s", level, code, stopped, out)
				}
				if a.after == "" || level != tool.BoxWorkspace {
					continue
				}
				if _, err := os.Lstat(filepath.Join(env.Root, a.after)); !errors.Is(err, fs.ErrNotExist) || len(refused) == 0 {
					t.Errorf("%s is still there: %v, refused %q", a.after, err, refused)
				}
			}
		})
	}
}

// TestEscapesOlder tries the same where the kernel has a Landlock that can't keep signals
// inside, or none: then a read box, too, is made of namespaces.
func TestEscapesOlder(t *testing.T) {
	tried, through := 0, 0
	defer func() { t.Logf("escapes: %d attempts on older kernels, %d got through", tried, through) }()
	for i, a := range attempts() {
		if testing.Short() && i%16 != 0 {
			continue // so do make safety and make test-long
		}
		t.Run(a.name, func(t *testing.T) {
			for _, landlock := range []int{5, -1} {
				for level, stopped := range map[tool.Level]bool{tool.BoxRead: a.read, tool.BoxWorkspace: a.workspace} {
					env, home, _ := boxes.NewWithLandlock(t, landlock)
					boxes.Need(t, env, level)
					code, out, _ := boxes.Run(t, env, tool.Box{Level: level}, a.script, outsider(t, home)...)
					if tried++; stopped == (code == 0) {
						through++
						t.Errorf("Landlock %d, %s box: exit code %d, stopped should be %v\n%s", landlock, level, code, stopped, out)
					}
				}
			}
		})
	}
}

// TestReadBoxOlder checks that there is a read box without Landlock wherever there is a workspace box, and that nothing
// in it reaches beyond it.
func TestReadBoxOlder(t *testing.T) {
	t.Parallel()
	for _, landlock := range []int{5, 3, -1} {
		env, home, _ := boxes.NewWithLandlock(t, landlock)
		boxes.Need(t, env, tool.BoxWorkspace)
		if !env.Walls.Read {
			t.Fatalf("Landlock %d: %s", landlock, env.Walls.Why)
		}
		victim := exec.Command("sleep", "60")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("kill -9 %d; kill -9 -1; echo x >plain; echo x >/tmp/left; echo x >new; rm -rf a .git; chmod 777 plain; mv a b; ln "+
			"-s x y; touch -d 2001-01-01 plain; ls /proc/%[1]d", victim.Process.Pid)
		before, err := os.Stat(filepath.Join(env.Root, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxRead}, text, outsider(t, home)...); code == 0 {
			t.Errorf("Landlock %d: %s", landlock, out)
		}
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("Landlock %d: a process outside was reached: %v", landlock, err)
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
		after, err := os.Stat(filepath.Join(env.Root, "plain"))
		if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
			t.Errorf("Landlock %d: %v became %v: %v", landlock, before, after, err)
		}
		for name, want := range map[string]bool{"a/b/ok": true, ".git/config": true, "new": false, "y": false, "/tmp/left": false} {
			path := name
			if !filepath.IsAbs(name) {
				path = filepath.Join(env.Root, name)
			}
			if _, err := os.Lstat(path); want != (err == nil) {
				t.Errorf("Landlock %d: %s: %v", landlock, name, err)
			}
		}
	}
}

// TestBoxWorks checks what boxes must allow, even on older kernels.
func TestBoxWorks(t *testing.T) {
	t.Parallel()
	for name, landlock := range map[string]int{"read": 0, "workspace": 0, "read older": 5, "read without Landlock": -1} {
		level := tool.Level(strings.Fields(name)[0])
		t.Run(name, func(t *testing.T) {
			env, _, _ := boxes.NewWithLandlock(t, landlock)
			boxes.Need(t, env, level)
			for _, text := range []string{
				"cat plain a/b/ok .git/config", "ls -la . a/b / >/dev/null || ls -la . a/b >/dev/null", "cat <<<here", "printf '3\n1\n' | sort",
				"echo x >$TMPDIR/f && cat $TMPDIR/f",
				"git --version", "echo x >/dev/null", "head -c9 /dev/urandom >/dev/null", "timeout 5 true", "sleep 0.01 & kill $!",
				"cat /etc/hostname /etc/passwd >/dev/null",
				"python3 -c 'import subprocess; subprocess.run([\"true\"], check=True)'", "perl -e 'print 1'",
				"ps -e >/dev/null || cat /proc/self/status >/dev/null", "(exec 9</dev/zero)",
				"! test -e new.file", "find . -name ok | grep -q ok", "grep -r plain plain", "diff <(echo a) <(echo a)",
			} {
				if code, out, refused := boxes.Run(t, env, tool.Box{Level: level}, text); code != 0 || len(refused) > 0 {
					t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
				}
			}
		})
	}
	env, _, state := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace},
		"mkdir d && echo x >d/f && mv d/f g && rm plain && chmod 600 g && echo x >$XDG_CACHE_HOME/kept && python3 -c 'import socket; "+
			"l=socket.create_server((\"127.0.0.1\",0)); socket.create_connection(l.getsockname())'")
	if code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	if info, err := os.Stat(filepath.Join(env.Root, "g")); err != nil || info.Mode() != 0o600 {
		t.Error(info, err)
	}
	if kept, _ := filepath.Glob(filepath.Join(state, "cache", "*", "xdg", "kept")); len(kept) != 1 {
		t.Errorf("caches are %q", kept)
	}
}

// TestNothingStray checks that boxes leave nothing in the workspace.
func TestNothingStray(t *testing.T) {
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		t.Setenv("TMPDIR", t.TempDir()) // so that what is left is ours
		env, _, _ := boxes.New(t)
		boxes.Need(t, env, level)
		before := tree(t, env.Root)
		boxes.Run(t, env, tool.Box{Level: level}, "true")
		if after := tree(t, env.Root); after != before {
			t.Errorf("%s box: the workspace was\n%s\nand is\n%s", level, before, after)
		}
		boxes.Close(t, env)
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "inspan-*")); len(left) > 0 {
			t.Errorf("%s box: temporary folders are left: %q", level, left)
		}
	}
}

func tree(t *testing.T, root string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		fmt.Fprintln(&out, path, d.Type())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestBoxGit checks which parts of a repository are open to a box that may change it.
func TestBoxGit(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxNone},
		"rm -r .git sub && git init -q -b main . && git config user.name x && git config user.email x@y"); code != 0 {
		t.Fatal(out)
	}
	box := tool.Box{Level: tool.BoxWorkspace, Git: true}
	for text, want := range map[string]bool{
		"git add plain && git commit -qm one && git checkout -qb other": true, "echo x >.git/hooks/pre-commit": false,
		"mv .git g": false, "mv .git/hooks .git/h": false,
	} {
		if code, out, refused := boxes.Run(t, env, box, text); want != (code == 0) || len(refused) > 0 {
			t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
		}
	}
	before := boxes.Text(t, filepath.Join(env.Root, ".git/config"))
	for _, text := range []string{"git config core.pager x", "echo x >.git/config", "git config branch.other.remote https://x"} {
		_, _, refused := boxes.Run(t, env, box, text)
		if now := boxes.Text(t, filepath.Join(env.Root, ".git/config")); len(refused) != 1 || now != before {
			t.Errorf("%s: refused %q, and the settings are %q", text, refused, now)
		}
	}
	if _, _, refused := boxes.Run(t, env, box, "mkdir -p .git/info; echo '* filter=x' >.git/info/attributes"); len(refused) == 0 {
		t.Error("new attributes of the repository stay")
	}
	if _, _, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "git add -A"); len(refused) > 0 {
		t.Errorf("refused %q", refused)
	}
}

// TestMasksStay checks that the masks of secrets can't be removed.
func TestMasksStay(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	text := calls(166, "b'.env', 2") +
		" || umount .env || umount -l . || mount -o remount,rw / || mount --bind /usr .git || nsenter -t 1 -m cat .env || cat .env"
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); code == 0 || strings.Contains(out, "secret") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestLimits checks that limits hold in a box.
func TestLimits(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self:   self,
		Limits: sandbox.Limits{FileSize: 1 << 20, Memory: 256 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	boxes.Need(t, env, tool.BoxWorkspace)
	theirs, err := exec.Command("sh", "-c", "ulimit -Hc").Output()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"[ $(ulimit -Hc) = " + strings.TrimSpace(string(theirs)) + " ] && ulimit -c $(ulimit -Hc)": true, // what debugs may want a core file
		"head -c 1000000 /dev/zero >f": true, "head -c 2000000 /dev/zero >f": false, "[ $(ulimit -c) = 0 ]": true,
		"python3 -c 'bytearray(1<<20)'": true, "sleep 0.1; python3 -c 'bytearray(1<<30)'": false,
	} {
		if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); want != (code == 0) {
			t.Errorf("%s: exit code %d\n%s", text, code, out)
		}
	}
}

// TestBoxOpens checks that the paths that a box names are opened, except secrets.
func TestBoxOpens(t *testing.T) {
	env, home, _ := boxes.New(t)
	vars := outsider(t, home)
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		boxes.Need(t, env, level)
		box := tool.Box{Level: level, Read: []string{home}}
		for text, want := range map[string]bool{"cat $OUT/private": true, "cat $OUT/.ssh/id": false, "echo x >$OUT/new": false} {
			if code, out, _ := boxes.Run(t, env, box, text, vars...); want != (code == 0) {
				t.Errorf("%s box: %s: exit code %d\n%s", level, text, code, out)
			}
		}
	}
	box := tool.Box{Level: tool.BoxWorkspace, Write: []string{home}}
	if code, out, _ := boxes.Run(t, env, box, "echo x >$OUT/new && ! cat $OUT/.ssh/id", vars...); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestFreshSecrets checks that a secret that appears between two commands is
// found.
func TestFreshSecrets(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	for i := range 20 {
		name := fmt.Sprintf("a/b/k%d.key", i)
		if err := os.WriteFile(filepath.Join(env.Root, name), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
			boxes.Need(t, env, level)
			if code, _, _ := boxes.Run(t, env, tool.Box{Level: level}, "cat "+name); code == 0 {
				t.Fatalf("%s box: read %s", level, name)
			}
		}
	}
}

// attempts are actions that boxes must stop. Each script ends with 0 if it had its effect; without a box it must, which
// shows that the attempt is real.
type attempt struct {
	name, script    string
	read, workspace bool   // stopped in the box
	after           string // a file in the workspace that must not be there afterwards
}

func attempts() []attempt {
	const py = "python3 -c "
	return []attempt{
		{name: "write", script: "echo x >new", read: true},
		{name: "append", script: "echo x >>plain", read: true},
		{name: "truncate", script: "truncate -s0 plain", read: true},
		{name: "open to truncate", script: py +
			`'import os; os.open("plain", os.O_RDONLY|os.O_TRUNC); raise SystemExit(os.stat("plain").st_size)'`, read: true},
		{name: "remove", script: "rm plain", read: true},
		{name: "rename", script: "mv plain moved", read: true},
		{name: "make a folder", script: "mkdir d", read: true},
		{name: "link", script: "ln plain hard", read: true},
		{name: "make a link", script: "ln -s plain soft", read: true},
		{name: "make a pipe", script: "mkfifo pipe", read: true},
		{name: "chmod", script: "chmod 777 plain", read: true},
		{name: "fchmod", script: py + `'import os; os.fchmod(os.open("plain", os.O_RDONLY), 0o777)'`, read: true},
		{name: "touch", script: "touch -d yesterday plain", read: true},
		{name: "futimens", script: py + `'import os; os.utime(os.open("plain", os.O_RDONLY), (1, 1))'`, read: true},
		{name: "setxattr", script: py + `'import os; os.setxattr("plain", "user.x", b"x")'`, read: true},
		{name: "write outside", script: "echo x >$OUT/new", read: true, workspace: true},
		{name: "write through a link", script: "ln -sfn $OUT out; echo x >out/new", read: true, workspace: true},
		{name: "write through /proc/self/root", script: "echo x >/proc/self/root$OUT/new", read: true, workspace: true},
		{name: "write through /proc/self/cwd", script: "cd $OUT && echo x >/proc/self/cwd/new", read: true, workspace: true},
		{name: "hard link to outside", script: "ln $OUT/private hard && echo x >hard", read: true, workspace: true},
		{name: "read outside", script: "cat $OUT/private", read: true, workspace: true},
		{name: "read a secret", script: "grep secret .env", read: true, workspace: true},
		{name: "read a secret below", script: "grep secret a/b/.env", read: true, workspace: true},
		{name: "read a key", script: "grep secret keys/x.pem", read: true, workspace: true},
		{name: "read a secret through a link", script: "ln -sfn .env l; grep secret l", read: true, workspace: true},
		{name: "read a secret through /proc", script: "grep secret /proc/self/cwd/a/b/.env", read: true, workspace: true},
		{name: "read a secret after a rename", script: "mv a a2; grep secret a2/b/.env", read: true, workspace: true},
		{name: "read a secret by a hard link", script: "ln .env h; grep secret h", read: true, workspace: true},
		{name: "read sessions", script: "grep secret $STATE/session", read: true, workspace: true},
		{name: "read keys of the home", script: "grep secret $OUT/.ssh/id", read: true, workspace: true},
		{
			name:   "read with ld.so",
			script: "cp /bin/cat c 2>/dev/null; $(ls /lib64/ld-linux* /lib/ld-linux* 2>/dev/null | head -1) /bin/cat $OUT/private", read: true,
			workspace: true,
		},
		{name: "signal the parent", script: "kill -0 $HOST", read: true, workspace: true},
		{
			name: "limits of the parent", script: py + `'import resource, os; resource.prlimit(int(os.environ["HOST"]), resource.RLIMIT_CORE)'`,
			read: true, workspace: true,
		},
		{name: "environment of the parent", script: "tr '\\0' x </proc/$HOST/environ | grep -q PATH", read: true, workspace: true},
		{name: "memory of the parent", script: "exec 9</proc/$HOST/mem", read: true, workspace: true},
		{name: "root of the parent", script: "ls " + filepath.Join("/proc/$HOST", "root", "proc"), read: true, workspace: true},
		{name: "tcp", script: "exec 9<>/dev/tcp/127.0.0.1/$PORT", read: true, workspace: true},
		{name: "udp", script: py +
			`'import socket, os; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b"x", ("127.0.0.1", ` +
			`int(os.environ["UDP"]))); s.recv(9)'`, read: true, workspace: true},
		{
			name: "abstract socket", script: py + `'import socket, os; socket.socket(socket.AF_UNIX).connect("\0"+os.environ["ABSTRACT"])'`,
			read: true, workspace: true,
		},
		{
			name: "path socket", script: py + `'import socket, os; socket.socket(socket.AF_UNIX).connect(os.environ["OUT"]+"/s")'`,
			read: true, workspace: true,
		},
		{
			name: "datagram pair", script: py +
				`'import socket, os; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", os.environ["OUT"]+"/d")'`, read: true,
			workspace: true,
		},
		{name: "netlink", script: py + `'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)'`, read: true, workspace: true},
		{name: "packets", script: py + `'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)'`, read: true, workspace: true},
		{
			name: "memory file", script: py +
				`'import os; fd=os.memfd_create("x"); os.write(fd, open("/bin/true","rb").read()); os.execve("/proc/self/fd/%d" % fd, ["x"], {})'`,
			read: true,
		},
		{name: "io_uring", script: calls(425, "1, buf"), read: true, workspace: true},
		{name: "new namespaces", script: "unshare -Ur true", read: true, workspace: true},
		{name: "mount", script: "unshare -Urm mount -t tmpfs x /mnt", read: true, workspace: true},
		{name: "keys of the kernel", script: calls(250, "0, -3, 1"), read: true, workspace: true},
		{name: "settings of the repository", script: "echo x >>.git/config", read: true, workspace: true},
		{name: "hooks", script: "echo x >.git/hooks/new", read: true, workspace: true},
		{name: "rename the repository", script: "mv .git git2 && mkdir .git", read: true, workspace: true},
		{name: "nested repository", script: "echo x >>sub/.git/config", read: true, workspace: true},
		{name: "rename above a nested repository", script: "mv sub sub2", read: true, workspace: true},
		{name: "settings of agents", script: "echo x >>.mcp.json", read: true, workspace: true},
		{name: "replace settings of agents", script: "echo x >y && mv y .mcp.json", read: true, workspace: true},
		{name: "remove settings of agents", script: "rm .mcp.json", read: true, workspace: true},
		{name: "remove the mask", script: "rm -f .env; test ! -e .env", read: true, workspace: true},
		{name: "new repository", script: "mkdir -p n/.git", read: true, after: "n/.git"},
		{name: "new settings", script: "mkdir .vscode && { echo x >.vscode/tasks.json || true; }", read: true, after: ".vscode"},
		{name: "new settings of inspan", script: "mkdir .inspan", read: true, after: ".inspan"},
		{name: "new settings in capitals", script: "mkdir .INSPAN", read: true, after: ".INSPAN"},
		{name: "renamed into place", script: "mkdir q && mv q .husky", read: true, after: ".husky"},
		{name: "new link", script: "ln -s plain .envrc", read: true, after: ".envrc"},
		{name: "new below", script: "mkdir -p x/y/.claude", read: true, after: "x/y/.claude"},
	}
}

// calls makes a system call by its number on amd64; other processors have
// other numbers.
func calls(nr int, args string) string {
	return fmt.Sprintf(`python3 -c 'import ctypes; buf=ctypes.create_string_buffer(200); l=ctypes.CDLL(None, use_errno=True); raise `+
		`SystemExit(0 if l.syscall(%d, %s) >= 0 else 1)'`, nr, strings.ReplaceAll(args, "'", `"`))
}
