package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// boxedIn is boxed in containers.
func (d *dock) boxedIn(t testing.TB) (env tool.Env, home, state string) {
	t.Helper()
	env, home, state = boxes.New(t)
	env, err := sandbox.Local(env.Root, nil, sandbox.Options{
		Self: d.self, Map: places.Map{Home: home, State: []string{state}}, State: state,
		Container: &sandbox.Container{Image: d.image, Engine: d.engine},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !env.Walls.Read || !env.Walls.Workspace || env.Walls.Hosts || env.Walls.Why != "" {
		t.Fatalf("walls are %+v", env.Walls)
	}
	return env, home, state
}

// numbered keeps the numbers of processes of different containers apart: the
// suite looks for processes by their numbers, and each container starts at 1.
type numbered struct{ tool.Procs }

// Start implements [tool.Procs].
func (n numbered) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	if len(c.Args) == 3 && c.Args[0] == "sh" {
		first := "60"
		if strings.Contains(c.Args[2], "/status") || strings.HasPrefix(c.Args[2], "kill -9") {
			first = "200" // it looks for one
		}
		c.Args = []string{"sh", "-c", `i=$$; while [ $i -lt ` + first + ` ]; do (:); i=$((i+1)); done; exec sh -c "$1"`, "sh", c.Args[2]}
	}
	return n.Procs.Start(ctx, c)
}

func TestContained(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxWorkspace} {
			if testing.Short() && level == tool.BoxNone {
				continue
			}
			t.Run(string(level), func(t *testing.T) {
				pool := &sandbox.Pool{}
				harnesstest.TestEnv(t, func(t *testing.T) tool.Env {
					env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
						Self: d.self, Default: level, Pool: pool,
						Container: &sandbox.Container{Image: d.image, Engine: d.engine},
					})
					if err != nil {
						t.Fatal(err)
					}
					env.Procs = numbered{env.Procs}
					return env
				})
			})
		}
		d.empty(t)
	})
}

func TestProbeContainer(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		checks := sandbox.Probe(t.Context(), sandbox.Options{Self: d.self, Container: &sandbox.Container{Image: d.image, Engine: d.engine}})
		if len(checks) < 20 {
			t.Errorf("only %d checks", len(checks))
		}
		for _, c := range checks {
			t.Logf("%v %s: %s", c.OK, c.Name, c.Text)
			if !c.OK {
				t.Errorf("%s: %s", c.Name, c.Text)
			}
		}
		d.empty(t)
	})
}

// TestNoContainer checks the errors without an engine or an image, and that nothing starts then, least of all without a
// container.
func TestNoContainer(t *testing.T) {
	empty := t.TempDir()
	stub := filepath.Join(empty, "stub")
	if err := os.WriteFile(stub,
		[]byte("#!/bin/sh\ncase $1 in --version) echo podman version 9 ;; *) echo no such image >&2; exit 125 ;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(empty, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	self := keeperHere(t)
	t.Setenv("PATH", filepath.Join(empty, "none"))
	for _, tt := range []struct {
		name string
		o    sandbox.Options
		want string
	}{
		{"no engine", sandbox.Options{Self: self, Container: &sandbox.Container{Image: "x"}}, "install podman or docker"},
		{"no such engine", sandbox.Options{Self: self, Container: &sandbox.Container{Image: "x", Engine: "/nowhere/podman"}}, "/nowhere/podman"},
		{"no image named", sandbox.Options{Self: self, Container: &sandbox.Container{Engine: stub}}, "no image"},
		{"no keeper", sandbox.Options{Container: &sandbox.Container{Image: "x", Engine: stub}}, "keeper"},
		{"no image", sandbox.Options{Self: self, Container: &sandbox.Container{Image: "some/image", Engine: stub}}, "stub pull some/image"},
		{"libraries", sandbox.Options{Self: "/usr/bin/env", Container: &sandbox.Container{Image: "x", Engine: stub}}, "CGO_ENABLED=0"},
	} {
		env, err := sandbox.Local(t.TempDir(), nil, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if w := env.Walls; w.Read || w.Workspace || w.Hosts || !strings.Contains(w.Why, tt.want) {
			t.Errorf("%s: walls are %+v, want %q", tt.name, w, tt.want)
		}
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
			_, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"/bin/touch", "started"}, Dir: env.Root, Box: tool.Box{Level: level}})
			if !errors.Is(err, tool.ErrNoBox) {
				t.Errorf("%s: %s: %v", tt.name, level, err)
			}
		}
		if !boxes.Gone(filepath.Join(env.Root, "started")) {
			t.Errorf("%s: it was started all the same", tt.name)
		}
		if checks := sandbox.Probe(t.Context(), tt.o); len(checks) == 0 || checks[len(checks)-1].OK ||
			!strings.Contains(checks[len(checks)-1].Text, tt.want) {
			t.Errorf("%s: checks are %+v", tt.name, checks)
		}
	}
}

// TestContainerWalls checks what boxes in containers allow and deny.
func TestContainerWalls(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, home, state := d.boxedIn(t)
		boxes.Put(t, env.Root, map[string]string{"with, comma/.env": "secret", "with:colon/.env": "secret", "with space/.env": "secret"})
		more, err := os.MkdirTemp(os.Getenv("HOME"), "inspan-test-") // what lies in /tmp is the session's
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(more) })
		boxes.Put(t, more, map[string]string{"f": "f"})
		outer := d.outside(t)
		none, read, ws := tool.Box{Level: tool.BoxNone}, tool.Box{Level: tool.BoxRead}, tool.Box{Level: tool.BoxWorkspace}
		for _, tt := range []struct {
			box  tool.Box
			text string
			want bool
		}{
			{none, "echo x >n && echo x >.git/hooks/n && cat .env && echo x >/opt/n && test $OF_THE_IMAGE = yes && cat /etc/of-the-image", true},
			{none, "cat " + home + "/private || cat " + state + "/session", false},
			{read, "cat plain a/b/ok /etc/of-the-image && echo x >$TMPDIR/x && cp /bin/true /tmp/true && /tmp/true", true},
			{read, "echo x >$HOME/x && cat /proc/self/status | grep -c -E '^(Cap(Eff|Prm|Inh|Bnd|Amb):\t0{16}|NoNewPrivs:\t1)$' | grep 6", true},
			{read, "echo x >n2", false},
			{read, "chmod 700 plain", false},
			{read, "cat .env || cat a/b/.env || cat keys/x.pem || cat 'with, comma/.env' || cat with:colon/.env || cat 'with space/.env'", false},
			{read, "cat " + home + "/private || cat " + state + "/session", false},
			{read, "echo x >/opt/n || echo x >/etc/n || echo x >/n", false},
			{read, "chown 1:1 plain || mount -t tmpfs x /tmp || umount /tmp || mknod n b 1 1", false},
			{read, "ip link set lo down", false},
			{read, "cat " + more + "/f", false},
			{tool.Box{Level: tool.BoxRead, Read: []string{more}}, "cat " + more + "/f && ! echo x >" + more + "/f", true},
			{ws, "echo x >n2 && mkdir d && rm n2 && mv plain p && mv p plain && echo x >$XDG_CACHE_HOME/x", true},
			{ws, "cat $XDG_CACHE_HOME/x", true},
			{ws, "cat .env || rm .env || echo x >.env || mv .env e", false},
			{ws, "echo x >.git/hooks/old || echo x >.git/config || mv .git g || rm -r .git || echo x >sub/.git/config || mv sub s || echo x " +
				">.mcp.json", false},
			{
				tool.Box{Level: tool.BoxWorkspace, Git: true},
				"echo x >.git/HEAD && mkdir .git/objects && ! echo x >.git/config && ! echo x >.git/hooks/old && ! mv .git g", true,
			},
			{tool.Box{Level: tool.BoxWorkspace, Write: []string{more}}, "echo x >" + more + "/f", true},
			{tool.Box{Level: tool.BoxWorkspace, Write: []string{filepath.Join(env.Root, ".mcp.json")}}, "echo x >.mcp.json", true},
			{ws, "chmod 4755 plain", false},
			{ws, "echo x >/etc/n || echo x >" + home + "/n", false},
			{ws, "kill -9 1; kill -0 1", true},
			{ws, "echo x >/tmp/own && echo x >$TMPDIR/more && test ! -w " + more, true},
			{ws, "cat /tmp/own /tmp/more && test -e plain", true},
			{tool.Box{Level: tool.BoxRead, Read: []string{"/tmp/own"}}, "cat /tmp/own plain && ! echo x >/tmp/own && echo x >$TMPDIR/x", true},
			{ws, "cat /proc/1/environ || cat /.inspan-door/* || echo x >/.inspan-keeper || cat /proc/1/mem", false},
			{ws, "env | grep " + outer, false},
		} {
			code, out, refused := inside(t, env, tt.box, tt.text)
			if tt.want != (code == 0) || len(refused) > 0 {
				t.Errorf("%s: %s: exit code %d, refused %q\n%s", tt.box.Level, tt.text, code, refused, out)
			}
		}
		d.empty(t)
	})
}

// outside sets a variable that no container may see, and returns its value.
func (d *dock) outside(t *testing.T) string {
	value := rand.Text()
	t.Setenv("HARNESS_OUTSIDE", value)
	t.Setenv("HTTPS_PROXY", "http://"+value)
	return value
}

// inside is script without an environment of its own.
func inside(t testing.TB, env tool.Env, box tool.Box, text string) (int, string, []string) {
	t.Helper()
	var out bytes.Buffer
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: &out, Box: box})
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return -1, "", nil
	}
	code, err := p.Wait()
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	p.Kill()
	return code, out.String(), p.(ability.Refuser).Refused()
}

// TestContainerTakesAway checks that forbidden files that appear in the workspace are removed.
func TestContainerTakesAway(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, _, _ := d.boxedIn(t)
		_, out, refused := inside(t, env, tool.Box{Level: tool.BoxWorkspace},
			"mkdir -p new/.git/hooks .vscode; echo x >new/.git/hooks/x; echo x >ok")
		if len(refused) != 2 || !boxes.Gone(filepath.Join(env.Root, "new/.git")) ||
			!boxes.Gone(filepath.Join(env.Root, ".vscode")) || boxes.Gone(filepath.Join(env.Root, "ok")) {
			t.Errorf("refused %q\n%s", refused, out)
		}
		_, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"true"}, Dir: env.Root,
			Box: tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"example.com"}},
		})
		if !errors.Is(err, tool.ErrNoBox) {
			t.Errorf("with hosts: %v", err)
		}
		d.empty(t)
	})
}

// TestContainerMounts checks that mounts in a workspace are as closed as the rest of it.
func TestContainerMounts(t *testing.T) {
	engines(t, func(t *testing.T, d *dock) {
		env, _, _ := d.boxedIn(t)
		at := filepath.Join(env.Root, "a mount")
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
			t.Skip("NOTHING CAN BE MOUNTED HERE: ", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
		boxes.Put(t, env.Root, map[string]string{"a mount/plain": "plain", "a mount/.env": "secret"})
		for level, want := range map[tool.Level]bool{tool.BoxRead: false, tool.BoxWorkspace: true} {
			box := tool.Box{Level: level}
			if code, out, _ := inside(t, env, box, "cat 'a mount/plain' && ! cat 'a mount/.env'"); code != 0 {
				t.Errorf("%s: %s", level, out)
			}
			if code, out, _ := inside(t, env, box, "echo x >'a mount/new'"); want != (code == 0) {
				t.Errorf("%s: writing ends with %d: %s", level, code, out)
			}
		}
	})
}

func BenchmarkContained(b *testing.B) {
	for _, name := range []string{"podman", "docker"} {
		for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
			b.Run(name+"/"+string(level), func(b *testing.B) {
				env, _, _ := needDock(b, name).boxedIn(b)
				for b.Loop() {
					inside(b, env, tool.Box{Level: level}, "true")
				}
			})
		}
	}
}
