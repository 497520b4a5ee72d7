package server

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// slowLog is a log on a disk that takes its time.
type slowLog struct {
	store.Log
	writes, goOn chan struct{}
}

func (l slowLog) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	l.writes <- struct{}{}
	<-l.goOn
	return l.Log.Append(ctx, bodies...)
}

// tornLog is a log whose disk fails once, after the data was already written.
type tornLog struct {
	store.Log
	fails *bool
}

func (l tornLog) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	events, err := l.Log.Append(ctx, bodies...)
	if *l.fails {
		*l.fails = false
		return nil, errors.Join(err, syscall.EIO)
	}
	return events, err
}

// TestBookTakesInWhatWasWritten checks that a change is based on the whole log, including events whose write reported
// an error: a client that repeats its request has one task.
func TestBookTakesInWhatWasWritten(t *testing.T) {
	books, fails := &session.Store{Dir: t.TempDir()}, true
	ledger, err := newLedger(t.Context(), func(ctx context.Context) (store.Log, error) {
		log, err := books.Book(ctx, "test")
		return tornLog{log, &fails}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ledger.Close() }()
	var told error
	ledger.faulty = func(err error) { told = err }
	b := newBook(ledger, nil)
	submit := func() error {
		return b.change(t.Context(), func() ([]event.Body, error) {
			if _, again := b.sent[sender{"me", "key"}]; again {
				return nil, nil
			}
			return []event.Body{event.Recorded{Of: ofTask, ID: newID("task_"), By: "me", Key: "key", Value: json.RawMessage(`{}`)}}, nil
		})
	}
	if err := submit(); !errors.Is(err, syscall.EIO) || !errors.Is(told, syscall.EIO) {
		t.Fatalf("a write that fails: %v, and the server is told: %v", err, told)
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	if err := b.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(b.tasks); n != 1 {
		t.Errorf("the same request has made %d tasks", n)
	}
}

// TestBookIsReadWhileItIsWritten checks that readers of the book do not wait for the disk.
func TestBookIsReadWhileItIsWritten(t *testing.T) {
	log, err := (&session.Store{Dir: t.TempDir()}).Book(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	l := slowLog{log, make(chan struct{}), make(chan struct{})}
	ledger, err := newLedger(t.Context(), func(context.Context) (store.Log, error) { return l, nil })
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(ledger, nil)
	changed := make(chan error)
	go func() {
		changed <- b.change(t.Context(), func() ([]event.Body, error) {
			return []event.Body{
				event.Recorded{Of: ofTask, ID: "task_a", Value: json.RawMessage(`{}`)},
				event.Staged{Task: "task_a", Stage: StageSubmitted},
			}, nil
		})
	}()
	<-l.writes
	read := make(chan int)
	go func() {
		_, known := b.task("task_a")
		n := len(b.open()) + len(b.list("", 10, func(*Task) bool { return true }))
		if known {
			n++
		}
		read <- n
	}()
	select {
	case n := <-read:
		if n != 0 {
			t.Errorf("the book has %d of what is not written yet", n)
		}
	case <-time.After(testkit.Patience):
		t.Error("a reader waits for the disk")
	}
	close(l.goOn)
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if got, known := b.task("task_a"); !known || got.Stage != StageSubmitted {
		t.Errorf("the book has %+v, %v", got, known)
	}
}
