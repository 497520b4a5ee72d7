//go:build linux || darwin

package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

const (
	childEnv = "SESSION_TEST_CHILD" // "dir id name count": be a child process
	bigChild = "big"                // name of one that appends big texts and says their numbers
	bigText  = 1 << 20
)

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Fields(args)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child tries to drive a session, says whether it could, appends inputs (and
// notes, if it drives), and then waits for the end of its input.
func child(args []string) error {
	dir, id, name := args[0], args[1], args[2]
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	ctx := context.Background()
	l, err := (&Store{Dir: dir, Sync: SyncKill}).opened(ctx, id)
	if err != nil {
		return err
	}
	err = l.Lease(ctx)
	switch {
	case err == nil:
		fmt.Println("driver")
	case errors.Is(err, store.ErrBusy):
		fmt.Println("busy")
	default:
		return err
	}
	for i := range count {
		if name == bigChild {
			events, err := l.Append(ctx, said(strings.Repeat("x", bigText)))
			if err != nil {
				return err
			}
			fmt.Println(events[0].Seq)
			continue
		}
		bodies := []event.Body{said(fmt.Sprintf("%s %d", name, i)), event.Titled{Title: name}}
		if err == nil {
			bodies = append(bodies, event.Note{Topic: name, Text: "driving"})
		}
		if _, err := put(ctx, l, bodies); err != nil {
			return err
		}
	}
	fmt.Println("done")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, l.Close())
}

// proc is a running child.
type proc struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, l *Log, name string, count int) *proc {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", childEnv, l.store.Dir, l.id, name, count))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &proc{cmd, in, bufio.NewScanner(out)}
}

func (p *proc) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("child said no more: %v", p.out.Err())
	}
	return p.out.Text()
}

// idle returns a new session without a driver.
func idle(t *testing.T) *Log {
	t.Helper()
	l := driven(t, &Store{Dir: t.TempDir(), Sync: SyncKill})
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestManyProcesses lets 8 processes append inputs to one session at once; one of them drives it.
func TestManyProcesses(t *testing.T) {
	const processes, count = 8, 40
	l := idle(t)
	var procs []*proc
	for i := range processes {
		procs = append(procs, start(t, l, fmt.Sprintf("p%d", i), count))
	}
	roles := map[string]int{}
	for _, p := range procs {
		roles[p.line(t)]++
	}
	if roles["driver"] != 1 || roles["busy"] != processes-1 {
		t.Errorf("roles are %v, want 1 driver and %d busy", roles, processes-1)
	}
	for _, p := range procs {
		if got := p.line(t); got != "done" {
			t.Fatalf("child says %q", got)
		}
	}
	for _, p := range procs {
		p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
	checkMixed(t, readAll(t, l), processes, count)
}

// checkMixed checks the appends of several children.
func checkMixed(t *testing.T, events []event.Event, processes, count int) {
	t.Helper()
	if want := processes*count*2 + count; len(events) != want {
		t.Fatalf("the log holds %d events, want %d", len(events), want)
	}
	next := map[string]int{}
	for i, e := range events {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("number %d at place %d", e.Seq, i+1)
		}
		s, ok := e.Body.(event.Said)
		if !ok {
			continue
		}
		name, n, _ := strings.Cut(s.Parts.Text(), " ")
		if n != strconv.Itoa(next[name]) {
			t.Fatalf("%s has %s next, want %d", name, n, next[name])
		}
		next[name]++
		if got, ok := events[i+1].Body.(event.Titled); !ok || got.Title != name {
			t.Fatalf("behind %q comes %v: the batch was torn apart", s.Parts.Text(), events[i+1])
		}
	}
}

// TestHolderKilled kills the driver: the next one must be able to start at once. On an idle machine that
// takes milliseconds.
func TestHolderKilled(t *testing.T) {
	l := idle(t)
	p := start(t, l, "p", 1)
	if got := p.line(t); got != "driver" {
		t.Fatalf("child is %q", got)
	}
	busy(t, l, p.cmd.Process.Pid)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := l.Lease(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("half a minute after the death of the driver: %v", err)
		}
	}
}

// TestHolderStopped stops the driver: it stays the driver, inputs still go in, and it continues when it wakes.
func TestHolderStopped(t *testing.T) {
	l := idle(t)
	p := start(t, l, "p", 1)
	if got := p.line(t) + p.line(t); got != "driverdone" {
		t.Fatalf("child says %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		busy(t, l, p.cmd.Process.Pid)
	}
	if _, err := l.Append(t.Context(), said("hello")); err != nil {
		t.Errorf("input while the driver is stopped: %v", err)
	}
	if err := l.store.Remove(t.Context(), l.id); !errors.Is(err, store.ErrBusy) {
		t.Errorf("Remove while the driver is stopped: %v, want store.ErrBusy", err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("child: %v", err)
	}
	if err := l.Lease(t.Context()); err != nil {
		t.Errorf("after the driver has ended: %v", err)
	}
}

// busy checks that the process holds the lease and no other one gets it.
func busy(t *testing.T, l *Log, pid int) {
	t.Helper()
	err := l.Lease(t.Context())
	b, ok := errors.AsType[*store.BusyError](err)
	if !ok || !errors.Is(err, store.ErrBusy) {
		t.Fatalf("Lease = %v, want busy", err)
	}
	if b.PID != 0 && b.PID != pid { // 0 means it has not written it yet
		t.Errorf("busy by process %d, want %d", b.PID, pid)
	}
	if _, err := l.AppendAs(t.Context(), event.Driver{}, event.Note{Topic: "x"}); !errors.Is(err, event.ErrNotDriver) {
		t.Errorf("append without the lease: %v, want event.ErrNotDriver", err)
	}
}

// TestKilledWhileAppending kills a process again and again that appends big events, which may tear lines: all
// acknowledged events must be there.
func TestKilledWhileAppending(t *testing.T) {
	l := idle(t)
	var acked []uint64
	for range 10 {
		p := start(t, l, bigChild, 1000)
		p.line(t)
		for range 3 {
			acked = append(acked, p.ack(t))
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.out.Scan() { // what it still said
			acked = append(acked, number(t, p.out.Text()))
		}
		mustAppend(t, l, said("after"))
	}
	events := readAll(t, l)
	torn := 0
	for i, e := range events {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("number %d at place %d", e.Seq, i+1)
		}
		if e.Body.Kind() == "note" && e.Body.(event.Note).Topic == "recovered" {
			torn++
		}
	}
	for _, seq := range acked {
		if int(seq) > len(events) || len(marker(events[seq-1].Body)) < bigText {
			t.Errorf("event %d was acknowledged and is not there", seq)
		}
	}
	t.Logf("%d acknowledged, %d lines torn in 10 kills", len(acked), torn)
}

func (p *proc) ack(t *testing.T) uint64 {
	t.Helper()
	return number(t, p.line(t))
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("child says %q", text)
	}
	return n
}
