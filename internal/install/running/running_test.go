package running_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

func newTable(t *testing.T) *running.Table {
	t.Helper()
	state := t.TempDir()
	set := &config.Installation{StateDir: state}
	return &running.Table{Installation: set, Sessions: &session.Store{Dir: set.SessionsDir()}}
}

// past is a session without a driver.
func past(t *testing.T, r *running.Table, bodies ...event.Body) string {
	t.Helper()
	log := held(t, r, bodies...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return log.ID()
}

// held is the log of a session that this test drives.
func held(t *testing.T, r *running.Table, bodies ...event.Body) store.Log {
	t.Helper()
	log, err := r.Sessions.Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), log, bodies...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func TestNext(t *testing.T) {
	stopped := func(r event.Reason) inspan.Status {
		return inspan.Status{Session: "s", Stopped: &event.Stopped{Reason: r}}
	}
	if got, err := (running.Order{Text: "More."}).Next(stopped(event.ReasonDone), "resume"); err != nil || len(got) != 1 ||
		got[0].(event.Said).Parts.Text() != "More." {
		t.Errorf("a new task: %+v, %v", got, err)
	}
	if got, err := (running.Order{}).Next(stopped(event.ReasonDone), "resume"); !misused(err) ||
		!strings.Contains(err.Error(), "inspan resume s") || got != nil {
		t.Errorf("done: %+v, %v", got, err)
	}
	if got, err := (running.Order{}).Next(stopped(event.ReasonCancelled), "resume"); err != nil ||
		len(got) != 1 || len(got[0].(event.Said).Parts) != 0 {
		t.Errorf("interrupted: %+v, %v", got, err)
	}
	if got, err := (running.Order{}).Next(inspan.Status{}, "resume"); err != nil || got != nil {
		t.Errorf("broken off: %+v, %v", got, err)
	}
}

// TestNamed tells an id from a task.
func TestNamed(t *testing.T) {
	r := newTable(t)
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	if id, err := r.LastHere(t.Context()); !misused(err) || !strings.Contains(err.Error(), here) {
		t.Errorf("nothing has run here: %q, %v", id, err)
	}
	elsewhere := past(t, r, event.Opened{Format: 1, Root: "/elsewhere"}, event.Say("hello"))
	if _, err := r.Named(t.Context(), nil); !misused(err) {
		t.Errorf("got %v", err)
	}
	mine := past(t, r, event.Opened{Format: 1, Root: here}, event.Say("hello"))
	past(t, r, event.Opened{Format: 1, Root: here}) // no one has said anything there
	for _, c := range []struct {
		args     []string
		id, task string
	}{
		{nil, mine, ""},
		{[]string{elsewhere}, elsewhere, ""},
		{[]string{"fix the bug"}, mine, "fix the bug"},
		{[]string{elsewhere, "fix"}, elsewhere, "fix"},
		{[]string{"last"}, mine, ""},
		{[]string{"last", "fix"}, mine, "fix"},
	} {
		if o, err := r.Named(t.Context(), c.args); err != nil || o.ID != c.id || o.Text != c.task {
			t.Errorf("%q: %q, %q, %v, want %q, %q", c.args, o.ID, o.Text, err, c.id, c.task)
		}
	}
	if o, err := r.Named(t.Context(), []string{"bugfix"}); err == nil || !strings.Contains(err.Error(), `inspan resume last "bugfix"`) {
		t.Errorf("one word is no task: %q, %q, %v", o.ID, o.Text, err)
	}
}

// TestLastIsOfThisFolder checks that "last" changes no session of another folder, that looking at one works, and that a
// driven one is not removed.
func TestLastIsOfThisFolder(t *testing.T) {
	r := newTable(t)
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	elsewhere := past(t, r, event.Opened{Format: 1, Root: "/elsewhere"}, event.Say("hello"))
	if id, err := r.Here(t.Context(), "last"); !misused(err) {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := r.Seen(t.Context(), "last"); id != elsewhere || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	mine := past(t, r, event.Opened{Format: 1, Root: here}, event.Say("hello"))
	elsewhere = past(t, r, event.Opened{Format: 1, Root: "/elsewhere"}, event.Say("later"))
	for _, of := range []func(context.Context, string) (string, error){r.Here, r.Seen} {
		if id, err := of(t.Context(), "last"); id != mine || err != nil {
			t.Errorf("%q, %v", id, err)
		}
		if id, err := of(t.Context(), elsewhere); id != elsewhere || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	}
	driven := held(t, r, event.Opened{Format: 1, Root: here}, event.Say("Work."))
	if err := r.Remove(t.Context(), driven.ID(), false); err == nil || !strings.Contains(err.Error(), "join it: inspan attach "+driven.ID()) {
		t.Error(err)
	}
	if err := r.Remove(t.Context(), mine, false); err != nil {
		t.Error(err)
	}
}

// TestList checks the entries for driven sessions and their children.
func TestList(t *testing.T) {
	r := newTable(t)
	if list, err := r.List(t.Context()); err != nil || list == nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	over := past(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("over"))
	works := held(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("Work.\nWell."))
	titled := held(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("Ask."), event.Titled{Title: "Questions"},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "c", Name: "bash", Args: []byte(`{}`)}}, Stop: llm.StopCalls},
		event.Judged{Call: "c", Action: tool.Ask}, event.Waiting{Call: "c"})
	list, err := r.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for id, want := range map[string]running.Driven{
		works.ID():  {State: running.StateRunning, What: "Work.\nWell.", Root: "/w"},
		titled.ID(): {State: running.StateWaiting, What: "Questions", Root: "/w"},
	} {
		i := slices.IndexFunc(list, func(d running.Driven) bool { return d.ID == id })
		if i < 0 {
			t.Errorf("%s is not told of: %+v", id, list)
			continue
		}
		got := list[i]
		if got.State != want.State || got.What != want.What || got.Root != want.Root || got.PID != os.Getpid() || got.Parent != "" {
			t.Errorf("%+v, want %+v", got, want)
		}
		if one, err := r.Driven(t.Context(), id); err != nil || one == nil || !reflect.DeepEqual(*one, got) {
			t.Errorf("alone: %+v, %v, want %+v", one, err, got)
		}
	}
	if one, err := r.Driven(t.Context(), over); err != nil || one != nil {
		t.Errorf("nobody drives it: %+v, %v", one, err)
	}
	if list[0].ID > list[1].ID {
		t.Error("the order is not that of the ids")
	}
}

// TestDriver finds who drives a session, even by way of the one that it works for.
func TestDriver(t *testing.T) {
	r := newTable(t)
	log := held(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("Work."))
	for _, id := range []string{log.ID(), log.ID() + ".1", log.ID() + ".1.2"} {
		if h, err := r.Driver(t.Context(), id); err != nil || h == nil || h.Session != log.ID() || h.PID != os.Getpid() {
			t.Errorf("%s: %+v, %v", id, h, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err := r.Driver(t.Context(), log.ID()); h != nil || err != nil {
		t.Errorf("nobody drives it: %+v, %v", h, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Driver(gone, log.ID()); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// TestStop interrupts a run, and says how it stopped.
func TestStop(t *testing.T) {
	r := newTable(t)
	idle := past(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("over"))
	if what, err := r.Stop(t.Context(), idle, false, time.Minute); !strings.HasPrefix(what, "no process runs it") || err != nil {
		t.Errorf("%q, %v", what, err)
	}
	log := held(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("Work."))
	stopped := make(chan error, 1)
	go func() { stopped <- stopWhenTold(t.Context(), log) }()
	if what, err := r.Stop(t.Context(), log.ID(), false, time.Minute); what != "cancelled" || err != nil {
		t.Errorf("%q, %v", what, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// stopWhenTold is a driver that stops on request.
func stopWhenTold(ctx context.Context, log store.Log) error {
	seen := uint64(0)
	for {
		for e, err := range log.Read(ctx, seen) {
			if err != nil {
				return err
			}
			seen = e.Seq
			if b, ok := e.Body.(event.Cancelled); ok {
				if b.By != "inspan stop" || !b.All {
					return errors.New("somebody else has cancelled it")
				}
				_, err := harnesstest.Write(ctx, log, event.Stopped{Reason: event.ReasonCancelled})
				return err
			}
		}
		if err := log.Wait(ctx, seen); err != nil {
			return err
		}
	}
}

// TestStopOfChild checks that the process of a child, which has others, is not ended.
func TestStopOfChild(t *testing.T) {
	r := newTable(t)
	log := held(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("Work."))
	child, _, err := r.Sessions.Child(t.Context(), log.ID(), "kid")
	if err == nil {
		err = child.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), child, event.Opened{Format: 1, Root: "/w", Parent: log.ID()}, event.Say("Help."))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Close() })
	what, err := r.Stop(t.Context(), child.ID(), true, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "has not stopped within 1ms") || !strings.Contains(err.Error(), "inspan stop ") {
		t.Errorf("%q, %v", what, err)
	}
}

func TestMayKeep(t *testing.T) {
	for rule, want := range map[string]bool{"keep": true, "keep(make serve)": true, "keeper": false, "bash(keep)": false, "": false} {
		if got := running.MayKeep([]inspan.Rule{{Action: tool.Deny, Text: "keep"}, {Action: tool.Allow, Text: rule}}); got != want {
			t.Errorf("%q: %v, want %v", rule, got, want)
		}
	}
	if running.MayKeep(nil) || running.MayKeep([]inspan.Rule{{Action: tool.Ask, Text: "keep"}}) {
		t.Error("no rule allows it")
	}
}

func TestNoKeep(t *testing.T) {
	r := newTable(t)
	if why := r.NoKeep(""); why == "" {
		t.Error("something is kept without a program that keeps it")
	}
	r.Self = "/proc/self/exe"
	if why := r.NoKeep("image"); why == "" {
		t.Error("a container outlives its session")
	}
	r.Config.Sandbox.Container = "image"
	if why := r.NoKeep(""); why == "" {
		t.Error("a container of the settings outlives its session")
	}
	r.Config.Leftovers = config.LeftoversEnd
	if why := r.NoKeep(""); !strings.Contains(why, "leftovers") {
		t.Errorf("%q", why)
	}
}

// TestShells checks that a shell is found while its session is open, and that its world is closed once, after it.
func TestShells(t *testing.T) {
	r := newTable(t)
	one := r.NewShell("s", "why", nil)
	if r.Shell("s") != one || r.Shell("s.1") != nil || r.Shell("") != nil || one.NoKeep != "why" || !slices.Contains(one.Protected, "main") {
		t.Errorf("%+v", one)
	}
	two := r.NewShell("s", "", nil) // the session is opened again
	ended := 0
	end := func() error { ended++; return errors.New("late") }
	if err := r.Drop("s", one, end); err == nil || ended != 1 || r.Shell("s") != two {
		t.Errorf("dropping the first took the second: %v, ended %d times", err, ended)
	}
	if err := r.Drop("s", two, end); err == nil || ended != 2 || r.Shell("s") != nil {
		t.Errorf("%v, ended %d times", err, ended)
	}
	r.Config.Protected = []string{}
	if shell := r.NewShell("s", "", nil); len(shell.Protected) != 0 {
		t.Errorf("the settings protect nothing: %q", shell.Protected)
	}
}

// TestServices has files of kept processes, none of which runs: damaged or unknown ones are left alone, and nothing is
// listed.
func TestServices(t *testing.T) {
	r := newTable(t)
	if list, err := r.Services(); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	dir := filepath.Join(r.StateDir, "kept")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"1-x.json": `{"session":"s","command":"serve","pid":999999999,"mark":"none"}`,
		"2-x.json": `{broken`, "3-x.json": ``,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := r.Services(); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.WithServices([]running.Driven{{ID: "a"}}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if ended, err := r.EndServices(t.Context(), "s"); err != nil || len(ended) != 0 {
		t.Errorf("%+v, %v", ended, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "2-x.json")); err != nil {
		t.Errorf("a file that nobody understands: %v", err)
	}
}

// misused reports whether an error is of who typed something.
func misused(err error) bool {
	_, ok := errors.AsType[words.Misuse](err)
	return ok
}
