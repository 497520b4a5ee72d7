package journeys_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func outside(t *testing.T, host *inspan.Host) *inspan.Watch {
	t.Helper()
	w, err := (&inspan.Host{Dir: host.Dir}).Watch(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// seen reads on until a run stops.
func seen(t *testing.T, w *inspan.Watch, after uint64) (events []event.Event) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	for e, err := range w.Events(ctx, after) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); w.Status().Seq < e.Seq {
			t.Fatalf("the status is of event %d at event %d", w.Status().Seq, e.Seq)
		}
		if _, stopped := e.Body.(event.Stopped); stopped {
			return events
		}
	}
	t.Fatal("the run does not stop")
	return nil
}

// TestWatch follows a session from outside, answers its question, and sees its end.
func TestWatch(t *testing.T) {
	host, s := asking(t, &ledger{})
	w, late := outside(t, host), outside(t, host)
	asked := s.Status()
	if diff := cmp.Diff(asked, w.Status()); diff != "" || w.ID() != s.ID() {
		t.Fatalf("the status differs:\n%s", diff)
	}
	if asked.Task != "go" || asked.Asking || !asked.Active {
		t.Errorf("%+v", asked)
	}
	if err := w.Send(t.Context(), event.Stopped{Reason: event.ReasonDone}); err == nil || !strings.Contains(err.Error(), "is not an input") {
		t.Errorf("what is no input was sent: %v", err)
	}
	if err := w.Send(t.Context(), event.Decided{Call: asked.Waiting[0].Call.ID, Allow: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s)
	first := seen(t, w, w.RunStart())
	if len(bodiesOf[event.Said](first)) != 1 || len(bodiesOf[event.Opened](first)) != 0 ||
		len(bodiesOf[event.Decided](first)) != 1 || first[0].Seq != w.RunStart()+1 {
		t.Errorf("the run: %+v", first)
	}
	if diff := cmp.Diff(s.Status(), w.Status()); diff != "" {
		t.Errorf("the status differs at the end:\n%s", diff)
	}
	if got := seen(t, late, first[len(first)-2].Seq); len(got) != 1 {
		t.Errorf("of the last event: %+v", got)
	}
	if diff := cmp.Diff(s.Status(), late.Status()); diff != "" {
		t.Errorf("what was not asked for is missing in the status:\n%s", diff)
	}
	drivenTo(t, s, said("more"))
	again := outside(t, host)
	if run := seen(t, again, again.RunStart()); run[0].Seq <= first[len(first)-1].Seq || len(bodiesOf[event.Said](run)) != 1 {
		t.Errorf("the last run: %+v", run)
	}
	if all := seen(t, again, 0); len(bodiesOf[event.Opened](all)) != 1 || again.Status().Turns != 3 {
		t.Errorf("from the beginning: %+v", all)
	}
}

func TestWatchOfNothing(t *testing.T) {
	if _, err := (&inspan.Host{Dir: t.TempDir()}).Watch(t.Context(), "heron"); err == nil {
		t.Error("there is no such session")
	}
	host, _ := asking(t, &ledger{})
	w := outside(t, host)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for e, err := range w.Events(ctx, 0) {
		t.Errorf("after the end: %v, %v", e, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	failed := false
	for _, err := range w.Events(t.Context(), 0) {
		failed = err != nil
	}
	if !failed {
		t.Error("a closed log has no end")
	}
}

// TestAwait checks which events continue a waiting run.
func TestAwait(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout time.Duration
		sent    []event.Body
		waits   time.Duration // at most an hour, when it is called off
	}{
		"an answer":              {0, []event.Body{event.Decided{Call: "call", Allow: true}}, 0},
		"an interrupt":           {0, []event.Body{event.Cancelled{}}, 0},
		"words":                  {0, []event.Body{event.Steered{Origin: event.OriginPerson, Parts: llm.Say("hm")}}, time.Hour},
		"the answer to another":  {0, []event.Body{event.Decided{Call: "other", Allow: true}}, time.Hour},
		"nobody answers in time": {time.Minute, nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				a := &inspan.Agent{
					Model: scripted(t, `call: note {"word":"a"}`, "Done."),
					Tools: []tool.Tool{l.writer()}, Approvals: inspan.Approvals{Timeout: tc.timeout}, Env: tool.Env{Root: "/w"},
				}
				s := open(t, a, event.NewMemory("s"))
				drivenTo(t, s, said("go"))
				began := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				ended := make(chan error)
				go func() { ended <- s.Await(ctx) }()
				synctest.Wait()
				for _, err := range s.Run(t.Context()) {
					if !errors.Is(err, inspan.ErrBusy) {
						t.Errorf("a run while it waits: %v", err)
					}
				}
				for _, body := range tc.sent {
					if d, ok := body.(event.Decided); ok && d.Call == "call" {
						d.Call = s.Status().Waiting[0].Call.ID
						body = d
					}
					send(t, s, body)
				}
				err := <-ended
				if waited := time.Since(began); waited != tc.waits || (err != nil) != (waited == time.Hour) {
					t.Errorf("waited %v: %v", waited, err)
				}
			})
		})
	}
}

// TestAwaitDrives checks that a session that waits is seen to be driven, until it no longer does.
func TestAwaitDrives(t *testing.T) {
	host, s := asking(t, &ledger{})
	store := &session.Store{Dir: host.Dir}
	ended := make(chan error, 1)
	go func() { ended <- s.Await(t.Context()) }()
	testkit.WaitFor(t, "somebody to drive it", func() bool {
		h, err := store.Holder(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		return h != nil
	})
	if err := outside(t, host).Send(t.Context(), event.Cancelled{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if h, err := store.Holder(t.Context(), s.ID()); h != nil || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
}

// A patient caller polls more often than a person would notice, whatever the given time.
func TestPatience(t *testing.T) {
	down := make([]answer, 20)
	for i := range down {
		down[i] = fails(llm.KindOverloaded, time.Second)
	}
	for _, tc := range []struct {
		patient  bool
		requests int
		reason   event.Reason
	}{{true, 21, event.ReasonDone}, {false, 8, event.ReasonFailed}} {
		synctest.Test(t, func(t *testing.T) {
			v := &vendor{answers: down}
			a := inspan.Agent{Model: v, Limits: inspan.Limits{RetryLong: tc.patient, Retry: 15 * time.Minute}}
			got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go")))
			if got.Reason != tc.reason || len(v.requests) != tc.requests {
				t.Errorf("patient %v: %d requests, stopped %+v", tc.patient, len(v.requests), got)
			}
		})
	}
}
