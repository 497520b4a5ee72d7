package keeper_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestOneLoopback checks that other boxes of the session reach a server on the loopback address of one box, with the
// clients that people use, and that nothing else does.
func TestOneLoopback(t *testing.T) {
	t.Parallel()
	client := t.TempDir()
	boxes.Put(t, client, map[string]string{
		"get.go": "package main\nimport (\"fmt\"; \"io\"; \"net/http\"; \"os\")\n" +
			"func main() { r, err := http.Get(os.Args[1]); if err != nil { panic(err) }; b, _ := io.ReadAll(r.Body); fmt.Print(string(b)) }\n",
	})
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "get", "get.go")
	build.Dir = client
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	boxes.Put(t, env.Root, map[string]string{"page": "served"})
	if err := os.Rename(filepath.Join(client, "get"), filepath.Join(env.Root, "get")); err != nil {
		t.Fatal(err)
	}
	boxes.Background(t, env, boxes.Writable, "exec python3 -m http.server 8123")
	boxes.Background(t, env, boxes.Writable, "exec python3 -m http.server 8124 --bind ::1")
	proxy := []string{"http_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NODE_USE_ENV_PROXY=1"}
	clients := map[string]string{
		"curl":    "curl -sf $URL/page",
		"python3": "python3 -c 'import os, urllib.request; print(urllib.request.urlopen(os.environ[\"URL\"]+\"/page\").read().decode())'",
		"node":    "node -e 'fetch(process.env.URL+\"/page\").then(r => r.text()).then(console.log)'", "go": "./get $URL/page",
	}
	for name, get := range clients {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("NO %s HERE", name)
			continue
		}
		for _, url := range []string{"http://localhost:8123", "http://127.0.0.1:8123", "http://[::1]:8124"} {
			for _, hosts := range [][]string{nil, {"example.com"}} {
				box := boxes.Writable
				box.Hosts = hosts
				if got := boxes.RunSoon(t, env, box, get, append(proxy, "URL="+url, "PATH="+os.Getenv("PATH"))...); got != "served" {
					t.Errorf("%s, %s, hosts %v: %q", name, url, hosts, got)
				}
			}
		}
	}
	if got := boxes.RunSoon(t, env, boxes.Writable,
		"python3 -m http.server 8125 >/dev/null 2>&1 & until curl -sf localhost:8125/page; do kill -0 $! || break; sleep 0.05; done"); got != "served" {
		t.Errorf("in the same command: %q", got)
	}
	for _, address := range []string{"127.0.0.1:8123", "[::1]:8124"} {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = c.Close()
			t.Errorf("%s is reached from outside", address)
		}
	}
	other, _, _ := boxes.New(t)
	if code, out, _ := boxes.Run(t, other, boxes.Writable, "curl -s -m 5 127.0.0.1:8123/page"); code == 0 {
		t.Errorf("reached from another session: %s", out)
	}
	if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxRead}, "exec 9<>/dev/tcp/127.0.0.1/8123"); code == 0 {
		t.Errorf("reached from a read box: %s", out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if code, out, _ := boxes.Run(t, env, boxes.Writable, fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port)); code == 0 {
		t.Errorf("reached what listens on the machine: %s", out)
	}
}

// TestOneTmp checks that the boxes of a session and its files see one /tmp,
// which is neither the machine's nor that of another session, and ends with it.
func TestOneTmp(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	unique := "own-" + rand.Text() + "-"
	own := func(text string) string { return strings.ReplaceAll(text, "own-", unique) }
	read := func(path string) (string, error) {
		path, err := env.Files.Resolve(t.Context(), path)
		if err != nil {
			return "", err
		}
		f, err := env.Files.Open(t.Context(), path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		return string(data), err
	}
	boxes.Succeeds(t, env, boxes.Writable,
		own("echo one >/tmp/own-x.log; echo two >$TMPDIR/own-y.log; echo three >/var/tmp/own-z.log; mkdir -p /tmp/own-d/e; ln -s /tmp/own-x.log ")+
			own("/tmp/own-d/e/l; echo plain | tee /tmp/own-t.log"))
	if got := boxes.Succeeds(t, env, boxes.Writable, own("cat /tmp/own-x.log $TMPDIR/own-y.log /var/tmp/own-z.log")); got != "one\ntwo\nthree\n" {
		t.Errorf("the next box: %q", got)
	}
	box := tool.Box{Level: tool.BoxRead, Read: []string{own("/tmp/own-x.log")}}
	boxes.Need(t, env, tool.BoxRead)
	if got := boxes.Succeeds(t, env, box, own("tail -n1 /tmp/own-x.log && seq 3 | sort -S1b >$TMPDIR/s && cat plain")); got != "one\nplain" {
		t.Errorf("a read box: %q", got)
	}
	for _, text := range []string{
		own("echo x >/tmp/own-x.log"), "echo x >/tmp/new", own("rm /tmp/own-x.log"), "echo x >plain",
		"exec 9<>/dev/tcp/127.0.0.1/8123", "grep secret .env", "cat $OUT/private",
	} {
		if code, out, _ := boxes.Run(t, env, box, text, "OUT="+filepath.Join(filepath.Dir(env.Root), "home")); code == 0 {
			t.Errorf("%s in a read box: %s", text, out)
		}
	}
	for path, want := range map[string]string{
		own("/tmp/own-x.log"): "one\n", own("/tmp/own-d/e/l"): "one\n", own("/var/tmp/own-z.log"): "three\n",
		filepath.Join(env.Root, "plain"): "plain",
	} {
		if got, err := read(path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if ours := strings.Contains(path, unique); env.IsTemporary(path, false) != ours || env.IsTemporary(path, true) != ours {
			t.Errorf("%s: is it the session's?", path)
		}
	}
	if err := env.Files.Change(t.Context(), tool.Change{Path: own("/tmp/own-w/new"), Data: []byte("written"), Exact: true}); err != nil {
		t.Error(err)
	}
	if got := boxes.Succeeds(t, env, boxes.Writable, own("cat /tmp/own-w/new && echo more >>/tmp/own-w/new")); got != "written" {
		t.Errorf("what a tool has written: %q", got)
	}
	left, _ := filepath.Glob(own("/tmp/own-*"))
	if more, _ := filepath.Glob(own("/var/tmp/own-*")); len(left)+len(more) > 0 {
		t.Errorf("on the machine: %q, %q", left, more)
	}
	if _, err := env.Unwalled().Files.Open(t.Context(), own("/tmp/own-x.log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without walls: %v", err)
	}
	other, _, _ := boxes.New(t)
	boxes.Succeeds(t, other, boxes.Writable, own("test ! -e /tmp/own-x.log"))
	boxes.Succeeds(t, env, boxes.Writable, own("chmod -R a-w /tmp/own-d"))
	boxes.Close(t, env)
	boxes.Succeeds(t, env, boxes.Writable, own("test ! -e /tmp/own-x.log")) // opened anew
}

// TestTmpOfTheMachine checks that an opened path in the machine's /tmp can be read, stays as it is, and leaves nothing
// in the session's.
func TestTmpOfTheMachine(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	dir, err := os.MkdirTemp("/tmp", "machine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	boxes.Put(t, dir, map[string]string{"f": "theirs"})
	path := filepath.Join(dir, "f")
	box := tool.Box{Level: tool.BoxWorkspace, Read: []string{path}}
	if got := boxes.Succeeds(t, env, box, "cat "+path); got != "theirs" {
		t.Errorf("read %q", got)
	}
	if code, out, _ := boxes.Run(t, env, box, "echo x >"+path); code == 0 {
		t.Errorf("written: %s", out)
	}
	if got := boxes.Succeeds(t, env, tool.Box{Level: tool.BoxRead, Read: []string{path}}, "cat "+path); got != "theirs" {
		t.Errorf("a read box: %q", got)
	}
	if own, boxed := env.IsTemporary(path, false), env.IsTemporary(path, true); own || !boxed {
		t.Errorf("is it the session's? %v; in a box? %v", own, boxed)
	}
	boxes.Succeeds(t, env, boxes.Writable, "test ! -e "+dir+" && mkdir "+dir+" && echo own >"+path)
	if got := boxes.Succeeds(t, env, box, "cat "+path); got != "own\n" {
		t.Errorf("read %q", got)
	}
	if f, err := env.Files.Open(t.Context(), path); err != nil {
		t.Error(err)
	} else if data, _ := io.ReadAll(f); string(data) != "own\n" || f.Close() != nil {
		t.Errorf("the session's own is not seen: %q", data)
	}
	if data, err := os.ReadFile(path); string(data) != "theirs" {
		t.Errorf("%q, %v", data, err)
	}
	box.Write = []string{path} // whoever names it means the machine's
	boxes.Succeeds(t, env, box, "echo x >"+path)
	if data, err := os.ReadFile(path); string(data) != "x\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestTmpAfterKill checks that the next session removes the folders of killed sessions, and none that is still used.
func TestTmpAfterKill(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	t.Setenv("TMPDIR", t.TempDir())
	folders := func() []string {
		list, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "inspan-session-*"))
		return list
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_PARENT=1", "SANDBOX_TEST_LEVEL=workspace",
		"SANDBOX_TEST_MARK=none", "SANDBOX_TEST_ROOT="+env.Root)
	out := &boxes.Ready{Done: make(chan struct{})}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-out.Done
	boxes.Succeeds(t, env, boxes.Writable, "echo x >/tmp/mine")
	if list := folders(); len(list) != 2 {
		t.Errorf("folders of two sessions: %q", list)
	}
	keepers := keepersOf(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	testkit.WaitFor(t, "all to end that the killed one has left", func() bool {
		next, _, _ := boxes.New(t)
		boxes.Succeeds(t, next, boxes.Writable, "true")
		boxes.Close(t, next)
		return len(folders()) == 1 && !slices.ContainsFunc(keepers, boxes.Running)
	}, func() string { return fmt.Sprintf("folders %q, processes %d", folders(), keepers) })
	boxes.Succeeds(t, env, boxes.Writable, "cat /tmp/mine")
	boxes.Close(t, env)
	if list := folders(); len(list) != 0 {
		t.Errorf("after the end: %q", list)
	}
}

// TestTmpAtOnce checks that sessions which begin and end at once leave each
// other's folders alone.
func TestTmpAtOnce(t *testing.T) {
	first, _, _ := boxes.New(t)
	boxes.Need(t, first, tool.BoxWorkspace)
	pool, name := &sandbox.Pool{}, rand.Text()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 25 {
				env, err := sandbox.Local(first.Root, nil, sandbox.Options{Self: "/proc/self/exe", Pool: pool})
				if err != nil {
					t.Error(err)
					return
				}
				path := fmt.Sprintf("/tmp/%s-%d", name, i)
				err = env.Files.Change(t.Context(), tool.Change{Path: path, Data: []byte("x"), IfDigest: tool.NoFile})
				f, err2 := env.Files.Open(t.Context(), path)
				if err = errors.Join(err, err2); err == nil {
					err = f.Close()
				}
				if err := errors.Join(err, env.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestGrantsStayApart checks that no other box of the session can use the proxy
// of a command that may reach a host.
func TestGrantsStayApart(t *testing.T) {
	server, env := reachable(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	granted := tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"allowed.example"}}
	get := "curl -s -m 60 -o /dev/null -w '%{http_code}' http://allowed.example:" + server
	boxes.Background(t, env, granted, "env >/tmp/granted; while sleep 0.05; do "+get+" >/tmp/code; done")
	if got := boxes.RunSoon(t, env, boxes.Writable, "grep 200 /tmp/code"); got != "200" {
		t.Fatalf("the command that may: %q", got)
	}
	attempts := []string{
		"http_proxy=$(grep ^HTTP_PROXY= /tmp/granted | cut -d= -f2-) " + get,
		"for p in $(awk '$4 == \"0A\" { print $2 }' /proc/net/tcp | cut -d: -f2); do http_proxy=http://127.0.0.1:$((16#$p)) " + get +
			" && echo; done",
		"for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$f | grep -i allowed.example; done; false",
	}
	for _, box := range []tool.Box{boxes.Writable, {Level: tool.BoxWorkspace, Hosts: []string{"other.example"}}} {
		for _, text := range attempts {
			if code, out, _ := boxes.Run(t, env, box, text); strings.Contains(out, "200") {
				t.Errorf("%s: exit code %d, %s", text, code, out)
			}
		}
	}
	if got := boxes.RunSoon(t, env, granted, get+" | grep 200"); got != "200" {
		t.Errorf("another that may: %q", got)
	}
}

func BenchmarkBox(b *testing.B) {
	env, _, _ := boxes.New(b)
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		b.Run(string(level), func(b *testing.B) {
			for b.Loop() {
				var out bytes.Buffer
				p, err := env.Procs.Start(b.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Output: &out, Box: tool.Box{Level: level}})
				if err != nil {
					b.Fatal(err)
				}
				if code, err := p.Wait(); code != 0 || err != nil {
					b.Fatal(code, err)
				}
			}
		})
	}
}

// BenchmarkKeeperMemory reads the private memory of a waiting keeper, in KB: memory shared with inspan and other
// keepers, such as the program, does not count.
func BenchmarkKeeperMemory(b *testing.B) {
	env := boxes.Kept(b)
	var private int
	for b.Loop() {
		p, err := env.Procs.Start(b.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
		private = 0
		for _, pid := range keepersOf(os.Getpid()) {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
			if err != nil {
				b.Skip(err)
			}
			for line := range strings.Lines(string(raw)) {
				var kb int
				if n, _ := fmt.Sscanf(line, "Private_Clean: %d kB", &kb); n == 0 {
					_, _ = fmt.Sscanf(line, "Private_Dirty: %d kB", &kb)
				}
				private += kb
			}
		}
	}
	b.ReportMetric(float64(private), "KB")
	b.ReportMetric(0, "ns/op")
}

// TestCloseBeforeTheEnd checks that an environment can be closed before the processes in its boxes have ended.
func TestCloseBeforeTheEnd(t *testing.T) {
	env, _, _ := boxes.New(t) // its workspace stands in the session's /tmp
	boxes.Need(t, env, tool.BoxWorkspace)
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sleep", "60"}, Dir: env.Root, Box: boxes.Writable})
	if err != nil {
		t.Fatal(err)
	}
	boxes.Close(t, env)
	p.Kill()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	boxes.Succeeds(t, env, boxes.Writable, "true")
}
