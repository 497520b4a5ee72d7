package keeper_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/tool"
)

// levels are all there are.
var levels = []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace}

// TestKeptOneAfterAnother checks that a keeper runs one command after another, and that
// none finds anything that another has left in its box or done to the keeper.
func TestKeptOneAfterAnother(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			env, _, _ := boxes.New(t)
			boxes.Need(t, env, level)
			box := tool.Box{Level: level}
			_, first, _ := boxes.Run(t, env, box, "echo $PPID")
			const spoil = `echo x >"$TMPDIR/x"; mkdir -p "$TMPDIR/d/e"; chmod 0 "$TMPDIR/d"; echo x >/dev/shm/inspan-test; ` +
				`(trap '' HUP TERM; sleep 299.25) & ulimit -n 100; umask 077; cd /`
			vars := []string{}
			if level == tool.BoxNone {
				vars = append(vars, "TMPDIR="+t.TempDir())
				t.Cleanup(func() { _ = os.Remove("/dev/shm/inspan-test") })
			}
			before := strings.TrimSpace(first)
			ipc := "true"
			if level == tool.BoxWorkspace {
				ipc = "ipcmk -M 1000 >/dev/null; ipcs -m | grep -q 0x" // the other boxes see that of the machine
			}
			for range 3 {
				code, out, _ := boxes.Run(t, env, box, ipc+" || exit; "+spoil, vars...)
				if code != 0 {
					t.Errorf("exit code %d\n%s", code, out)
				}
				if level == tool.BoxNone {
					continue
				}
				if _, after, _ := boxes.Run(t, env, box, "echo $PPID"); strings.TrimSpace(after) != before {
					t.Errorf("the keeper was %s and is %s", before, after)
				}
				_, left, _ := boxes.Run(t, env, box, `ls -A /dev/shm /run/tmp "$TMPDIR" 2>/dev/null | grep -e inspan-test; `+
					`test $TMPDIR = /tmp || ls -A "$TMPDIR"; `+
					`test $TMPDIR != /tmp || ipcs -m | grep 0x; ps -e -o args= | grep 'sleep 299[.]25'; umask; pwd`)
				if want := "0022\n" + env.Root + "\n"; left != want {
					t.Errorf("a command left something to the next:\n%s", left)
				}
			}
		})
	}
}

// TestSpoiltKeeper checks that a keeper whose limits or scheduling a command has changed
// runs no more of them.
func TestSpoiltKeeper(t *testing.T) {
	env, _, _ := boxes.New(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("THERE IS NO prlimit HERE")
	}
	for _, level := range []tool.Level{tool.BoxNone, tool.BoxWorkspace} {
		for _, spoil := range []string{
			"prlimit --nofile=64:64 --pid $PPID", "for t in /proc/$PPID/task/*; do renice 7 -p ${t##*/}; done", "taskset -a -p 1 $PPID",
			"chrt -i -p 0 $PPID",
		} {
			const ask = "ulimit -n; nice; taskset -p $$ | sed 's/.*: //'; chrt -p $$ | sed 's/.*: //'"
			_, want, _ := boxes.Run(t, env, tool.Box{Level: level}, ask)
			if code, out, _ := boxes.Run(t, env, tool.Box{Level: level}, spoil); code != 0 {
				t.Logf("%s: %s: exit code %d\n%s", level, spoil, code, out)
			}
			if _, got, _ := boxes.Run(t, env, tool.Box{Level: level}, ask); got != want {
				t.Errorf("%s: after %s it is\n%sand was\n%s", level, spoil, got, want)
			}
		}
	}
}

// TestWallsBuiltAnew checks that a keeper which waits does not run a command for which
// other walls would be built now.
func TestWallsBuiltAnew(t *testing.T) {
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		t.Run(string(level), func(t *testing.T) {
			env, _, _ := boxes.New(t)
			boxes.Need(t, env, level)
			box := tool.Box{Level: level}
			reads := func(path string) bool {
				code, _, _ := boxes.Run(t, env, box, "cat "+path)
				return code == 0
			}
			for range 3 {
				if !reads("plain") || reads(".env") || reads("late/.env") || reads("a/b/.env") {
					t.Fatal("the walls are wrong from the start")
				}
			}
			boxes.Put(t, env.Root, map[string]string{"late/.env": "secret", "late/ok": "ok", "beside": "beside", "a/b/beside": "beside"})
			if reads("late/.env") {
				t.Error("a secret that came later is read")
			}
			for _, path := range []string{"late/ok", "beside", "a/b/beside"} {
				if !reads(path) {
					t.Errorf("%s, which came later, is not read", path)
				}
			}
			// Another file in the place of one that is hidden.
			boxes.Put(t, env.Root, map[string]string{"new": "another secret"})
			if err := os.Rename(filepath.Join(env.Root, "new"), filepath.Join(env.Root, ".env")); err != nil {
				t.Fatal(err)
			}
			if reads(".env") {
				t.Error("a secret that was replaced is read")
			}
			// Another workspace in the place of this one.
			if err := os.Rename(env.Root, env.Root+"-old"); err != nil {
				t.Fatal(err)
			}
			boxes.Put(t, env.Root, map[string]string{"plain": "plain", "fresh": "fresh"})
			if !reads("fresh") || reads(".env") {
				t.Error("the workspace that was replaced is still seen")
			}
		})
	}
}

// TestLateKill checks that a late signal for a command does not affect the next one of its keeper.
func TestLateKill(t *testing.T) {
	for _, level := range levels {
		env, _, _ := boxes.New(t)
		boxes.Need(t, env, level)
		c := tool.Command{Args: []string{"sh", "-c", "read x; echo $x"}, Dir: env.Root, Box: tool.Box{Level: level}}
		for range 20 {
			c.Stdin = strings.NewReader("first\n")
			first, err := env.Procs.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if code, err := first.Wait(); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			c.Stdin = r
			second, err := env.Procs.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			first.Kill()
			if _, err := w.WriteString("second\n"); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if code, err := second.Wait(); code != 0 || err != nil {
				t.Errorf("%s: the second command ended with %d: %v", level, code, err)
			}
			r.Close()
		}
	}
}

// TestFewWait checks that of many keepers which were needed at once few wait, and that
// they end with the environment.
func TestFewWait(t *testing.T) {
	for _, level := range levels {
		env, _, _ := boxes.New(t)
		boxes.Need(t, env, level)
		others := keepers(t) // of tests that were before
		waits := func() []int {
			return slices.DeleteFunc(keepers(t), func(pid int) bool { return slices.Contains(others, pid) })
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { boxes.Run(t, env, tool.Box{Level: level}, "sleep 0.3") })
		}
		all.Wait()
		testkit.WaitFor(t, "most keepers to end", func() bool { return len(waits()) <= 2 })
		waiting := waits()
		if len(waiting) == 0 {
			t.Errorf("%s: no keeper waits", level)
		}
		boxes.Close(t, env)
		for _, pid := range waiting {
			if boxes.Running(pid) {
				t.Errorf("%s: keeper %d outlives its environment", level, pid)
			}
		}
	}
}

// TestWaitsBesideOthers checks that a keeper whose box shows a workspace keeps waiting while commands run that do not
// see that place.
func TestWaitsBesideOthers(t *testing.T) {
	env, _, _ := boxes.New(t) // its workspace is in the folder for temporary files
	boxes.Need(t, env, tool.BoxRead)
	boxes.Need(t, env, tool.BoxWorkspace)
	others := keepers(t) // of tests that were before
	waiting := func() []int {
		return slices.DeleteFunc(keepers(t), func(pid int) bool { return slices.Contains(others, pid) })
	}
	boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "true")
	before := waiting()
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxNone} {
		boxes.Run(t, env, tool.Box{Level: level}, "true")
	}
	boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, "true")
	if after := waiting(); len(before) == 0 || !slices.Contains(after, before[len(before)-1]) {
		t.Errorf("keepers %v waited before other commands, and %v after them", before, after)
	}
}

// keepers lists the keepers that this process or one of its holders has started.
func keepers(t *testing.T) (out []int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		data, err := os.ReadFile(path)
		if err != nil || string(data) != "inspan-keeper\x00" || !boxes.Running(pid) {
			continue
		}
		if above := starter(pid); above == os.Getpid() || starter(above) == os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// starter returns the process that has started another, 0 if it can't be told.
func starter(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	id, _ := strconv.Atoi(fields[1])
	return id
}
