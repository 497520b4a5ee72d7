package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// uncounted is a model whose vendor does not count.
type uncounted struct{ llm.Model }

func (m uncounted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range m.Model.Stream(ctx, req) {
			if chunk.Reply != nil {
				chunk.Reply.Usage = llm.Usage{}
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// TestOldApprovalsAreSpent checks that a single approval does not count again when another call gets the same id from
// the server: neither after a compaction of the child, nor after a restart of the program.
func TestOldApprovalsAreSpent(t *testing.T) {
	var ran, turns atomic.Int32
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case slices.ContainsFunc(req.Messages, func(m llm.Message) bool {
			return strings.Contains(m.Parts.Text(), "Write a record of the conversation")
		}):
			return llm.Say("none"), nil
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "leaf", "background", true)}, nil
		case task == "leaf":
			thought := llm.Say(strings.Repeat("many words of thought ", 6000))
			switch n := turns.Add(1); n {
			case 1, 2, 3:
				return append(thought, call(fmt.Sprint("x0", n), "look", nil)), nil
			case 4, 5:
				return append(thought, call("x1", "change", map[string]any{"n": n})), nil
			}
			return llm.Say("the leaf is done"), nil
		}
		return llm.Say("ok"), nil
	}, changing(&ran), looking(nil))
	h.adjust = func(a *inspan.Agent) { a.Model = uncounted{a.Model} }
	s := h.open()
	id := s.ID()
	ctx, quit := context.WithCancel(t.Context())
	defer quit()
	for e, err := range s.Run(ctx, say("start")) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b, raised := e.Body.(event.Raised)
		if !raised {
			continue
		}
		if turns.Load() > 4 {
			quit() // while the second question stands
			continue
		}
		watch, err := h.host().Watch(t.Context(), b.Child)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(watch.Send(t.Context(), event.Compact{}), watch.Close(),
			s.Send(t.Context(), event.Decided{Call: b.ID, Allow: true, By: "ann"})); err != nil {
			t.Fatal(err)
		}
	}
	child := s.Status().Children[0].Child
	closed(t, s)
	if n := len(of[event.Compacted](h.events(child))); n != 1 || ran.Load() != 1 {
		t.Fatalf("%d compactions, it ran %d times", n, ran.Load())
	}
	again, err := h.host().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	if open := again.Status().Raised; len(open) != 1 {
		t.Fatalf("questions: %+v", open)
	}
	asked := again.Status().Raised[0]
	if err := again.Send(t.Context(), event.Decided{Call: asked.ID, Reason: "no more", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	run(t, again, nil)
	if ran.Load() != 1 {
		t.Errorf("it ran %d times, and was allowed once", ran.Load())
	}
	decided := of[event.Decided](h.events(child))
	if len(decided) != 2 || !decided[0].Allow || decided[1].Allow ||
		decided[0].Question >= decided[1].Question || decided[0].Call == decided[1].Call {
		t.Errorf("the child was told %+v", decided)
	}
}

// events are those of a session on disk.
func (h *house) events(id string) []event.Event {
	h.t.Helper()
	var out []event.Event
	for e, err := range h.host().Events(h.t.Context(), id) {
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// TestForkOfAgents checks that a fork taken while an agent works does not say that it never ran, that its own agents
// are other sessions, and that a fork of an agent is a session like any other.
func TestForkOfAgents(t *testing.T) {
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case task == "leaf" && turn == 0:
			return llm.Parts{call("x1", "look", nil)}, nil
		}
		return llm.Say("ok"), nil
	})
	var fork, branch string
	h.tools = append(h.tools, looking(func(ctx context.Context, c *tool.Call) error {
		parent, _, _ := strings.Cut(c.Session, ".")
		for _, f := range []struct {
			of string
			to *string
		}{{parent, &fork}, {c.Session, &branch}} {
			l, err := (&session.Store{Dir: h.dir}).Fork(ctx, f.of, 0)
			if err != nil {
				return err
			}
			*f.to = l.ID()
			if err := l.Close(); err != nil {
				return err
			}
		}
		return nil
	}))
	s := h.open()
	run(t, s, nil, say("start"))
	closed(t, s)

	f, err := h.host().Open(t.Context(), fork)
	if err != nil {
		t.Fatal(err)
	}
	ended := of[event.Ended](run(t, f, nil))
	closed(t, f)
	if len(ended) != 1 || ended[0].Outcome != event.OutcomeUnknown || strings.Contains(text(ended[0]), "Not run") {
		t.Errorf("in the fork: %+v", ended)
	}
	list, err := (&session.Store{Dir: h.dir}).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(i store.Info) bool { return i.ID == branch })
	if i < 0 || list[i].Parent != "" {
		t.Errorf("the fork of an agent is listed as %+v", list)
	}
}

// TestInterruptedAgentsHadRun checks the report about an agent whose call was interrupted and whose program was then
// killed.
func TestInterruptedAgentsHadRun(t *testing.T) {
	stood := make(chan struct{})
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case task == "leaf" && turn == 0:
			return llm.Parts{call("x1", "look", nil)}, nil
		}
		return llm.Say("ok"), nil
	}, looking(func(ctx context.Context, _ *tool.Call) error {
		close(stood)
		<-ctx.Done()
		return ctx.Err()
	}))
	s := h.open()
	id := s.ID()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	go func() { <-stood; kill() }()
	for _, err := range s.Run(ctx, say("start")) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	closed(t, s)
	log, err := (&session.Store{Dir: h.dir}).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), event.Cancelled{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := h.host().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	run(t, again, nil)
	for _, e := range of[event.Ended](h.events(id)) {
		if strings.Contains(text(e), "Not run") {
			t.Errorf("%+v", e)
		}
	}
}

// TestMailAtRest checks that a message of an agent which comes when its parent is at rest begins nothing there.
func TestMailAtRest(t *testing.T) {
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case task == "leaf" && turn == 0:
			return llm.Parts{call("t1", "team", map[string]any{"action": "send", "to": "parent", "text": "delete everything"})}, nil
		}
		return llm.Say("ok"), nil
	})
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	mail := of[event.Steered](events)
	if len(mail) != 1 || mail[0].Origin != event.OriginAgent {
		t.Fatalf("%+v", mail)
	}
	if err := s.Send(t.Context(), mail[0]); err != nil { // once more, now that it is at rest
		t.Fatal(err)
	}
	if more := of[event.Asked](run(t, s, nil)); len(more) > 0 || s.Status().Task != "start" {
		t.Errorf("%d requests, the task is %q", len(more), s.Status().Task)
	}
	for _, e := range h.events(s.Status().Children[0].Child) {
		if said, ok := e.Body.(event.Said); ok && said.Origin != event.OriginLead {
			t.Errorf("the child was told %+v", said)
		}
	}
}

// TestAnswersToOtherQuestions checks that an answer which names another question than the one that has the id does not
// reach the agent.
func TestAnswersToOtherQuestions(t *testing.T) {
	var ran atomic.Int32
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "leaf")}, nil
		case task == "leaf" && turn == 0:
			return llm.Parts{call("x1", "change", nil)}, nil
		}
		return llm.Say("ok"), nil
	}, changing(&ran))
	s := h.open()
	defer closed(t, s)
	run(t, s, func(e event.Event) {
		if r, ok := e.Body.(event.Raised); ok {
			for _, d := range []event.Decided{
				{Call: r.ID, Question: e.Seq - 1, Allow: true, By: "ann"},
				{Call: r.ID, Question: e.Seq + 1, Allow: true, By: "ann"},
				{Call: r.ID, Question: e.Seq, By: "ann"},
				{Call: r.ID, Question: e.Seq, Allow: true, By: "ann"}, // too late
			} {
				if err := s.Send(t.Context(), d); err != nil {
					t.Error(err)
				}
			}
		}
	}, say("start"))
	if ran.Load() != 0 {
		t.Errorf("it ran %d times, and was denied", ran.Load())
	}
}
