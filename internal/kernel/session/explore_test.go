package session_test

// The protocol of the log, explored. One small session is played with everything real but the disk, the clock, the
// model and the person: a driver, its log, its fold, approvals, a compaction, a call whose id the server uses again and
// again. At each place where a driver meets the world (before and after each append, in the model, in a call, in a
// hook) the explorer may let something happen: a message, an interrupt, a repeated answer, the death of the driver,
// another driver that takes over, a fork. It plays every combination of at most a few such happenings, finishes the
// session, and then compares the log with the real effects.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// happening is an event that may happen at a place.
type happening string

const (
	nothing   happening = ""
	words     happening = "words"      // the person steers
	interrupt happening = "interrupt"  // the person interrupts
	again     happening = "again"      // the last answer comes once more, from another window
	die       happening = "die"        // the process of the driver is gone
	takeover  happening = "take over"  // another driver claims and goes on to the end
	fork      happening = "fork"       // somebody forks the session, and drives the fork
	compact   happening = "compaction" // somebody asks for one
)

var happenings = []happening{nothing, words, interrupt, again, die, takeover, fork, compact}

// can reports whether something may happen at a place. What may happen after an append as well as before the next
// one happens there.
func (h happening) can(place string) bool {
	return !strings.HasPrefix(place, "after") || h == words || h == die || h == again && place == "after waiting"
}

// world is one play.
type world struct {
	t     *testing.T
	store *session.Store
	id    string
	wrong func(event.Body) event.Body // takes a fix out; nil means none
	takes error                       // that the log should refuse an append with, and does not

	script []int    // what happens at each place, by index of happenings; what is not there is nothing
	places []string // there were so far
	trace  []string
	calm   bool // nothing happens any more

	said    int
	answers []event.Decided // that the person has given
	asked   []string        // the requests, as the model saw them: session and texts
	paid    []payment
	by      map[string]map[uint64]uint64 // epoch that stored each event of a session, 0 for inputs
	forks   []string
	faults  []string // what was wrong
}

// payment is the effect of the tool.
type payment struct{ session, call, key, to string }

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

var errDead = errors.New("the process is gone")

// at is a place: the script's happenings take place there. It returns whether the actor is still alive.
func (w *world) at(a *actor, name string) bool {
	if a.dead.Load() || w.calm {
		return !a.dead.Load()
	}
	n := len(w.places)
	w.places = append(w.places, name)
	what := nothing
	if n < len(w.script) {
		what = happenings[w.script[n]]
	}
	if what == nothing {
		return true
	}
	w.trace = append(w.trace, fmt.Sprintf("%d %s: %s", n, name, what))
	w.happen(a, what)
	synctest.Wait() // whoever watches the log has seen it
	return !a.dead.Load()
}

func (w *world) happen(a *actor, what happening) {
	switch what {
	case words:
		w.said++
		w.input(event.Steered{Origin: event.OriginPerson, Parts: llm.Say(fmt.Sprintf("word-%d.", w.said)), By: "ann"})
	case interrupt:
		w.input(event.Cancelled{By: "ann"})
	case compact:
		w.input(event.Compact{})
	case again:
		if n := len(w.answers); n > 0 {
			w.input(w.answers[n-1])
		}
	case die:
		a.dead.Store(true)
	case takeover:
		if err := w.store.LoseLease(w.id); err != nil {
			w.t.Fatal(err)
		}
		w.drive(w.id, 20)
	case fork:
		l, err := w.store.Fork(w.t.Context(), w.id, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		id := l.ID()
		w.forks = append(w.forks, id)
		if err := l.Close(); err != nil {
			w.t.Fatal(err)
		}
		calm := w.calm
		w.calm = true
		w.drive(id, 20)
		w.calm = calm
	}
}

// input appends an input of another process.
func (w *world) input(b event.Body) {
	l := w.open(w.id)
	defer l.Close()
	if w.wrong != nil {
		b = w.wrong(b)
	}
	if _, err := l.Append(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(id string) store.Log {
	l, err := w.store.Open(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// drive lets a new driver continue a session, and the person answer it, until nothing is left to do or the driver is
// gone.
func (w *world) drive(id string, rounds int) {
	a := &actor{world: w, Log: w.open(id)}
	defer a.Log.Close()
	s, err := w.agent(a).Open(w.t.Context(), a)
	if err != nil {
		return // it died on the way
	}
	var inputs []event.Body
	if s.Status().Task == "" {
		inputs = []event.Body{event.Say("pay Alice, not Bobby")}
	}
	for range rounds {
		for _, err := range s.Run(w.t.Context(), inputs...) {
			if err != nil {
				return
			}
		}
		waiting := s.Status().Waiting
		if len(waiting) == 0 {
			return
		}
		inputs = nil
		for _, p := range waiting {
			d := event.Decided{Call: p.Call.ID, Question: p.Question, Allow: strings.Contains(string(p.Call.Args), "Alice"), By: "ann"}
			inputs, w.answers = append(inputs, d), append(w.answers, d)
		}
		if !w.at(a, "answer") {
			return
		}
	}
	w.fault("%v: it does not come to an end", w.trace)
}

// play plays a session to its end.
func (w *world) play() {
	l, err := w.store.Create(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.id = l.ID()
	if err := l.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.drive(w.id, 20)
	w.calm = true // whoever comes now brings it to its end
	for range 2 {
		w.drive(w.id, 20)
	}
	w.check()
}

// actor is a driver's view of a log: all it does passes through here.
type actor struct {
	store.Log
	world *world
	dead  atomic.Bool
}

func (a *actor) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	if a.dead.Load() {
		return nil, errDead
	}
	return a.Log.Append(ctx, bodies...)
}

func (a *actor) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	w := a.world
	kind := bodies[len(bodies)-1].Kind()
	if !w.at(a, "before "+kind) {
		return nil, errDead
	}
	if w.wrong != nil {
		bodies = slices.Clone(bodies)
		for i := range bodies {
			bodies[i] = w.wrong(bodies[i])
		}
	}
	events, err := a.Log.AppendAs(ctx, as, bodies...)
	if w.takes != nil && errors.Is(err, w.takes) {
		events, err = a.anyway(ctx, bodies)
	}
	for _, e := range events {
		if w.by[a.ID()] == nil {
			w.by[a.ID()] = map[uint64]uint64{}
		}
		w.by[a.ID()][e.Seq] = as.Epoch
	}
	if err == nil && !w.at(a, "after "+kind) {
		return nil, errDead
	}
	return events, err
}

// anyway stores an event that the log refuses, as a log without a fence does.
func (a *actor) anyway(ctx context.Context, bodies []event.Body) ([]event.Event, error) {
	var as event.Driver
	for e, err := range a.Log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		as.After = e.Seq
		if c, ok := e.Body.(event.Claimed); ok {
			as.Epoch = c.Epoch
		}
	}
	return a.Log.AppendAs(ctx, as, bodies...)
}

func (a *actor) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	if a.dead.Load() {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, errDead) }
	}
	return a.Log.Read(ctx, after)
}

func (a *actor) Close() error { return nil } // the world does

// agent is the agent of the play.
func (w *world) agent(a *actor) *inspan.Agent {
	pay := tool.New("pay", "pays", func(_ context.Context, c *tool.Call, in struct {
		To string `json:"to"`
	},
	) (tool.Result, error) {
		if !w.at(a, "before paying") {
			return tool.Result{}, errDead
		}
		w.paid = append(w.paid, payment{a.ID(), c.ID, c.Key, in.To})
		w.at(a, "after paying")
		return tool.Text("paid " + in.To), nil
	})
	pay.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "the bank"}}, nil
	}
	look := tool.New("look", "looks", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		w.at(a, "looking")
		return tool.Text(strings.Repeat("a long page of a bank. ", 600)), nil
	})
	look.Effects = tool.NoEffects
	return &inspan.Agent{
		Model: &teller{w, a}, Tools: []tool.Tool{pay, look}, Hooks: []tool.Hook{&listener{w, a}},
		Mode: "ask", Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Retry: -1},
	}
}

// listener is a hook that takes its time.
type listener struct {
	world *world
	actor *actor
}

func (l *listener) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if p.Moment == tool.RunStop {
		l.world.at(l.actor, "hook")
	}
	return tool.Outcome{}, nil
}

// teller is a model that gives all its calls the same id. What it says follows from how much it has said, because
// its session's log has it.
type teller struct {
	world *world
	actor *actor
}

func (m *teller) Info() llm.Info {
	return llm.Info{Provider: "test", Model: "teller", Window: 4500, MaxOutput: 1000, Prices: llm.Prices{{}}}
}

func (m *teller) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		var texts []string
		for _, msg := range req.Messages {
			raw, _ := json.Marshal(msg)
			texts = append(texts, string(raw))
		}
		if strings.Contains(texts[len(texts)-1], "Write a record of the conversation") {
			m.world.at(m.actor, "compacting")
			yield(llm.Chunk{Reply: &llm.Reply{Stop: llm.StopEnd, Parts: llm.Say("no record")}}, nil)
			return
		}
		m.world.asked = append(m.world.asked, m.actor.ID()+"\n"+strings.Join(texts, "\n"))
		replies := 0
		for e, err := range m.actor.Log.Read(ctx, 0) {
			if err != nil {
				break
			}
			if r, ok := e.Body.(event.Replied); ok && r.Stop != llm.StopCut {
				replies++
			}
		}
		m.world.at(m.actor, "asking")
		if ctx.Err() != nil {
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
		reply := &llm.Reply{Stop: llm.StopEnd, Parts: llm.Say("done")}
		if replies < 3 {
			name, args := "look", `{}`
			if replies != 1 {
				name, args = "pay", fmt.Sprintf(`{"to":%q}`, map[int]string{0: "Alice", 2: "Bobby"}[replies])
			}
			reply = &llm.Reply{Stop: llm.StopCalls, Parts: llm.Parts{llm.Call{ID: "x1", Name: name, Args: json.RawMessage(args)}}}
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}
