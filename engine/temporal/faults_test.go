package temporal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// kinds counts the events of a log that are so.
func (p *place) kinds(id string, is func(event.Body) bool) (n int) {
	p.t.Helper()
	for e, err := range store.Events(p.t.Context(), p.store, id) {
		if err != nil {
			p.t.Fatal(err)
		}
		if is(e.Body) {
			n++
		}
	}
	return n
}

func claim(b event.Body) bool { _, is := b.(event.Claimed); return is }

// TestOneDrives checks that two workers never drive one session, even if another process has it: then the turn is
// tried again until it can be had.
func TestOneDrives(t *testing.T) {
	p := newPlace(t, calls("look", "step"))
	id := p.begins()
	log, err := p.store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.(event.Leaser).Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.worker()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.until("a turn is busy", func() bool {
		d, err := p.client.Describe(t.Context(), id)
		return err == nil && d.Attempt > 3 && strings.Contains(d.Failure, "drives this session")
	})
	if got := p.kinds(id, claim); got != 0 {
		t.Errorf("%d claims while another drives it", got)
	}
	if err := errors.Join(log.(event.Leaser).Release(), log.Close()); err != nil {
		t.Fatal(err)
	}
	p.reached("look0", 0)
	for range 10 { // wakes for a session that is driven
		if err := p.client.Wake(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
	}
	p.opens(0)
	p.stands(id, temporal.Done)
	if got := p.kinds(id, claim); got != 1 {
		t.Errorf("%d claims", got)
	}
	p.changedOnce([]string{"look", "step"})
}

// TestZombie stops a worker in the middle of a change for longer than heartbeat and lease, and wakes it after another
// worker has ended the session. The log accepts nothing from it, and no change is made twice: the outcome of the
// interrupted one is unknown.
func TestZombie(t *testing.T) {
	p := newPlace(t, calls("step", "push", "step", "look", "step"))
	id := p.begins()
	p.worker()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	pid := p.reached("push1", 0)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := p.reached("look3", 0)
	if next == pid {
		t.Fatal("it was not stopped")
	}
	p.opens(1)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.until("the zombie makes its change", func() bool {
		return slices.ContainsFunc(p.ledger(), func(line string) bool { return strings.HasPrefix(line, "pushed1,") })
	})
	p.opens(3)
	p.stands(id, temporal.Done)
	p.changedOnce([]string{"step", "push", "step", "look", "step"})
	unknown := p.kinds(id, func(b event.Body) bool {
		e, ended := b.(event.Ended)
		return ended && e.Outcome == event.OutcomeUnknown
	})
	ends := p.kinds(id, func(b event.Body) bool { _, ended := b.(event.Ended); return ended })
	if unknown != 1 || ends != 5 {
		t.Errorf("%d calls ended, %d of them unknown", ends, unknown)
	}
}

// TestDelivery sends one input twice, as a server does that has not seen the answer to the first.
func TestDelivery(t *testing.T) {
	p := newPlace(t, calls("step"))
	id := p.begins()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Done)
	said := event.Say("And once more.")
	said.Message = "key-1"
	for range 3 {
		if err := p.client.Send(t.Context(), id, said); err != nil {
			t.Fatal(err)
		}
		p.stands(id, temporal.Done)
	}
	stops := p.kinds(id, func(b event.Body) bool { _, is := b.(event.Stopped); return is })
	if stops != 2 {
		t.Errorf("%d runs", stops)
	}
}

// TestApproval checks that a question outlives its worker, that only an answer to it counts, and once.
func TestApproval(t *testing.T) {
	p := newPlace(t, calls("ask", "step"))
	p.client.Tenant = func(string) string { return "acme" }
	id := p.begins()
	first := p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Asks)
	p.until("it is found by whose it is and how it stands", func() bool {
		r, err := p.client.Temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: "InspanTenant = 'acme' AND InspanStanding = 'asks' AND WorkflowId = '" + id + "'",
		})
		return err == nil && r.GetCount() == 1
	})
	first.sends(t, syscall.SIGKILL)
	<-first.ended
	yes := p.yes(id)
	wrong := yes
	wrong.Question, wrong.Message = yes.Question-1, "key-0"
	if err := p.client.Approve(t.Context(), id, wrong); !errors.Is(err, temporal.ErrNoQuestion) {
		t.Errorf("another question was answered: %v", err)
	}
	if err := p.client.Approve(t.Context(), id, yes); err != nil { // no one is there to go on
		t.Fatal(err)
	}
	p.worker()
	p.stands(id, temporal.Done)
	if err := p.client.Approve(t.Context(), id, yes); err != nil {
		t.Errorf("the same answer again: %v", err)
	}
	yes.Message = "key-2"
	if err := p.client.Approve(t.Context(), id, yes); !errors.Is(err, temporal.ErrNoQuestion) {
		t.Errorf("a second answer: %v", err)
	}
	p.changedOnce([]string{"", "step"})
}

// yes answers the last question of a session.
func (p *place) yes(id string) (d event.Decided) {
	p.t.Helper()
	for e, err := range store.Events(p.t.Context(), p.store, id) {
		if err != nil {
			p.t.Fatal(err)
		}
		if w, is := e.Body.(event.Waiting); is {
			d = event.Decided{Call: w.Call, Question: e.Seq, Allow: true, By: "test", Answer: "yes", Message: "key-1"}
		}
	}
	return d
}

// TestServersApprove has a server find a decision in the log: the engine hears of it as an approval, and
// not as any input.
func TestServersApprove(t *testing.T) {
	p := newPlace(t, calls("ask", "step"))
	id := p.begins()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Asks)
	e, err := temporal.Connect(t.Context(), "temporal://"+p.Conf.Temporal+"/?searchable=true&queue="+p.Conf.Queue, p.store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := (&inspan.Host{Store: p.store}).Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	yes, before := p.yes(id), len(p.heard(id))
	if err := errors.Join(w.Send(t.Context(), yes), w.Close(), e.Wake(t.Context(), id, yes)); err != nil {
		t.Fatal(err)
	}
	p.stands(id, temporal.Done)
	p.changedOnce([]string{"", "step"})
	if heard := p.heard(id)[before:]; !slices.Equal(heard, []string{temporal.ApproveUpdate}) {
		t.Errorf("the workflow has heard of %q", heard)
	}
}

// heard names the updates that a workflow has taken.
func (p *place) heard(id string) (names []string) {
	p.t.Helper()
	for _, e := range p.history(id).Events {
		if u := e.GetWorkflowExecutionUpdateAcceptedEventAttributes(); u != nil {
			names = append(names, u.AcceptedRequest.GetInput().GetName())
		}
	}
	return names
}

// TestCancelled checks that a session that is cancelled in the middle of a call stops in order, and is supervised no
// longer.
func TestCancelled(t *testing.T) {
	p := newPlace(t, calls("look", "step"))
	id := p.begins()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.reached("look0", 0)
	if err := p.client.Cancel(t.Context(), id, event.Cancelled{By: "test", All: true}); err != nil {
		t.Fatal(err)
	}
	p.until("its supervision ends", func() bool {
		d, err := p.client.Describe(t.Context(), id)
		return err == nil && !d.Supervised
	})
	stops := p.kinds(id, func(b event.Body) bool { s, is := b.(event.Stopped); return is && s.Reason == event.ReasonCancelled })
	if stops != 1 || slices.ContainsFunc(p.ledger(), func(line string) bool { return strings.HasPrefix(line, "step") }) {
		t.Errorf("it stopped %d times; the ledger: %q", stops, p.ledger())
	}
	_, err := p.client.Describe(t.Context(), "nobody")
	if _, none := errors.AsType[*serviceerror.NotFound](err); !none {
		t.Errorf("an unknown session: %v", err)
	}
}

// TestLongTurn has one call take longer than a worker may be silent. The engine hears of the call, and the
// turn is one.
func TestLongTurn(t *testing.T) {
	p := newPlace(t, calls("look"))
	p.client.Heartbeat = 10 * time.Second
	id := p.begins()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.reached("look0", 0)
	var seq uint64 // that the call has begun with
	for e, err := range store.Events(t.Context(), p.store, id) {
		if err != nil {
			t.Fatal(err)
		}
		seq = e.Seq
	}
	p.until("progress", func() bool {
		d, err := p.client.Describe(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return d.Progress.Seq >= seq || p.kinds(id, claim) > 1
	})
	p.opens(0)
	p.stands(id, temporal.Done)
	if diff := cmp.Diff(p.undisturbed(), bodies(t, p.store, id)); diff != "" || p.kinds(id, claim) != 1 {
		t.Errorf("%d claims; the log (-undisturbed +this):\n%s", p.kinds(id, claim), diff)
	}
}

// TestServerAway kills the Temporal server in the middle of a turn and restarts it. The turn continues meanwhile, and
// there is only one.
func TestServerAway(t *testing.T) {
	names := slices.Repeat([]string{"step", "look"}, 4)
	p := newPlace(t, calls(names...))
	p.client.Heartbeat *= 10 // it is longer than the server is away
	id := p.begins()
	p.worker()
	p.worker()
	if err := p.client.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.reached("look1", 0)
	engine.kill()
	for n := 1; n < 6; n += 2 {
		p.opens(n)
		p.reached(fmt.Sprint("look", n+2), 0)
	}
	if err := engine.start(); err != nil {
		t.Fatal(err)
	}
	p.opens(7)
	p.stands(id, temporal.Done)
	if got := p.kinds(id, claim); got != 1 {
		t.Errorf("%d claims", got)
	}
	if diff := cmp.Diff(p.undisturbed(), bodies(t, p.store, id)); diff != "" {
		t.Errorf("the log (-undisturbed +this):\n%s", diff)
	}
	p.changedOnce(names)
}
