package server_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// among is one of several servers of the store of a house.
type among struct {
	*house
	end    func() // asks it to end, and waits
	stands chan string
}

// joins starts one more server of the house's store.
func (h *house) joins(setup server.Setup) *among {
	h.t.Helper()
	return h.joinsAs(setup, "")
}

// joinsAs starts one that says it is at a URL; empty means its own.
func (h *house) joinsAs(setup server.Setup, at string) *among {
	h.t.Helper()
	token := filepath.Join(h.dir, "token")
	if err := os.WriteFile(token, []byte(h.token), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return h.joinsWith(setup, at, token)
}

// joinsWith starts one with a file for the owner's token.
func (h *house) joinsWith(setup server.Setup, at, token string) *among {
	h.t.Helper()
	m := &among{house: h.as(h.token), stands: make(chan string, 10)}
	m.s = &server.Server{Setup: setup}
	opened := make(chan string, 1)
	d := server.Door{Listen: "127.0.0.1:0", TokenFile: token, Opened: func(at string) { opened <- at }}
	ctx, stop := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- m.s.ServeAmong(ctx, d, server.Among{Advertise: at, OnStandby: func(leader string) { m.stands <- leader }}, time.Second)
	}()
	m.end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(m.end)
	m.h = &httptest.Server{URL: "http://" + <-opened}
	return m
}

// TestAmong has two servers of one store: the standby forwards requests, except those from web pages of others and from
// other standbys, and leads when the other has ended.
func TestAmong(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	setup := h.s.Setup
	h.close() // from now on there are only those below
	one := h.joins(setup)
	if leader := <-one.stands; leader != "" {
		t.Fatalf("the only server stands by for %q", leader)
	}
	two := h.joins(setup)
	if leader := <-two.stands; leader != one.h.URL {
		t.Fatalf("the second server stands by for %q, want %q", leader, one.h.URL)
	}
	made := two.submit(server.Spec{Prompt: "say: hello"})
	if got := two.until(made.ID, server.StageCompleted); got.Result.Says != "hello" {
		t.Errorf("the task says %q", got.Result.Says)
	}
	for _, tc := range []struct {
		header, value string
		want          int
	}{
		{"Authorization", "Bearer nobodys", http.StatusUnauthorized},
		{"Origin", "https://elsewhere.example", http.StatusForbidden},
		{"Origin", two.h.URL, http.StatusOK},
		{"Inspan-Relayed", "1", http.StatusServiceUnavailable},
		{"Inspan-Principal", "owner", http.StatusOK},
	} {
		req := two.request(t.Context(), "GET", "/api/v1/tasks", nil)
		req.Header.Set(tc.header, tc.value)
		if status, text := two.do(req); status != tc.want {
			t.Errorf("with %s %q: %d, want %d: %s", tc.header, tc.value, status, tc.want, text)
		}
	}
	req := two.request(t.Context(), "GET", "/api/v1/tasks", nil)
	req.Header.Del("Authorization")
	req.Header.Set("Inspan-Principal", "owner")
	if status, text := two.do(req); status != http.StatusUnauthorized {
		t.Errorf("somebody who says that the gate knows them: %d %s", status, text)
	}
	one.end()
	if leader := <-two.stands; leader != "" {
		t.Fatalf("the second server stands by for %q", leader)
	}
	two.until(two.submit(server.Spec{Prompt: "say: again"}).ID, server.StageCompleted)
}

// TestJoins has a server without an owner's token. If it is the first of all, it makes one. Otherwise it joins the others:
// it stands by and leads with their token, of which it has only the digest, and makes none.
func TestJoins(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	setup := h.s.Setup
	h.close()
	first := filepath.Join(t.TempDir(), "first")
	one := h.joinsWith(setup, "", first)
	<-one.stands
	raw, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	two := h.joinsWith(setup, "", file)
	<-two.stands
	one.token = strings.TrimSpace(string(raw))
	two.token = one.token
	two.until(two.submit(server.Spec{Prompt: "say: by the other"}).ID, server.StageCompleted)
	one.end()
	if leader := <-two.stands; leader != "" {
		t.Fatalf("the second server stands by for %q", leader)
	}
	two.until(two.submit(server.Spec{Prompt: "say: hello"}).ID, server.StageCompleted)
	for _, token := range []string{"nobodys", "", first} {
		req := two.request(t.Context(), "GET", "/api/v1/tasks", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		if status, text := two.do(req); status != http.StatusUnauthorized {
			t.Errorf("with the token %q: %d %s", token, status, text)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second server has a token of its own: %v", err)
	}
}

// TestOneOwner checks that a server with another owner's token than the last leader neither stands by nor leads,
// and gives the reason why, unless it is to bring a new one.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	setup := h.s.Setup
	h.close()
	one := h.joins(setup)
	<-one.stands
	token := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(token, []byte("another-token-0123456789-0123456789-0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	starts := func(newOwner bool) error {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := &server.Server{Setup: setup}
		d := server.Door{Listen: "127.0.0.1:0", TokenFile: token, Opened: func(string) {}}
		return s.ServeAmong(ctx, d, server.Among{NewOwner: newOwner, OnStandby: func(leader string) {
			if leader == "" {
				stop() // it leads
			}
		}}, time.Second)
	}
	refused := func(when string) {
		t.Helper()
		if err := starts(false); err == nil || !strings.Contains(err.Error(), "another owner's token") {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("while another leads")
	one.end()
	refused("while none leads")
	if err := starts(true); err != nil {
		t.Error(err)
	}
	if err := starts(false); err != nil {
		t.Errorf("with the new token: %v", err)
	}
}

// askedBooks is a store that counts who wants a book of it.
type askedBooks struct {
	store.Store
	asked atomic.Int32
}

func (a *askedBooks) Book(ctx context.Context, name string) (store.Log, error) {
	a.asked.Add(1)
	return a.Store.(store.Booker).Book(ctx, name)
}

// TestStartsAfterKill checks that a server waits a moment for the one before it, which was killed, to let go.
func TestStartsAfterKill(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	s := &server.Server{Setup: h.s.Setup}
	books := &askedBooks{Store: s.Sessions}
	s.Sessions = books
	token := filepath.Join(h.dir, "token")
	if err := os.WriteFile(token, []byte(h.token), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opened, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, server.Door{Listen: "127.0.0.1:0", TokenFile: token, Opened: func(at string) { opened <- at }}, time.Second)
	}()
	testkit.WaitFor(t, "the second attempt", func() bool { return books.asked.Load() > 1 || len(ended) > 0 }, func() string { return "" })
	h.close()
	select {
	case <-opened:
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	case err := <-ended:
		t.Error(err)
	}
}

// napping is a clock that can be set, and a store whose book can be out of reach.
type napping struct {
	store.Store
	slept atomic.Int64 // time that has passed in sleep
	away  atomic.Bool
}

func (n *napping) Now() time.Time { return time.Now().Add(time.Duration(n.slept.Load())) }

func (n *napping) At(time.Time) (<-chan time.Time, func()) { return nil, func() {} }

func (n *napping) Book(ctx context.Context, name string) (store.Log, error) {
	log, err := n.Store.(store.Booker).Book(ctx, name)
	return &napped{log, n}, err
}

type napped struct {
	store.Log
	of *napping
}

func (n *napped) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	if n.of.away.Load() {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, store.ErrUnavailable) }
	}
	return n.Log.Read(ctx, after)
}

// TestLeaderWakes checks that a server which has led and then slept answers 503 until the book says that it still
// leads.
func TestLeaderWakes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	setup := h.s.Setup
	h.close()
	nap := &napping{Store: setup.Sessions}
	setup.Sessions, setup.Clock = nap, nap
	one := h.joins(setup)
	<-one.stands
	asks := func() int {
		status, _ := one.do(one.request(t.Context(), "GET", "/api/v1/tasks", nil))
		return status
	}
	nap.away.Store(true)
	nap.slept.Store(int64(time.Hour))
	if status := asks(); status != http.StatusServiceUnavailable {
		t.Errorf("as it wakes: %d", status)
	}
	nap.away.Store(false)
	if status := asks(); status != http.StatusOK {
		t.Errorf("once it knows that it leads: %d", status)
	}
}

// TestLeaderHangs has a leader that accepts a request and does not answer. The waiting client is asked to try again as
// soon as another server leads.
func TestLeaderHangs(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(func() { hangs.CloseClientConnections(); hangs.Close() })
	h := newHouse(t, nil)
	setup := h.s.Setup
	h.close()
	one := h.joinsAs(setup, hangs.URL)
	<-one.stands
	two := h.joins(setup)
	if leader := <-two.stands; leader != hangs.URL {
		t.Fatalf("the second server stands by for %q, want %q", leader, hangs.URL)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := two.do(two.request(t.Context(), "GET", "/api/v1/tasks", nil))
		answered <- status
	}()
	<-asked
	one.end()
	if status := testkit.Receive(t, "the answer of a server that does not lead", answered); status != http.StatusServiceUnavailable {
		t.Errorf("the request is answered with %d", status)
	}
}

// engine is one within a process: it gives sessions to its only worker. As with any engine, a wake that comes
// during a run is followed by another.
type engine struct {
	store store.Store
	woken chan string
	yes   *atomic.Int32 // counts wakes for decisions; nil means no one asks
	stuck string        // what it says of sessions that nothing happens in
}

func (e engine) Wake(ctx context.Context, session string, said event.Body) error {
	if _, decided := said.(event.Decided); decided && e.yes != nil {
		e.yes.Add(1)
	}
	select {
	case e.woken <- session:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e engine) Work(ctx context.Context, w running.Work) error {
	pool := &running.Pool{Open: w.Open, OnEvent: w.OnEvent}
	var all sync.WaitGroup
	defer all.Wait()
	defer pool.Close()
	wakes := map[string]chan struct{}{}
	for {
		select {
		case id := <-e.woken:
			if wakes[id] == nil {
				wakes[id] = make(chan struct{}, 1)
				wake := wakes[id]
				all.Go(func() { e.drive(ctx, pool, id, wake) })
			}
			select {
			case wakes[id] <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// drive runs a session after each wake, if there is something to do.
func (e engine) drive(ctx context.Context, pool *running.Pool, id string, wakes <-chan struct{}) {
	for {
		select {
		case <-wakes:
		case <-ctx.Done():
			return
		}
		seen, err := (&inspan.Host{Store: e.store}).Watch(ctx, id)
		if err != nil {
			return
		}
		if active := seen.Status().Active; seen.Close() != nil || !active {
			continue
		}
		if r, err := pool.Drive(ctx, id, nil); err == nil {
			<-r.Done()
		}
	}
}

func (e engine) Stuck(context.Context, string) (string, error) { return e.stuck, nil }

func (engine) Close() error { return nil }

// TestEngine has another server than the one that is asked drive the sessions of tasks: messages and decisions reach
// them, and they end as they do without an engine.
func TestEngine(t *testing.T) {
	t.Parallel()
	e := engine{woken: make(chan string, 100), yes: &atomic.Int32{}}
	h := newHouse(t, func(s *server.Server) {
		e.store = s.Sessions
		s.Engine = e
		managed.Join(s)
	})
	worker := &server.Server{Setup: h.s.Setup}
	managed.Join(worker)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, server.Work{}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})

	got := h.until(h.submit(server.Spec{Prompt: "bash: echo one > made\nsay: done", Keep: server.KeepAlways}).ID, server.StageCompleted)
	if text, err := os.ReadFile(filepath.Join(h.dir, "tasks", got.ID, "made")); err != nil || string(text) != "one\n" {
		t.Errorf("the worker left %q, %v", text, err)
	}

	asks := h.submit(server.Spec{Prompt: "call: ask_user {\"question\":\"Which?\"}\nsay: done"})
	h.until(asks.ID, server.StageWaiting)
	h.call("POST", "/api/v1/approvals/"+asks.ID+"/"+h.openQuestion(asks.ID), map[string]any{"decision": "allow", "answer": "this"}, http.StatusOK, nil)
	h.until(asks.ID, server.StageCompleted)
	if heard := e.yes.Load(); heard != 1 {
		t.Errorf("the engine has heard of %d decisions", heard)
	}

	open := h.submit(server.Spec{Prompt: "say: first", Open: true})
	h.until(open.ID, server.StageIdle)
	h.call("POST", "/api/v1/tasks/"+open.ID+"/messages", map[string]any{"text": "say: second"}, http.StatusOK, nil)
	h.when(open.ID, "at the second answer", func(task server.Task) bool {
		return task.Stage == server.StageIdle && task.Result != nil && task.Result.Says == "second"
	})
	h.call("POST", "/api/v1/tasks/"+open.ID+"/close", nil, http.StatusOK, nil)
	h.until(open.ID, server.StageCompleted)

	long := h.submit(server.Spec{Prompt: "bash: sleep 60\nsay: done"})
	h.until(long.ID, server.StageRunning)
	h.call("POST", "/api/v1/tasks/"+long.ID+"/cancel", nil, http.StatusOK, nil)
	h.until(long.ID, server.StageCancelled)
	late := h.submit(server.Spec{Prompt: "bash: sleep 60\nsay: done", Timeout: 1})
	if got := h.until(late.ID, server.StageTimedOut); !strings.Contains(got.Why, "time") {
		t.Errorf("a task without time ends as %q", got.Why)
	}
}

// TestStuck has a task that no worker can continue: it says so, and ends when it is cancelled.
func TestStuck(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Engine = engine{woken: make(chan string, 100), stuck: "the volume is gone"} })
	stuck := h.submit(server.Spec{Prompt: "say: done"})
	if got := h.until(stuck.ID, server.StageWaiting); got.Why != "workers: the volume is gone" {
		t.Errorf("it waits for %q", got.Why)
	}
	h.call("POST", "/api/v1/tasks/"+stuck.ID+"/cancel", nil, http.StatusOK, nil)
	h.until(stuck.ID, server.StageCancelled)
}

// TestWorkspaceGone checks that no agent works in an empty folder in place of its workspace.
func TestWorkspaceGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	open := h.submit(server.Spec{Prompt: "say: first", Open: true})
	h.until(open.ID, server.StageIdle)
	if err := os.RemoveAll(filepath.Join(h.dir, "tasks", open.ID)); err != nil {
		t.Fatal(err)
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/messages", map[string]any{"text": "say: second"}, http.StatusOK, nil)
	if got := h.until(open.ID, server.StageFailed); !strings.Contains(got.Why, "the workspace of task "+open.ID+" is not here") {
		t.Errorf("it has failed: %q", got.Why)
	}
}

// openQuestion is the question that a task asks.
func (h *house) openQuestion(task string) string {
	h.t.Helper()
	var list struct{ Approvals []struct{ ID, Task string } }
	h.call("GET", "/api/v1/approvals", nil, http.StatusOK, &list)
	for _, a := range list.Approvals {
		if a.Task == task {
			return a.ID
		}
	}
	h.t.Fatalf("task %s asks nothing", task)
	return ""
}

// TestFree checks that the session of a task that is not over stays where it is.
func TestFree(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	open := h.submit(server.Spec{Prompt: "say: first", Open: true})
	idle := h.until(open.ID, server.StageIdle)
	if err := server.Free(t.Context(), h.s.Sessions, idle.Session); err == nil || !strings.Contains(err.Error(), open.ID) {
		t.Errorf("the session of an idle task: %v", err)
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/close", nil, http.StatusOK, nil)
	h.until(open.ID, server.StageCompleted)
	if err := server.Free(t.Context(), h.s.Sessions, idle.Session); err != nil {
		t.Errorf("the session of a task that is over: %v", err)
	}
}
