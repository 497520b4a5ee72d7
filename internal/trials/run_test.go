package trials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a task may take, to its end.
const patience = 2 * time.Minute

// program builds inspan once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "inspan-trials-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "inspan")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", path, "../../cmd/inspan")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// TestTasks has every task done in modes yolo and auto by somebody who knows the way, with
// nobody there, and looks at what is left when the program has exited.
func TestTasks(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(path)) })
	sums := &sums{list: map[string]map[string]sum{}}
	all, begun := tasks(t), 0
	t.Cleanup(func() { sums.hold(t, begun == 2*len(all)) })
	for i, k := range all {
		for _, mode := range []string{"yolo", "auto"} {
			t.Run(k.class+"/"+strings.ReplaceAll(k.name, " ", "_")+"/"+mode, func(t *testing.T) {
				begun++
				if testing.Short() && (i%4 != 0 || mode == "auto" && k.wall != "") {
					t.Skip("a part of the tasks is enough for a short run")
				}
				t.Parallel()
				p := k.prepare(t, path)
				said, failed := p.do(t, mode)
				sums.add(mode, k.class, failed == nil)
				if mode == "auto" && k.wall != "" {
					if failed == nil {
						t.Errorf("it passes in auto although %q is to keep it from that", k.wall)
					}
					return
				}
				if failed != nil {
					t.Errorf("%v\n%s", failed, said)
				}
			})
		}
	}
}

// leastPassed is the part of the tasks that must pass in each mode, in percent.
func leastPassed() map[string]int { return map[string]int{"yolo": 100, "auto": 95} }

// sums counts what has passed, by mode and class.
type sums struct {
	mu   sync.Mutex
	list map[string]map[string]sum
}

type sum struct{ ran, passed int }

func (s *sums) add(mode, class string, passed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list[mode] == nil {
		s.list[mode] = map[string]sum{}
	}
	for _, name := range []string{class, "all"} {
		at := s.list[mode][name]
		at.ran++
		if passed {
			at.passed++
		}
		s.list[mode][name] = at
	}
}

// hold prints the sums of all that ran. If none was left out by name it fails if too few
// have passed; a short run has left out those that are known not to pass.
func (s *sums) hold(t *testing.T, whole bool) {
	t.Helper()
	for mode, least := range leastPassed() {
		for _, class := range slices.Sorted(maps.Keys(s.list[mode])) {
			at := s.list[mode][class]
			t.Logf("%s: %s: %d of %d", mode, class, at.passed, at.ran)
		}
		if at := s.list[mode]["all"]; whole && at.passed*100 < least*at.ran {
			t.Errorf("%d of %d tasks pass in mode %s, want %d %%", at.passed, at.ran, mode, least)
		}
	}
}

// place is where a task is done.
type place struct {
	task
	program, home, work, port string
}

func (k task) prepare(t *testing.T, program string) *place {
	t.Helper()
	for _, name := range k.needs {
		if _, err := exec.LookPath(name); err != nil {
			fmt.Fprintf(os.Stderr, "SKIPPED %s: there is no %s\n", t.Name(), name)
			t.Skip("there is no " + name)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &place{k, program, filepath.Join(dir, "home"), filepath.Join(dir, "work"), port}
	for _, d := range []string{p.home, p.work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range k.files {
		at := filepath.Join(p.work, f[0])
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(p.filled(f[1])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(p.end)
	return p
}

func (p *place) filled(text string) string { return strings.ReplaceAll(text, "PORT", p.port) }

func (p *place) environ() []string {
	return []string{
		"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b.c",
		"GOFLAGS=-mod=mod", "GOPROXY=off",
	}
}

// do has the task done, and checked.
func (p *place) do(t *testing.T, mode string) (said string, failed error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var out bytes.Buffer
	args := []string{"run", "--model", "script", "--mode", mode}
	if p.keeps {
		args = append(args, "--keep-jobs")
	}
	cmd := exec.CommandContext(ctx, p.program, append(args, p.filled(strings.Join(p.steps, "\n")))...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.work, p.environ(), &out, &out
	if err := cmd.Run(); err != nil {
		failed = fmt.Errorf("the program: %w", err)
	}
	for _, check := range p.checks {
		cmd := exec.CommandContext(ctx, "bash", "-euc", p.filled(check))
		cmd.Dir, cmd.Env = p.work, p.environ()
		if said, err := cmd.CombinedOutput(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("check %s: %w: %s", check, err, said))
		}
	}
	return out.String(), failed
}

// end ends what the task has left running: all that has its home.
func (p *place) end() {
	list, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range list {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte("HOME="+p.home+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
