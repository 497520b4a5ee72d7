package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// serverProgram names the development server that engine/temporal/devserver is built to.
const serverProgram = "INSPAN_TEMPORAL_SERVER"

// cluster keeps the sessions of all tests here, and engine supervises them; without either, missing
// says why.
var (
	cluster *testkit.Cluster
	engine  *devServer
	missing string
)

func TestMain(m *testing.M) {
	if conf := os.Getenv(asWorker); conf != "" {
		if err := work(conf); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(tests(m))
}

func tests(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("/tmp", "inspan-temporal-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = begin(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if missing != "" {
		fmt.Fprintln(os.Stderr, "engine/temporal: SKIPPED all tests against servers ("+missing+")")
	}
	if cluster != nil {
		defer func() { _ = cluster.Remove() }()
	}
	if engine != nil {
		defer engine.kill()
	}
	return m.Run()
}

func begin(dir string) (err error) {
	program := os.Getenv(serverProgram)
	if program == "" {
		missing = serverProgram + " names no server; make test-engine builds one"
		return nil
	}
	if cluster, err = testkit.Start("/tmp"); errors.Is(err, testkit.ErrNone) {
		missing = err.Error()
		return nil
	}
	if err == nil {
		engine = &devServer{program: program, dir: dir}
		err = engine.start()
	}
	return err
}

// devServer is a Temporal server over a file, so that it can be started again.
type devServer struct {
	program, dir, address string
	cmd                   *exec.Cmd
}

func (s *devServer) start() error {
	if s.address == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.address = l.Addr().String()
		if err := l.Close(); err != nil {
			return err
		}
	}
	said, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	s.cmd = exec.Command(s.program, "--listen", s.address, "--db", filepath.Join(s.dir, "temporal.db"))
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = said, said, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; {
		c, err := client.Dial(client.Options{HostPort: s.address, Logger: quiet()})
		if err == nil {
			c.Close()
			return nil
		}
		if time.Now().After(end) {
			out, _ := os.ReadFile(said.Name())
			return fmt.Errorf("%w: %s", err, out)
		}
	}
}

func (s *devServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// place is where a test has its sessions, workers and ledger.
type place struct {
	t      testing.TB
	Conf   conf
	store  *postgres.Store
	client *temporal.Client
	next   int
}

var places atomic.Int64

// newPlace makes a place whose sessions follow a script.
func newPlace(t testing.TB, script string) *place {
	t.Helper()
	if missing != "" {
		t.Skip("SKIPPED: " + missing)
	}
	name := fmt.Sprint("test", os.Getpid(), "n", places.Add(1))
	p := &place{t: t, Conf: conf{
		Temporal: engine.address, Queue: name, URL: cluster.URL("postgres"), Schema: name, Dir: t.TempDir(), Root: t.TempDir(), Script: script,
		Lease: time.Second, Beat: 200 * time.Millisecond,
	}}
	var err error
	if p.store, err = p.Conf.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: engine.address, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	p.client = &temporal.Client{Temporal: c, Store: p.store, Queue: name, Heartbeat: 2 * time.Second, Searchable: true}
	t.Cleanup(func() {
		c.Close()
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// begins is a new session that was told something.
func (p *place) begins() (id string) {
	p.t.Helper()
	s, err := p.Conf.host(p.store).New(p.t.Context(), p.Conf.Root)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := errors.Join(s.Send(p.t.Context(), event.Say("Do all steps.")), s.Close()); err != nil {
		p.t.Fatal(err)
	}
	return s.ID()
}

// process is a worker that runs.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// worker starts a worker. It is killed in the end.
func (p *place) worker() *process {
	p.t.Helper()
	raw, err := json.Marshal(p.Conf)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &process{Cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	w.Env = append(os.Environ(), asWorker+"="+string(raw))
	p.next++
	said, err := os.Create(filepath.Join(p.Conf.Dir, fmt.Sprint("worker", p.next)))
	if err != nil {
		p.t.Fatal(err)
	}
	w.Stdout, w.Stderr, w.SysProcAttr = said, said, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := errors.Join(w.Start(), said.Close()); err != nil {
		p.t.Fatal(err)
	}
	go func() { _ = w.Wait(); close(w.ended) }() // it may be killed
	p.t.Cleanup(func() {
		w.sends(p.t, syscall.SIGKILL)
		<-w.ended
		if out, _ := os.ReadFile(said.Name()); p.t.Failed() {
			p.t.Logf("worker %d:\n%s", w.Process.Pid, out)
		}
	})
	return w
}

func (w *process) sends(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := w.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// ledger is what commands have appended.
func (p *place) ledger() []string {
	data, err := os.ReadFile(filepath.Join(p.Conf.Dir, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// until waits for something to be so.
func (p *place) until(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			out, _ := os.ReadFile(filepath.Join(engine.dir, "server.log"))
			p.t.Fatalf("in vain waited for: %s; the ledger: %q\nserver: %s", what, p.ledger(), out)
		}
	}
}

// reached waits until a call stands in the ledger that was not among the lines before, and tells
// the process that makes it.
func (p *place) reached(call string, before int) (pid int) {
	p.t.Helper()
	p.until(call, func() bool {
		for _, line := range p.ledger()[before:] {
			if rest, ok := strings.CutPrefix(line, call+","); ok {
				_, _ = fmt.Sscan(rest, &pid)
			}
		}
		return pid > 0
	})
	return pid
}

// opens has a gate let calls through.
func (p *place) opens(gate int) {
	p.t.Helper()
	if err := os.WriteFile(p.Conf.gate(gate), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// stands waits until a session stands so, as the engine sees it.
func (p *place) stands(id string, as temporal.Standing) {
	p.t.Helper()
	p.until("session is "+string(as), func() bool {
		d, err := p.client.Describe(p.t.Context(), id)
		if err != nil {
			p.t.Fatal(err)
		}
		return d.Standing == as && d.Attempt == 0
	})
}

// bodies are those of a log as text, without claims, without how long things took, and without the
// second start of a call that only reads and was lost with its worker.
func bodies(t testing.TB, s store.Store, id string) (out []string) {
	t.Helper()
	started := map[string]bool{}
	for e, err := range store.Events(context.Background(), s, id) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Claimed:
			continue
		case event.Started:
			if started[b.Call] {
				continue
			}
			started[b.Call] = true
		case event.Replied:
			b.Millis, b.First = 0, 0
			e.Body = b
		case event.Ended:
			b.Millis = 0
			e.Body = b
		}
		data, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Body.Kind()+" "+string(data))
	}
	return out
}

// undisturbed is the log of a session of the same script that nobody supervises.
func (p *place) undisturbed() []string {
	p.t.Helper()
	var memory store.Memory
	c := p.Conf
	c.Dir, c.Open = p.t.TempDir(), true
	s, err := c.host(&memory).New(p.t.Context(), c.Root)
	if err != nil {
		p.t.Fatal(err)
	}
	conduct := inspan.Conductor{Session: s}
	if err := errors.Join(conduct.Run(p.t.Context(), event.Say("Do all steps.")), s.Close()); err != nil {
		p.t.Fatal(err)
	}
	return bodies(p.t, &memory, s.ID())
}
