//go:build linux || darwin

package limit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
)

// childEnv, if set, makes the test binary act as another process: "what path count".
const childEnv = "LIMIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(childEnv)); len(args) > 0 {
		if err := child(args[0], args[1], args[2]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child says that it is there, waits for the end of its input, sends requests
// until it may not any more or for count times, and says when each was sent.
func child(what, path, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var m llm.Model
	switch what {
	case "limit":
		m = (&limit.Limit{Path: path, Requests: perMinute}).Model(new(vendor))
	case "budget":
		m = (&limit.Budget{Path: path, PerDay: purseful}).Model(dollar())
	case "share":
		return shared(path)
	case "purse":
		m = (&limit.Budget{Path: path, PerDay: 1e9}).Model(dollar())
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for range n {
		if _, failed := ask(context.Background(), m, say("hi")); failed != nil && failed.Kind == llm.KindBudget {
			return nil
		} else if failed != nil {
			return failed
		}
		fmt.Println(time.Now().UnixNano())
	}
	return nil
}

const (
	perMinute = 3000 // one in 20 ms
	purseful  = 2000 // dollars: enough that no process spends all before the other has begun
)

// proc is a running child.
type proc struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

func start(t *testing.T, what, path string, count int) *proc {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// A program built with the race detector would rest for a second at its end.
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", childEnv, what, path, count), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &proc{cmd, in, bufio.NewScanner(out)}
	if !p.out.Scan() || p.out.Text() != "ready" {
		t.Fatalf("the child says %q", p.out.Text())
	}
	return p
}

// begin lets children that are ready send.
func begin(procs ...*proc) {
	for _, p := range procs {
		p.in.Close()
	}
}

// times reads when the child has sent, to its end.
func (p *proc) times(t *testing.T) (out []time.Time) {
	t.Helper()
	for p.out.Scan() {
		n, err := strconv.ParseInt(p.out.Text(), 10, 64)
		if err != nil {
			t.Fatalf("the child says %q", p.out.Text())
		}
		out = append(out, time.Unix(0, n))
	}
	return out
}

// TestTwoProcessesPace lets two processes send as fast as they may: together
// they keep the pace of one.
func TestTwoProcessesPace(t *testing.T) {
	const each = 30
	path := filepath.Join(t.TempDir(), "pace")
	began := time.Now()
	m := (&limit.Limit{Path: path, Requests: perMinute}).Model(new(vendor))
	ahead := perMinute/10 + 1 // what may be sent at once
	for range ahead {
		if _, failed := ask(t.Context(), m, say("hi")); failed != nil {
			t.Fatal(failed)
		}
	}
	a, b := start(t, "limit", path, each), start(t, "limit", path, each)
	begin(a, b)
	sent := slices.Concat(a.times(t), b.times(t))
	slices.SortFunc(sent, time.Time.Compare)
	if len(sent) != 2*each {
		t.Fatalf("%d requests were sent, want %d", len(sent), 2*each)
	}
	for i, at := range sent {
		if due := began.Add(time.Duration(i+1) * 20 * time.Millisecond); at.Before(due) {
			t.Errorf("request %d was sent %v too early", i, due.Sub(at))
		}
	}
}

// TestTwoProcessesPause checks that a pause that one process learns of holds for another.
func TestTwoProcessesPause(t *testing.T) {
	const pause = 500 * time.Millisecond
	path := filepath.Join(t.TempDir(), "pace")
	began := time.Now()
	v := &vendor{fails: []*llm.Error{{Kind: llm.KindRateLimited, RetryAfter: pause}}}
	_, _ = ask(t.Context(), (&limit.Limit{Path: path}).Model(v), say("hi"))
	p := start(t, "limit", path, 1)
	begin(p)
	sent := p.times(t)
	if len(sent) != 1 || sent[0].Sub(began) < pause {
		t.Errorf("sent at %v, want after %v", sent, began.Add(pause))
	}
}

// TestTwoProcessesSpend lets two processes spend the whole budget: together they exceed it by at most one call each,
// and every dollar is counted.
func TestTwoProcessesSpend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	a, b := start(t, "budget", path, 10*purseful), start(t, "budget", path, 10*purseful)
	begin(a, b)
	byA, byB := len(a.times(t)), len(b.times(t))
	if sent := byA + byB; byA == 0 || byB == 0 || sent < purseful || sent > purseful+2 {
		t.Errorf("%d and %d dollars were spent of %d", byA, byB, purseful)
	}
	if got := spentIn(t, path); got != float64(byA+byB) {
		t.Errorf("%v dollars were counted, %d spent", got, byA+byB)
	}
}

// spentIn reads a budget's file as a person would.
func spentIn(t *testing.T, path string) float64 {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ USD float64 }
	_, text, _ := strings.Cut(string(raw), " ")
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return state.USD
}

// TestKilled kills a process that spends, again and again: nothing it had
// counted is lost, and the file can be used at once.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	seeded := false
	b := &limit.Budget{Path: path, PerDay: 1e9, Seed: func(context.Context) (float64, error) { seeded = true; return 0, nil }}
	_, _ = ask(t.Context(), b.Model(dollar()), say("hi"))
	seeded = false
	for i := range 10 {
		before := spentIn(t, path)
		p := start(t, "purse", path, 1_000_000)
		begin(p)
		for range 20 + 7*i {
			if !p.out.Scan() {
				t.Fatal("the child has ended by itself")
			}
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		said := float64(20 + 7*i + len(lines(p.out)))
		_ = p.cmd.Wait()
		if spent := spentIn(t, path) - before; spent < said || spent > said+1 {
			t.Errorf("kill %d: %v dollars were counted, the child said %v", i, spent, said)
		}
		if _, failed := ask(t.Context(), b.Model(dollar()), say("hi")); failed != nil || seeded {
			t.Fatalf("after a kill: failed %v, damaged %v", failed, seeded)
		}
	}
}

// lines reads the whole lines that are left.
func lines(s *bufio.Scanner) (out []string) {
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}

// TestLocked checks waits while a stopped process holds the file's lock: a wait ends with its context, and after a
// bounded time without one.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		pace := (&limit.Limit{Path: path, Requests: 60}).Model(new(vendor))
		purse := (&limit.Budget{Path: path, PerDay: 1}).Model(dollar())
		for _, m := range []llm.Model{pace, purse} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, failed := ask(ctx, m, say("hi")); failed == nil || failed.Kind != llm.KindCancelled || time.Since(began) > time.Second {
				t.Errorf("%v after %v", failed, time.Since(began))
			}
		}
		if _, failed := ask(t.Context(), pace, say("hi")); failed != nil {
			t.Errorf("a limit keeps to itself then: %v", failed)
		}
		if _, failed := ask(t.Context(), purse, say("hi")); failed == nil || failed.Kind != llm.KindBudget ||
			!strings.Contains(failed.Message, "end that process") {
			t.Errorf("a budget must not guess: %v", failed)
		}
	})
}

// sharedBudget is the budget of all children called "share"; each of their requests costs a dollar.
const sharedBudget = 3

// gated is a vendor that reports each request, and answers when told to.
type gated struct{ *vendor }

func (g gated) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	fmt.Println("sent")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return g.vendor.Stream(ctx, req)
}

// shared sends one request, and says how it went.
func shared(path string) error {
	v := dollar()
	v.info.MaxOutput = 100_000 // a dollar's worth
	m := (&limit.Budget{Path: path, PerDay: sharedBudget}).Model(gated{v})
	fmt.Println("ready")
	_, failed := ask(context.Background(), m, say("hi"))
	switch {
	case failed == nil:
		fmt.Println("answered")
	case failed.Kind == llm.KindBudget:
		fmt.Println("refused")
	default:
		return failed
	}
	return nil
}

// TestManyProcessesReserve lets eight processes send at once when the budget pays for three: at most one request
// exceeds it.
func TestManyProcessesReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	said := make(chan string)
	var procs []*proc
	for range 8 {
		p := start(t, "share", path, 1)
		procs = append(procs, p)
		go func() {
			for p.out.Scan() {
				said <- p.out.Text()
			}
			said <- "over"
		}()
	}
	got := map[string]int{}
	for got["over"] < len(procs) {
		word := <-said
		if got[word]++; word == "sent" && got["sent"] == sharedBudget {
			for _, p := range procs {
				if _, err := p.in.(io.Writer).Write([]byte("answer\n")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if got["sent"] > sharedBudget+1 || got["answered"] != got["sent"] ||
		got["refused"] != len(procs)-got["sent"] || spentIn(t, path) != float64(got["sent"]) {
		t.Errorf("the children say %v, and $%v were counted of $%d", got, spentIn(t, path), sharedBudget)
	}
	if left, _ := os.ReadDir(path + ".held"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestKilledReservation checks that a request waits for the reservation of another process, and no longer once that
// process was killed.
func TestKilledReservation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spent")
	p := start(t, "share", path, 1)
	if !p.out.Scan() || p.out.Text() != "sent" {
		t.Fatalf("the child says %q", p.out.Text())
	}
	v := dollar()
	v.info.MaxOutput = 250_000 // with the child's dollar more than there is
	waited, answered := false, false
	for chunk, err := range (&limit.Budget{Path: path, PerDay: sharedBudget}).Model(v).Stream(t.Context(), say("hi")) {
		switch {
		case err != nil:
			t.Fatal(err)
		case chunk.Retry != nil:
			waited = true
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		case chunk.Reply != nil:
			answered = true
		}
	}
	if !waited || !answered {
		t.Errorf("waited %v, answered %v", waited, answered)
	}
}
