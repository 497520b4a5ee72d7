package keeper_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// TestSockets checks that no socket of others can be reached through visible places of a box.
func TestSockets(t *testing.T) {
	t.Parallel()
	env, home, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	for _, dir := range []string{env.Root, home} {
		l, err := net.Listen("unix", filepath.Join(dir, "sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		text := "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"" + filepath.Join(dir, "sock") + "\")'"
		if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxNone}, text); code != 0 {
			t.Errorf("not even without a box: %s", out)
		}
		for _, read := range [][]string{{home}, {filepath.Join(home, "sock")}, {"/tmp"}} {
			if code, _, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace, Read: read}, text); code == 0 {
				t.Errorf("reached a socket in %s with %q", dir, read)
			}
		}
	}
}

// TestSocketsMadeMeanwhile checks that a command reaches no socket that someone outside makes while it runs, and all
// sockets that processes of its sandbox make.
func TestSocketsMadeMeanwhile(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	outside := make(chan error, 1)
	go func() {
		testkit.Poll(testkit.Patience, func() bool { return !boxes.Gone(filepath.Join(env.Root, "runs")) })
		l, err := net.Listen("unix", filepath.Join(env.Root, "late"))
		if err == nil {
			err = os.WriteFile(filepath.Join(env.Root, "made"), nil, 0o600)
		}
		outside <- err
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = l.Close() })
		if c, err := l.Accept(); err == nil {
			outside <- errors.New("somebody connected")
			_ = c.Close()
		}
	}()
	code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, `touch runs; until [ -e made ]; do sleep 0.01; done; python3 - <<'END'
import errno, os, socket, threading
def refused(what, *numbers):
    try: what()
    except OSError as e:
        if e.errno in numbers: return
        raise
    raise SystemExit("was not refused")
late = os.path.abspath("late")
os.symlink("late", "link")
for path in "late", late, "link", "/proc/self/cwd/late", "./././late":
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
        refused(lambda: socket.socket(socket.AF_UNIX, kind).connect(path), errno.EACCES)
refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", late), errno.EAFNOSUPPORT)
refused(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), errno.EAFNOSUPPORT)
refused(lambda: socket.socket(socket.AF_UNIX).connect("none"), errno.ENOENT)
refused(lambda: socket.socket(socket.AF_UNIX).connect("plain"), errno.ECONNREFUSED)
for address in "own", os.path.abspath("own2"), "/tmp/own", "\0own":
    server = socket.socket(socket.AF_UNIX)
    server.bind(address); server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(len(address) % 2 == 0)
    client.connect(address)
    server.accept()[0].send(b"x")
    client.setblocking(True)
    assert client.recv(1) == b"x"
    refused(lambda: client.connect(address), errno.EISCONN)
server = socket.create_server(("127.0.0.1", 0))
threads = [threading.Thread(target=lambda: [socket.create_connection(server.getsockname()).close() for _ in range(50)]) for _ in range(4)]
for t in threads: t.start()
for _ in range(200): server.accept()[0].close()
for t in threads: t.join()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.connect(("127.0.0.1", 9))
refused(lambda: socket.socket().connect(("127.0.0.1", 9)), errno.ECONNREFUSED)
END`)
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if !slices.Contains(refused, "refused to connect to late: nothing in this sandbox listens there") {
		t.Errorf("told %q", refused)
	}
	if err := <-outside; err != nil {
		t.Error(err)
	}
	select {
	case err := <-outside:
		t.Error(err)
	default:
	}
}

// TestBareRepositories checks repositories without a folder of their own, and
// where the settings of a repository lead.
func TestBareRepositories(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{
		"old/HEAD": "", "old/objects/x": "", "old/refs/x": "", "old/config": "", "hooks/x": "",
		".git/config": "[core]\n\thooksPath = hooks\n",
	})
	box := tool.Box{Level: tool.BoxWorkspace}
	// Files that name programs are removed while the command runs, and those that make the folder a repository at the
	// end.
	const waits = "; for i in $(seq 1000); do [ -e b/config ] || exit 0; sleep 0.05; done; exit 1"
	if code, _, refused := boxes.Run(t, env, box, "mkdir -p b/objects b/refs; echo x >b/HEAD; echo x >b/config"+waits); code != 0 || len(refused) != 2 ||
		!boxes.Gone(filepath.Join(env.Root, "b/HEAD")) || !boxes.Gone(filepath.Join(env.Root, "b/config")) {
		t.Errorf("refused %q", refused)
	}
	for text, want := range map[string]bool{
		"echo x >>old/config": false, "echo x >>hooks/x": false, "echo x >hooks/y": false,
		"mv old old2": false, "echo x >old/objects/y; echo x >HEAD; rm HEAD": true,
	} {
		if code, out, refused := boxes.Run(t, env, box, text); want != (code == 0) || len(refused) > 0 {
			t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
		}
	}
}

// TestFoldersForSecrets checks that a folder whose name suggests secrets is scanned like any other: files in it that
// contain some are closed, and so are files that name programs.
func TestFoldersForSecrets(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxRead)
	boxes.Need(t, env, tool.BoxWorkspace)
	for _, dir := range []string{"secrets", "a/.auth", "private_keys", "credentials"} {
		boxes.Put(t, env.Root, map[string]string{
			dir + "/db.json": `{"password":"kX9vQ2mLr7TzWp4B"}`, dir + "/deep/.env": "TOKEN=kX9vQ2mLr7TzWp4B", dir + "/code.py": "x = 1",
			dir + "/r/.git/config": "[core]\n", dir + "/r/.git/HEAD": "ref: refs/heads/main\n", dir + "/r/.git/hooks/x": "",
			dir + "/.vscode/tasks.json": "{}",
		})
		for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
			for text, want := range map[string]bool{
				"cat " + dir[:3] + "*/*db.json || cat " + dir + "/d*.json": false, "cat " + dir + "/d*/.e*": false, "cat " + dir + "/code.py": true,
			} {
				if code, out, _ := boxes.Run(t, env, tool.Box{Level: level}, text); want != (code == 0) || strings.Contains(out, "kX9v") {
					t.Errorf("%s box: %s: exit code %d\n%s", level, text, code, out)
				}
			}
		}
		for text, want := range map[string]bool{
			"echo x >>" + dir + "/r/.git/config": false, "echo x >" + dir + "/r/.git/hooks/post-commit": false, "echo x >>" + dir + "/.vscode/tasks.json": false,
			"echo 2 >" + dir + "/new.py && echo 3 >>" + dir + "/code.py": true,
		} {
			if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, text); want != (code == 0) {
				t.Errorf("%s: exit code %d\n%s", text, code, out)
			}
		}
		for _, name := range []string{"/n/.vscode", "/n/.envrc"} {
			boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "mkdir -p "+dir+"/n; mkdir "+dir+name)
			if !boxes.Gone(filepath.Join(env.Root, dir+name)) {
				t.Errorf("%s%s stays", dir, name)
			}
		}
		boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "mkdir -p "+dir+"/q/.git/hooks && cd "+dir+"/q/.git && mkdir objects refs && echo x >HEAD && echo x >config && echo x >hooks/post-commit")
		boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "cd "+dir+"/q/.git && mkdir -p hooks; echo y >config; echo y >hooks/post-commit")
		for _, name := range []string{"/q/.git/config", "/q/.git/hooks/post-commit"} {
			if !boxes.Gone(filepath.Join(env.Root, dir+name)) {
				t.Errorf("%s%s stays", dir, name)
			}
		}
	}
}

// TestModes checks that a box makes no file that runs as its owner.
func TestModes(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	const py = "import os, stat; "
	for _, text := range []string{
		"chmod 4755 plain && test -u plain", "chmod 2755 plain && test -g plain", "python3 -c '" + py +
			"os.fchmod(os.open(\"plain\", 0), 0o4755)' && test -u plain",
		"python3 -c '" + py + "os.open(\"new\", os.O_CREAT|os.O_WRONLY, 0o4755)' && test -u new", "python3 -c '" + py +
			"os.mknod(\"node\", 0o104755)' && test -u node",
	} {
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxWorkspace} {
			code, out, _ := boxes.Run(t, env, tool.Box{Level: level}, "rm -f new node; chmod 644 plain; "+text)
			if (level == tool.BoxNone) != (code == 0) {
				t.Errorf("%q box: %s: exit code %d\n%s", level, text, code, out)
			}
		}
	}
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace},
		"chmod 755 plain && chmod +t a && echo x >n && mkdir -m 700 e"); code != 0 {
		t.Error(out)
	}
}

// TestNoTemporary checks boxes where the folder for temporary files is missing.
func TestNoTemporary(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxRead)
	t.Setenv("TMPDIR", filepath.Join(env.Root, "none"))
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxRead}, "echo x >$TMPDIR/x"); code != 0 {
		t.Error(out)
	}
}

// TestWorktrees checks work in a worktree whose repository lies elsewhere, and
// new worktrees.
func TestWorktrees(t *testing.T) {
	t.Parallel()
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	other, _, _ := boxes.New(t)
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxNone},
		"rm -rf .git sub $WT && git init -q . && git config user.name x && git config user.email x@y && git add plain && git commit -qm one && "+
			"git worktree add -q $WT", "WT="+other.Root); code != 0 {
		t.Fatal(out)
	}
	box, vars := tool.Box{Level: tool.BoxWorkspace, Git: true}, "REPO="+env.Root
	for text, want := range map[string]bool{
		"echo x >new && git add new && git commit -qm two": true, "echo x >>$REPO/.git/hooks/x": false,
	} {
		if code, out, refused := boxes.Run(t, other, box, text, vars); want != (code == 0) || len(refused) > 0 {
			t.Errorf("%s: exit code %d, refused %q\n%s", text, code, refused, out)
		}
	}
	lead := filepath.Join(env.Root, ".git/worktrees/ws/commondir")
	if _, _, refused := boxes.Run(t, other, box, "echo x >>"+lead); len(refused) != 1 || boxes.Text(t, lead) != "../..\n" {
		t.Errorf("refused %q, and it leads to %q", refused, boxes.Text(t, lead))
	}
	boxes.Run(t, other, box, "echo x >>$REPO/plain", vars) // what it writes is gone with the box
	if data, err := os.ReadFile(filepath.Join(env.Root, "plain")); err != nil || string(data) != "plain" {
		t.Errorf("the other worktree holds %q, %v", data, err)
	}
	if _, _, refused := boxes.Run(t, other, box, "mkdir -p $REPO/.git/info; echo x >$REPO/.git/info/attributes", vars); len(refused) != 1 {
		t.Errorf("refused %q", refused)
	}
	if code, out, refused := boxes.Run(t, env, box, "git worktree add -q wt2 && cd wt2 && git status"); code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	if _, _, refused := boxes.Run(t, env, box, "git worktree add -q wt3 && echo /elsewhere >.git/worktrees/wt3/commondir"); len(refused) == 0 {
		t.Error("a false worktree stays")
	}
}

// TestBlind checks folders that can't be looked into: by their modes, which
// root doesn't mind, and since they lie too deep.
func TestBlind(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	deep := "python3 -c 'import os; [(os.mkdir(\"d\"*200), os.chdir(\"d\"*200)) for i in range(25)]; os.mkdir(\".vscode\")'"
	if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, deep); code != 0 || len(refused) == 0 {
		t.Errorf("deep: exit code %d, refused %q\n%s", code, refused, out)
	}
	if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "true"); code != 0 || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	if os.Geteuid() == 0 {
		t.Skip("ROOT LOOKS INTO EVERY FOLDER")
	}
	if code, out, refused := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "mkdir -p n/.git && chmod 311 n"); code != 0 ||
		len(refused) != 1 || !boxes.Gone(filepath.Join(env.Root, "n")) {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
}

// TestDevicesThatAreNamed checks that a device which a command names is one inside too.
func TestDevicesThatAreNamed(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	box := tool.Box{Level: tool.BoxWorkspace, Read: []string{"/dev/urandom", "/dev/zero"}}
	if code, out, _ := boxes.Run(t, env, box, "head -c 3 /dev/urandom >r && head -c 3 /dev/zero >z && wc -c <r"); code != 0 ||
		strings.TrimSpace(out) != "3" {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDebuggers checks that a debugger traces its own children, and neither the keeper of its box nor anything in a
// read box.
func TestDebuggers(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("there is no strace")
	}
	read := tool.Box{Level: tool.BoxRead}
	for _, tt := range []struct {
		box   tool.Box
		text  string
		works bool
	}{
		{boxes.Writable, "strace -o trace true && grep -q execve trace", true},
		{boxes.Writable, "sleep 60 & pid=$!; strace -o trace -p $pid & until test -s trace; do sleep 0.02; done; kill $pid", true},
		{boxes.Writable, "strace -o trace -p 1", false},
		{boxes.Writable, "cat /proc/1/mem", false},
		{boxes.Writable, "strace -f -o trace unshare -r true", false},
		{read, "strace true", false},
	} {
		if tt.box.Level == tool.BoxRead && !env.Walls.Read {
			continue
		}
		if code, out, _ := boxes.Run(t, env, tt.box, tt.text); (code == 0) != tt.works {
			t.Errorf("%s box: %s: exit code %d\n%s", tt.box.Level, tt.text, code, out)
		}
	}
}
