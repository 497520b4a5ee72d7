package keeper_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// keepShapes are those of the supervisor's test, and a process that keeps printing.
func keepShapes() []shape {
	talks := "while echo MARK; do sleep 0.02; done"
	return append(shapes(), shape{name: "talking job", script: talks}, shape{name: "talking child", script: "{ " + talks + "; } &"})
}

// leaver plays an inspan that starts every shape, detaches from it and ends. It prints the kept processes.
func leaver() {
	level, mark, root := tool.Level(os.Getenv("SANDBOX_TEST_LEVEL")), os.Getenv("SANDBOX_TEST_MARK"), os.Getenv("SANDBOX_TEST_ROOT")
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env, err := sandbox.Local(root, nil, sandbox.Options{Self: self})
	if err != nil {
		panic(err)
	}
	for i, s := range keepShapes() {
		name := mark + strings.ReplaceAll(s.name, " ", "")
		text := s.text(name, []string{"wait; sleep 300", "exit 0"}[i%2])
		if strings.HasPrefix(s.name, "talking") {
			text = strings.ReplaceAll(s.script, "MARK", name)
		}
		p, err := boxes.Begin(context.Background(), env, level, text)
		if err != nil {
			panic(err)
		}
		if !strings.HasSuffix(text, "sleep 300") && s.name != "talking job" {
			_, _ = p.Wait() // only what it leaves behind is kept
		}
		_, err = p.(ability.Keepable).Keep(filepath.Join(os.Getenv("SANDBOX_TEST_OUT"), name), func(k ability.Kept) error {
			if s.name == os.Getenv("SANDBOX_TEST_REFUSED") {
				return errors.New("refused")
			}
			return json.NewEncoder(os.Stdout).Encode(k)
		})
		if err != nil && s.name != os.Getenv("SANDBOX_TEST_REFUSED") {
			panic(err)
		}
	}
	os.Exit(0)
}

// TestKeep detaches from processes of every shape: they continue after the program has ended, printing does not end
// them, and one request ends them all.
func TestKeep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	for _, level := range []tool.Level{tool.BoxNone, tool.BoxRead, tool.BoxWorkspace} {
		t.Run(string(level), func(t *testing.T) { letGo(t, level) })
	}
}

func letGo(t *testing.T, level tool.Level) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := keptEnv(t)
	if level == tool.BoxRead && !env.Walls.Read || level == tool.BoxWorkspace && !env.Walls.Workspace {
		t.Skip("no such box here: " + env.Walls.Why)
	}
	const refused = "pipeline"
	mark, dir := "mark"+rand.Text(), t.TempDir()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_LEAVER=1", "SANDBOX_TEST_LEVEL="+string(level), "SANDBOX_TEST_MARK="+mark,
		"SANDBOX_TEST_ROOT="+env.Root, "SANDBOX_TEST_OUT="+dir, "SANDBOX_TEST_REFUSED="+refused)
	cmd.Stderr = os.Stderr
	told, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var kept []ability.Kept
	for d := json.NewDecoder(strings.NewReader(string(told))); ; {
		var k ability.Kept
		if err := d.Decode(&k); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, k)
	}
	if len(kept) != len(keepShapes())-1 {
		t.Fatalf("%d are kept, want %d", len(kept), len(keepShapes())-1)
	}
	for _, k := range kept {
		if runs, known := sandbox.KeptRuns(k); !runs || !known {
			t.Errorf("%+v: runs %v, known %v", k, runs, known)
		}
	}
	goOn(t, mark, refused, dir)
	for _, k := range kept {
		wrong := ability.Kept{PID: k.PID, Mark: k.Mark + "0"}
		if runs, _ := sandbox.KeptRuns(wrong); runs {
			t.Error("another process is taken for one that was kept")
		}
		if err := errors.Join(sandbox.EndKept(t.Context(), wrong), sandbox.EndKept(t.Context(), k)); err != nil {
			t.Error(err)
		}
		if runs, _ := sandbox.KeptRuns(k); runs {
			t.Errorf("%+v still runs", k)
		}
	}
	if n := orphans(mark); n > 0 {
		t.Errorf("%d are left when all were ended", n)
	}
}

// goOn checks that kept processes run, and print.
func goOn(t *testing.T, mark, refused, dir string) {
	t.Helper()
	for _, s := range keepShapes() {
		name := mark + strings.ReplaceAll(s.name, " ", "")
		switch {
		case s.name == refused:
			if n := orphans(name); n > 0 {
				t.Errorf("%s: %d go on although they were not to be kept", s.name, n)
			}
		case !strings.HasPrefix(s.name, "talking") && len(boxes.Marked(name)) == 0:
			t.Errorf("%s: has ended", s.name)
		case strings.HasPrefix(s.name, "talking"):
			file := filepath.Join(dir, name)
			printed(t, file, printed(t, file, 1)+10)
		}
	}
}

// TestKeptOutputIsWhole checks that the rest of a kept command's output is read after its end, even if its file accepts
// no more for the time being.
func TestKeptOutputIsWhole(t *testing.T) {
	env := keptEnv(t)
	const size = 100 << 10 // more than a pipe holds, and less than two
	mark, file := "mark"+rand.Text(), filepath.Join(t.TempDir(), "out")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile(file, os.O_RDWR, 0) // so that neither end waits for the other
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	held, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	defer hold.Close()
	p, err := env.Procs.Start(t.Context(), tool.Command{
		Args: []string{"sh", "-c", fmt.Sprintf("read -r end; head -c %d /dev/zero | tr '\\0' o; exit", size), mark},
		Dir:  env.Root, Output: io.Discard, Stdin: held, Keep: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	var kept ability.Kept
	if _, err := p.(ability.Keepable).Keep(file, func(k ability.Kept) error { kept = k; return nil }); err != nil {
		t.Fatal(err)
	}
	hold.Close()
	if n := orphans(mark); n > 0 {
		t.Fatal("it does not end")
	}
	if err := full.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < size; n++ { // byte by byte: a keeper that ends too soon does so meanwhile
		if _, err := full.Read(make([]byte, 1)); err != nil {
			t.Fatalf("%d of %d bytes are in its file: %v", n, size, err)
		}
	}
	testkit.WaitFor(t, "its keeper to end", func() bool { runs, _ := sandbox.KeptRuns(kept); return !runs })
}

// keptEnv is an environment with keepers.
func keptEnv(t *testing.T) tool.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// printed waits until a file has so many lines, and counts them.
func printed(t *testing.T, file string, want int) (n int) {
	t.Helper()
	testkit.WaitFor(t, fmt.Sprintf("%d lines in %s", want, file), func() bool {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n = strings.Count(string(data), "\n")
		return n >= want
	})
	return n
}

// TestNothingIsKeptWithoutAKeeper says so.
func TestNothingIsKeptWithoutAKeeper(t *testing.T) {
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sleep", "100"}, Dir: env.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	_, err = p.(ability.Keepable).Keep(filepath.Join(t.TempDir(), "out"), func(ability.Kept) error { return fmt.Errorf("asked") })
	if err == nil || !strings.Contains(err.Error(), "takes Linux") {
		t.Errorf("kept without a keeper: %v", err)
	}
}
