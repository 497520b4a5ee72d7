package harnesstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/inspan/inspan/event"
)

// Duties of a log to drivers: of two, the later claim wins; it stores nothing for a driver that has not seen
// all events; and an append whose answer was lost can be repeated.

// claimed is the claim of the log by a driver with this epoch.
func claimed(epoch uint64, writer string) event.Body {
	return event.Claimed{Epoch: epoch, By: "test", Writer: writer}
}

// logAs appends as a driver.
func logAs(t *testing.T, l event.Log, epoch, after uint64, bodies ...event.Body) []event.Event {
	t.Helper()
	events, err := l.AppendAs(t.Context(), event.Driver{Epoch: epoch, After: after}, bodies...)
	if err != nil {
		t.Fatalf("AppendAs epoch %d after %d: %v", epoch, after, err)
	}
	return events
}

// logRefuses fails unless an append of a driver fails with want, any error if that is nil, and stores nothing.
func logRefuses(t *testing.T, l event.Log, want error, epoch, after uint64, bodies ...event.Body) {
	t.Helper()
	before := len(logRead(t, l, 0))
	_, err := l.AppendAs(t.Context(), event.Driver{Epoch: epoch, After: after}, bodies...)
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("AppendAs epoch %d after %d: %v, want %v", epoch, after, err, want)
	}
	if n := len(logRead(t, l, 0)); n != before {
		t.Errorf("%d events were stored of an append that failed", n-before)
	}
}

func note(text string) event.Body { return event.Note{Topic: "test", Text: text} }

func logInputsOnly(t *testing.T, _ Logs, l event.Log) {
	if _, err := l.Append(t.Context(), logSay(1), note("x")); !errors.Is(err, event.ErrNotDriver) {
		t.Errorf("Append of what only a driver may: %v, want ErrNotDriver", err)
	}
	if n := len(logRead(t, l, 0)); n != 0 {
		t.Errorf("%d events were stored", n)
	}
	logAs(t, l, 0, 0, note("before the first claim"), logSay(1))
}

func logClaims(t *testing.T, _ Logs, l event.Log) {
	logRefuses(t, l, event.ErrFenced, 1, 0, note("without a claim"))
	logRefuses(t, l, nil, 1, 0, note("late"), claimed(1, "a"))
	logAs(t, l, 1, 0, claimed(1, "a"), note("x"))
	logRefuses(t, l, event.ErrFenced, 1, 2, claimed(1, "b"))
	logRefuses(t, l, event.ErrFenced, 0, 2, note("of nobody"))
	logRefuses(t, l, event.ErrFenced, 2, 2, claimed(3, "b"))
	logAs(t, l, 7, 2, claimed(7, "b"))
	logRefuses(t, l, event.ErrFenced, 1, 3, note("of the first"))
	logRefuses(t, l, event.ErrFenced, 2, 3, claimed(2, "c"))
	logAs(t, l, 7, 3, note("y"))
}

func logExpects(t *testing.T, _ Logs, l event.Log) {
	logAs(t, l, 1, 0, claimed(1, "a"))
	logAppend(t, l, logSay(1)) // the driver has not seen it
	logRefuses(t, l, event.ErrGrown, 1, 1, note("x"), note("y"))
	logRefuses(t, l, nil, 1, 3, note("of events that are not there"))
	if got := logAs(t, l, 1, 2, note("x"), note("y")); got[0].Seq != 3 || got[1].Seq != 4 {
		t.Errorf("stored as %d and %d, want 3 and 4", got[0].Seq, got[1].Seq)
	}
}

// logFence takes the lease away from an active driver.
func logFence(t *testing.T, logs Logs, a event.Log) {
	b := logs.again(t, a)
	logAs(t, a, 1, 0, claimed(1, "a"), event.Started{Call: "c"})
	logLose(t, logs, a, b)
	logAs(t, b, 2, 2, claimed(2, "b"), event.Stopped{Reason: event.ReasonDone})
	logRefuses(t, a, event.ErrFenced, 1, 2, event.Ended{Call: "c", Outcome: event.OutcomeOK})
	logRefuses(t, a, event.ErrFenced, 1, 4, event.Ended{Call: "c", Outcome: event.OutcomeOK})
	if got := logAppend(t, a, logSay(1)); got[0].Seq != 5 {
		t.Errorf("an input of whoever drives no more is number %d, want 5", got[0].Seq)
	}
	logAs(t, b, 2, 5, note("goes on"))
}

// logLose gives the lease of a to b, without a's knowledge.
func logLose(t *testing.T, logs Logs, a, b event.Log) {
	t.Helper()
	other, ok := b.(event.Leaser)
	if !ok {
		return
	}
	if err := other.Lease(t.Context()); err == nil {
		t.Fatal("a second lease was given")
	}
	logs.LoseLease(t, a)
	if err := other.Lease(t.Context()); err != nil {
		t.Fatalf("lease of what nobody holds: %v", err)
	}
}

func logLease(t *testing.T, logs Logs, a event.Log) {
	mine, ok := a.(event.Leaser)
	if !ok {
		t.Skip("not an event.Leaser")
	}
	b := logs.again(t, a)
	theirs, _ := b.(event.Leaser)
	if err := errors.Join(mine.Lease(t.Context())); err != nil {
		t.Errorf("a lease that is held: %v", err)
	}
	if err := theirs.Lease(t.Context()); err == nil {
		t.Error("a second lease was given")
	}
	logRefuses(t, b, event.ErrNotDriver, 0, 0, note("without the lease"))
	if err := errors.Join(mine.Release(), mine.Release()); err != nil {
		t.Error(err)
	}
	logRefuses(t, a, event.ErrNotDriver, 0, 0, note("after the release"))
	if err := theirs.Lease(t.Context()); err != nil {
		t.Errorf("lease of what was released: %v", err)
	}
	logAs(t, b, 1, 0, claimed(1, "b"))
}

// logTwoWriters lets a driver write until another has claimed, with inputs from both sides: everything
// acknowledged is stored once, and nothing of the first is behind the claim of the second.
func logTwoWriters(t *testing.T, logs Logs, a event.Log) {
	b := logs.again(t, a)
	logAs(t, a, 1, 0, claimed(1, "a"))
	logLose(t, logs, a, b)
	var stored [3][]string // by the two drivers, and inputs
	var group sync.WaitGroup
	drive := func(l event.Log, i int, epoch uint64, after uint64, claim ...event.Body) {
		group.Go(func() {
			for n := range 50 {
				text := fmt.Sprint(i, " ", n)
				err := record(t.Context(), l, epoch, &after, append(claim[:len(claim):len(claim)], note(text))...)
				if errors.Is(err, event.ErrFenced) && epoch == 1 {
					return
				}
				if err != nil {
					t.Errorf("driver %d: %v", i, err)
					return
				}
				stored[i], claim = append(stored[i], text), nil
			}
		})
	}
	drive(a, 0, 1, 1)
	drive(b, 1, 2, 1, claimed(2, "b"))
	group.Go(func() {
		for n := range 50 {
			text := fmt.Sprint("input ", n)
			if _, err := a.Append(t.Context(), event.Titled{Title: text}); err != nil {
				t.Errorf("input: %v", err)
			}
			stored[2] = append(stored[2], text)
		}
	})
	group.Wait()
	logHolds(t, a, stored)
}

// record appends like a driver whose events are valid whatever came meanwhile.
func record(ctx context.Context, l event.Log, epoch uint64, after *uint64, bodies ...event.Body) error {
	for {
		events, err := l.AppendAs(ctx, event.Driver{Epoch: epoch, After: *after}, bodies...)
		if err == nil {
			*after = events[len(events)-1].Seq
			return nil
		}
		if !errors.Is(err, event.ErrGrown) {
			return err
		}
		for e, err := range l.Read(ctx, *after) {
			if err != nil {
				return err
			}
			*after = e.Seq
		}
	}
}

// logHolds fails unless a log has the events of two drivers and others, each in order and once, and nothing of
// the first behind the claim of the second.
func logHolds(t *testing.T, l event.Log, stored [3][]string) {
	t.Helper()
	var found [3][]string
	second := false
	for i, e := range logRead(t, l, 0) {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		switch b := e.Body.(type) {
		case event.Claimed:
			second = b.Epoch == 2
		case event.Titled:
			found[2] = append(found[2], b.Title)
		case event.Note:
			i := int(b.Text[0] - '0')
			if found[i] = append(found[i], b.Text); i == 0 && second {
				t.Errorf("event %d is of the first driver, and stands behind the claim of the second", e.Seq)
			}
		}
	}
	for i := range stored {
		if fmt.Sprint(found[i]) != fmt.Sprint(stored[i]) {
			t.Errorf("writer %d: the log holds %v, acknowledged were %v", i, found[i], stored[i])
		}
	}
}

// logAmbiguous repeats appends whose answer was lost.
func logAmbiguous(t *testing.T, logs Logs, a event.Log) {
	repeat := func(l event.Log, epoch, after uint64, bodies ...event.Body) {
		t.Helper()
		before := logRead(t, l, after)
		got := logAs(t, l, epoch, after, bodies...)
		logSame(t, got, before[:len(bodies)])
		logSame(t, logRead(t, l, after), before)
	}
	logAs(t, a, 1, 0, claimed(1, "a"), note("x"))
	repeat(a, 1, 0, claimed(1, "a"), note("x"))
	logRefuses(t, a, event.ErrFenced, 1, 0, claimed(1, "b"), note("x"))
	logAs(t, a, 1, 2, note("y"))
	logAppend(t, a, logSay(1))
	repeat(a, 1, 2, note("y"))
	logRefuses(t, a, event.ErrGrown, 1, 2, note("y"), note("z"))
	logRefuses(t, a, event.ErrGrown, 1, 3, note("y"))
	b := logs.again(t, a)
	logLose(t, logs, a, b)
	logAs(t, b, 2, 4, claimed(2, "b"))
	repeat(a, 1, 2, note("y")) // it was stored, whichever driver is active
	logRefuses(t, a, event.ErrFenced, 1, 5, note("y"))
	logAs(t, b, 2, 5, note("y"))
	logRefuses(t, a, event.ErrFenced, 1, 5, note("y")) // that is the other's
}

// logFull fills the storage.
func logFull(t *testing.T, logs Logs, l event.Log) {
	if logs.FillStorage == nil {
		t.Skip("its storage can't be filled")
	}
	logAs(t, l, 1, 0, claimed(1, "a"), note("x"))
	want := logRead(t, l, 0)
	empty := logs.FillStorage(t, l)
	if _, err := l.Append(t.Context(), logSay(1)); err == nil {
		t.Error("an input was stored where nothing can be")
	}
	logRefuses(t, l, nil, 1, 2, event.Ended{Call: "c", Outcome: event.OutcomeOK})
	logSame(t, logRead(t, l, 0), want)
	empty()
	logAs(t, l, 1, 2, event.Ended{Call: "c", Outcome: event.OutcomeOK})
	if got := logAppend(t, l, logSay(1)); got[0].Seq != 4 {
		t.Errorf("the first input that fits again has number %d, want 4", got[0].Seq)
	}
}

// logReplaced replaces an open log by another.
func logReplaced(t *testing.T, logs Logs, l event.Log) {
	if logs.Replace == nil {
		t.Skip("it can't be replaced")
	}
	logAs(t, l, 1, 0, claimed(1, "a"), note("x"))
	logs.Replace(t, l)
	if got, err := l.Append(t.Context(), logSay(1)); err == nil {
		t.Errorf("an input was acknowledged that nobody will find: %v", got)
	}
	if got, err := l.AppendAs(t.Context(), event.Driver{Epoch: 1, After: 2}, note("y")); err == nil {
		t.Errorf("an append of a driver was acknowledged that nobody will find: %v", got)
	}
}
