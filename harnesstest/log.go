package harnesstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// logPatience is how long an operation on a log may take before it counts as
// stuck.
const logPatience = 3 * time.Minute

// Logs is an implementation of [event.Log], with ways to disturb its storage.
type Logs struct {
	// Open returns a new, empty log that accepts events of every kind: it holds the lease if it is an
	// [event.Leaser]. It registers its own cleanup with t.
	Open func(t *testing.T) event.Log
	// Reopen opens a log of Open once more, without the lease, as another process would. Nil means a log can only be
	// opened once.
	Reopen func(t *testing.T, l event.Log) event.Log
	// LoseLease makes another process believe that the lease of the log is free, which the log does not learn. Not
	// needed without [event.Leaser].
	LoseLease func(t *testing.T, l event.Log)
	// FillStorage makes the storage of the log full, until the returned function is called. Nil means not possible.
	FillStorage func(t *testing.T, l event.Log) (empty func())
	// Replace replaces the stored data of the log, as when a copy is restored. Nil means not possible.
	Replace func(t *testing.T, l event.Log)
}

func (logs Logs) again(t *testing.T, l event.Log) event.Log {
	if logs.Reopen == nil {
		return l
	}
	return logs.Reopen(t, l)
}

// TestLog proves that an implementation keeps the contract of [event.Log],
// and of [event.Waiter], [event.Starter] and [event.Leaser] if it has them.
func TestLog(t *testing.T, logs Logs) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Logs, event.Log)
	}{
		{"inputs only", logInputsOnly},
		{"claims", logClaims},
		{"expected event", logExpects},
		{"lease", logLease},
		{"fence", logFence},
		{"two writers", logTwoWriters},
		{"ambiguous append", logAmbiguous},
		{"full", logFull},
		{"replaced", logReplaced},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, logs, logs.Open(t)) })
	}
	checks := []struct {
		name string
		run  func(*testing.T, event.Log)
	}{
		{"empty", logEmpty},
		{"order and stamps", logOrder},
		{"read after", logReadAfter},
		{"read ends", logReadEnds},
		{"stop reading", logStopReading},
		{"cancelled", logCancelled},
		{"bad bodies", logBadBodies},
		{"every kind", logKinds},
		{"unknown kinds", logUnknown},
		{"concurrent appends", logConcurrent},
		{"wait", logWait},
		{"start", logStart},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, logs.Open(t)) })
	}
}

func logEmpty(t *testing.T, l event.Log) {
	if got := logRead(t, l, 0); len(got) != 0 {
		t.Errorf("a new log holds %d events", len(got))
	}
	if got, err := l.Append(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Append of nothing = %v, %v; want nothing", got, err)
	}
	if got := logRead(t, l, 0); len(got) != 0 {
		t.Errorf("Append of nothing stored %d events", len(got))
	}
}

func logOrder(t *testing.T, l event.Log) {
	before := time.Now().Truncate(time.Millisecond)
	var want []event.Event
	want = append(want, logAppend(t, l, logSay(1))...)
	want = append(want, logAppend(t, l, logSay(2), logSay(3), logSay(4))...)
	want = append(want, logAppend(t, l, logSay(5))...)
	for i, e := range want {
		if e.Seq != uint64(i)+1 {
			t.Errorf("event %d has sequence number %d", i+1, e.Seq)
		}
		if e.Session == "" || e.Session != want[0].Session {
			t.Errorf("event %d is of session %q, the first of %q", i+1, e.Session, want[0].Session)
		}
		if e.Time.Before(before) || e.Time.After(time.Now()) || !e.Time.Equal(e.Time.Truncate(time.Millisecond)) {
			t.Errorf("event %d has time %v", i+1, e.Time)
		}
		if !reflect.DeepEqual(e.Body, logSay(i+1)) {
			t.Errorf("event %d is %v", i+1, e.Body)
		}
	}
	logSame(t, logRead(t, l, 0), want)
}

func logReadAfter(t *testing.T, l event.Log) {
	var all []event.Event
	for i := range 20 {
		all = append(all, logAppend(t, l, logSay(i))...)
	}
	for after := range all {
		logSame(t, logRead(t, l, uint64(after)), all[after:])
	}
	for _, after := range []uint64{20, 21, 1 << 40} {
		logSame(t, logRead(t, l, after), nil)
	}
	logSame(t, logRead(t, l, 0), all) // a second time
}

func logReadEnds(t *testing.T, l event.Log) {
	logAppend(t, l, logSay(1), logSay(2))
	ctx, cancel := context.WithTimeout(t.Context(), logPatience)
	defer cancel()
	n := 0
	for _, err := range l.Read(ctx, 0) {
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		if n++; n < 100 { // a reader that writes must not deadlock, nor run forever
			logAppend(t, l, logSay(n))
		}
	}
	if n < 2 {
		t.Errorf("Read yielded %d events, want at least the 2 that were there", n)
	}
}

func logStopReading(t *testing.T, l event.Log) {
	logAppend(t, l, logSay(1), logSay(2), logSay(3))
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 2 {
			break
		}
	}
	if got := logAppend(t, l, logSay(4)); got[0].Seq != 4 {
		t.Errorf("event behind an unfinished read has number %d, want 4", got[0].Seq)
	}
}

func logCancelled(t *testing.T, l event.Log) {
	logAppend(t, l, logSay(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, logSay(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with an ended context: %v, want context.Canceled", err)
	}
	var errs []error
	for e, err := range l.Read(ctx, 0) {
		if err == nil {
			t.Errorf("Read with an ended context yielded event %d", e.Seq)
		}
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("Read with an ended context yielded errors %v, want context.Canceled once", errs)
	}
	if got := logRead(t, l, 0); len(got) != 1 {
		t.Errorf("the log holds %d events, want 1", len(got))
	}
}

func logBadBodies(t *testing.T, l event.Log) {
	if _, err := l.AppendAs(t.Context(), event.Driver{}, event.Delta{Text: "x"}); err == nil {
		t.Errorf("Append of a delta succeeded")
	}
	if _, err := l.Append(t.Context(), logSay(1), nil); err == nil {
		t.Errorf("Append of a nil body succeeded")
	}
	if got := logRead(t, l, 0); len(got) != 0 {
		t.Errorf("Append of a nil body stored %d events", len(got))
	}
	if got := logAppend(t, l, logSay(1)); got[0].Seq != 1 {
		t.Errorf("first event has number %d", got[0].Seq)
	}
}

func logKinds(t *testing.T, l event.Log) {
	bodies := logBodies()
	want := logAppend(t, l, bodies...)
	for i, e := range want {
		if !reflect.DeepEqual(e.Body, bodies[i]) {
			t.Errorf("Append returned %v for %v", e.Body, bodies[i])
		}
	}
	logSame(t, logRead(t, l, 0), want)
}

func logUnknown(t *testing.T, l event.Log) {
	raw := json.RawMessage(`{"b": 1, "a":[ 2e1,null ], "text":"<\u00e9>"}`)
	logAppend(t, l, event.Unknown{Name: "from the future", Raw: raw}, event.Unknown{Name: "to be understood", Raw: raw, Must: true})
	got := logRead(t, l, 0)
	if must, ok := got[1].Body.(event.Unknown); !ok || !must.Must || !errors.Is(event.Understood(got[1]), event.ErrTooNew) {
		t.Errorf("got %#v, want one that must be understood", got[1].Body)
	}
	u, ok := got[0].Body.(event.Unknown)
	if !ok || u.Name != "from the future" || string(u.Raw) != string(raw) {
		t.Errorf("got %#v, want the same name and bytes", got[0].Body)
	}
}

// logConcurrent appends several batches at once: each batch must stay together, no number may be missing or
// doubled, and readers must always see a prefix.
func logConcurrent(t *testing.T, l event.Log) {
	const writers, batches, size = 4, 10, 3
	ctx, stop := context.WithCancel(t.Context())
	var readers, group sync.WaitGroup
	readers.Go(func() {
		for ctx.Err() == nil {
			next := uint64(1)
			for e, err := range l.Read(ctx, 0) {
				if err != nil {
					break
				}
				if e.Seq != next {
					t.Errorf("a reader sees number %d, want %d", e.Seq, next)
				}
				next++
			}
		}
	})
	for w := range writers {
		group.Go(func() {
			for b := range batches {
				var bodies []event.Body
				for i := range size {
					bodies = append(bodies, event.Titled{Title: fmt.Sprintf("%d/%d/%d", w, b, i)})
				}
				if _, err := l.Append(t.Context(), bodies...); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	group.Wait()
	stop()
	readers.Wait()

	all := logRead(t, l, 0)
	if len(all) != writers*batches*size {
		t.Fatalf("the log holds %d events, want %d", len(all), writers*batches*size)
	}
	next := make(map[int]int) // number of the next batch, by writer
	for i, e := range all {
		var w, b, n int
		if _, err := fmt.Sscanf(e.Body.(event.Titled).Title, "%d/%d/%d", &w, &b, &n); err != nil {
			t.Fatal(err)
		}
		if e.Seq != uint64(i)+1 || n != i%size || b != next[w] {
			t.Fatalf("event %d, number %d, is part %d of batch %d of writer %d; want part %d of batch %d",
				i+1, e.Seq, n, b, w, i%size, next[w])
		}
		if n == size-1 {
			next[w]++
		}
	}
}

func logWait(t *testing.T, l event.Log) {
	w, ok := l.(event.Waiter)
	if !ok {
		t.Skip("not an event.Waiter")
	}
	logAppend(t, l, logSay(1), logSay(2))
	if err := w.Wait(t.Context(), 1); err != nil {
		t.Errorf("Wait for what is there: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Wait(ctx, 2) }()
	cancel()
	if err := logSoon(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: %v, want context.Canceled", err)
	}

	const waiters = 3
	woken := make(chan error, waiters)
	for range waiters {
		go func() { woken <- w.Wait(t.Context(), 3) }()
	}
	logAppend(t, l, logSay(3))
	logAppend(t, l, logSay(4))
	for range waiters {
		if err := logSoon(t, woken); err != nil {
			t.Errorf("Wait: %v", err)
		}
	}
	if got := logRead(t, l, 3); len(got) != 1 {
		t.Errorf("after Wait(3) there are %d events above 3, want 1", len(got))
	}
}

func logStart(t *testing.T, l event.Log) {
	s, ok := l.(event.Starter)
	if !ok {
		t.Skip("not an event.Starter")
	}
	check := func(want uint64) {
		t.Helper()
		got, err := s.Start(t.Context())
		if err != nil || got != want {
			t.Fatalf("Start = %d, %v; want %d", got, err, want)
		}
	}
	check(0)
	logAppend(t, l, logSay(1), logSay(2))
	check(0)
	for i, body := range []event.Body{
		event.Compacted{Of: 2, Snapshot: json.RawMessage(`{}`)},
		event.Rewound{Of: 4, Snapshot: json.RawMessage(`{}`)},
	} {
		want := uint64(2 + 2*i)
		logAppend(t, l, body, logSay(3))
		check(want)
		if e := logRead(t, l, want)[0]; e.Body.Kind() != body.Kind() {
			t.Errorf("the first event after Start is %s", e.Body.Kind())
		}
	}
}

func logSay(n int) event.Body {
	return event.Say(fmt.Sprintf("text %d with \"quotes\", <tags>, é and \u2028 a line\nbreak", n))
}

// logBodies returns one body of each stored kind.
func logBodies() []event.Body {
	return []event.Body{
		event.Claimed{Epoch: 1, By: "host:1", Writer: "w"},
		event.Opened{Format: 1, App: "test", Root: "/w"},
		event.Forked{From: "x", Seq: 3},
		event.Titled{Title: "title"},
		event.Pinned{On: true},
		event.Moved{Root: "/elsewhere"},
		logSay(1),
		event.Withdrawn{Of: 6},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Say("steer")},
		event.Decided{Call: "c1", Allow: true, By: "user"},
		event.Cancelled{By: "user"},
		event.Asked{Turn: 1, Route: "p/m"},
		event.Replied{
			Parts: llm.Parts{
				llm.Text{Text: "hello"},
				llm.Reasoning{Text: "hm", Opaque: json.RawMessage(`{"sig":"<a&b>"}`), Route: "p/m"},
				llm.Call{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"/a"}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 3, Output: 4}, Route: "p/m",
		},
		event.Failed{Cause: llm.KindOverloaded, Message: "busy", Retry: 1.5},
		event.Judged{Call: "c1", Action: "ask", By: "mode ask", Args: json.RawMessage(`{"path":"/b"}`)},
		event.Waiting{Call: "c1", Preview: "diff"},
		event.Started{Call: "c1"},
		event.Ended{Call: "c1", Outcome: event.OutcomeOK, Parts: llm.Say("done")},
		event.Added{Where: event.PlaceTail, Source: "test", Text: "more"},
		event.Switched{Route: "p/n", Limits: &event.Limits{Turns: 3}},
		event.Checkpoint{ID: "c1"},
		event.Workspace{Copy: "c", N: 1, Manifest: "m"},
		event.Restored{To: "c1", Before: "c2", After: "c3"},
		event.Rewound{To: 1, Snapshot: json.RawMessage(`{"x":2}`)},
		event.Compact{Focus: "x"},
		event.Compacted{Before: 10, After: 2, Snapshot: json.RawMessage(`{"x":1}`)},
		event.Hooked{Moment: "stop", Text: "t"},
		event.Pruned{Upto: 1, Why: loop.PruneWindow, Before: 2, After: 1},
		event.Kept{Why: loop.CompactWindow, Reason: "x"},
		event.Spawned{Child: "x.1", Call: "c1", Task: "look"},
		event.Raised{ID: "1/c1", Child: "x.1", Tool: "bash"},
		event.Returned{Child: "x.1", Reason: event.ReasonDone, Parts: llm.Say("found")},
		event.Tasked{Action: loop.TaskAdd, By: "x.1", Text: "look"},
		event.Recorded{Of: "task", ID: "1", Value: json.RawMessage(`{"prompt":"<a&b>"}`)},
		event.Staged{Task: "1", Stage: "queued"},
		event.Stopped{Reason: event.ReasonDone},
		event.Note{Topic: "test", Text: "note"},
	}
}

func logAppend(t *testing.T, l event.Log, bodies ...event.Body) []event.Event {
	t.Helper()
	events, err := Write(t.Context(), l, bodies...)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	if len(events) != len(bodies) {
		t.Fatalf("Append of %d bodies returned %d events", len(bodies), len(events))
	}
	return events
}

func logRead(t *testing.T, l event.Log, after uint64) []event.Event {
	t.Helper()
	var events []event.Event
	for e, err := range l.Read(t.Context(), after) {
		if err != nil {
			t.Fatalf("Read after %d: %v", after, err)
		}
		events = append(events, e)
	}
	return events
}

// logSame compares events by their encoded form.
func logSame(t *testing.T, got, want []event.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range got {
		g, err1 := event.Encode(got[i])
		w, err2 := event.Encode(want[i])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if string(g) != string(w) {
			t.Fatalf("event %d differs:\ngot  %s\nwant %s", i, g, w)
		}
	}
}

func logSoon(t *testing.T, errs <-chan error) error {
	t.Helper()
	select {
	case err := <-errs:
		return err
	case <-time.After(logPatience):
		t.Fatalf("nothing happened within %v", logPatience)
		return nil
	}
}
