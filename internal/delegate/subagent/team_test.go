package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// mind is a model that answers by its first message: for each such text it has a list of replies, and repeats the last
// one. It costs a tenth of a dollar a request.
type mind struct {
	mu    sync.Mutex
	says  func(task string, turn int, req llm.Request) (llm.Parts, error)
	asked int
	costs func(req llm.Request) llm.Usage // nil means ten tokens, and one of a reply
	price *llm.Price                      // nil means ten cents a token of a reply

	prompts int // tokens, as far as costs counts them
}

func (m *mind) Info() llm.Info {
	price := llm.Price{Output: 100_000}
	if m.price != nil {
		price = *m.price
	}
	return llm.Info{Provider: "p", Model: "m", Window: 200_000, Prices: llm.Prices{price}}
}

func (m *mind) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.mu.Lock()
		m.asked++
		m.mu.Unlock()
		turn := 0
		for _, msg := range req.Messages {
			if msg.Role == llm.Assistant {
				turn++
			}
		}
		parts, err := m.says(req.Messages[0].Parts.Text(), turn, req)
		if err == nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		r := &llm.Reply{Parts: parts, Stop: llm.StopEnd, Route: "p/m", Usage: llm.Usage{Input: 10, Output: 1}}
		if m.costs != nil {
			r.Usage = m.costs(req)
		}
		if len(parts.Calls()) > 0 {
			r.Stop = llm.StopCalls
		}
		yield(llm.Chunk{Reply: r}, nil)
	}
}

func call(id, name string, args map[string]any) llm.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.Call{ID: id, Name: name, Args: raw}
}

func spawn(id, task string, more ...any) llm.Call {
	args := map[string]any{"task": task}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return call(id, "spawn_agent", args)
}

// house is a session with a team, on disk.
type house struct {
	t      *testing.T
	dir    string
	root   string
	model  *mind
	tools  []tool.Tool
	adjust func(a *inspan.Agent)
	trees  *worktree.Store
	open3  bool   // at most three work at once
	guest  string // isolation of the kind guest; empty means there is no such kind
	env    func(root string) tool.Env
	hooks  []tool.Hook
	more   []skill.Role
	orders []subagent.Order
	minute *float64    // dollars of the tree; nil means no bound
	store  store.Store // nil means in dir
	usual  bool        // there is the bound that sessions have where no one has set one
	mu     sync.Mutex
}

func newHouse(t *testing.T, says func(task string, turn int, req llm.Request) (llm.Parts, error), tools ...tool.Tool) *house {
	return &house{
		t: t, dir: t.TempDir(), root: t.TempDir(), model: &mind{says: says}, tools: tools, adjust: func(*inspan.Agent) {},
		env: func(root string) tool.Env { return tool.Env{Root: root} },
	}
}

func (h *house) agent(root string) *inspan.Agent {
	a := &inspan.Agent{Model: h.model, Tools: slices.Clone(h.tools), Env: h.env(root), Mode: "ask", Limits: inspan.Limits{Retry: -1}}
	h.adjust(a)
	return a
}

func (h *house) host() *inspan.Host {
	sessions := h.store
	if sessions == nil {
		sessions = &session.Store{Dir: h.dir}
	}
	return &inspan.Host{Dir: h.dir, Store: h.store, Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) {
		a := h.agent(h.root)
		most := map[bool]int{true: 3}[h.open3]
		team := &subagent.Team{
			Sessions: sessions, Trees: h.trees, Hooks: h.hooks, Roles: h.roles, MaxOpen: most, MinuteCost: h.perMinute(),
			Make: func(_ context.Context, o subagent.Order, at inspan.SessionSpec) (*inspan.Agent, error) {
				h.mu.Lock()
				h.orders = append(h.orders, o)
				h.mu.Unlock()
				child := h.agent(at.Root)
				if o.Team != nil {
					o.Team.Wire(child)
				}
				return child, nil
			},
		}
		team.Wire(a)
		return a, nil
	}}
}

func (h *house) perMinute() *float64 {
	if h.minute == nil && !h.usual {
		return new(float64)
	}
	return h.minute
}

func (h *house) roles() []skill.Role {
	list := append(skill.BuiltinRoles(), h.more...)
	if h.guest != "" {
		list = append(list, skill.Role{Name: "guest", Isolation: h.guest, Prompt: "Be a guest."})
	}
	return list
}

func (h *house) open() *inspan.Session {
	h.t.Helper()
	s, err := h.host().New(h.t.Context(), h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// run drives a session, and returns the stored events.
func run(t *testing.T, s *inspan.Session, on func(e event.Event), inputs ...event.Body) []event.Event {
	t.Helper()
	var out []event.Event
	for e, err := range s.Run(t.Context(), inputs...) {
		if err != nil {
			t.Fatal(err)
		}
		if on != nil {
			on(e)
		}
		if !e.Transient() {
			out = append(out, e)
		}
	}
	return out
}

func of[B event.Body](events []event.Event) []B {
	var out []B
	for _, e := range events {
		if b, ok := e.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

func text(e event.Ended) string { return e.Parts.Text() }

func say(text string) event.Said { return event.Say(text) }

func closed(t *testing.T, s *inspan.Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSpawn checks that a child works by itself, that its last message returns to the parent, and that its cost counts
// as its parent's.
func TestSpawn(t *testing.T) {
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{llm.Text{Text: "I'll have it found."}, spawn("c1", "find the bug", "agent", "explore")}, nil
		case task == "start":
			return llm.Say("It is in cart.go."), nil
		case turn == 0:
			return llm.Parts{llm.Text{Text: "Looking."}, call("x1", "look", nil)}, nil
		}
		return llm.Say("The bug is in cart.go, line 5."), nil
	}, looking(nil))
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	spawned, returned, ended := of[event.Spawned](events), of[event.Returned](events), of[event.Ended](events)
	if len(spawned) != 1 || len(returned) != 1 || len(ended) != 1 {
		t.Fatalf("%d spawned, %d returned, %d ended", len(spawned), len(returned), len(ended))
	}
	if sp := spawned[0]; sp.Agent != "explore" || sp.Call != "c1@1" || sp.Task != "find the bug" ||
		sp.Mode != "plan" || sp.Background || !strings.HasPrefix(sp.Child, s.ID()+".") {
		t.Errorf("%+v", sp)
	}
	if r := returned[0]; r.Reason != event.ReasonDone || r.Turns != 2 || r.Cost < 0.19 || r.Cost > 0.21 || r.Usage.Output != 2 {
		t.Errorf("%+v", r)
	}
	if got := text(ended[0]); !strings.Contains(got, "The bug is in cart.go, line 5.") || strings.Contains(got, "Looking.") {
		t.Errorf("the parent got %q", got)
	}
	st := s.Status()
	if st.Cost < 0.39 || st.Cost > 0.41 || st.Usage.Output != 4 || len(st.Children) != 1 || st.Children[0].Open {
		t.Errorf("%+v", st)
	}
	// The child's own log remains, and names its parent.
	var first event.Opened
	for e, err := range h.host().Events(t.Context(), spawned[0].Child) {
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := e.Body.(event.Opened); ok {
			first = o
		}
	}
	if first.Parent != s.ID() || first.Root != st.Root {
		t.Errorf("%+v", first)
	}
}

// looking is a tool without effects; f runs in it.
func looking(f func(ctx context.Context, c *tool.Call) error) tool.Tool {
	return tool.Tool{
		Name: "look", Doc: "Looks.", Schema: json.RawMessage(`{"type":"object"}`),
		Effects: tool.NoEffects,
		Run: func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			if f != nil {
				if err := f(ctx, c); err != nil {
					return tool.Result{}, err
				}
			}
			return tool.Text("seen"), nil
		},
	}
}

// fan is a parent that spawns n children at once, and answers when they are back.
func fan(n int, child func(i, turn int) (llm.Parts, error), more ...any) func(string, int, llm.Request) (llm.Parts, error) {
	return func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		var i int
		if _, err := fmt.Sscanf(task, "part %d", &i); err == nil {
			return child(i, turn)
		}
		if turn > 0 {
			return llm.Say("All are back."), nil
		}
		var parts llm.Parts
		for i := range n {
			parts = append(parts, spawn(fmt.Sprint("c", i), fmt.Sprint("part ", i), more...))
		}
		return parts, nil
	}
}

// TestFifty checks that children work in parallel, and that no result is lost when every third fails: its findings so
// far are shown.
func TestFifty(t *testing.T) {
	var at, most atomic.Int32
	all := make(chan struct{})
	h := newHouse(t, fan(50, func(i, turn int) (llm.Parts, error) {
		switch {
		case turn == 0:
			return llm.Parts{llm.Text{Text: fmt.Sprintf("First finding of %d.", i)}, call("x", "look", nil)}, nil
		case i%3 == 0:
			return nil, &llm.Error{Kind: llm.KindInvalid, Message: "no such model"}
		}
		return llm.Say(fmt.Sprintf("Result of %d.", i)), nil
	}), looking(func(context.Context, *tool.Call) error {
		if n := at.Add(1); n == 50 {
			close(all) // all fifty stand in their call at once
		} else if n > most.Load() {
			most.Store(n)
		}
		<-all
		return nil
	}))
	s := h.open()
	defer closed(t, s)
	ended := of[event.Ended](run(t, s, nil, say("start")))
	if len(ended) != 50 {
		t.Fatalf("%d results", len(ended))
	}
	for _, e := range ended {
		var i int
		if _, err := fmt.Sscanf(e.Call, "c%d", &i); err != nil {
			t.Fatal(err)
		}
		want, outcome := fmt.Sprintf("Result of %d.", i), event.OutcomeOK
		if i%3 == 0 {
			want, outcome = fmt.Sprintf("First finding of %d.", i), event.OutcomeFailed
		}
		if e.Outcome != outcome || !strings.Contains(text(e), want) {
			t.Errorf("%s: %s %q, want %s %q", e.Call, e.Outcome, text(e), outcome, want)
		}
	}
	if st := s.Status(); st.Stopped.Reason != event.ReasonDone || len(st.Children) != 50 {
		t.Errorf("%v, %d children", st.Stopped, len(st.Children))
	}
}

// TestBudgetHoldsTheTree checks that a tree spends no more than its limit and one request.
func TestBudgetHoldsTheTree(t *testing.T) {
	const leaves = 8
	h := newHouse(t, fan(leaves, func(int, int) (llm.Parts, error) {
		return llm.Parts{call(fmt.Sprint("x", time.Now().UnixNano()), "look", nil)}, nil // forever
	}), looking(nil))
	h.adjust = func(a *inspan.Agent) {
		if a.Limits.Turns == 0 {
			a.Limits.Turns = -1
		}
	}
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, event.Switched{Limits: &event.Limits{Cost: 2.95}}, say("start"))
	st := s.Status()
	if st.Cost < 2.95 || st.Cost > 2.95+0.1+0.001 {
		t.Errorf("$%.2f spent of $2.95, by %d leaves at ten cents a request", st.Cost, leaves)
	}
	for _, r := range of[event.Returned](events) {
		if r.Reason != event.ReasonBudget && r.Reason != event.ReasonStuck {
			t.Errorf("a child stopped as %s %s", r.Reason, r.Detail)
		}
	}
	if st.Stopped.Reason != event.ReasonBudget {
		t.Errorf("the session stopped as %+v", st.Stopped)
	}
}

// TestShare checks that a child with a share stops at it.
func TestShare(t *testing.T) {
	n := 0
	h := newHouse(t, fan(1, func(int, int) (llm.Parts, error) {
		n++
		return llm.Parts{call(fmt.Sprint("x", n), "look", map[string]any{"n": n})}, nil
	}, "budget", 0.25), looking(nil))
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, event.Switched{Limits: &event.Limits{Cost: 4.1}}, say("start"))
	if c := s.Status().Children[0]; c.Returned.Reason != event.ReasonBudget || c.Cost < 0.99 || c.Cost > 1.11 {
		t.Errorf("a quarter of $4: %+v cost $%.2f", c.Returned, c.Cost)
	}
}

// TestCancelReachesLeaves checks that an interrupt ends grandchildren in order and in time, and that their work until
// then is reported.
func TestCancelReachesLeaves(t *testing.T) {
	var in sync.WaitGroup
	in.Add(4)
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case turn > 0:
			return llm.Say("done"), nil
		case task == "start":
			return llm.Parts{spawn("c1", "middle 1"), spawn("c2", "middle 2")}, nil
		case strings.HasPrefix(task, "middle"):
			return llm.Parts{spawn("d1", "leaf"), spawn("d2", "leaf")}, nil
		}
		return llm.Parts{llm.Text{Text: "I begin."}, call("x", "look", nil)}, nil
	}, looking(func(ctx context.Context, _ *tool.Call) error {
		in.Done()
		<-ctx.Done()
		return ctx.Err()
	}))
	h.adjust = func(a *inspan.Agent) { a.Limits.CallTime = time.Minute }
	s := h.open()
	defer closed(t, s)
	var began time.Time
	go func() {
		in.Wait()
		began = time.Now()
		_ = s.Send(t.Context(), event.Cancelled{})
	}()
	events := run(t, s, nil, say("start"))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v until all was quiet", took)
	}
	if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled {
		t.Fatalf("%+v", st.Stopped)
	}
	for _, r := range of[event.Returned](events) {
		if r.Reason != event.ReasonCancelled {
			t.Errorf("a child: %+v", r)
		}
	}
	leaves := 0
	for info, err := range h.host().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Stop != event.ReasonCancelled {
			t.Errorf("%s stopped as %q", info.ID, info.Stop)
		}
		leaves += strings.Count(info.ID, ".") / 2
	}
	if leaves != 4 {
		t.Errorf("%d grandchildren", leaves)
	}
}

// changing is a tool that asks in mode ask.
func changing(ran *atomic.Int32) tool.Tool {
	t := looking(func(context.Context, *tool.Call) error { ran.Add(1); return nil })
	t.Name = "change"
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "changes it"}}, nil
	}
	return t
}

// TestQuestionsBubbleUp checks that a grandchild's question reaches the session of the person, and that the answer
// reaches the grandchild.
func TestQuestionsBubbleUp(t *testing.T) {
	for _, allow := range []bool{true, false} {
		var ran atomic.Int32
		h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
			switch {
			case task == "start" && turn == 0:
				return llm.Parts{spawn("c1", "middle")}, nil
			case task == "middle" && turn == 0:
				return llm.Parts{spawn("d1", "leaf")}, nil
			case task == "leaf" && turn == 0:
				return llm.Parts{call("x1", "change", nil)}, nil
			case task == "leaf":
				return req.Messages[len(req.Messages)-1].Parts[0].(llm.Result).Parts, nil
			}
			return llm.Say("ok"), nil
		}, changing(&ran))
		s := h.open()
		var asked []event.Raised
		run(t, s, func(e event.Event) {
			if r, ok := e.Body.(event.Raised); ok {
				if open := s.Status().Raised; len(open) != 1 || open[0].ID != r.ID {
					t.Errorf("the status has %+v", open)
				}
				asked = append(asked, r)
				if err := s.Send(t.Context(), event.Decided{Call: r.ID, Allow: allow, By: "the user", Reason: "because"}); err != nil {
					t.Error(err)
				}
			}
		}, say("start"))
		if len(asked) != 1 || asked[0].Tool != "change" || asked[0].Agent != "worker › worker" || len(asked[0].Effects) != 1 {
			t.Fatalf("%+v", asked)
		}
		if want := map[bool]int32{true: 1, false: 0}[allow]; ran.Load() != want || len(s.Status().Raised) != 0 {
			t.Errorf("allowed %v: it ran %d times, and %d questions are left", allow, ran.Load(), len(s.Status().Raised))
		}
		closed(t, s)
	}
}

// TestBackground checks that a background child reports to its parent by itself, that the run is not over before that,
// and that the parent can work meanwhile.
func TestBackground(t *testing.T) {
	more := make(chan struct{})
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case task == "leaf" && turn == 0:
			return llm.Parts{call("x1", "look", nil)}, nil
		case task == "leaf":
			return llm.Say("found it"), nil
		case turn == 0:
			return llm.Parts{spawn("c1", "leaf", "background", true)}, nil
		case turn == 1:
			close(more)
			return llm.Say("Meanwhile I am done."), nil
		}
		return llm.Say("It said: " + last.Parts.Text()), nil
	}, looking(func(context.Context, *tool.Call) error { <-more; return nil }))
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	replies := of[event.Replied](events)
	if last := replies[len(replies)-1].Parts.Text(); len(of[event.Stopped](events)) != 1 || !strings.Contains(last, "found it") {
		t.Errorf("%d stops, the last reply is %q", len(of[event.Stopped](events)), last)
	}
}

// TestAfterACrash checks that an interrupted child continues where it was, in the foreground and in the background, and
// does nothing twice.
func TestAfterACrash(t *testing.T) {
	for _, background := range []bool{false, true} {
		var looks atomic.Int32
		stood := make(chan struct{})
		h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
			switch {
			case task == "leaf" && turn < 2:
				return llm.Parts{call(fmt.Sprint("x", turn), "look", nil)}, nil
			case task == "leaf":
				return llm.Say("found it"), nil
			case turn == 0:
				return llm.Parts{spawn("c1", "leaf", "background", background)}, nil
			}
			return llm.Say("It ended with: " + req.Messages[len(req.Messages)-1].Parts.Text()), nil
		}, looking(func(ctx context.Context, _ *tool.Call) error {
			if looks.Add(1) == 2 {
				close(stood)
				<-ctx.Done()
			}
			return ctx.Err()
		}))
		s := h.open()
		id := s.ID()
		ctx, crash := context.WithCancel(t.Context())
		go func() { <-stood; crash() }()
		for _, err := range s.Run(ctx, say("start")) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		closed(t, s)
		again, err := h.host().Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		events := run(t, again, nil)
		st := again.Status()
		if background && (len(st.Children) != 1 || st.Children[0].Returned.Reason != event.ReasonDone) {
			t.Errorf("background: %+v", st.Children)
		}
		if looks.Load() != 2 {
			t.Errorf("background %v: %d looks, want the first and the one that was broken off", background, looks.Load())
		}
		if st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
			t.Errorf("background %v: %+v, %d events", background, st.Stopped, len(events))
		}
		closed(t, again)
	}
}

// TestResultHasItsForm checks that a child with a schema returns a fitting result, and is reminded once if it forgets.
func TestResultHasItsForm(t *testing.T) {
	schema := map[string]any{
		"type": "object", "properties": map[string]any{"count": map[string]any{"type": "integer"}},
		"required": []string{"count"},
	}
	h := newHouse(t, fan(1, func(_, turn int) (llm.Parts, error) {
		switch turn {
		case 0:
			return llm.Say("There are seven."), nil
		case 1:
			return llm.Parts{call("r1", "return_result", map[string]any{"count": "many"})}, nil
		case 2:
			return llm.Parts{call("r2", "return_result", map[string]any{"count": 7})}, nil
		}
		return llm.Say("Returned."), nil
	}, "result_schema", schema))
	s := h.open()
	defer closed(t, s)
	ended := of[event.Ended](run(t, s, nil, say("start")))
	if got := text(ended[0]); !strings.Contains(got, `{"count":7}`) || strings.Contains(got, "Returned.") {
		t.Errorf("%q", got)
	}
}

// TestManage checks that agents can be listed, inspected, and continued with their knowledge.
func TestManage(t *testing.T) {
	var name string
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		last := req.Messages[len(req.Messages)-1].Parts
		switch {
		case strings.HasPrefix(task, "leaf"):
			return llm.Say(fmt.Sprintf("answer %d to %q", turn+1, lastText(req))), nil
		case turn == 0:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case turn == 1:
			return llm.Parts{call("m1", "manage_agents", map[string]any{"action": "list"})}, nil
		case turn == 2:
			name = strings.Fields(last[0].(llm.Result).Parts.Text())[1]
			name = strings.TrimSuffix(name, ":")
			return llm.Parts{
				call("m2", "manage_agents", map[string]any{"action": "message", "agent": name, "text": "and more?"}),
				call("m3", "manage_agents", map[string]any{"action": "inspect", "agent": "nobody"}),
			}, nil
		case turn == 3:
			return llm.Parts{
				call("m4", "manage_agents", map[string]any{"action": "inspect", "agent": name}),
				call("m5", "manage_agents", map[string]any{"action": "stop", "agent": name}),
			}, nil
		}
		return llm.Say("ok"), nil
	})
	s := h.open()
	defer closed(t, s)
	got := map[string]event.Ended{}
	for _, e := range of[event.Ended](run(t, s, nil, say("start"))) {
		got[e.Call] = e
	}
	for id, want := range map[string]string{
		"c1": `answer 1 to "leaf`, "m1": "done", "m2": `answer 2 to "and more?"`, "m3": "no agent",
		"m4": "says: answer 2", "m5": "not work any more",
	} {
		if !strings.Contains(text(got[id]), want) {
			t.Errorf("%s: %q, want %q", id, text(got[id]), want)
		}
	}
	if st := s.Status(); len(st.Children) != 1 || st.Cost < 0.69 || st.Cost > 0.71 {
		t.Errorf("%d children, $%.2f", len(st.Children), st.Cost)
	}
}

// TestOrdersAreHeld checks that no child gets more than its parent may.
func TestOrdersAreHeld(t *testing.T) {
	for _, tc := range []struct {
		more []any
		want string
	}{
		{[]any{"mode", "auto"}, "wider than yours"},
		{[]any{"mode", "fast"}, `"fast" is none of`},
		{[]any{"agent", "wizard"}, "no kind of agent"},
		{[]any{"budget", 1.5}, "share"},
		{[]any{"deadline", -1}, "negative"},
		{[]any{"isolation", "moon"}, `"moon" is none of`},
		{[]any{"isolation", "worktree"}, "can't work apart"},
		{[]any{"result_schema", map[string]any{"type": "array"}}, "of type object"},
		{
			[]any{"result_schema", map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"$ref": "#/properties/x"}}}},
			"result_schema: ",
		},
	} {
		h := newHouse(t, fan(1, func(int, int) (llm.Parts, error) { return llm.Say("x"), nil }, tc.more...))
		s := h.open()
		ended := of[event.Ended](run(t, s, nil, say("start")))
		if len(ended) != 1 || ended[0].Outcome == event.OutcomeOK || !strings.Contains(text(ended[0]), tc.want) {
			t.Errorf("%v: %+v", tc.more, ended)
		}
		if len(h.orders) > 0 {
			t.Errorf("%v: a child was made", tc.more)
		}
		closed(t, s)
	}
	h := newHouse(t, fan(1, func(int, int) (llm.Parts, error) { return llm.Say("x"), nil }, "agent", "plan", "mode", "ask"))
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	if st := s.Status().Children; len(st) != 1 || st[0].Mode != "plan" {
		t.Errorf("a planner works in mode %+v", st)
	}
}

// TestTaintGoesBothWays checks that a child of a session which has seen text from elsewhere counts as having seen it,
// and so does the parent of such a child.
func TestTaintGoesBothWays(t *testing.T) {
	fetch := looking(nil)
	fetch.Name = "fetch"
	fetch.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Network, Text: "example.com"}}, nil
	}
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "first" && turn == 0:
			return llm.Parts{spawn("c1", "fetcher")}, nil
		case task == "fetcher" && turn == 0:
			return llm.Parts{call("f", "fetch", nil)}, nil
		case turn == 2:
			return llm.Parts{spawn("c2", "second child")}, nil
		}
		return llm.Say("ok"), nil
	}, fetch)
	h.adjust = func(a *inspan.Agent) { a.Mode = "yolo" }
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("first"))
	if !s.Status().Untrusted {
		t.Error("what the child fetched does not count for its parent")
	}
	events := run(t, s, nil, say("second"))
	child := of[event.Spawned](events)[0].Child
	tainted := false
	for e, err := range h.host().Events(t.Context(), child) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Said); ok {
			tainted = b.Untrusted
		}
	}
	if !tainted {
		t.Error("what the parent has seen does not count for its child")
	}
}

// TestNoToolsBeyondTheParents checks that a child of a child has no tool that the one in the middle lacks, and that
// tools which are not there are named.
func TestNoToolsBeyondTheParents(t *testing.T) {
	look, change := looking(nil), changing(new(atomic.Int32))
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "middle", "tools", []string{"look", "spawn_agent"}), spawn("c2", "none", "tools", []string{"fly"})}, nil
		case task == "middle" && turn == 0:
			return llm.Parts{spawn("d1", "leaf"), spawn("d2", "other leaf", "tools", []string{"change"})}, nil
		case task == "leaf":
			names := ""
			for _, s := range req.Tools {
				names += s.Name + " "
			}
			return llm.Say("I have: " + names), nil
		}
		return llm.Say(fmt.Sprint(req.Messages[len(req.Messages)-1].Parts)), nil
	}, look, change)
	s := h.open()
	defer closed(t, s)
	got := ""
	for _, e := range of[event.Ended](run(t, s, nil, say("start"))) {
		got += text(e) + "\n"
	}
	if !strings.Contains(got, "I have: look ") || strings.Contains(got, "I have: look change") {
		t.Errorf("the leaf:\n%s", got)
	}
	for _, want := range []string{`no tool "fly"`, `no tool "change"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

// TestSameIDAgain checks that a call which has the id of an earlier one, as after the conversation was taken back, gets
// a child of its own.
func TestSameIDAgain(t *testing.T) {
	n := 0
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		if strings.HasPrefix(task, "leaf") {
			n++
			return llm.Say(fmt.Sprintf("answer %d to %s", n, task)), nil
		}
		if turn%2 == 0 {
			return llm.Parts{spawn("c1", fmt.Sprint("leaf ", turn))}, nil
		}
		return llm.Say("ok"), nil
	})
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("first"))
	ended := of[event.Ended](run(t, s, nil, say("second")))
	if !strings.Contains(text(ended[0]), "answer 2 to leaf 2") || len(s.Status().Children) != 2 {
		t.Errorf("%q, %d children", text(ended[0]), len(s.Status().Children))
	}
}
