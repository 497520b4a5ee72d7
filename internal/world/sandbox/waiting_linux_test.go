package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

// TestFlat checks that where no overlay can be laid over a repository it is closed, and never open itself.
func TestFlat(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := Local(t.TempDir(), nil, Options{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = env.Close() }()
	if !env.Walls.Workspace {
		t.Skipf("THE BOX CAN'T BE BUILT HERE: %s", env.Walls.Why)
	}
	if err := os.MkdirAll(env.Root+"/.git/refs", 0o755); err != nil {
		t.Fatal(err)
	}
	env.Procs.(*procs).boxes.flat.Store(true)
	for _, mixed := range []bool{false, true} {
		p, err := env.Procs.Start(t.Context(), tool.Command{
			Args: []string{"sh", "-c", "echo x >here; echo x >.git/refs/x"}, Dir: env.Root, Box: tool.Box{Level: tool.BoxWorkspace, Git: true, Mixed: mixed},
		})
		if err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(); code == 0 || err != nil {
			t.Error(code, err)
		}
		if _, err := os.Lstat(env.Root + "/here"); err != nil {
			t.Error(err)
		}
	}
}

// TestReady checks that a box that was made ready serves the first command, and that none are made ready once they are
// not wanted any more, or the environment is closed.
func TestReady(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pool := &Pool{}
	for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
		t.Run(string(level), func(t *testing.T) {
			env, err := Local(t.TempDir(), nil, Options{Self: self, Pool: pool})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = env.Close() }()
			if level == tool.BoxRead && !env.Walls.Read || level == tool.BoxWorkspace && !env.Walls.Workspace {
				t.Skipf("THE %s BOX CAN'T BE BUILT HERE: %s", level, env.Walls.Why)
			}
			ps, box := env.Procs.(*procs), tool.Box{Level: level}
			rooms := &ps.boxes.waiting
			ps.Ready(box)
			ps.Ready(box) // is about to be done
			testkit.WaitFor(t, "a keeper that waits", func() bool { return !rooms.lacks(keeperKind{level: level}) })
			before := waiting(rooms)
			p, err := ps.Start(t.Context(), tool.Command{Args: []string{"true"}, Dir: env.Root, Box: box})
			if err != nil {
				t.Fatal(err)
			}
			if code, err := p.Wait(); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			if after := waiting(rooms); len(before) != 1 || !slices.Equal(before, after) {
				t.Errorf("keepers %v waited before the command, and %v after it", before, after)
			}
			serves(t, ps, box)
			if after := waiting(rooms); len(after) > 0 {
				t.Errorf("keepers %v wait after a server", after)
			}
			ps.Ready(box)
			ps.Ready()
			rooms.mu.Lock()
			if rooms.soon != nil {
				t.Error("a box is to be made ready that is not wanted any more")
			}
			rooms.mu.Unlock()
			if err := env.Close(); err != nil {
				t.Error(err)
			}
			ps.Ready(box)
			if rooms.beginWork() || len(waiting(rooms)) > 0 {
				t.Error("boxes are made ready although all is over")
			}
		})
	}
}

// serves runs a server to its end. Its keeper is not to wait for anything after it, be it one
// that had waited.
func serves(t *testing.T, ps *procs, box tool.Box) {
	t.Helper()
	p, err := ps.Start(t.Context(), tool.Command{
		Args: []string{"cat"}, Dir: ps.boxes.Root, Stdin: strings.NewReader("x"), Box: box, Serves: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Fatal(code, err)
	}
}

// waiting lists the keepers that wait.
func waiting(r *waitingKeepers) (pids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.waiting {
		for _, l := range list {
			pids = append(pids, l.pid)
		}
	}
	return pids
}
