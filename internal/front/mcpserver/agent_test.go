package mcpserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// agent calls run_agent.
func (c *client) agent(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error) {
	p := &sdk.CallToolParams{Name: "run_agent", Arguments: args}
	p.SetProgressToken("p1")
	return c.CallTool(ctx, p)
}

// transcript reads a session as a resource.
func (c *client) transcript(ctx context.Context, session string) (string, error) {
	res, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: "inspan://sessions/" + session})
	if err != nil {
		return "", err
	}
	return res.Contents[0].Text, nil
}

func TestRunAgent(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.write("a.txt", "one\n")
		c := h.connect(revision, nil)
		res, err := c.agent(t.Context(), map[string]any{"task": "read: a.txt\nsay: I have read it."})
		if err != nil {
			t.Fatal(err)
		}
		first := reportOf(t, res)
		if res.IsError || first.Stopped != "done" || first.Session == "" || first.Turns != 2 || first.Denied != 0 {
			t.Errorf("%s %+v", textOf(res), first)
		}
		if !strings.Contains(textOf(res), "I have read it.") {
			t.Errorf("%s", textOf(res))
		}
		testkit.WaitFor(t, "the progress", func() bool { return strings.Contains(c.heard(), "I have read it.") })
		if heard := c.heard(); !strings.Contains(heard, "▸ read_file a.txt") {
			t.Errorf("told: %s", heard)
		}
		res, err = c.agent(t.Context(), map[string]any{"task": "bash: sh ./a.sh", "session": first.Session})
		if err != nil {
			t.Fatal(err)
		}
		if second := reportOf(t, res); second.Session != first.Session || second.Turns <= first.Turns || second.Denied != 1 {
			t.Errorf("%s %+v", textOf(res), second)
		}
		if !strings.Contains(textOf(res), "1 call needed approval and got none") {
			t.Errorf("%s", textOf(res))
		}
		said, err := c.transcript(t.Context(), first.Session)
		if err != nil || !strings.Contains(said, "I have read it.") || !strings.Contains(said, "sh ./a.sh") {
			t.Errorf("%v: %s", err, said)
		}
	})
}

// TestForeignSessions checks that only sessions of run_agent, of the same sender and in the same workspace, can be
// gone on with or read.
func TestForeignSessions(t *testing.T) {
	h := newHouse(t, "ask")
	s, err := h.Host.New(t.Context(), h.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Run(t.Context(), event.Say("say: mine")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	id := s.ID()
	s.Close()
	c := h.connect(older, nil)
	res, err := c.agent(t.Context(), map[string]any{"task": "say: hers"})
	if err != nil {
		t.Fatal(err)
	}
	fork, err1 := h.Host.Fork(t.Context(), reportOf(t, res).Session, 0)
	child, err2 := h.Host.Child(t.Context(), id, "c", h.Root)
	elsewhere, err3 := h.Host.New(t.Context(), t.TempDir())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*inspan.Session{fork, child, elsewhere} {
		for _, err := range s.Run(t.Context(), event.Said{Parts: llm.Say("say: hi"), By: "mcp"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
	for _, args := range []map[string]any{
		{"task": "say: hi", "session": fork.ID()},
		{"task": "say: hi", "session": child.ID()},
		{"task": "say: hi", "session": elsewhere.ID()},
		{"task": "say: hi", "session": id},
		{"task": "say: hi", "session": "last"},
		{"task": "say: hi", "session": "../sessions/" + id},
		{"task": "say: hi", "session": ".."},
		{"task": "say: hi", "session": "nothing-like-it"},
		{"task": "  "},
		{},
		{"task": 7},
	} {
		res, err := c.agent(t.Context(), args)
		if err == nil && !res.IsError {
			t.Errorf("%v: %s", args, textOf(res))
		}
		if id, ok := args["session"].(string); ok {
			if said, err := c.transcript(t.Context(), id); err == nil {
				t.Errorf("%s is shown: %s", id, said)
			}
		}
	}
}

// TestAgentStops checks that a run which does not come to its end says so.
func TestAgentStops(t *testing.T) {
	c := newHouse(t, "ask").connect(older, nil)
	res, err := c.agent(t.Context(), map[string]any{"task": "stop: refusal"})
	if err != nil || !res.IsError || reportOf(t, res).Stopped != "refused" || !strings.Contains(textOf(res), "[stopped: refused") {
		t.Errorf("%v %+v %s", err, res, textOf(res))
	}
}

func TestAgentAsks(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		c := h.connect(revision, says("allow once"))
		res, err := c.agent(t.Context(),
			map[string]any{"task": "call: write_file {\"path\":\"one.txt\",\"content\":\"1\"}\n" +
				"+ call: write_file {\"path\":\"two.txt\",\"content\":\"2\"}\nsay: both made"})
		if err != nil {
			t.Fatal(err)
		}
		if r := reportOf(t, res); res.IsError || r.Stopped != "done" ||
			h.read("one.txt") != "1" || h.read("two.txt") != "2" || len(c.questions()) != 2 {
			t.Errorf("%s %+v, %d questions", textOf(res), r, len(c.questions()))
		}
	})
}

// TestAgentAsksThePerson checks that a question that is not about consent is answered in the person's own words.
func TestAgentAsksThePerson(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		ask := "call: ask_user {\"question\":\"Which colour?\",\"options\":[\"red\",\"blue\"]}"
		c := h.connect(revision, func(*sdk.ElicitParams) *sdk.ElicitResult {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "2"}}
		})
		res, err := c.agent(t.Context(), map[string]any{"task": ask})
		if err != nil {
			t.Fatal(err)
		}
		if q := c.questions(); len(q) != 1 || !strings.Contains(q[0].Message, "Which colour?") || !strings.Contains(q[0].Message, "2. blue") ||
			!strings.Contains(q[0].Message, "password") {
			t.Errorf("%+v", q)
		}
		if log := h.log(reportOf(t, res).Session); !strings.Contains(log, `"answer":"blue"`) || !strings.Contains(log, "tester over MCP") {
			t.Errorf("%s", log)
		}
		res, err = h.connect(revision, nil).agent(t.Context(), map[string]any{"task": ask})
		if err != nil || !strings.Contains(h.log(reportOf(t, res).Session), "nobody is here to answer") {
			t.Errorf("%v %v", res, err)
		}
	})
}

// log is the stored log of a session.
func (h *house) log(session string) string {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.state, "sessions", session, "log.jsonl"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(raw)
}

// processes counts those whose command line holds a mark.
func processes(t testing.TB, mark string) (n int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(dirs) == 0 {
		t.Skip("no list of processes")
	}
	for _, path := range dirs {
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(mark)) && !bytes.Contains(raw, []byte("mcpserver.test")) {
			n++
		}
	}
	return n
}

// marked makes the marks those of this run of the tests.
var marked = 100_000_000 + rand.IntN(900_000_000) //nolint:gosec // any number

// mark is a number of seconds that no other test sleeps.
func mark(n int) string { return fmt.Sprintf("61.%d%02d", marked, n) }

// TestCancel checks that a call which is called off leaves nothing running, and its session in order.
func TestCancel(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for i, name := range []string{"run_agent", "bash"} {
			t.Run(name, func(t *testing.T) {
				h := newHouse(t, "auto")
				c := h.connect(revision, nil)
				sleep := "sleep " + mark(i)
				args := map[string]any{"task": "bash: " + sleep}
				if name == "bash" {
					args = map[string]any{"command": sleep}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
					ended <- err
				}()
				testkit.WaitFor(t, "the process", func() bool { return processes(t, mark(i)) > 0 })
				cancel()
				if err := <-ended; err == nil {
					t.Error("no error")
				}
				testkit.WaitFor(t, "its end", func() bool { return processes(t, mark(i)) == 0 })
				h.write("a.txt", "one\n")
				if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
					t.Errorf("the next call: %s", text)
				}
				var last string
				for info, err := range h.Host.List(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					last += h.log(info.ID)
				}
				if !strings.Contains(last, `"reason":"cancelled"`) || !strings.Contains(last, "tester over MCP") {
					t.Error("the log does not tell")
				}
			})
		}
	})
}

// TestCancelWhileItAsks checks that a question can be called off with its call.
func TestCancelWhileItAsks(t *testing.T) {
	h := newHouse(t, "ask")
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	c := h.connect(older, func(*sdk.ElicitParams) *sdk.ElicitResult {
		close(asked)
		<-release
		return &sdk.ElicitResult{Action: "cancel"}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.agent(ctx, map[string]any{"task": "call: write_file {\"path\":\"one.txt\",\"content\":\"1\"}"})
		ended <- err
	}()
	<-asked
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	testkit.WaitFor(t, "the end of its run", func() bool {
		for info, err := range h.Host.List(t.Context()) {
			if err == nil && info.Stop == event.ReasonCancelled {
				return true
			}
		}
		return false
	})
	if h.read("one.txt") != "" {
		t.Error("it was made")
	}
}

// TestClientGoes checks that nothing runs on when the pipe of a client breaks.
func TestClientGoes(t *testing.T) {
	h := newHouse(t, "auto")
	c := h.connect(older, nil)
	go func() { _, _ = c.agent(t.Context(), map[string]any{"task": "bash: sleep " + mark(7)}) }()
	testkit.WaitFor(t, "the process", func() bool { return processes(t, mark(7)) > 0 })
	began := time.Now()
	c.broken()
	if err := <-c.served; err != nil {
		t.Error(err)
	}
	c.served <- nil // for the cleanup
	if n := processes(t, mark(7)); n > 0 || time.Since(began) > 50*time.Second {
		t.Errorf("%d processes after %s", n, time.Since(began))
	}
}

// TestTwoClients checks that the clients of a server don't meet.
func TestTwoClients(t *testing.T) {
	h := newHouse(t, "edit")
	h.write("a.txt", "one\n")
	one, two := h.connect(older, nil), h.connect(newer, nil)
	if text, failed := one.call("read_file", map[string]any{"path": "a.txt"}); failed {
		t.Fatal(text)
	}
	change := map[string]any{"path": "a.txt", "content": "two\n"}
	if text, failed := one.call("write_file", change); failed || h.read("a.txt") != "two\n" {
		t.Errorf("%s", text)
	}
	if text, failed := two.call("write_file", change); failed || !strings.Contains(text, "had not read it") {
		t.Errorf("the second knows what only the first has read and written: %s", text)
	}
}
