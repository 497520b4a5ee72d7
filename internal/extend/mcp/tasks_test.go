package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// progress is what a call shows while it runs.
type progress struct {
	mu   sync.Mutex
	text string
}

func (p *progress) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text += text
}

// does calls the tool for a task.
func (h *house) does(ctx context.Context, name string) (said, shown string, err error) {
	h.t.Helper()
	var p progress
	server := h.Servers[0].Name
	res, err := h.tool("mcp__"+server+"__"+name).Run(ctx, &tool.Call{Args: []byte("{}"), Progress: p.show, Ask: h.ask})
	p.mu.Lock()
	defer p.mu.Unlock()
	return text(res), p.text, err
}

// TestTasks goes through the ways that a task can go, over all that it can be spoken
// over.
func TestTasks(t *testing.T) {
	for transport, begin := range map[string]func(t *testing.T, s *tasker) *house{
		"stdio": func(t *testing.T, s *tasker) *house {
			s.path = filepath.Join(t.TempDir(), "seen")
			return newHouse(t, self(t, "own", "tasks "+s.path))
		},
		"inside": func(t *testing.T, s *tasker) *house { return newHouse(t, s.inside(t)) },
		"socket": func(t *testing.T, s *tasker) *house {
			return served(t, mcp.WebSocket, "/", http.HandlerFunc(s.socket))
		},
		"json": func(t *testing.T, s *tasker) *house { return served(t, "", "/mcp", s.http(false)) },
		"sse":  func(t *testing.T, s *tasker) *house { return served(t, "", "/mcp", s.http(true)) },
	} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			s := &tasker{}
			h := begin(t, s)
			h.Sample = func(context.Context, llm.Request) (*llm.Reply, float64, error) {
				return &llm.Reply{Parts: llm.Say("42"), Route: "p/m", Stop: llm.StopEnd}, 0.25, nil
			}
			if s := h.begin(h.Servers[0].Name, mcp.Ready); s.Revision != "2026-07-28" {
				t.Fatalf("%+v", s)
			}
			throughTasks(t, h)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gone := make(chan error, 1)
			go func() {
				_, _, err := h.does(ctx, "waits")
				gone <- err
			}()
			seen := func(what string) bool {
				if s.path == "" {
					return s.saw(what) == 1
				}
				data, _ := os.ReadFile(s.path)
				return strings.Count("\n"+string(data)+"\n", "\n"+what+"\n") == 1
			}
			h.until("a question for the task", func() bool { return seen("tasks/get waits") })
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(),
				"was interrupted; its effects until then are unknown") {
				t.Error(err)
			}
			h.until("the end of the task", func() bool { return seen("tasks/cancel waits") })
			if seen("tasks/cancel failed") || seen("tasks/cancel later") || seen("tasks/cancel forgotten") {
				t.Error("a task that is over was cancelled")
			}
		})
	}
}

// throughTasks calls the tools whose tasks end.
func throughTasks(t *testing.T, h *house) {
	t.Helper()
	for _, c := range []struct {
		name, said, shown, err string
		answers                []string
		asked                  int
	}{
		{name: "plain", said: `no "task" at all`},
		{name: "later", said: "done", shown: "half \\x1b[31mway\n"},
		{name: "asks", said: `got {"k1":{"action":"accept","content":{"city":"Ulm"}}}`, answers: []string{"Ulm"}, asked: 1},
		{
			name: "model", said: `got {"k1":{"content":{"type":"text","text":"42"},"model":"p/m","role":"assistant","stopReason":"endTurn"}}`,
			answers: []string{"yes"}, asked: 1,
		},
		{name: "failed", shown: "bad\n", err: "failed failed: no way"},
		{name: "wrong", said: "wrong", err: "wrong failed"},
		{name: "forgotten", err: "a task that its server no longer knows, so its effects are unknown: Task not found"},
		{name: "odd", err: `the unknown state "dreaming`},
		{name: "dies", err: "is a task whose server has gone, so its effects are unknown"},
		{name: "ends", shown: "too \\x07late\n", err: "was cancelled by its server; its effects until then are unknown: too "},
	} {
		asked := &person{answers: c.answers}
		h.ask = asked.ask
		said, shown, err := h.does(t.Context(), c.name)
		if c.name == "dies" { // it comes back
			h.until("a restart", func() bool { return h.Status()[0].Restarts == 1 && h.Status()[0].State == mcp.Ready })
		}
		if said != c.said || shown != c.shown || len(asked.asked) != c.asked || (err == nil) != (c.err == "") {
			t.Errorf("%s: %q, %q, %v, asked %q", c.name, said, shown, err, asked.asked)
		}
		if err != nil && (!strings.Contains(err.Error(), c.err) || strings.ContainsAny(err.Error(), "\x1b\x07")) {
			t.Errorf("%s: %q", c.name, err)
		}
	}
}

// TestTasksThatGoWrong has servers that break the rules, or whose tasks never end. No real time passes.
func TestTasksThatGoWrong(t *testing.T) {
	for name, c := range map[string]struct {
		said, err string
		cancelled bool          // the server is told that no one waits
		took      time.Duration // at most; 0 means some seconds
		gets      int           // how often it is asked for; 0 means that is not looked at
	}{
		"already":    {said: "done", took: 20 * time.Millisecond, gets: 1},
		"hiccup":     {said: "done", gets: 4},
		"another":    {err: "an answer about another task", cancelled: true},
		"odd":        {err: `the unknown state "dreaming`, cancelled: true},
		"roots":      {err: `its request can't be met: "roots/list`, cancelled: true},
		"unread":     {err: "its request can't be met: it can't be read", cancelled: true},
		"unmodelled": {err: `its request can't be met: "sampling/createMessage"`, cancelled: true},
		"refuses":    {err: "does not report it, so its effects are unknown: I will not", cancelled: true, gets: 1},
		"empty":      {err: "its result can't be read"},
		"null":       {err: "its result can't be read"},
		"brief":      {err: "abandoned after 1.5s", cancelled: true, took: 3 * time.Second},
		"long":       {err: "abandoned after 24h0m0s", cancelled: true, took: 24*time.Hour + time.Second},
		"hasty":      {said: "done", took: 1100 * time.Millisecond, gets: 10},
		"bare":       {said: "done", took: 1100 * time.Millisecond, gets: 1},
		"slow":       {err: "did not answer within 1m40s", cancelled: true, took: 101 * time.Second, gets: 3},
		"nameless":   {err: "a task without a usable id"},
		"numbered":   {err: "a task without a usable id"},
		"big":        {err: "a task without a usable id"},
		"much":       {err: "asks too often", cancelled: true, gets: 1},
		"huge":       {said: "done"},
		"endless":    {err: "did not answer within 2m0s", cancelled: true, took: 121 * time.Second},
		"silent":     {err: "did not answer within 2m0s", cancelled: true, took: 123 * time.Second, gets: 1},
		"still":      {said: "done", took: 21 * time.Minute},
		"asks":       {said: `got {"k1":{"action":"cancel"}}`},
		"busy":       {said: `got {"k1":{"action":"accept","content":{"city":"Ulm"}}}`},
		"twice":      {said: `got {"k1":{"action":"accept","content":{"city":"Ulm"}}}`},
		"known":      {err: "an answer about another task", cancelled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{}
				h := &house{t: t}
				server := s.inside(t)
				if name == "slow" {
					server.Timeout = 100 * time.Second
				}
				h.Manager = &mcp.Manager{Servers: []mcp.Server{server}, Warn: h.warn}
				t.Cleanup(h.Close)
				asked := &person{answers: []string{"Ulm"}}
				if h.ask = asked.ask; name == "asks" {
					h.ask = nil // no one is there
				}
				h.begin("own", mcp.Ready)
				began := time.Now()
				said, shown, err := h.does(t.Context(), name)
				if c.took == 0 {
					c.took = 5 * time.Second
				}
				if took := time.Since(began); took > c.took || name == "hasty" && took < time.Second {
					t.Errorf("it took %v", took)
				}
				if said != c.said || (err == nil) != (c.err == "") || strings.Count(shown, "\n") > 1000 || strings.Count(shown, "on it") > 1 ||
					len(shown) > 20_000 || len(asked.asked) > 1 {
					t.Errorf("%q, %d bytes shown, %v, asked %q", said, len(shown), err, asked.asked)
				}
				if err != nil && (!strings.Contains(err.Error(), c.err) || strings.ContainsAny(err.Error(), "\x1b\x07") ||
					!strings.HasPrefix(err.Error(), "mcp__own__"+name+" ")) {
					t.Errorf("%q", err)
				}
				id := name
				if name == "odd" {
					id = "odd \u00e9"
				}
				if n := s.saw("tasks/cancel " + id); n > 1 || (n == 1) != c.cancelled {
					t.Errorf("cancelled %d times", n)
				}
				if n := s.saw("tasks/get " + id); c.gets > 0 && n != c.gets {
					t.Errorf("asked for %d times", n)
				}
			})
		})
	}
}

// TestTaskThatAPersonThinksAbout for longer than a call may take, and that is asked
// of the one whose call it is.
func TestTaskThatAPersonThinksAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{}
		h := &house{t: t}
		h.Manager = &mcp.Manager{Servers: []mcp.Server{s.inside(t)}, Warn: h.warn}
		t.Cleanup(h.Close)
		h.begin("own", mcp.Ready)
		ctx, cancel := context.WithCancel(t.Context())
		var other sync.WaitGroup
		h.ask = func(context.Context, string, []string) (string, error) {
			other.Go(func() {
				if _, err := h.tool("mcp__own__lively").Run(ctx, &tool.Call{
					Args: []byte("{}"),
					Ask: func(context.Context, string, []string) (string, error) {
						t.Error("another call was asked")
						return "", nil
					},
				}); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			<-time.After(3 * time.Minute) // longer than a call may take
			return "Ulm", nil
		}
		began := time.Now()
		said, _, err := h.does(t.Context(), "asks")
		if err != nil || !strings.Contains(said, "Ulm") || time.Since(began) < 3*time.Minute {
			t.Errorf("%q, %v", said, err)
		}
		h.ask = func(context.Context, string, []string) (string, error) { return "Bonn", nil }
		if said, _, err := h.does(t.Context(), "twice"); err != nil || !strings.Contains(said, "Bonn") {
			t.Errorf("%q, %v", said, err)
		}
		cancel()
		other.Wait()
	})
}

// TestTaskThatCanNotBeCancelled checks that such a task holds up its caller only briefly.
func TestTaskThatCanNotBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{}
		h := &house{t: t}
		h.Manager = &mcp.Manager{Servers: []mcp.Server{s.inside(t)}, Warn: h.warn}
		t.Cleanup(h.Close)
		h.begin("own", mcp.Ready)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, _, err := h.does(ctx, "deaf")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) ||
			took != time.Minute+2*time.Second || s.saw("tasks/cancel deaf") != 1 {
			t.Errorf("%v after %v, cancelled %d times", err, took, s.saw("tasks/cancel deaf"))
		}
	})
}

// TestTaskOverHTTPThatStumbles is asked for again when the server is there again, and
// given up when it is not.
func TestTaskOverHTTPThatStumbles(t *testing.T) {
	t.Parallel()
	s := &tasker{}
	next := s.http(false)
	var stumbles atomic.Int32
	stumbles.Store(2)
	h := served(t, "", "/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tasks/get" && stumbles.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	h.Servers[0].Timeout = time.Second
	h.begin("far", mcp.Ready)
	if said, _, err := h.does(t.Context(), "later"); err != nil || said != "done" || stumbles.Load() >= 0 {
		t.Errorf("%q, %v", said, err)
	}
	stumbles.Store(1 << 30)
	if _, _, err := h.does(t.Context(), "wrong"); err == nil || !strings.Contains(err.Error(), "did not answer within 1s") ||
		s.saw("tasks/cancel wrong") != 1 {
		t.Error(err)
	}
}

// TestTasksWhereThereAreNone are answers that can't be tasks.
func TestTasksWhereThereAreNone(t *testing.T) {
	h := newHouse(t, (&tasker{list: `{"resultType":"task","taskId":"x","status":"working","tools":[{"name":"a",` +
		`"inputSchema":{"type":"object"}}]}`}).inside(t))
	if s := h.begin("own", mcp.Failed); !strings.Contains(s.Why, "a task, which this request does not allow") {
		t.Errorf("%+v", s)
	}
	old := &tasker{old: true}
	h = newHouse(t, old.inside(t))
	if s := h.begin("own", mcp.Ready); s.Revision != "2025-11-25" {
		t.Fatalf("%+v", s)
	}
	if _, _, err := h.does(t.Context(), "later"); err == nil || !strings.Contains(err.Error(), "a task, which this request does not allow") ||
		old.saw("tasks/get later") > 0 {
		t.Error(err)
	}
	if said, _, err := h.does(t.Context(), "plain"); err != nil || said == "" {
		t.Errorf("%q, %v", said, err)
	}
}

// TestClosedDuringTask ends the call with the connection.
func TestClosedDuringTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasker{}
		h := &house{t: t}
		h.Manager = &mcp.Manager{Servers: []mcp.Server{s.inside(t)}, Warn: h.warn}
		h.begin("own", mcp.Ready)
		failed := make(chan error, 1)
		go func() {
			_, _, err := h.does(t.Context(), "waits")
			failed <- err
		}()
		h.until("a question for the task", func() bool { return s.saw("tasks/get waits") > 0 })
		began := time.Now()
		h.Close()
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "is a task whose server has gone, so its effects are unknown") ||
			time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
