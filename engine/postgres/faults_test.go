package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

func note(text string) event.Body { return event.Note{Topic: "test", Text: text} }

// text is the text that note or titled has written.
func text(b event.Body) string {
	switch b := b.(type) {
	case event.Note:
		return b.Text
	case event.Titled:
		return b.Title
	}
	return ""
}

// holds fails unless a log has each of these texts once and in this order, among others.
func holds(t *testing.T, l event.Log, acknowledged []string) {
	t.Helper()
	count, found := map[string]int{}, []string{}
	seq := uint64(0)
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("event %d has number %d", seq, e.Seq)
		}
		if text := text(e.Body); text != "" {
			if count[text]++; count[text] > 1 {
				t.Errorf("%q is stored %d times", text, count[text])
			}
			if slices.Contains(acknowledged, text) {
				found = append(found, text)
			}
		}
	}
	if !slices.Equal(found, acknowledged) {
		n := 0
		for n < min(len(found), len(acknowledged)) && found[n] == acknowledged[n] {
			n++
		}
		t.Errorf("%d events were acknowledged, and there are %d of them; from %d on they differ", len(acknowledged), len(found), n)
	}
}

// writer appends numbered events until its context ends, and tells of each that is acknowledged.
type writer struct {
	log   event.Log
	name  string
	as    event.Driver // epoch 0: inputs
	acked []string
}

func (w *writer) run(ctx context.Context, acked chan<- struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprint(w.name, " ", n)
		if err := w.append(context.WithoutCancel(ctx), text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		w.acked = append(w.acked, text)
		select {
		case acked <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return nil
}

func (w *writer) append(ctx context.Context, text string) error {
	if w.as.Epoch == 0 {
		_, err := w.log.Append(ctx, event.Titled{Title: text})
		return err
	}
	events, err := w.log.AppendAs(ctx, w.as, note(text))
	if err == nil {
		w.as.After = events[0].Seq
	}
	return err
}

// drive leases and claims a session.
func drive(t *testing.T, l store.Log, epoch, after uint64) event.Driver {
	t.Helper()
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := event.Claimed{Epoch: epoch, Writer: fmt.Sprint("w", epoch)}
	events, err := l.AppendAs(t.Context(), event.Driver{Epoch: epoch, After: after}, claim)
	if err != nil {
		t.Fatal(err)
	}
	return event.Driver{Epoch: epoch, After: events[0].Seq}
}

// TestRestarts crashes the server while drivers and others append.
func TestRestarts(t *testing.T) {
	c := fresh(t)
	own, err := testkit.Start("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	c.URL, c.Patience = own.URL("postgres"), time.Minute
	a, b := open(t, c), open(t, c)
	var writers []*writer
	var shared store.Log
	for i := range 4 {
		l, err := a.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, &writer{log: l, name: fmt.Sprint("driver ", i), as: drive(t, l, 1, 0)})
		shared = l
	}
	for i, s := range []*postgres.Store{a, b} {
		l, err := s.Create(t.Context())
		if i > 0 {
			l, err = s.Open(t.Context(), writers[len(writers)-1].log.(store.Log).ID())
		}
		if err != nil {
			t.Fatal(err)
		}
		shared = l
		writers = append(writers, &writer{log: l, name: fmt.Sprint("inputs ", i)})
	}
	writers = append(writers, &writer{log: shared, name: "more inputs"})
	ctx, stop := context.WithCancel(t.Context())
	acked := make(chan struct{})
	var group sync.WaitGroup
	for _, w := range writers {
		group.Go(func() {
			if err := w.run(ctx, acked); err != nil {
				t.Error(err)
				stop()
			}
		})
	}
	for range 3 {
		for range 300 {
			select {
			case <-acked:
			case <-ctx.Done():
			}
		}
		if err := errors.Join(own.Down("immediate"), own.Up()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	group.Wait()
	for _, w := range writers {
		holds(t, w.log, w.acked)
	}
}

// TestMain calls it in a process of its own.
const asDriver = "INSPAN_TEST_DRIVER"

// driver is a process that drives a session until it loses the lease, and writes down the acknowledged events.
func driver(url, schema, id string) error {
	s, err := postgres.Open(context.Background(), postgres.Config{URL: url, Schema: schema, Lease: shortLease})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	l, err := s.Open(context.Background(), id)
	if err != nil {
		return err
	}
	if err := l.Lease(context.Background()); err != nil {
		return err
	}
	as := event.Driver{Epoch: 1}
	bodies := []event.Body{event.Claimed{Epoch: 1, Writer: "process"}, note("first 0")}
	for n := 1; ; n++ {
		events, err := l.AppendAs(context.Background(), as, bodies...)
		if err != nil {
			fmt.Println(err)
			return nil
		}
		fmt.Println(text(bodies[len(bodies)-1]))
		as.After, bodies = events[len(events)-1].Seq, []event.Body{note(fmt.Sprint("first ", n))}
	}
}

const shortLease = 1500 * time.Millisecond

// TestStopped stops a process that drives for longer than its lease. Another takes the session over,
// and the first stores nothing more.
func TestStopped(t *testing.T) {
	c := fresh(t)
	c.Lease = shortLease
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asDriver+"="+strings.Join([]string{c.URL, c.Schema, l.ID()}, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	var first []string
	for range 20 {
		if !said.Scan() {
			t.Fatal("the process ended")
		}
		first = append(first, said.Text())
	}
	if err := l.Lease(t.Context()); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("a second lease beside a process that drives: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	takeOver(t, l)
	t.Logf("taken over after %v with a lease of %v", time.Since(began), shortLease)
	second := writer{log: l, name: "second", as: claimed(t, l, 2)}
	for n := range 20 {
		if err := second.append(t.Context(), fmt.Sprint("second ", n)); err != nil {
			t.Fatal(err)
		}
		if n == 10 {
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		second.acked = append(second.acked, fmt.Sprint("second ", n))
	}
	for said.Scan() {
		first = append(first, said.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	last := len(first) - 1
	if !strings.Contains(first[last], event.ErrFenced.Error()) {
		t.Errorf("the first ended with %q", first[last])
	}
	holds(t, l, append(first[:last], second.acked...))
	behind := false
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		claim, is := e.Body.(event.Claimed)
		behind = behind || is && claim.Epoch == 2
		if behind && strings.HasPrefix(text(e.Body), "first") {
			t.Errorf("%q stands behind the claim of the second", text(e.Body))
		}
	}
}

// takeOver leases a session as soon as the lease of another ends.
func takeOver(t *testing.T, l store.Log) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		err := l.Lease(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrBusy) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// claimed claims a session after all that it holds.
func claimed(t *testing.T, l store.Log, epoch uint64) event.Driver {
	t.Helper()
	events, err := harnesstest.Write(t.Context(), l, event.Claimed{Epoch: epoch, Writer: fmt.Sprint("w", epoch)})
	if err != nil {
		t.Fatal(err)
	}
	return event.Driver{Epoch: epoch, After: events[0].Seq}
}

// TestSkewedClock has two clients whose clocks stand still in the year 2000. The lease of the first ends by the
// database's clock, and all times are right.
func TestSkewedClock(t *testing.T) {
	c := fresh(t)
	c.Lease = shortLease
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		if time.Since(real) > -24*time.Hour {
			t.Fatal("the clock is not skewed")
		}
		ctx := context.Background()
		a, err1 := postgres.Open(ctx, c)
		b, err2 := postgres.Open(ctx, c)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		}()
		l, err := a.Create(ctx)
		if err != nil {
			t.Fatal(err)
		}
		as := drive(t, l, 1, 0)
		other, err := b.Open(ctx, l.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Lease(ctx); !errors.Is(err, store.ErrBusy) {
			t.Errorf("a second lease at once: %v", err)
		}
		for err = store.ErrBusy; errors.Is(err, store.ErrBusy); { // the real clock goes on
			err = other.Lease(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.AppendAs(ctx, as, note("late")); !errors.Is(err, event.ErrFenced) {
			t.Errorf("the driver that lost its lease: %v, want ErrFenced", err)
		}
		for e, err := range l.Read(ctx, 0) {
			if err != nil || e.Time.Before(real.Add(-time.Minute)) || !strings.HasPrefix(l.ID(), real.UTC().Format("200601")) {
				t.Errorf("session %s, event at %v, %v", l.ID(), e.Time, err)
			}
		}
	})
}
