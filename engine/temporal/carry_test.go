package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Workers that are apart have folders of their own for workspaces, at one path: each is in a mount
// namespace. The process of the test is one more machine.

// machine is a worker with folders of its own.
type machine struct {
	name string
	conf conf
}

// needsMounts skips where no mount namespace can be made.
func needsMounts(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: only root can make mount namespaces, by util-linux: %v: %s", err, out)
	}
}

// travels makes a place whose workspace travels, with a repository in it.
func travels(t testing.TB, c conf) *place {
	t.Helper()
	needsMounts(t)
	c.Spaces = t.TempDir()
	p := openPlace(t, c)
	p.Conf.Root, p.Conf.Copies = filepath.Join(c.Spaces, "work"), t.TempDir()
	if err := os.Mkdir(p.Conf.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	repository(t, p.Conf.Root)
	p.carriers = p.Conf.carriers(p.store)
	if err := p.carriers.At(p.Conf.Root).Begin(); err != nil {
		t.Fatal(err)
	}
	return p
}

func repository(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("first\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "first"}, {"checkout", "-qb", "work"}} {
		if out, err := git(dir, 0, args...); err != nil {
			t.Fatal(err, out)
		}
	}
}

// git runs git at a fixed time, so that commits have the same names wherever they are made.
func git(dir string, n int, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	at := fmt.Sprintf("2026-01-01T%02d:%02d:00Z", n/60, n%60)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// machines are so many, each with folders of its own.
func (p *place) machines(n int) (all []machine) {
	p.t.Helper()
	for i := range n {
		m := machine{name: p.t.TempDir(), conf: p.Conf}
		m.conf.Copies = filepath.Join(m.name, "copies")
		if err := os.Mkdir(filepath.Join(m.name, "spaces"), 0o755); err != nil {
			p.t.Fatal(i, err)
		}
		all = append(all, m)
	}
	return all
}

// on starts a worker on a machine.
func (p *place) on(m machine) *process {
	p.t.Helper()
	const mounted = `mount --bind "$1" "$2" && exec "$3"`
	return p.workerOf(m.conf, "unshare", "-m", "sh", "-c", mounted, "sh", filepath.Join(m.name, "spaces"), m.conf.Spaces, os.Args[0])
}

// carriers are those of this machine; nil means workspaces don't travel.
func (c conf) carriers(s store.Store) *running.Carriers {
	if c.Copies == "" {
		return nil
	}
	return &running.Carriers{Dir: c.Copies, Sessions: s}
}

// carried gives the agents of a host a workspace that travels, and returns the hosts that open their sessions.
func (c conf) carried(h *inspan.Host, all *running.Carriers) func(ctx context.Context, id string) (*inspan.Session, error) {
	if all == nil {
		return h.Open
	}
	made := h.Agent
	h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		a, err := made(ctx, at)
		if err != nil {
			return nil, err
		}
		a.Env.Root = at.Root
		all.At(c.Root).Wire(a, at, true)
		return a, nil
	}
	return func(ctx context.Context, id string) (*inspan.Session, error) {
		if err := all.At(c.Root).Arrive(ctx, id); err != nil {
			return nil, err
		}
		return h.Open(ctx, id)
	}
}

// inWorkspace returns tools that work in the workspace. Commit makes a commit and leaves an uncommitted file, spill
// writes a file, waits at a gate and writes another, see notes the content, and fill writes a large file.
func (c conf) inWorkspace() []tool.Tool {
	path := func(format string, n int) string { return filepath.Join(c.Root, fmt.Sprintf(format, n)) }
	write := func(format string, n int, text string) error {
		return os.WriteFile(path(format, n), []byte(text), 0o644)
	}
	do := func(name string, effects []tool.Effect, f func(ctx context.Context, call *tool.Call, n int) error) tool.Tool {
		t := tool.New(name, "Does "+name+".", func(ctx context.Context, call *tool.Call, in step) (tool.Result, error) {
			return tool.Text(fmt.Sprint("finished ", in.N)), f(ctx, call, in.N)
		})
		t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return effects, nil }
		return t
	}
	changes := []tool.Effect{{Kind: tool.Execute, Text: "git commit"}}
	return []tool.Tool{
		do("commit", changes, func(_ context.Context, call *tool.Call, n int) error {
			err := errors.Join(c.note(call, "commit", n), write("file%d", n%20, fmt.Sprintf("by call %d\n", n)))
			for _, args := range [][]string{{"add", "."}, {"commit", "-qm", fmt.Sprint("call ", n)}} {
				out, failed := git(c.Root, n, args...)
				if failed != nil {
					err = errors.Join(err, fmt.Errorf("%w: %s", failed, out))
				}
			}
			return errors.Join(err, write("loose%d", n%3, fmt.Sprint(n)))
		}),
		do("spill", changes, func(ctx context.Context, call *tool.Call, n int) error {
			return errors.Join(write("partial%d", n, "x"), c.note(call, "spill", n), c.pass(ctx, n), write("whole%d", n, "x"))
		}),
		do("see", nil, func(_ context.Context, call *tool.Call, n int) error {
			list, err := os.ReadDir(c.Root)
			for _, e := range list {
				err = errors.Join(err, c.append("seen", fmt.Sprint(n, " ", e.Name())))
			}
			return errors.Join(err, c.note(call, "see", n))
		}),
		do("fill", changes, func(_ context.Context, call *tool.Call, n int) error {
			return errors.Join(write("large%d", n, noise(n, 3<<20)), c.note(call, "fill", n))
		}),
	}
}

// workspace is the content of a workspace: its files and git's view of it.
func workspace(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, args := range [][]string{{"log", "--all", "--format=%H %s"}, {"status", "--porcelain"}, {"branch"}, {"fsck", "--full", "--no-progress"}} {
		said, err := git(dir, 0, args...)
		if err != nil {
			t.Error(err, said)
		}
		out["git "+args[0]] = said
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case !d.IsDir():
			data, err := os.ReadFile(path)
			out[strings.TrimPrefix(path, dir)] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return out
}

// final brings the workspace of a session to the machine of the test.
func (p *place) final(id string) map[string]string {
	p.t.Helper()
	if err := p.carriers.At(p.Conf.Root).Arrive(p.t.Context(), id); err != nil {
		p.t.Fatal(err)
	}
	return workspace(p.t, p.Conf.Root)
}

// alone is the workspace of a session of the same script that stays on one machine.
func (p *place) alone() map[string]string {
	p.t.Helper()
	c := p.Conf
	c.Dir, c.Root, c.Open, c.Copies = p.t.TempDir(), p.t.TempDir(), true, ""
	repository(p.t, c.Root)
	var memory store.Memory
	h := c.host(&memory)
	s, err := h.New(p.t.Context(), c.Root)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := (&inspan.Conductor{Session: s}).Run(p.t.Context(), event.Say("Do all steps.")); err != nil {
		p.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
	return workspace(p.t, c.Root)
}

func (p *place) hasStopped(id string) {
	p.t.Helper()
	p.until("it has stopped", func() bool {
		return p.kinds(id, func(b event.Body) bool { _, is := b.(event.Stopped); return is }) == 1
	})
}

// TestApartMoves moves a session of 200 turns between three machines that share no folder ten times, in turn by
// kill -9 and by drain. Its workspace is the one of a session that stays where it is.
func TestApartMoves(t *testing.T) {
	names := slices.Repeat(append(slices.Repeat([]string{"commit"}, 19), "look"), 10)
	p := travels(t, conf{Script: calls(names...)})
	id := p.begins()
	p.wakes(id)
	workers, at := map[int]*process{}, map[int]machine{}
	more := func(m machine) {
		w := p.on(m)
		workers[w.Process.Pid], at[w.Process.Pid] = w, m
	}
	for _, m := range p.machines(3) {
		more(m)
	}
	drivers := map[string]bool{}
	for n := 19; n < len(names); n += 20 {
		pid := p.reached(fmt.Sprint("look", n), 0)
		drivers[at[pid].name] = true
		workers[pid].sends(t, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[n/20%2])
		p.opens(n)
		<-workers[pid].ended
		more(at[pid])
	}
	p.hasStopped(id)
	if diff := gocmp.Diff(p.alone(), p.final(id)); diff != "" {
		t.Errorf("the workspace that moved (-stays +moves):\n%s", diff)
	}
	if len(drivers) < 2 {
		t.Errorf("%d machines drove it", len(drivers))
	}
	for n, name := range names {
		if name == "commit" && p.times(fmt.Sprint(name, n)) != 1 {
			t.Errorf("%s%d was done %d times", name, n, p.times(fmt.Sprint(name, n)))
		}
	}
}

// times counts a call in the ledger.
func (p *place) times(call string) (n int) {
	for _, line := range p.ledger() {
		if name, _, _ := strings.Cut(line, ","); name == call {
			n++
		}
	}
	return n
}

// bucket gives a conf a bucket, in which the state of a workspace is if it is large.
func bucket(t testing.TB, c conf) (conf, *testkit.BucketServer) {
	t.Helper()
	s, err := testkit.StartBucket(t.TempDir())
	if errors.Is(err, testkit.ErrNoBucket) {
		t.Skip("SKIPPED: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	c.Bucket = &postgres.Bucket{
		Endpoint: s.Endpoint, Name: s.Name, Prefix: "blobs/", Region: "us-east-1", AccessKey: s.Key, SecretKey: s.Secret, Plain: true,
	}
	return c, s
}

// seen is the content of the workspace as a call saw it.
func (p *place) seen(n int) (names []string) {
	for _, line := range p.lines("seen") {
		if name, ok := strings.CutPrefix(line, fmt.Sprint(n, " ")); ok {
			names = append(names, name)
		}
	}
	return names
}

// unknown counts the calls whose outcome is unknown.
func (p *place) unknown(id string) int {
	return p.kinds(id, func(b event.Body) bool {
		e, ended := b.(event.Ended)
		return ended && e.Outcome == event.OutcomeUnknown
	})
}

// TestApartAndBack kills a worker in the middle of a call that has written something, continues on another machine, and
// returns to the first. Its folder still has the files that the dying call wrote. The session does not see them, and
// sees everything that was acknowledged, large files included.
func TestApartAndBack(t *testing.T) {
	c, objects := bucket(t, conf{Script: calls("commit", "fill", "spill", "see", "look", "see", "commit")})
	p := travels(t, c)
	id := p.begins()
	p.wakes(id)
	both := p.machines(2)
	first := p.on(both[0])
	p.reached("spill2", 0)
	first.sends(t, syscall.SIGKILL)
	<-first.ended
	if _, err := os.Stat(filepath.Join(both[0].name, "spaces", "work", "partial2")); err != nil {
		t.Fatal("the dying call has written nothing:", err)
	}
	second := p.on(both[1])
	p.reached("look4", 0)
	second.sends(t, syscall.SIGTERM)
	p.opens(4)
	<-second.ended
	p.on(both[0])
	p.hasStopped(id)
	for _, n := range []int{3, 5} {
		if got := p.seen(n); !slices.Contains(got, "file0") || !slices.Contains(got, "large1") || slices.Contains(got, "partial2") {
			t.Errorf("call %d sees %q", n, got)
		}
	}
	final := p.final(id)
	if final["/large1"] != noise(1, 3<<20) || !strings.Contains(final["git log"], "call 0\n") || !strings.Contains(final["git log"], "call 6\n") {
		t.Errorf("in the end there are %d bytes, and git says %q", len(final["/large1"]), final["git log"])
	}
	if n := p.unknown(id); n != 1 {
		t.Errorf("%d calls are unknown", n)
	}
	if objects.Objects() == 0 {
		t.Error("the large file is not in the bucket")
	}
	told := p.kinds(id, func(b event.Body) bool {
		added, is := b.(event.Added)
		return is && strings.Contains(added.Text, "runs on another machine")
	})
	if told != 2 {
		t.Errorf("the model was told %d times that the session has moved", told)
	}
}

// TestApartAndHere kills a worker in the middle of a call and starts it again: no other machine was in
// between, so the session finds its folder as the call has left it.
func TestApartAndHere(t *testing.T) {
	p := travels(t, conf{Kind: byDatabase, Script: calls("commit", "spill", "see")})
	id := p.begins()
	p.wakes(id)
	here := p.machines(1)[0]
	w := p.on(here)
	p.reached("spill1", 0)
	w.sends(t, syscall.SIGKILL)
	<-w.ended
	p.on(here)
	p.hasStopped(id)
	if got := p.seen(2); !slices.Contains(got, "partial1") || !slices.Contains(got, "loose0") {
		t.Errorf("the session sees %q", got)
	}
}

// TestApartZombie stops a worker in the middle of a call, continues on another machine, and wakes the first one:
// nothing it writes then reaches the session.
func TestApartZombie(t *testing.T) {
	p := travels(t, conf{Script: calls("commit", "spill", "commit", "look", "see")})
	id := p.begins()
	p.wakes(id)
	both := p.machines(2)
	zombie := p.on(both[0])
	p.reached("spill1", 0)
	zombie.sends(t, syscall.SIGSTOP)
	p.on(both[1])
	p.reached("look3", 0)
	p.opens(1)
	zombie.sends(t, syscall.SIGCONT)
	p.until("the zombie has written", func() bool {
		_, err := os.Stat(filepath.Join(both[0].name, "spaces", "work", "whole1"))
		return err == nil
	})
	p.opens(3)
	p.hasStopped(id)
	for name := range p.final(id) {
		if strings.HasPrefix(name, "/whole") || strings.HasPrefix(name, "/partial") {
			t.Errorf("the workspace has %s", name)
		}
	}
	if n := p.unknown(id); n != 1 {
		t.Errorf("%d calls are unknown", n)
	}
}

// TestApartStruck kills workers of machines that share no folder at random moments. Each change that was
// acknowledged is in the workspace in the end, once, and one whose outcome is unknown at most once.
func TestApartStruck(t *testing.T) {
	const steps = 80
	p := travels(t, conf{Kind: byDatabase, Script: calls(slices.Repeat([]string{"commit"}, steps)...)})
	id := p.begins()
	p.wakes(id)
	workers, at := map[int]*process{}, map[int]machine{}
	more := func(m machine) {
		w := p.on(m)
		workers[w.Process.Pid], at[w.Process.Pid] = w, m
	}
	for _, m := range p.machines(3) {
		more(m)
	}
	random, kills := rand.New(rand.NewPCG(7, 7)), 0
	for n := 4; n < steps; n += 3 + random.IntN(12) {
		pid := p.reached(fmt.Sprint("commit", n), 0)
		if workers[pid] == nil {
			continue // it was killed meanwhile
		}
		pause := time.NewTimer(time.Duration(random.IntN(40)) * time.Millisecond)
		<-pause.C
		workers[pid].sends(t, syscall.SIGKILL)
		<-workers[pid].ended
		kills++
		more(at[pid])
		delete(workers, pid)
	}
	p.hasStopped(id)
	made := map[string]int{}
	for _, line := range strings.Split(p.final(id)["git log"], "\n") {
		if _, call, ok := strings.Cut(line, " call "); ok {
			made[call]++
		}
	}
	ends := 0
	for e, err := range store.Events(t.Context(), p.store, id) {
		if err != nil {
			t.Fatal(err)
		}
		end, ended := e.Body.(event.Ended)
		if !ended {
			continue
		}
		n := fmt.Sprint(ends)
		ends++
		switch {
		case end.Outcome == event.OutcomeUnknown && made[n] > 1, end.Outcome == event.OutcomeOK && made[n] != 1:
			t.Errorf("call %s has ended as %s, and is %d times in the workspace", n, end.Outcome, made[n])
		case end.Outcome != event.OutcomeUnknown && end.Outcome != event.OutcomeOK:
			t.Errorf("call %s has ended as %s: %s", n, end.Outcome, end.Parts.Text())
		}
	}
	if ends != steps || kills < 3 {
		t.Errorf("%d calls have ended, %d workers were killed", ends, kills)
	}
	t.Logf("%d workers were killed, and %d of %d calls are unknown", kills, p.unknown(id), steps)
}
