package boxes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// New opens a workspace with secrets, a repository and a home next to it.
func New(t testing.TB) (env tool.Env, home, state string) {
	t.Helper()
	return NewWithLandlock(t, 0)
}

// pool knows which boxes work here. Finding that out takes longer than most tests.
var pool sandbox.Pool

// NewWithLandlock is New on a kernel with an older Landlock; see [sandbox.Options.Landlock].
func NewWithLandlock(t testing.TB, landlock int) (env tool.Env, home, state string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home, state := filepath.Join(dir, "ws"), filepath.Join(dir, "home"), filepath.Join(dir, "state")
	for name, text := range map[string]string{
		"ws/plain": "plain", "ws/.env": "secret", "ws/a/b/.env": "secret", "ws/a/b/ok": "ok", "ws/keys/x.pem": "secret",
		"ws/.git/config": "[core]\n", "ws/.git/HEAD": "ref: refs/heads/main\n",
		"ws/.git/hooks/old": "", "ws/sub/.git/config": "", "ws/.mcp.json": "{}", "home/.ssh/id": "secret", "home/private": "private",
		"state/session": "secret",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	o := sandbox.Options{Self: self, Map: places.Map{Home: home, State: []string{state}}, State: state, Landlock: landlock}
	if landlock == 0 {
		o.Pool = &pool
	}
	env, err = sandbox.Local(root, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(t, env) })
	return env, home, state
}

// Close releases the shared resources of an environment's boxes.
func Close(t testing.TB, env tool.Env) {
	t.Helper()
	if err := env.Close(); err != nil {
		t.Error(err)
	}
}

// Need skips a test if a box can't be built, and gives the reason why.
func Need(t *testing.T, env tool.Env, level tool.Level) {
	t.Helper()
	if level == tool.BoxRead && !env.Walls.Read || level == tool.BoxWorkspace && !env.Walls.Workspace {
		t.Skipf("THE %s BOX CAN'T BE BUILT HERE: %s", level, env.Walls.Why)
	}
}

// Run runs a script in a box and returns its exit code, its output and the refused accesses.
func Run(t testing.TB, env tool.Env, box tool.Box, text string, vars ...string) (int, string, []string) {
	t.Helper()
	var out bytes.Buffer
	c := tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: &out, Box: box}
	c.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + os.Getenv("HOME")}, vars...)
	p, err := env.Procs.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	r, ok := p.(interface{ Refused() []string })
	if !ok {
		t.Fatal("the process can't say what was refused")
	}
	return code, out.String(), r.Refused()
}

// Writable is a workspace box.
var Writable = tool.Box{Level: tool.BoxWorkspace}

// Background starts a script in a box that runs until the test ends.
func Background(t *testing.T, env tool.Env, box tool.Box, text string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: io.Discard, Box: box}
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	p, err := env.Procs.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_, _ = p.Wait()
		p.Kill()
	})
}

// RunSoon runs a script until it succeeds.
func RunSoon(t *testing.T, env tool.Env, box tool.Box, text string, vars ...string) string {
	t.Helper()
	return strings.TrimSpace(Succeeds(t, env, box, "for i in $(seq 1000); do ( "+text+
		" ) 2>/tmp/why && exit 0; sleep 0.1; done; cat /tmp/why; exit 1", vars...))
}

// Succeeds runs a script that must succeed, and returns its output.
func Succeeds(t *testing.T, env tool.Env, box tool.Box, text string, vars ...string) string {
	t.Helper()
	code, out, _ := Run(t, env, box, text, vars...)
	if code != 0 {
		t.Errorf("%s: exit code %d\n%s", text, code, out)
	}
	return out
}

// Put writes files below a folder.
func Put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Gone reports whether nothing is at a path.
func Gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Start starts a program and returns the process id it prints first.
func Start(t *testing.T, ctx context.Context, env tool.Env, c tool.Command) (tool.Process, int) {
	t.Helper()
	out := make(lines, 16)
	c.Output, c.Dir = out, env.Root
	p, err := env.Procs.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	line := testkit.Receive(t, "the process id", out)
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("printed %q", line)
	}
	return p, pid
}

// Running reports whether a process runs; a zombie does not.
func Running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// WaitForEnd waits for the end of a process.
func WaitForEnd(t *testing.T, pid int) {
	t.Helper()
	testkit.WaitFor(t, fmt.Sprintf("process %d to end", pid), func() bool { return !Running(pid) })
}

// Marked lists the processes that carry the mark.
func Marked(mark string) []int {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []int
	for _, name := range names {
		data, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && bytes.Contains(data, []byte(mark)) && Running(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// Begin starts a script, and waits until it has printed something.
func Begin(ctx context.Context, env tool.Env, level tool.Level, text string) (tool.Process, error) {
	out := &Ready{Done: make(chan struct{})}
	p, err := env.Procs.Start(ctx, tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: out, Box: tool.Box{Level: level}})
	if err != nil {
		return nil, err
	}
	select {
	case <-out.Done:
		return p, nil
	case <-time.After(testkit.Patience):
		return p, fmt.Errorf("not ready after %v", testkit.Patience)
	}
}

// Text reads a file.
func Text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// lines passes on the lines that a process prints.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	for sc := bufio.NewScanner(bytes.NewReader(p)); sc.Scan(); {
		l <- sc.Text()
	}
	return len(p), nil
}

// Ready is a writer that signals the first write.
type Ready struct {
	once sync.Once
	Done chan struct{} // closed then
}

func (r *Ready) Write(p []byte) (int, error) {
	r.once.Do(func() { close(r.Done) })
	return len(p), nil
}
