package temporal_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/store"
)

// serverProgram names the development server that engine/temporal/devserver is built to.
const serverProgram = "INSPAN_TEMPORAL_SERVER"

// cluster keeps the sessions of all tests here that are not local, and engine supervises them. Where one is nil, it
// gives the reason why it is missing.
var (
	cluster             *testkit.Cluster
	engine              *devServer
	noCluster, noEngine string
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
	for _, missing := range []string{noCluster, noEngine} {
		if missing != "" {
			fmt.Fprintln(os.Stderr, "engine/temporal: SKIPPED all tests against a server ("+missing+")")
		}
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
	if cluster, err = testkit.Start("/tmp"); errors.Is(err, testkit.ErrNone) {
		noCluster = err.Error()
	} else if err != nil {
		return err
	}
	program := os.Getenv(serverProgram)
	if program == "" {
		noEngine = serverProgram + " names no server; make test-engine builds one"
		return nil
	}
	engine = &devServer{program: program, dir: dir}
	return engine.start()
}

// devServer is a Temporal server over a file, so that it can be started again.
type devServer struct {
	program, dir, address string
	cmd                   *exec.Cmd
}

func (s *devServer) start() error {
	if s.address == "" {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000))) // ports from 32768 on are given to others
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
	for end := time.Now().Add(3 * time.Minute); ; {
		c, err := client.Dial(client.Options{HostPort: s.address, Logger: quiet()})
		if err == nil {
			c.Close()
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %s", err, s.said())
		}
	}
}

// said is the output of the server.
func (s *devServer) said() []byte {
	if s == nil {
		return nil
	}
	out, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
	return out
}

func (s *devServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// place is where a test has its sessions, workers and ledger.
type place struct {
	t        testing.TB
	Conf     conf
	store    store.Store
	client   *temporal.Client  // nil means Temporal has no part in it
	all      []*process        // workers that were started
	carriers *running.Carriers // of the test's own machine; nil means workspaces don't travel
}

var places atomic.Int64

// newPlace makes a place whose sessions follow a script.
func newPlace(t testing.TB, script string) *place {
	t.Helper()
	return openPlace(t, conf{Script: script})
}

// needs skips a test of a supervisor that is missing here.
func needs(t testing.TB, kind string) {
	t.Helper()
	if missing := noCluster; kind != byFolder && missing != "" {
		t.Skip("SKIPPED: " + missing)
	}
	if missing := noEngine; kind == byTemporal && missing != "" {
		t.Skip("SKIPPED: " + missing)
	}
}

// openPlace makes a place from a conf and the usual values.
func openPlace(t testing.TB, c conf) *place {
	t.Helper()
	needs(t, c.Kind)
	c.Queue = fmt.Sprint("test", os.Getpid(), "n", places.Add(1))
	c.Schema, c.Dir, c.Root = c.Queue, t.TempDir(), t.TempDir()
	c.Lease, c.Beat = time.Second, 200*time.Millisecond
	if c.Kind == byTemporal {
		c.Temporal = engine.address
	}
	if c.Kind != byFolder {
		c.URL = cmp.Or(c.URL, cluster.URL("postgres"))
	}
	p := &place{t: t, Conf: c}
	s, err := p.Conf.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.store = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if c.Kind == byTemporal {
		p.supervised()
	}
	return p
}

// supervised connects a place to the engine.
func (p *place) supervised() {
	c, err := client.Dial(client.Options{HostPort: engine.address, Logger: quiet()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.client = &temporal.Client{Temporal: c, Store: p.store, Queue: p.Conf.Queue, Heartbeat: time.Minute, Searchable: true}
	p.t.Cleanup(c.Close)
}

// begins returns a new session with a first message.
func (p *place) begins() (id string) {
	p.t.Helper()
	host := p.Conf.host(p.store)
	p.Conf.carried(host, p.carriers)
	s, err := host.New(p.t.Context(), p.Conf.Root)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := errors.Join(s.Send(p.t.Context(), event.Say("Do all steps.")), s.Close()); err != nil {
		p.t.Fatal(err)
	}
	return s.ID()
}

// wakes gives a session to the workers, or wakes it. In a local folder they find it.
func (p *place) wakes(id string) {
	p.t.Helper()
	var err error
	switch p.Conf.Kind {
	case byTemporal:
		err = p.client.Wake(p.t.Context(), id, "")
	case byDatabase:
		err = p.Conf.engine(p.store).Wake(p.t.Context(), id, nil)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// process is a worker that runs.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// worker starts a worker. It is killed in the end.
func (p *place) worker() *process {
	p.t.Helper()
	return p.workerOf(p.Conf, os.Args[0])
}

// workerOf starts a worker by a conf of its own, by a command that ends in this program.
func (p *place) workerOf(c conf, command ...string) *process {
	p.t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &process{Cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	w.Env = append(os.Environ(), asWorker+"="+string(raw))
	p.all = append(p.all, w)
	said, err := os.Create(filepath.Join(p.Conf.Dir, fmt.Sprint("worker", len(p.all))))
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

// ledger is the file to which calls append lines.
func (p *place) ledger() []string { return p.lines("ledger") }

// lines are those of a file that workers append to.
func (p *place) lines(name string) []string {
	data, err := os.ReadFile(filepath.Join(p.Conf.Dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// until waits for something to be so.
func (p *place) until(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			p.t.Fatalf("in vain waited for: %s; the ledger: %q\nserver: %s", what, p.ledger(), engine.said())
		}
	}
}

// reached waits until a call has written a new line to the ledger, and returns the process that makes the call.
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

// stands waits until a session has a standing, as the engine sees it.
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

// bodies returns the bodies of a log as text, without the differences between a session that moves and one that stays:
// claims, durations, and the second start of work that was in progress when its process died, which is a request to the
// model, with its number, or a call that only reads.
func bodies(t testing.TB, s store.Store, id string) (out []string) {
	t.Helper()
	started, asked := map[string]bool{}, false
	for e, err := range store.Events(t.Context(), s, id) {
		if err != nil {
			t.Fatal(err)
		}
		again := false
		switch b := e.Body.(type) {
		case event.Claimed:
			again = true
		case event.Started:
			again, started[b.Call] = started[b.Call], true
		case event.Asked:
			again, asked = asked, true
			b.Turn = 0
			e.Body = b
		case event.Replied:
			asked = false
			b.Millis, b.First = 0, 0
			e.Body = b
		case event.Ended:
			b.Millis = 0
			e.Body = b
		}
		if again {
			continue
		}
		data, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Body.Kind()+" "+string(data))
	}
	return out
}

// undisturbed is the log of a session of the same script without a supervisor, which gets a second message when it is
// done.
func (p *place) undisturbed(more ...event.Body) []string {
	p.t.Helper()
	var memory store.Memory
	c := p.Conf
	c.Dir, c.Open = p.t.TempDir(), true
	s, err := c.host(&memory).New(p.t.Context(), c.Root)
	if err != nil {
		p.t.Fatal(err)
	}
	conduct := inspan.Conductor{Session: s}
	for _, input := range append([]event.Body{event.Say("Do all steps.")}, more...) {
		if err := conduct.Run(p.t.Context(), input); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
	return bodies(p.t, &memory, s.ID())
}
