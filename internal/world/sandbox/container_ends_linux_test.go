package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// lingering leaves processes in every way that a shell has.
const lingering = `sleep 300 & setsid sleep 300 & (nohup sleep 300 >/dev/null 2>&1 &); trap '' TERM HUP; echo ready; while :; do sleep ` +
	`1; done`

// dockedVictim starts a command in a container for each line it reads, says
// "started" when it has, and waits to be killed.
func dockedVictim() {
	in := strings.Split(os.Getenv("SANDBOX_TEST_DOCK"), ",")
	env, err := sandbox.Local(in[3], nil, sandbox.Options{
		Self: in[2], Default: tool.Level(in[4]),
		Container: &sandbox.Container{Engine: in[0], Image: in[1]},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("open", env.Walls.Why)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		go func() {
			if _, err := env.Procs.Start(context.Background(), tool.Command{
				Args: []string{"sh", "-c", lingering},
				Dir:  env.Root, Output: os.Stdout,
			}); err != nil {
				fmt.Println("failed", err)
			}
		}()
	}
	select {}
}

// victim starts another process that starts containers.
func (d *dock) victim(t *testing.T, level tool.Level) (kill func(), say func(), heard *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_DOCK="+strings.Join([]string{d.engine, d.image, d.self, t.TempDir(), string(level)}, ","))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	heard = bufio.NewScanner(out)
	if !heard.Scan() || heard.Text() != "open " {
		t.Fatalf("heard %q", heard.Text())
	}
	return kill, func() { fmt.Fprintln(in) }, heard
}

// TestContainersEndWithUs kills the one who started containers, when they run
// and at moments while they start.
func TestContainersEndWithUs(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
			kill, say, heard := d.victim(t, level)
			say()
			say()
			for range 2 {
				if !heard.Scan() || heard.Text() != "ready" {
					t.Fatalf("%s: heard %q", level, heard.Text())
				}
			}
			if n := len(d.list(t)); n != 2 {
				t.Errorf("%s: %d containers run", level, n)
			}
			kill()
			d.empty(t)
		}
		for i := range 8 {
			kill, say, _ := d.victim(t, tool.BoxWorkspace)
			say()
			wait := time.NewTimer(time.Duration(i) * 60 * time.Millisecond)
			<-wait.C
			kill()
			// What is not begun yet is not to be seen yet.
			d.quiet(t)
		}
	})
}

// quiet waits until the clients of the engine are gone and no container is left.
func (d *dock) quiet(t *testing.T) {
	t.Helper()
	testkit.WaitFor(t, "the clients of the engine to end", func() bool { return len(boxes.Marked(d.image)) == 0 })
	d.empty(t)
}

// first returns the process of this machine that is the first of a container.
func (d *dock) first(t *testing.T) int {
	t.Helper()
	list := d.list(t)
	if len(list) != 1 {
		t.Fatalf("containers are %q", list)
	}
	out, err := d.command("inspect", "--format", "{{.State.Pid}}", list[0]).Output()
	pid, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || bad != nil || pid < 2 {
		t.Fatalf("first process: %q, %v", out, err)
	}
	return pid
}

// TestContainerKeeperFails checks keepers in containers that are stopped or
// killed.
func TestContainerKeeperFails(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, _, _ := d.boxedIn(t)
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			p, err := boxes.Begin(t.Context(), env, tool.BoxWorkspace, "echo ready; sleep 300")
			if err != nil {
				t.Fatal(err)
			}
			pid := d.first(t)
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
			if sig == syscall.SIGSTOP {
				p.Kill()
			}
			if code, err := p.Wait(); err == nil {
				t.Errorf("%v: the end is known to be %d", sig, code)
			}
			p.Kill()
			d.empty(t)
		}
	})
}

// TestContainerLeaves checks that processes left by a command run on until they are ended, and are reported.
func TestContainerLeaves(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, _, _ := d.boxedIn(t)
		for text, want := range map[string]bool{"true": false, "setsid sleep 300 >/dev/null 2>&1 & echo": true} {
			p, err := env.Procs.Start(t.Context(), tool.Command{
				Args: []string{"sh", "-c", text},
				Dir:  env.Root, Box: tool.Box{Level: tool.BoxWorkspace},
			})
			if err != nil {
				t.Fatal(err)
			}
			if code, err := p.Wait(); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			if left := p.(ability.Leaver).Left(); left != want {
				t.Errorf("%s: left is %v", text, left)
			}
			if want && len(d.list(t)) != 1 {
				t.Errorf("%s: containers are %q", text, d.list(t))
			}
			p.Kill()
			d.empty(t)
		}
	})
}

// TestContainersOfTheDead checks that containers of processes that are no more
// are removed by the next, and no others.
func TestContainersOfTheDead(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, _, _ := d.boxedIn(t)
		p, err := boxes.Begin(t.Context(), env, tool.BoxWorkspace, "echo ready; sleep 300")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		ours := d.list(t)[0]
		parts := strings.Split(ours, "-")
		if len(parts) != 6 || parts[3] != strconv.Itoa(os.Getpid()) {
			t.Fatalf("the name is %s", ours)
		}
		with := func(i int, text string) string {
			other := append([]string(nil), parts...)
			other[i], other[5] = text, rand.Text()
			return strings.Join(other, "-")
		}
		dead := []string{with(1, "anotherboot"), with(3, "999999999"), with(4, "1")}
		elsewhere := strings.Replace(with(2, "anothernamespace"), "-"+parts[3]+"-", "-999999999-", 1)
		keep := []string{ours, elsewhere, with(5, "x"), "inspan-not-ours" + rand.Text(), "inspan-a-b-c-d-" + rand.Text()}
		for _, name := range append(append([]string(nil), dead...), keep[1:]...) {
			if err := d.run("create", "--name", name, "--network=none", d.image, "true"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.run("rm", "--force", name) })
		}
		d.boxedIn(t)
		left := strings.Join(d.list(t), " ")
		for _, name := range dead {
			if strings.Contains(left, name) {
				t.Errorf("%s is left", name)
			}
		}
		for _, name := range keep {
			if !strings.Contains(left, name) {
				t.Errorf("%s was removed", name)
			}
		}
	})
}

// stub is an engine that records its commands and does what the test says.
func stub(t *testing.T, run string) (engine, notes string) {
	t.Helper()
	dir := t.TempDir()
	engine, notes = filepath.Join(dir, "engine"), filepath.Join(dir, "notes")
	text := "#!/bin/sh\nprintf '%s\\n' \"$@\" >>" + notes + "\ncase $1 in --version) echo Docker version 1 ;; image) echo id ;; run) " +
		run + " ;; esac\n"
	if err := os.WriteFile(engine, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return engine, notes
}

// TestEngineIsTold checks the command line of the engine: the required arguments, and that it contains no secret.
func TestEngineIsTold(t *testing.T) {
	self := keeperHere(t)
	engine, notes := stub(t, "echo no way >&2; exit 125")
	root := t.TempDir()
	boxes.Put(t, root, map[string]string{".env": "x", "a:b,c/.env": "x"})
	for _, tt := range []struct {
		box  tool.Box
		want []string
		not  []string
	}{
		{tool.Box{Level: tool.BoxRead}, []string{
			"--rm", "--pull=never", "--network=none", "--read-only", "--cap-drop=ALL",
			"--security-opt=no-new-privileges", "--pids-limit=77", "--memory=123456789", "type=bind,source=" + root + ",target=" + root +
				",readonly", "--user=" + strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid()), "--", "the/image",
		}, nil},
		{tool.Box{Level: tool.BoxWorkspace}, []string{
			"--network=none", "--read-only",
			"--cap-drop=ALL", "--pids-limit=77", "type=bind,source=" + root + ",target=" + root,
		}, nil},
		{
			tool.Box{Level: tool.BoxNone},
			[]string{"--rm", "--pull=never", "type=bind,source=" + root + ",target=" + root, "--", "the/image"},
			[]string{"--network=none", "--read-only", "--cap-drop=ALL"},
		},
	} {
		env, err := sandbox.Local(root, nil, sandbox.Options{
			Self: self, Limits: sandbox.Limits{Processes: 77, Memory: 123456789},
			Container: &sandbox.Container{Image: "the/image", Engine: engine},
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Join(root, "a:b,c"))
		_ = os.Remove(notes)
		_, err = env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"sh", "-c", "hidden-1"},
			Env:  []string{"TOKEN=hidden-2"}, Dir: root, Box: tt.box,
		})
		if !errors.Is(err, tool.ErrNoBox) || !strings.Contains(err.Error(), "no way") {
			t.Errorf("%s: %v", tt.box.Level, err)
		}
		told, err := os.ReadFile(notes)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains("\n"+string(told), "\n"+want+"\n") {
				t.Errorf("%s: %s is missing in\n%s", tt.box.Level, want, told)
			}
		}
		for _, not := range append(tt.not, "hidden-1", "hidden-2") {
			if bytes.Contains(told, []byte(not)) {
				t.Errorf("%s: %s is in\n%s", tt.box.Level, not, told)
			}
		}
		boxes.Put(t, root, map[string]string{"a:b,c/.env": "x"})
		_, err = env.Procs.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: root, Box: tt.box})
		if want := tt.box.Level != tool.BoxNone; !errors.Is(err, tool.ErrNoBox) || want != strings.Contains(err.Error(), "a:b,c/.env") {
			t.Errorf("%s: with a path that can't be told: %v", tt.box.Level, err)
		}
	}
}

// TestContainerStartCancelled checks that an engine that hangs can be left.
func TestContainerStartCancelled(t *testing.T) {
	self := keeperHere(t)
	engine, notes := stub(t, "[ -e "+t.TempDir()+" ] && echo $$ >${0%/*}/pid.new && mv ${0%/*}/pid.new ${0%/*}/pid; exec sleep 300")
	pid := filepath.Join(filepath.Dir(engine), "pid")
	started := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	state := t.TempDir()
	// The walls are known, so that nothing is tried.
	pool := &sandbox.Pool{}
	quick, _ := stub(t, "exit 1")
	if _, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: self, Pool: pool,
		Container: &sandbox.Container{Image: "x", Engine: quick},
	}); err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: self, Pool: pool, State: state,
		Container: &sandbox.Container{Image: "x", Engine: engine},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := env.Procs.Start(ctx, tool.Command{Args: []string{"true"}, Dir: env.Root})
		started <- err
	}()
	var client int
	testkit.WaitFor(t, "the client of the engine", func() bool {
		data, _ := os.ReadFile(pid)
		client, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return client > 0
	})
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("the start ended with %v", err)
	}
	if boxes.Running(client) {
		t.Error("the client of the engine runs on")
	}
	if told, err := os.ReadFile(notes); err != nil || !strings.Contains(string(told), "rm\n--force") {
		t.Errorf("the engine was told %q, %v", told, err)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "container-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestContainerIsChecked checks that nothing starts in a container that is less closed than requested.
func TestContainerIsChecked(t *testing.T) {
	d := needDock(t, "podman")
	real, err := exec.LookPath(d.engine)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]string{
		"as told":          `false) ;;`,
		"more privileges":  `--cap-drop=ALL | --security-opt=no-new-privileges) continue ;;`,
		"a network":        `--network=none) continue ;;`,
		"a root to write":  `--read-only) continue ;;`,
		"a mount to write": `*target=*/ws/.git,readonly) a=${a%,readonly} ;;`,
		"another mount":    `*target=*/ws/.env,readonly) a=type=bind,source=/etc/passwd,target=${a#*target=} ;;`,
		"no mount":         `*target=*/ws/.env,readonly) a=type=bind,source=/etc/passwd,target=/elsewhere ;;`,
	} {
		engine := filepath.Join(t.TempDir(), "podman")
		text := "#!/bin/sh\nfor a; do shift; case $a in " + change + " esac; set -- \"$@\" \"$a\"; done\nexec " + real + " \"$@\"\n"
		if err := os.WriteFile(engine, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		altered := *d
		altered.engine = engine
		root, _, _ := boxes.New(t)
		env, err := sandbox.Local(root.Root, nil, altered.options())
		if err != nil {
			t.Fatal(err)
		}
		p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{
			"sh", "-c",
			"grep -c -E '^(Cap(Eff|Prm|Inh|Bnd|Amb):\t0{16}|NoNewPrivs:\t1)$' /proc/self/status | grep 6 && touch " +
				"started",
		}, Dir: env.Root, Box: tool.Box{Level: tool.BoxWorkspace}})
		if err == nil {
			_, err = p.Wait()
		}
		if name == "as told" || name == "more privileges" { // the keeper gives those up itself
			if err != nil || boxes.Gone(filepath.Join(env.Root, "started")) {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.Is(err, tool.ErrNoBox) || !strings.Contains(err.Error(), "check the container") ||
			!boxes.Gone(filepath.Join(env.Root, "started")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.empty(t)
}

// options make containers of the image.
func (d *dock) options() sandbox.Options {
	return sandbox.Options{Self: d.self, Container: &sandbox.Container{Image: d.image, Engine: d.engine}}
}
