package keeper_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// shape is a way in which a command leaves processes behind. S stands for a long-waiting process with the mark among
// its arguments.
type shape struct {
	name, script string
	hidden       bool // neither its environment nor its session lead back to the command
}

func shapes() []shape {
	return []shape{
		{name: "child", script: `S &`},
		{name: "group", script: `S & S & S &`},
		{name: "session", script: `setsid S &`},
		{name: "double fork", script: `( ( S & ) & )`},
		{name: "nohup", script: `nohup S &`},
		{name: "cleared environment", script: `env -i S &`},
		{name: "cleared daemon", script: `setsid env -i S &`, hidden: true},
		{name: "forks", script: `f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; S & wait; }; f 3 &`},
		{name: "stopped", script: `perl -e 'kill "STOP", $$; sleep 300' MARK &`},
		{name: "deaf", script: `perl -e '$SIG{TERM} = $SIG{HUP} = "IGNORE"; sleep 300 while 1' MARK &`},
		{name: "pipeline", script: `S | S | S | S | S &`},
	}
}

// text is the whole script. It prints "ready" and continues or ends.
func (s shape) text(mark, end string) string {
	body := strings.ReplaceAll(strings.ReplaceAll(s.script, "S &", "perl -e 'sleep 300' MARK &"), "S |", "perl -e 'sleep 300' MARK |")
	return strings.ReplaceAll("{ "+body+" } >/dev/null 2>&1 </dev/null; echo ready; "+end, "MARK", mark)
}

// orphans waits for all processes with the mark to end, and kills and counts those that don't.
func orphans(mark string) int {
	var left []int
	testkit.Poll(testkit.Patience, func() bool { left = boxes.Marked(mark); return len(left) == 0 })
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(left)
}

// keepersOf finds the keepers below a process, and the holders that have
// started some of them.
func keepersOf(parent int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []int
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		data, err := os.ReadFile(name)
		_, rest, _ := bytes.Cut(data, []byte(") "))
		fields := bytes.Fields(rest)
		if err != nil || len(fields) < 2 || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		line, _ := os.ReadFile(filepath.Dir(name) + "/cmdline")
		if bytes.HasPrefix(line, []byte("inspan-holder")) {
			out = append(out, keepersOf(pid)...)
		}
		if bytes.HasPrefix(line, []byte("inspan-holder")) || bytes.HasPrefix(line, []byte("inspan-keeper")) {
			out = append(out, pid)
		}
	}
	return out
}

// parent plays an inspan that starts every shape and waits to be killed.
func parent() {
	level, mark := tool.Level(os.Getenv("SANDBOX_TEST_LEVEL")), os.Getenv("SANDBOX_TEST_MARK")
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env, err := sandbox.Local(os.Getenv("SANDBOX_TEST_ROOT"), nil, sandbox.Options{Self: self})
	if err != nil {
		panic(err)
	}
	for _, s := range shapes() {
		if _, err := boxes.Begin(context.Background(), env, level, s.text(mark+strings.ReplaceAll(s.name, " ", ""), "wait; sleep 300")); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	select {}
}

// ways are how commands end. Those that kill another inspan do so with all
// shapes at once.
func ways() []string {
	return []string{"exit", "cancel", "kill", "keeper", "parent", "both"}
}

// promised reports whether no process may be left. Without a namespace, killing keepers can free processes that hide
// from them, and killing both frees all but the command itself.
func promised(level tool.Level, way string, s shape) bool {
	if level == tool.BoxWorkspace {
		return true
	}
	return way != "both" && (way != "keeper" || !s.hidden)
}

// TestSupervisor counts the processes that outlive commands of all shapes in all boxes.
func TestSupervisor(t *testing.T) {
	most := 1000
	if testing.Short() || testkit.Race {
		most = 100
	}
	env, _, _ := boxes.New(t)
	levels := []tool.Level{tool.BoxNone}
	for _, level := range []tool.Level{tool.BoxRead, tool.BoxWorkspace} {
		if level == tool.BoxRead && env.Walls.Read || level == tool.BoxWorkspace && env.Walls.Workspace {
			levels = append(levels, level)
		} else {
			t.Logf("THE %s BOX CAN'T BE BUILT HERE: %s", level, env.Walls.Why)
		}
	}
	var mu sync.Mutex
	count, left := 0, 0
	from := time.Now()
	play := func(level tool.Level, way string) {
		ends := ownEnds
		if way == "parent" || way == "both" {
			ends = parentDies
		}
		n, o := ends(t, env, level, way)
		mu.Lock()
		defer mu.Unlock()
		count, left = count+n, left+o
	}
	for count < most {
		for _, way := range ways() {
			var beside sync.WaitGroup
			for _, level := range levels {
				if way == "keeper" { // kills those of all levels
					play(level, way)
				} else {
					beside.Go(func() { play(level, way) })
				}
			}
			beside.Wait()
		}
	}
	t.Logf("supervisor: %d scenarios, %d orphans, %v", count, left, time.Since(from).Round(time.Second))
	if left > 0 {
		t.Errorf("%d orphans", left)
	}
}

// ownEnds ends every shape in one of the ways that this process can.
func ownEnds(t *testing.T, env tool.Env, level tool.Level, way string) (count, left int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	if way == "keeper" { // one after the other, so that it is known which keeper is whose
		for _, s := range shapes() {
			n := endOne(t, env, level, way, s)
			count, left = count+1, left+n
		}
		return count, left
	}
	for _, s := range shapes() {
		wg.Go(func() {
			n := endOne(t, env, level, way, s)
			mu.Lock()
			defer mu.Unlock()
			count, left = count+1, left+n
		})
	}
	wg.Wait()
	return count, left
}

func endOne(t *testing.T, env tool.Env, level tool.Level, way string, s shape) int {
	mark := "mark" + rand.Text()
	end := "wait; sleep 300"
	if way == "exit" {
		end = "exit 0"
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := boxes.Begin(ctx, env, level, s.text(mark, end))
	if err != nil {
		t.Errorf("%s, %s, %s: %v", level, way, s.name, err)
		return len(boxes.Marked(mark))
	}
	switch way {
	case "exit":
		if code, err := p.Wait(); code != 0 || err != nil {
			t.Errorf("%s, %s: exit code %d, %v", level, s.name, code, err)
		}
		p.Kill()
	case "cancel":
		cancel()
	case "kill":
		p.Kill()
	case "keeper":
		for _, pid := range keepersOf(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_, _ = p.Wait()
	return settle(t, mark, level, way, s)
}

// settle counts orphans where none may be.
func settle(t *testing.T, mark string, level tool.Level, way string, s shape) int {
	if !promised(level, way, s) {
		for _, pid := range boxes.Marked(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return 0
	}
	n := orphans(mark)
	if n > 0 {
		t.Errorf("%s, %s, %s: %d orphans", level, way, s.name, n)
	}
	return n
}

// parentDies kills an inspan that runs every shape.
func parentDies(t *testing.T, env tool.Env, level tool.Level, way string) (count, left int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	mark := "mark" + rand.Text()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_PARENT=1", "SANDBOX_TEST_LEVEL="+
		string(level), "SANDBOX_TEST_MARK="+mark, "SANDBOX_TEST_ROOT="+env.Root)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("%s, %s: the parent said %q, %v", level, way, line, err)
	}
	pids := []int{cmd.Process.Pid}
	if way == "both" {
		_ = cmd.Process.Signal(syscall.SIGSTOP)
		pids = append(pids, keepersOf(cmd.Process.Pid)...)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = cmd.Wait()
	for _, s := range shapes() {
		count++
		left += settle(t, mark+strings.ReplaceAll(s.name, " ", ""), level, way, s)
	}
	return count, left
}
