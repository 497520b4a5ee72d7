package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres/testkit"
)

// cluster is the database of all tests of this package; nil if there is none. Program is inspan as built here.
var (
	cluster *testkit.Cluster
	program string
)

func TestMain(m *testing.M) { os.Exit(tests(m)) }

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "inspan-servers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	switch cluster, err = testkit.Start("/tmp"); {
	case errors.Is(err, testkit.ErrNone):
		fmt.Fprintln(os.Stderr, "engine/temporal/cmd/inspan: SKIPPED all tests ("+err.Error()+")")
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cluster.Remove() }()
	program = filepath.Join(dir, "inspan")
	if out, err := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	return m.Run()
}

// house is a machine with a state folder that several servers share.
type house struct {
	t     *testing.T
	dir   string
	store string
	own   string // folder that is at dir on this machine alone; empty means others share dir
	owner *house // machine that has the owner's token; nil means this one
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir()}
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_"))
	if err := cluster.Exec(t.Context(), "postgres", `CREATE DATABASE "`+name+`"`); err != nil {
		t.Fatal(err)
	}
	h.store = cluster.URL(name)
	h.store += map[bool]string{true: "&", false: "?"}[strings.Contains(h.store, "?")] + "lease=1s"
	return h
}

func (h *house) env() []string {
	return append(os.Environ(), "HOME="+h.dir, "INSPAN_STATE_DIR="+filepath.Join(h.dir, "state"), "INSPAN_STORE="+h.store)
}

// run runs the command to its end.
func (h *house) run(args ...string) string {
	h.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = h.env(), h.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("inspan %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// served is a server of several.
type served struct {
	h    *house
	cmd  *exec.Cmd
	url  string
	said *said
	done chan struct{}
}

// said is the output of a process.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// address is one that is free.
func address(t *testing.T) string {
	t.Helper()
	for range 100 { // ports from 32768 on are given to others that take any
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (h *house) serve(args ...string) *served {
	h.t.Helper()
	at := address(h.t)
	s := &served{h: h, url: "http://" + at, said: &said{}, done: make(chan struct{})}
	s.cmd = h.command(append([]string{"serve", "--model", "script", "--mode", "auto", "--listen", at}, args...)...)
	s.cmd.Env, s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = h.env(), h.dir, s.said, s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.done) }()
	h.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
		if h.t.Failed() {
			h.t.Logf("%s:\n%s", s.url, s.said)
		}
	})
	return s
}

// says waits until a server has said something.
func (s *served) says(what string) {
	s.h.t.Helper()
	s.h.until(what+" of "+s.url, func() bool { return strings.Contains(s.said.String(), what) })
}

// until waits until something is so.
func (h *house) until(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); {
		if time.Now().After(end) {
			h.t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(20 * time.Millisecond) // of another process, which tells no one
	}
}

// call sends a request to a server. It retries while the server is away or no server leads.
func (s *served) call(method, path string, in, out any) (status int) {
	s.h.t.Helper()
	token, err := os.ReadFile(cmp.Or(s.h.owner, s.h).files("state", "server.token"))
	if err != nil {
		return 0
	}
	raw, err := json.Marshal(in)
	if err != nil {
		s.h.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(s.h.t.Context(), 10*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		s.h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && out != nil && res.StatusCode < 300 {
		err = json.Unmarshal(body, out)
	}
	if err != nil {
		return 0
	}
	return res.StatusCode
}

// task has the fields of a task that the tests look at.
type task struct {
	ID, Stage, Why, Session string
	Result                  struct{ Says string }
}

// begins submits a task.
func (s *served) begins(prompt string) (t task) {
	s.h.t.Helper()
	in := map[string]any{"prompt": prompt, "keep": "always", "timeout_seconds": 300}
	s.h.until("a task", func() bool { return s.call(http.MethodPost, "/api/v1/tasks", in, &t) == http.StatusCreated })
	return t
}

func (s *served) reaches(id, stage string) (t task) {
	s.h.t.Helper()
	s.h.t.Cleanup(func() {
		if s.h.t.Failed() {
			s.h.t.Logf("task %s was %q last: %s", id, t.Stage, t.Why)
		}
	})
	s.h.until(stage+" of "+id, func() bool {
		return s.call(http.MethodGet, "/api/v1/tasks/"+id, nil, &t) == http.StatusOK && t.Stage == stage
	})
	return t
}

// TestServers has several servers of one store. A standby answers requests, another server continues the task of a
// killed one, and a server that was stopped for longer than its lease ends when it wakes. No command of an agent runs
// twice.
func TestServers(t *testing.T) {
	h := newHouse(t)
	shared := []string{"--workspaces-in", "folder"}
	first := h.serve(shared...)
	first.says("leads the servers")
	second := h.serve(shared...)
	second.says("standby;")
	slow := `bash: until [ -e go ]; do sleep 0.05; done` + "\n" + `bash: echo ran >> effects` + "\n" +
		`bash: echo "${INSPAN_STORE:-none}" >> effects` + "\nsay: done"

	made := second.begins("say: hello")
	if got := second.reaches(made.ID, "completed"); got.Result.Says != "hello" {
		t.Errorf("a server that stands by tells of its task %+v", got)
	}

	held := second.begins(slow)
	first.reaches(held.ID, "running")
	work := filepath.Join(h.dir, "state-tasks", held.ID)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.says("leads the servers")
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second.reaches(held.ID, "completed")
	h.ran(work, "ran\nnone\n")

	third := h.serve(shared...)
	third.says("standby;")
	held = third.begins(slow)
	second.reaches(held.ID, "running")
	if err := second.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	third.says("leads the servers")
	work = filepath.Join(h.dir, "state-tasks", held.ID)
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	third.reaches(held.ID, "completed")
	if err := second.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-second.done
	if !strings.Contains(second.said.String(), "another server has taken over") {
		t.Errorf("the server that was stopped ended with %q", second.said)
	}
	h.ran(work, "ran\nnone\n")
}

// serverProgram names the development server that engine/temporal/devserver is built to.
const serverProgram = "INSPAN_TEMPORAL_SERVER"

// engine starts a Temporal server, and returns its URL.
func engine(t *testing.T) string {
	t.Helper()
	path := os.Getenv(serverProgram)
	if path == "" {
		t.Skip("SKIPPED: " + serverProgram + " names no server; make test-engine builds one")
	}
	at := address(t)
	cmd := exec.Command(path, "--listen", at, "--db", filepath.Join(t.TempDir(), "temporal.db"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	(&house{t: t}).until("Temporal", func() bool {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return "temporal://" + at + "/default?heartbeat=2s"
}

// driver is the process that drives a session.
func (h *house) driver(session string) int {
	h.t.Helper()
	s, err := openStore(h.t.Context(), h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	holder, err := s.Holder(h.t.Context(), session)
	if err != nil || holder == nil {
		h.t.Fatalf("nobody drives session %s: %v", session, err)
	}
	return holder.PID
}

// engines runs a test with each engine, of which it gets the flags.
func engines(t *testing.T, test func(t *testing.T, flags ...string)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t) })
	t.Run("Temporal", func(t *testing.T) { test(t, "--engine", engine(t)) })
}

// TestServersWithEngine has two servers and two workers: tasks run on workers, an approval and a cancellation reach
// them, and a worker that is killed is followed by the other. No command of an agent runs twice.
func TestServersWithEngine(t *testing.T) { engines(t, withEngine) }

func withEngine(t *testing.T, engine ...string) {
	h := newHouse(t)
	engine = append(engine, "--workspaces-in", "folder")
	api, work := append(slices.Clone(engine), "--only", "api"), append(slices.Clone(engine), "--only", "work")
	first := h.serve(api...)
	first.says("leads the servers")
	second := h.serve(api...)
	second.says("standby;")
	workers := []*served{h.serve(work...), h.serve(work...)}

	made := second.begins("say: hello")
	if got := second.reaches(made.ID, "completed"); got.Result.Says != "hello" {
		t.Errorf("the task says %+v", got)
	}

	asks := second.begins("bash: curl -s http://example.org; echo asked >> effects; echo none >> effects\nsay: done")
	first.reaches(asks.ID, "waiting")
	var open struct {
		Approvals []struct {
			Task string
			ID   string
		}
	}
	if code := second.call(http.MethodGet, "/api/v1/approvals", nil, &open); code != http.StatusOK || len(open.Approvals) != 1 {
		t.Fatalf("approvals: %d, %+v", code, open)
	}
	path := fmt.Sprintf("/api/v1/approvals/%s/%s", open.Approvals[0].Task, open.Approvals[0].ID)
	if code := second.call(http.MethodPost, path, map[string]any{"decision": "allow"}, nil); code/100 != 2 {
		t.Fatalf("the approval: %d", code)
	}
	second.reaches(asks.ID, "completed")

	held := second.begins("bash: until [ -e go ]; do sleep 0.05; done\nsay: done")
	first.reaches(held.ID, "running")
	if code := first.call(http.MethodPost, "/api/v1/tasks/"+held.ID+"/cancel", map[string]any{}, nil); code/100 != 2 {
		t.Fatalf("the cancellation: %d", code)
	}
	first.reaches(held.ID, "cancelled")

	held = second.begins("bash: touch begun; until [ -e go ]; do sleep 0.05; done\nbash: echo ran >> effects; echo none >> effects\nsay: done")
	folder := filepath.Join(h.dir, "state-tasks", held.ID)
	h.until("the command", func() bool { _, err := os.Stat(filepath.Join(folder, "begun")); return err == nil })
	driver := h.driver(first.reaches(held.ID, "running").Session)
	if driver != workers[0].cmd.Process.Pid && driver != workers[1].cmd.Process.Pid {
		t.Fatalf("process %d drives the session, and is no worker", driver)
	}
	if err := syscall.Kill(driver, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second.reaches(held.ID, "completed")
	h.ran(folder, "ran\nnone\n")
}

// TestStuck has a worker without the volume that holds the workspaces. The task gives the reason why nothing
// happens, ends if it is cancelled then, and continues once a worker has the volume.
func TestStuck(t *testing.T) { engines(t, getsStuck) }

func getsStuck(t *testing.T, engine ...string) {
	h := newHouse(t)
	engine = append(engine, "--workspaces-in", "folder")
	api, work := append(slices.Clone(engine), "--only", "api"), append(slices.Clone(engine), "--only", "work")
	server := h.serve(api...)
	server.says("leads the servers")
	apart := &house{t: t, dir: t.TempDir(), store: h.store}
	lacks := apart.serve(work...)
	made, ends := server.begins("say: hello"), server.begins("say: never")
	if got := server.reaches(made.ID, "waiting"); !strings.Contains(got.Why, "workers: ") {
		t.Errorf("the task waits for %q", got.Why)
	}
	server.reaches(ends.ID, "waiting")
	if code := server.call(http.MethodPost, "/api/v1/tasks/"+ends.ID+"/cancel", map[string]any{}, nil); code/100 != 2 {
		t.Fatalf("the cancellation: %d", code)
	}
	server.reaches(ends.ID, "cancelled")
	if err := lacks.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.serve(work...)
	if got := server.reaches(made.ID, "completed"); got.Result.Says != "hello" {
		t.Errorf("the task says %+v", got)
	}
}

// ran compares the traces of an agent's commands.
func (h *house) ran(work, want string) {
	h.t.Helper()
	got, err := os.ReadFile(filepath.Join(work, "effects"))
	if err != nil || string(got) != want {
		h.t.Errorf("the commands left %q, %v; want %q", got, err, want)
	}
}

// TestMove moves a session into a database and out of it, to another machine: its file is the same.
func TestMove(t *testing.T) {
	h := newHouse(t)
	h.run("run", "--model", "script", "--mode", "yolo", "bash: seq 100000\nsay: done")
	logs, err := filepath.Glob(filepath.Join(h.dir, "state", "sessions", "2*", "log.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, %v", logs, err)
	}
	want, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(filepath.Dir(logs[0]))
	if got := h.run("sessions", "push", "last"); !strings.HasPrefix(got, id+" to postgres://") {
		t.Errorf("push: %q", got)
	}
	if _, err := os.Stat(logs[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still here: %v", err)
	}
	elsewhere := &house{t: t, dir: t.TempDir(), store: h.store}
	if got := elsewhere.run("sessions", "pull", id); !strings.HasPrefix(got, id+" from postgres://") {
		t.Errorf("pull: %q", got)
	}
	got, err := os.ReadFile(filepath.Join(elsewhere.dir, "state", "sessions", id, "log.jsonl"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes became %d, or others: %v", len(want), len(got), err)
	}
	if shown := elsewhere.run("sessions", "show", id); !strings.Contains(shown, "done") {
		t.Errorf("there it shows %q", shown)
	}
}
