package event_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
)

func TestUnderstood(t *testing.T) {
	for _, c := range []struct {
		body event.Body
		ok   bool
	}{
		{event.Opened{Format: event.Format}, true},
		{event.Opened{}, true}, // of a version that did not say
		{event.Opened{Format: event.Format + 1}, false},
		{event.Unknown{Name: "later"}, true},
		{event.Unknown{Name: "later", Must: true}, false},
		{event.Said{}, true},
	} {
		if err := event.Understood(event.Event{Seq: 7, Body: c.body}); (err == nil) != c.ok || err != nil && !errors.Is(err, event.ErrTooNew) {
			t.Errorf("%+v: %v", c.body, err)
		}
	}
}

// TestAdmit checks which appends of a driver a log takes, at epoch 2 with 5 events.
func TestAdmit(t *testing.T) {
	note, claim := event.Note{}, func(epoch uint64) event.Body { return event.Claimed{Epoch: epoch} }
	const lost = "" // of an error that has no name
	for _, c := range []struct {
		what   string
		driver event.Driver
		bodies []event.Body
		want   any
	}{
		{"as it should be", event.Driver{Epoch: 2, After: 5}, []event.Body{note}, nil},
		{"nothing at all", event.Driver{Epoch: 2, After: 5}, nil, nil},
		{"a new claim", event.Driver{Epoch: 3, After: 5}, []event.Body{claim(3), note}, nil},
		{"a claim that skips some", event.Driver{Epoch: 9, After: 5}, []event.Body{claim(9)}, nil},
		{"an old driver", event.Driver{Epoch: 1, After: 5}, []event.Body{note}, event.ErrFenced},
		{"a driver without a claim", event.Driver{Epoch: 3, After: 5}, []event.Body{note}, event.ErrFenced},
		{"nobody", event.Driver{After: 5}, []event.Body{note}, event.ErrFenced},
		{"a claim again", event.Driver{Epoch: 2, After: 5}, []event.Body{claim(2)}, event.ErrFenced},
		{"an old claim", event.Driver{Epoch: 1, After: 5}, []event.Body{claim(1)}, event.ErrFenced},
		{"a claim of another epoch", event.Driver{Epoch: 3, After: 5}, []event.Body{claim(4)}, event.ErrFenced},
		{"a late claim", event.Driver{Epoch: 3, After: 5}, []event.Body{note, claim(3)}, lost},
		{"two claims", event.Driver{Epoch: 3, After: 5}, []event.Body{claim(3), claim(3)}, lost},
		{"who has not seen all", event.Driver{Epoch: 2, After: 4}, []event.Body{note}, event.ErrGrown},
		{"who has seen more", event.Driver{Epoch: 2, After: 6}, []event.Body{note}, lost},
		{"fenced goes before grown", event.Driver{Epoch: 1, After: 4}, []event.Body{note}, event.ErrFenced},
	} {
		err := c.driver.Admit(2, 5, c.bodies)
		want, named := c.want.(error)
		switch {
		case c.want == lost && (err == nil || errors.Is(err, event.ErrFenced) || errors.Is(err, event.ErrGrown)):
			t.Errorf("%s: %v", c.what, err)
		case (named || c.want == nil) && !errors.Is(err, want):
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestStorable(t *testing.T) {
	for _, c := range []struct {
		body          event.Body
		any, ofDriver bool
	}{
		{event.Said{}, true, true},
		{event.Decided{}, true, true},
		{event.Note{}, false, true},
		{event.Claimed{}, false, true},
		{event.Delta{}, false, false},
		{event.Progress{}, false, false},
		{nil, false, false},
	} {
		if err := event.Storable([]event.Body{event.Said{}, c.body}, false); (err == nil) != c.any {
			t.Errorf("%T by anybody: %v", c.body, err)
		}
		if err := event.Storable([]event.Body{event.Said{}, c.body}, true); (err == nil) != c.ofDriver {
			t.Errorf("%T by the driver: %v", c.body, err)
		}
	}
}

func TestLevers(t *testing.T) {
	for _, c := range []struct {
		l           event.Lever
		alone, with bool // active unattended, and with a person
		strength    int
	}{
		{"", false, false, 9},
		{"default", false, false, 9},
		{"off", false, false, 9},
		{"on", true, true, 9},
		{"unattended", true, false, 9},
		{"5", true, true, 5},
		{"0", false, false, 9},
		{"-5", false, false, 9},
		{"5.5", false, false, 9},
		{"99999999999999999999", false, false, 9},
	} {
		if c.l.Active(true) != c.alone || c.l.Active(false) != c.with || c.l.Strength(9) != c.strength {
			t.Errorf("%q: %v, %v, %d", c.l, c.l.Active(true), c.l.Active(false), c.l.Strength(9))
		}
	}
	usual := event.Levers{}.Stated()
	if usual != usual.Stated() || usual.Check() != nil || !usual.Deferred.Active(false) || usual.Verify.Active(false) {
		t.Errorf("%+v, %v", usual, usual.Check())
	}
	given := event.Levers{Repeats: "7", Bootstrap: "on", Names: "off", Jobs: "default"}.Stated()
	// Switching on a lever that has a strength gives it the usual one.
	if given.Repeats != "7" || given.Bootstrap != usual.Bootstrap ||
		given.Names != "off" || given.Jobs != usual.Jobs || given.Verify != usual.Verify {
		t.Errorf("%+v", given)
	}
}

// TestDecisionIsForItsQuestion checks that an answer to one question does not answer another.
func TestDecisionIsForItsQuestion(t *testing.T) {
	for _, c := range []struct {
		d    event.Decided
		want bool
	}{
		{event.Decided{Call: "c", Question: 7}, true},
		{event.Decided{Call: "c"}, true}, // of a version that did not say
		{event.Decided{Call: "c", Question: 6}, false},
		{event.Decided{Call: "d", Question: 7}, false},
	} {
		if got := c.d.On("c", 7); got != c.want {
			t.Errorf("%+v: %v", c.d, got)
		}
	}
}

// TestMemoryWait checks that every waiter gets its event, whenever it comes.
func TestMemoryWait(t *testing.T) {
	m := event.NewMemory("s")
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := m.Wait(late, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing has come: %v", err)
	}
	there := make(chan error)
	for after := range uint64(3) {
		go func() { there <- m.Wait(t.Context(), after) }()
	}
	for range 3 {
		if _, err := m.Append(t.Context(), event.Say("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-there; err != nil {
			t.Error(err)
		}
	}
	for e, err := range m.Read(t.Context(), 1<<63) {
		t.Errorf("behind the end: %+v, %v", e, err)
	}
}

// TestDecisionIsForItsSet checks which other questions of a set a decision covers.
func TestDecisionIsForItsSet(t *testing.T) {
	set := event.Decided{Call: "p/1", Question: 7, Allow: true, Also: []uint64{8, 9}}
	lasting, denied, none := set, set, set
	lasting.Scope, denied.Allow, denied.Scope, none.Also = event.ScopeSession, false, event.ScopeSession, nil
	for _, c := range []struct {
		what       string
		d          event.Decided
		id, parent string
		question   uint64
		want       bool
	}{
		{"its own", set, "p/1", "p", 7, true},
		{"one of the set", set, "p/2", "p", 8, true},
		{"another question", set, "p/2", "p", 10, false},
		{"another parent", set, "q/2", "q", 8, false},
		{"a call within one of the same parent", set, "p/2/1", "p/2", 8, false},
		{"a call of the model", set, "p/2", "", 8, false},
		{"what claims the same parent", set, "q/2", "p", 8, false},
		{"its own for longer", lasting, "p/1", "p", 7, true},
		{"one of a set for longer", lasting, "p/2", "p", 8, false},
		{"one of a set that is denied", denied, "p/2", "p", 8, true},
		{"no set", none, "p/2", "p", 8, false},
	} {
		if got := c.d.OnCall(c.id, c.parent, c.question); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
