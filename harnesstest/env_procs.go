package harnesstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/tool"
)

// buffer is a bytes.Buffer that can be read while a process writes to it.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// procPatience is the time limit for something that is immediate on an idle machine. Processes that must not be
// waited for sleep longer.
const procPatience = 3 * time.Minute

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(procPatience); !cond(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// start starts a script, which must work.
func (w *world) start(t *testing.T, ctx context.Context, script string, c tool.Command) tool.Process {
	t.Helper()
	if w.Procs == nil {
		t.Skip("no processes here")
	}
	c.Args = []string{"sh", "-c", script}
	if c.Dir == "" {
		c.Dir = w.Root
	}
	p, err := w.Procs.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// wait waits for a process, which must end within procPatience.
func wait(t *testing.T, p tool.Process) int {
	t.Helper()
	from := time.Now()
	code, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(from); took > procPatience {
		t.Errorf("Wait took %v, want at most %v", took, procPatience)
	}
	return code
}

// gone waits until no process with that id runs; a zombie counts as gone.
func (w *world) gone(t *testing.T, pid string) {
	t.Helper()
	pid = strings.TrimSpace(pid)
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatalf("%q is no process id", pid)
	}
	eventually(t, "process "+pid+" is gone", func() bool {
		state := w.sh(t, "ps -o stat= -p "+pid+" 2>/dev/null || sed -n 's/^State:.//p' /proc/"+pid+"/status 2>/dev/null || true")
		return strings.TrimSpace(state) == "" || strings.HasPrefix(strings.TrimSpace(state), "Z")
	})
}

func testExit(t *testing.T, w *world) {
	for script, want := range map[string]int{
		"true": 0, "exit 3": 3, "exit 255": 255, "no-such-program-at-all": 127,
		"kill -9 $$": 128 + 9, "kill -15 $$": 128 + 15, "kill -2 $$": 128 + 2,
	} {
		p := w.start(t, t.Context(), script, tool.Command{})
		for range 2 { // the second Wait returns the same
			if got := wait(t, p); got != want {
				t.Errorf("%s: exit code %d, want %d", script, got, want)
			}
		}
		p.Kill()
	}
}

func testEnvironment(t *testing.T, w *world) {
	if w.Procs == nil {
		t.Skip("no processes here")
	}
	t.Setenv("HARNESSTEST_API_KEY", "hidden-1")
	t.Setenv("GITHUB_TOKEN", "hidden-2")
	t.Setenv("LC_SECRET", "hidden-3")
	t.Setenv("HTTPS_PROXY", "http://user:hidden-4@proxy.example")
	env := w.sh(t, "env")
	if strings.Contains(env, "hidden-") {
		t.Errorf("a secret reached the process:\n%s", env)
	}
	if !strings.Contains("\n"+env, "\nPATH=") {
		t.Errorf("no PATH:\n%s", env)
	}
	var out bytes.Buffer
	p := w.start(t, t.Context(), `echo "$ONE-$HOME-$(pwd)"`, tool.Command{
		Env:    []string{"ONE=1", "PATH=/usr/bin:/bin"},
		Output: &out, Dir: w.Root,
	})
	if code := wait(t, p); code != 0 || out.String() != "1--"+w.Root+"\n" {
		t.Errorf("exit code %d, printed %q", code, &out)
	}
}

func testStreams(t *testing.T, w *world) {
	if got := w.sh(t, "echo a; echo b >&2; echo c; cat; echo d >&2"); got != "a\nb\nc\nd\n" {
		t.Errorf("output is %q", got)
	}
	var out bytes.Buffer
	p := w.start(t, t.Context(), "cat", tool.Command{Stdin: strings.NewReader("given"), Output: &out})
	if code := wait(t, p); code != 0 || out.String() != "given" {
		t.Errorf("exit code %d, printed %q", code, &out)
	}
	big := strings.NewReader(strings.Repeat("x", 1<<20)) // it is never read
	if code := wait(t, w.start(t, t.Context(), "exit 4", tool.Command{Stdin: big})); code != 4 {
		t.Errorf("exit code %d", code)
	}
	if code := wait(t, w.start(t, t.Context(), "echo unheard", tool.Command{})); code != 0 {
		t.Errorf("exit code %d without an output", code)
	}
}

// counter counts bytes.
type counter struct{ n, xs int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	c.xs += bytes.Count(p, []byte("x"))
	return len(p), nil
}

// failing is a writer that refuses everything.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func testBigOutput(t *testing.T, w *world) {
	const script = `s=xxxxxxxxxxxxxxxx; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do s=$s$s; [ $i = 10 ] && break; done
		i=0; while [ $i -lt 1000 ]; do echo "$s"; i=$((i+1)); done`
	var c counter
	if code := wait(t, w.start(t, t.Context(), script, tool.Command{Output: &c})); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if c.xs != 1000*16*1024 || c.n != c.xs+1000 {
		t.Errorf("got %d bytes with %d x", c.n, c.xs)
	}
	if code := wait(t, w.start(t, t.Context(), script, tool.Command{Output: failing{}})); code != 0 {
		t.Errorf("exit code %d where the output cannot be written", code)
	}
}

func testReport(t *testing.T, w *world) {
	var out, report bytes.Buffer
	p := w.start(t, t.Context(), "echo told >&3; echo said", tool.Command{Output: &out, Report: &report})
	if code := wait(t, p); code != 0 || out.String() != "said\n" || report.String() != "told\n" {
		t.Errorf("exit code %d, said %q, told %q", code, &out, &report)
	}
	p = w.start(t, t.Context(), "( : >&3 ) 2>/dev/null && exit 1; exit 0", tool.Command{Output: &out})
	if code := wait(t, p); code != 0 {
		t.Error("descriptor 3 is open without a report")
	}
	report.Reset()
	p = w.start(t, t.Context(), "echo told >&3; sleep 600 >/dev/null 2>&1 &", tool.Command{Output: &out, Report: &report})
	if wait(t, p); report.String() != "told\n" {
		t.Errorf("told %q where a descendant keeps the report open", &report)
	}
}

// testReportAtEnd checks that a report requested at the end is complete then, needs no reader of a pipe, and
// has a limit.
func testReportAtEnd(t *testing.T, w *world) {
	var report bytes.Buffer
	script := "echo told >&3; (echo more >&3); sleep 600 >/dev/null 2>&1 & echo last >&3"
	p := w.start(t, t.Context(), script, tool.Command{Report: &report, AtEnd: true})
	if code := wait(t, p); code != 0 || report.String() != "told\nmore\nlast\n" {
		t.Errorf("exit code %d, told %q", code, &report)
	}
	report.Reset()
	p = w.start(t, t.Context(), "head -c 20000000 /dev/zero >&3", tool.Command{Report: &report, AtEnd: true})
	if wait(t, p); report.Len() < 4<<20 {
		t.Errorf("%d bytes of a long report have come", report.Len())
	}
	report.Reset()
	p = w.start(t, t.Context(), "exit 3", tool.Command{Report: &report, AtEnd: true})
	if code := wait(t, p); code != 3 || report.Len() > 0 {
		t.Errorf("exit code %d, told %q where nothing was", code, &report)
	}
}

// testTerminal checks that a process that requests a terminal has one, which controls it.
func testTerminal(t *testing.T, w *world) {
	var out, report buffer
	script := `stty size; test -t 0 && test -t 1 && test -t 2 && echo three; echo controls >/dev/tty; echo "$TERM"; read -r x; echo "got ` +
		`$x"; echo told >&3; cat; exit 5`
	typed, keys := io.Pipe()
	c := tool.Command{TTY: tool.TTY{Rows: 24, Cols: 80}, Stdin: typed, Output: &out, Report: &report}
	p := w.start(t, t.Context(), script, c)
	// Input typed while a line is being printed is echoed in the middle of it, so it is typed after the last
	// line has come.
	prints := func(text string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%q is printed", text), func() bool { return strings.Contains(out.String(), text) })
	}
	prints("24 80\r\nthree\r\ncontrols\r\nxterm-256color\r\n")
	_, _ = io.WriteString(keys, "a word\n")
	prints("got a word\r\n")
	_, _ = io.WriteString(keys, "more\n")
	prints("more\r\nmore\r\n")
	_ = keys.Close()
	if code := wait(t, p); code != 5 || report.String() != "told\n" {
		t.Errorf("exit code %d, told %q, printed %q", code, report.String(), out.String())
	}
	out = buffer{}
	typed, keys = io.Pipe()
	defer func() { _ = keys.Close() }()
	// A shell that is about to start a program may lose the signal, so it only reads.
	p = w.start(t, t.Context(), "echo ready; read -r x", tool.Command{TTY: c.TTY, Stdin: typed, Output: &out})
	eventually(t, "the script is ready", func() bool { return strings.HasPrefix(out.String(), "ready") })
	if _, err := keys.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, p); code != 128+2 {
		t.Errorf("exit code %d after ctrl-c, want 130", code)
	}
}

func testStartFails(t *testing.T, w *world) {
	if w.Procs == nil {
		t.Skip("no processes here")
	}
	for _, c := range []tool.Command{
		{Args: []string{"no-such-program-at-all"}, Dir: w.Root},
		{Args: []string{"sh", "-c", "true"}, Dir: w.path("missing")},
	} {
		if _, err := w.Procs.Start(t.Context(), c); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("start %q in %s: %v, want ErrNotExist", c.Args, c.Dir, err)
		}
	}
	if _, err := w.Procs.Start(t.Context(), tool.Command{Dir: w.Root}); err == nil {
		t.Error("started nothing at all")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Procs.Start(ctx, tool.Command{Args: []string{"true"}, Dir: w.Root}); !errors.Is(err, context.Canceled) {
		t.Errorf("start after cancel: %v", err)
	}
}

func testCancelAsks(t *testing.T, w *world) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out buffer
	p := w.start(t, ctx, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`, tool.Command{Output: &out})
	eventually(t, "the script is ready", func() bool { return out.String() == "ready\n" })
	cancel()
	if code := wait(t, p); code != 7 || !strings.HasSuffix(out.String(), "bye\n") {
		t.Errorf("exit code %d, printed %q", code, out.String())
	}
}

func testCancelKills(t *testing.T, w *world) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out buffer
	p := w.start(t, ctx, `trap '' TERM; echo ready; while :; do sleep 0.05; done`, tool.Command{Output: &out})
	eventually(t, "the script is ready", func() bool { return out.String() == "ready\n" })
	cancel()
	from := time.Now()
	if code := wait(t, p); code != 128+9 {
		t.Errorf("exit code %d, want 137", code)
	}
	if took := time.Since(from); took < 1500*time.Millisecond {
		t.Errorf("killed after %v, want two seconds of grace", took)
	}
}

// testCancelGroup checks that children die with the process.
func testCancelGroup(t *testing.T, w *world) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out buffer
	p := w.start(t, ctx, `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait`, tool.Command{Output: &out})
	eventually(t, "the child is there", func() bool { return strings.HasSuffix(out.String(), "\n") })
	cancel()
	wait(t, p)
	w.gone(t, out.String())
}

func testKill(t *testing.T, w *world) {
	var out buffer
	p := w.start(t, t.Context(), `trap '' TERM; sleep 600 & echo $!; wait; sleep 600`, tool.Command{Output: &out})
	eventually(t, "the child is there", func() bool { return strings.HasSuffix(out.String(), "\n") })
	p.Kill()
	if code := wait(t, p); code != 128+9 {
		t.Errorf("exit code %d, want 137", code)
	}
	w.gone(t, out.String())
	p.Kill()
}

// testDescendants checks that a child which outlives its parent does not delay Wait, and that its output up to
// then is there.
func testDescendants(t *testing.T, w *world) {
	t.Parallel()
	var out buffer
	p := w.start(t, t.Context(), `(while :; do sleep 0.1; done) & echo $!`, tool.Command{Output: &out})
	if code := wait(t, p); code != 0 {
		t.Errorf("exit code %d", code)
	}
	pid := out.String()
	p.Kill()
	w.sh(t, "kill -9 "+strings.TrimSpace(pid)+" 2>/dev/null || true") // if Kill no longer finds it
	w.gone(t, pid)
	out = buffer{}
	p = w.start(t, t.Context(), `(sleep 0.2; echo late) & echo soon`, tool.Command{Output: &out})
	if wait(t, p); out.String() != "soon\nlate\n" {
		t.Errorf("printed %q", out.String())
	}
}

func testManyProcesses(t *testing.T, w *world) {
	if w.Procs == nil {
		t.Skip("no processes here")
	}
	got := make([]string, 20)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			var out bytes.Buffer
			p, err := w.Procs.Start(t.Context(), tool.Command{
				Args: []string{"sh", "-c", fmt.Sprintf("echo %d; exit %d", i, i)},
				Dir:  w.Root, Output: &out,
			})
			if err != nil {
				t.Error(err)
				return
			}
			code, err := p.Wait()
			if err != nil {
				t.Error(err)
			}
			got[i] = fmt.Sprintf("%s%d", &out, code)
		})
	}
	group.Wait()
	want := make([]string, len(got))
	for i := range want {
		want[i] = fmt.Sprintf("%d\n%d", i, i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
