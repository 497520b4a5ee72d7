package shell_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

var (
	lineCount = flag.Int("lines", 0, "how many made-up lines to hold against bash; 0: 20,000, and 1,500 if the test is short")
	lineSeed  = flag.Uint64("lines-seed", 0, "seed of the made-up lines; 0: by the clock")
)

// box is the environment variable that makes the test binary run lines, inside
// a box that is thrown away. It holds the folder that becomes the root.
const box = "INSPAN_TEST_BOX"

// batch is how many lines one bash runs.
const batch = 100

// TestProverAgainstBash checks the prover against bash. It makes up lines, runs them in a throwaway box without a
// network, and compares the predictions with the effects: a read has none, a change inside the workspace changes what
// was named, and a program that a deny rule names runs only if the rule denies or asks.
func TestProverAgainstBash(t *testing.T) {
	n := *lineCount
	if n == 0 {
		n = 20_000
		if testing.Short() {
			n = 1500
		}
	}
	seed := *lineSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	b := newBox(t)
	deny, err := policy.ParseRule(tool.Deny, "bash(canary *)", "user")
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Policy{Map: places.Map{Root: "/w", Home: "/h"}, Rules: []policy.Rule{deny}}
	count, found := map[string]int{}, 0
	l := lines{rand.New(rand.NewPCG(seed, 0)), corpus(t)}
	for made := 0; made < n && found < 30; {
		var all []claim
		for ; made < n && len(all) < batch; made++ {
			line, tame := l.line()
			c := predict(t, rules, place(len(all)), line)
			count[string(c.plan.Class)]++
			if c.plan.Class == shell.Full && !tame || c.empty() && made%50 > 0 {
				continue // a wrong prediction can't be told; a few show that the lines do something
			}
			all = append(all, c)
		}
		for i, did := range b.run(t, all) {
			c := all[i]
			count["run"]++
			if did.Ran {
				count["ran the program"]++
			}
			if c.wrong(did) == "" {
				continue
			}
			// Effects of parallel lines may have been taken for its own.
			if wrong := c.wrong(b.again(t, i, c)); wrong != "" {
				found++
				t.Errorf("%q (seed %d): %s", c.line, seed, wrong)
			}
		}
	}
	t.Logf("shell: %d made-up lines from seed %d: %v", n, seed, count)
	// Of 1,000 lines some 150 are reads, and one runs the program. A short run may have none of those.
	for kind, least := range map[string]int{"read": n / 100, "ran the program": n / 5000} {
		if count[kind] < least {
			t.Errorf("only %d of %d lines: %s", count[kind], n, kind)
		}
	}
}

// corpus returns the lines of the corpus that are read or write in the
// workspace.
func corpus(t *testing.T) (out []string) {
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		class, rest, _ := strings.Cut(line, "\t")
		command, _, _ := strings.Cut(rest, "\t")
		if class == "read" || class == "workspace" {
			out = append(out, strings.NewReplacer("␤", "\n", "␉", "\t", "README.md", "f").Replace(command))
		}
	}
	return out
}

// claim is the prediction for a line.
type claim struct {
	line  string
	plan  shell.Plan
	free  bool     // a rule that denies the program canary lets it run unasked
	named []string // paths that it changes
}

func predict(t *testing.T, rules policy.Policy, dir, line string) claim {
	c := claim{line: line, plan: shell.Explain(line, shell.Place{Root: dir, Cwd: dir, Home: "/h"})}
	v, err := rules.Judge(t.Context(), &tool.Call{Name: "bash", Mode: tool.ModeYolo}, c.plan.Calls())
	if err != nil {
		t.Fatal(err)
	}
	c.free = v.Action == tool.Allow
	for _, e := range c.plan.Effects {
		if e.Kind == tool.Write {
			c.named = append(c.named, e.Path)
		}
	}
	return c
}

// empty reports whether nothing that the line does can be against the claim.
func (c claim) empty() bool { return c.plan.Class == shell.Full && !c.free }

// wrong compares the claim with the effects of the line. Empty means that they agree.
func (c claim) wrong(did result) string {
	switch {
	case c.plan.Class != shell.Full && (did.Ran || did.Connected):
		return fmt.Sprintf("%s, and %+v", c.plan.Class, did)
	case c.plan.Class == shell.Read && len(did.Changed) > 0:
		return fmt.Sprintf("a read, and it changed %q", did.Changed)
	case c.plan.Class == shell.Workspace && slices.ContainsFunc(did.Changed, func(path string) bool {
		return !slices.ContainsFunc(c.named, func(named string) bool { return text.Inside(path, named) })
	}):
		return fmt.Sprintf("it changed %q, and names %q", did.Changed, c.named)
	case c.free && did.Ran:
		return "it ran what a deny rule names"
	}
	return ""
}

// result is the effects of a line.
type result struct {
	Ran       bool     // the program canary
	Connected bool     // to the listener of the box
	Changed   []string // paths below its folder
}

func place(i int) string { return "/w/" + strconv.Itoa(i) }

// boxed is a process inside of a box, that runs batches of lines.
type boxed struct {
	in  *json.Encoder
	out *json.Decoder
}

// newBox starts the test binary again in namespaces of its own, with nothing
// of this machine but its programs, read-only.
func newBox(t *testing.T) *boxed {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NOT CHECKED AGAINST BASH: it is missing")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{box + "=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{outWrite}, &said, &said
	if err := cmd.Start(); err != nil {
		cancel()
		t.Skipf("NOT CHECKED AGAINST BASH: no box: %v", err)
	}
	_ = outWrite.Close()
	t.Cleanup(func() {
		_ = in.Close()
		cancel()
		_ = cmd.Wait()
		_ = outRead.Close()
	})
	b := &boxed{json.NewEncoder(in), json.NewDecoder(outRead)}
	var ready bool
	if err := b.out.Decode(&ready); err != nil || !ready {
		cancel()
		_ = cmd.Wait()
		t.Skipf("NOT CHECKED AGAINST BASH: no box: %s", said.String())
	}
	return b
}

// run runs lines, each in a folder of its own.
func (b *boxed) run(t *testing.T, all []claim) map[int]result {
	t.Helper()
	numbered := map[int]string{}
	for i, c := range all {
		numbered[i] = c.line
	}
	out := b.ask(t, numbered)
	// Which line connected, and which ran too long, is found out line by line.
	if odd, ok := out[-1]; ok {
		for i := range all {
			did := b.again(t, i, all[i])
			did.Ran = did.Ran || out[i].Ran && !odd.Ran
			out[i] = did
		}
		delete(out, -1)
	}
	return out
}

// again runs one line alone.
func (b *boxed) again(t *testing.T, i int, c claim) result {
	t.Helper()
	out := b.ask(t, map[int]string{i: c.line})
	did := out[i]
	did.Connected, did.Ran = did.Connected || out[-1].Connected, did.Ran || out[-1].Ran
	return did
}

func (b *boxed) ask(t *testing.T, numbered map[int]string) map[int]result {
	t.Helper()
	var out map[int]result
	if err := b.in.Encode(numbered); err != nil {
		t.Fatal(err)
	}
	if err := b.out.Decode(&out); err != nil {
		t.Fatalf("the box ended: %v", err)
	}
	return out
}

func TestMain(m *testing.M) {
	if root := os.Getenv(box); root != "" {
		serve(root)
	}
	os.Exit(m.Run())
}

// serve is the process inside of the box.
func serve(root string) {
	out := os.NewFile(3, "out")
	if err := enter(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	unix.CloseOnExec(3)
	r := newRunner()
	reply, requests := json.NewEncoder(out), json.NewDecoder(os.Stdin)
	_ = reply.Encode(true)
	for {
		var numbered map[int]string
		if err := requests.Decode(&numbered); err == io.EOF {
			os.Exit(0)
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = reply.Encode(r.run(numbered))
	}
}

// enter makes a folder the root, with the system's programs and empty folders
// in memory.
func enter(root string) error {
	awk, err := exec.LookPath("awk")
	if err != nil {
		return err
	}
	if awk, err = filepath.EvalSymlinks(awk); err != nil {
		return err
	}
	// Not a script of a shell: a rule can't see what a program does that runs a file.
	canary := "#!" + awk + " -f\nBEGIN { m = ENVIRON[\"INSPAN_MARK\"]; if (m == \"\") m = \"/m/lost\"; print \"x\" >>m }\n"
	at := func(path string) string { return filepath.Join(root, path) }
	steps := []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "") },
		func() error { return unix.Mount("tmpfs", root, "tmpfs", 0, "size=64m,mode=755") },
	}
	for _, dir := range []string{"usr", "proc", "dev", "w", "h", "m", "c", "tmp", "etc"} {
		steps = append(steps, func() error { return os.Mkdir(at(dir), 0o755) })
	}
	steps = append(steps,
		func() error { return unix.Mount("/usr", at("usr"), "", unix.MS_BIND|unix.MS_REC, "") },
		func() error { return unix.Mount("", at("usr"), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "") },
		func() error { return unix.Mount("proc", at("proc"), "proc", unix.MS_RDONLY, "") },
		func() error { return os.Symlink("/proc/self/fd", at("dev/fd")) },
		func() error { return os.Symlink("/proc/self/fd/0", at("dev/stdin")) },
	)
	for _, dir := range []string{"bin", "sbin", "lib", "lib64", "lib32"} {
		if link, err := os.Readlink("/" + dir); err == nil {
			steps = append(steps, func() error { return os.Symlink(link, at(dir)) })
		} else if _, err := os.Stat("/" + dir); err == nil {
			steps = append(steps, func() error { return os.Mkdir(at(dir), 0o755) },
				func() error { return unix.Mount("/"+dir, at(dir), "", unix.MS_BIND|unix.MS_REC, "") })
		}
	}
	for _, file := range []string{"/dev/null", "/dev/zero", "/dev/urandom"} {
		steps = append(steps, func() error { return os.WriteFile(at(file), nil, 0o666) },
			func() error { return unix.Mount(file, at(file), "", unix.MS_BIND, "") })
	}
	steps = append(steps, func() error { return unix.Chroot(root) }, func() error { return os.Chdir("/") }, loopback,
		func() error { return os.WriteFile("/c/canary", []byte(canary), 0o755) })
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// loopback brings up the interface of the box's own network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// runner runs batches inside of the box, where it is the first process.
type runner struct{ connected atomic.Int64 }

func newRunner() *runner {
	r := &runner{}
	l, err := net.Listen("tcp", "127.0.0.1:7777")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for {
			if c, err := l.Accept(); err == nil {
				r.connected.Add(1)
				_ = c.Close()
			}
		}
	}()
	return r
}

// run runs lines and returns the effects of each. Under -1 it returns those that can't be assigned to a line.
func (r *runner) run(numbered map[int]string) map[int]result {
	script := &strings.Builder{}
	script.WriteString("canary() { echo x >>\"${INSPAN_MARK:-/m/lost}\"; }\n")
	for _, i := range slices.Sorted(maps.Keys(numbered)) {
		dir := place(i)
		if os.Mkdir(dir, 0o755) == nil {
			_ = os.WriteFile(filepath.Join(dir, "f"), []byte("text\n"), 0o644)
		}
		fmt.Fprintf(script, "(cd %s; export INSPAN_MARK=/m/%d; eval %s) </dev/null >/dev/null 2>&1\n", dir, i, text.ShellQuote(numbered[i]))
	}
	before := r.connected.Load()
	limit := 5 * time.Second
	if len(numbered) == 1 {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// The variables have values that earlier commands may have set.
	cmd := exec.CommandContext(ctx, "/usr/bin/bash", "--noprofile", "--norc", "/dev/fd/3")
	cmd.Env = []string{"PATH=/c:/usr/bin:/bin", "HOME=/h", "v=a[$(canary)]", "w=$(canary)", "e=v", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd.ExtraFiles = []*os.File{read}
	err = cmd.Start()
	_ = read.Close()
	if err == nil {
		_, _ = io.WriteString(write, script.String())
		_ = write.Close()
		_ = cmd.Wait()
	}
	settle()
	out := map[int]result{}
	for i := range numbered {
		out[i] = look(i)
	}
	odd := result{Connected: r.connected.Load() > before}
	if os.Remove("/m/lost") == nil {
		odd.Ran = true
	}
	if ctx.Err() != nil || odd.Connected || odd.Ran {
		out[-1] = odd
	}
	return out
}

// settle waits a little for processes in the background, and ends them.
func settle() {
	for range 20 {
		if alone() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	for !alone() {
		_ = unix.Kill(-1, unix.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

// alone reports whether no other process is in the box, and collects those that
// have ended.
func alone() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.ECHILD {
			return true
		}
		if err != nil || pid == 0 {
			return false
		}
	}
}

// look returns the traces of a line, and removes them.
func look(i int) result {
	did := result{Ran: os.Remove("/m/"+strconv.Itoa(i)) == nil}
	dir := place(i)
	found := false
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if text, _ := os.ReadFile(path); path == filepath.Join(dir, "f") && string(text) == "text\n" {
			found = true
			return nil
		}
		did.Changed = append(did.Changed, path)
		return nil
	})
	if !found && !slices.Contains(did.Changed, filepath.Join(dir, "f")) {
		did.Changed = append(did.Changed, filepath.Join(dir, "f"))
	}
	if len(did.Changed) > 0 {
		_ = os.RemoveAll(dir)
	}
	return did
}
