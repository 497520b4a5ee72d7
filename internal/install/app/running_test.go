package app_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/testkit"
)

// begun is a session whose run has ended or waits.
func begun(t *testing.T, a *app.App, task string) *inspan.Session {
	t.Helper()
	s, err := a.Host(app.Options{Model: "script", Mode: "ask"}, func(string) {}).New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	runs(t, s, event.Say(task))
	return s
}

func runs(t *testing.T, s *inspan.Session, inputs ...event.Body) {
	t.Helper()
	for _, err := range s.Run(t.Context(), inputs...) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRunning lists a session while it is driven, says who drives it, and stops it.
func TestRunning(t *testing.T) {
	a := load(t, "")
	if list, err := a.Running.List(t.Context()); err != nil || list == nil || len(list) != 0 {
		t.Fatalf("nothing runs: %#v, %v", list, err)
	}
	s := begun(t, a, "bash: touch made")
	if h, err := a.Running.Driver(t.Context(), s.ID()); h != nil || err != nil {
		t.Errorf("nobody drives it: %+v, %v", h, err)
	}
	if what, err := a.Running.Stop(t.Context(), s.ID(), true, time.Minute); !strings.HasPrefix(what, "no process runs it") || err != nil {
		t.Errorf("%q, %v", what, err)
	}
	ended := make(chan error, 1)
	go func() {
		err := s.Await(t.Context())
		for _, failed := range s.Run(t.Context()) {
			err = failed
		}
		ended <- err
	}()
	list := listed(t, a)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	since := list[0].Since
	list[0].Since = time.Time{}
	host, _ := os.Hostname()
	want := running.Driven{ID: s.ID(), PID: os.Getpid(), Host: host, State: running.StateWaiting, What: "bash: touch made", Root: s.Status().Root}
	want.Open = []running.Open{{ID: "call_s0_0", Asks: `it would run "touch made"`}}
	if !reflect.DeepEqual(list[0], want) || time.Since(since) > time.Minute {
		t.Errorf("%+v, want %+v, since %v", list[0], want, since)
	}
	for _, id := range []string{s.ID(), s.ID() + ".kid"} {
		if h, err := a.Running.Driver(t.Context(), id); err != nil || h == nil || h.PID != os.Getpid() {
			t.Errorf("who drives %s: %+v, %v", id, h, err)
		}
	}
	if what, err := a.Running.Stop(t.Context(), s.ID(), false, time.Minute); what != "cancelled" || err != nil {
		t.Errorf("%q, %v", what, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// listed waits until a session appears as driven.
func listed(t *testing.T, a *app.App) (list []running.Driven) {
	t.Helper()
	testkit.WaitFor(t, "something to run", func() bool {
		var err error
		if list, err = a.Running.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(list) > 0
	})
	return list
}

// TestRunLog makes the file of a detached process and moves it to its session.
func TestRunLog(t *testing.T) {
	a := load(t, "")
	f, err := a.Running.NewRunLog()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := begun(t, a, "say: hello")
	out := &running.Printed{File: f}
	if _, err := out.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if err := a.Running.KeepRunLog(f.Name(), s.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte(strings.Repeat("a line\n", 1<<19))); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(a.Store().Dir + "/" + s.ID() + "/" + running.RunLog)
	if err != nil || int64(len(raw)) != out.Size() || !strings.HasPrefix(string(raw), "(earlier output was dropped)\n") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if _, err := os.Stat(f.Name()); err == nil {
		t.Error("it is still where it was")
	}
}
