package running_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// rewindable is a session with a past in a workspace.
type rewindable struct {
	*running.Rewinds
	root string
	log  store.Log
}

func newRewindable(t *testing.T) rewindable {
	t.Helper()
	state, root := t.TempDir(), t.TempDir()
	p := rewindable{root: root, Rewinds: &running.Rewinds{
		Installation: &config.Installation{StateDir: state},
		Sessions:     &session.Store{Dir: filepath.Join(state, "sessions")},
		Places:       func(root string) places.Map { return places.Map{Root: root, Home: "/home/none"}.Indexed() },
	}}
	log, err := p.Sessions.Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	p.log = log
	p.write(t, event.Opened{Format: 1, Root: root})
	return p
}

// write appends, and returns the number of the last event.
func (p rewindable) write(t *testing.T, bodies ...event.Body) uint64 {
	t.Helper()
	events, err := harnesstest.Write(t.Context(), p.log, bodies...)
	if err != nil {
		t.Fatal(err)
	}
	return events[len(events)-1].Seq
}

func (p rewindable) say(t *testing.T, text string) uint64 {
	t.Helper()
	return p.write(t, event.Say(text))
}

// put writes a file of the workspace.
func (p rewindable) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// has fails unless a file of the workspace contains a text; "" means that there must be no file.
func (p rewindable) has(t *testing.T, name, want string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.root, name))
	if string(raw) != want || (err != nil) != (want == "") {
		t.Errorf("%s holds %q, %v, want %q", name, raw, err, want)
	}
}

// works takes checkpoints around the changes of a call.
func (p rewindable) works(t *testing.T, do func()) {
	t.Helper()
	take, err := p.Checkpointing(t.Context(), p.root, func(s string) { t.Error(s) })
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []bool{false, true} {
		if after {
			do()
		}
		c, err := take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.After = after
		p.write(t, c)
	}
}

func texts(points []running.Point) (out []string) {
	for _, p := range points {
		out = append(out, p.Text)
	}
	return out
}

// TestPoints checks that a rewound message is not a target, until that rewind is itself undone.
func TestPoints(t *testing.T) {
	p := newRewindable(t)
	points := func(want ...string) {
		t.Helper()
		got, err := p.Points(t.Context(), p.log.ID())
		if diff := cmp.Diff(want, texts(got)); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	points()
	p.say(t, "one")
	two := p.say(t, "two")
	p.write(t, event.Said{}) // goes on, and says nothing
	three := p.say(t, "three")
	points("one", "two", "three")
	p.write(t, event.Rewound{To: two - 1, Of: three})
	points("one")
	p.say(t, "four")
	points("one", "four")
	p.write(t, event.Rewound{To: three})
	points("one", "two", "three")
	p.write(t, event.Rewound{})
	points()
}

// TestForgedRewind has logs that none of our programs writes: one rewinds to itself, one to a later event.
func TestForgedRewind(t *testing.T) {
	for name, ahead := range map[string]uint64{"itself": 1, "later": 100} {
		p := newRewindable(t)
		last := p.say(t, "one")
		p.write(t, event.Rewound{To: last + ahead})
		got, err := p.Points(t.Context(), p.log.ID())
		if diff := cmp.Diff([]string{"one"}, texts(got)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestBackAndRedo puts files back, and takes that back.
func TestBackAndRedo(t *testing.T) {
	p := newRewindable(t)
	p.put(t, "changed", "before\n")
	p.put(t, "gone", "before\n")
	said := p.say(t, "Work.")
	p.works(t, func() {
		p.put(t, "changed", "after\n")
		p.put(t, "sub/made", "after\n")
		if err := os.Remove(filepath.Join(p.root, "gone")); err != nil {
			t.Fatal(err)
		}
	})
	p.put(t, "mine", "by the person\n")
	changed, err := p.Changed(t.Context(), p.log.ID(), p.root)
	if diff := cmp.Diff([]running.FileBack{
		{Path: "changed", What: "changed"}, {Path: "gone", What: "deleted"}, {Path: "sub", What: "created"}, {Path: "sub/made", What: "created"},
	}, changed); err != nil || diff != "" {
		t.Error(err, diff)
	}
	way, err := p.To(t.Context(), p.status(), "last", true, true)
	if err != nil {
		t.Fatal(err)
	}
	p.has(t, "changed", "after\n") // nothing has happened so far
	if way.To != said-1 {
		t.Errorf("the conversation returns to %d, want %d", way.To, said-1)
	}
	lines := strings.Join(way.Lines(false), "\n")
	for _, want := range []string{
		"changed gets its content back", "gone comes back",
		"sub/made is removed, because the agent created it", "the conversation returns to",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	done, err := way.Restore(false)(t.Context(), nil)
	if err != nil || done == nil || len(done.Files) < 3 || done.Kept != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"sub", "sub/made"}, done.Removed); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"changed": "before\n", "gone": "before\n", "sub/made": "", "mine": "by the person\n"} {
		p.has(t, name, want)
	}
	p.write(t, *done)
	if changed, err := p.Changed(t.Context(), p.log.ID(), p.root); err != nil || len(changed) > 0 {
		t.Error(err, changed)
	}
	redo, err := p.To(t.Context(), p.status(), "", true, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := redo.Restore(false)(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"changed": "after\n", "gone": "", "sub/made": "after\n", "mine": "by the person\n"} {
		p.has(t, name, want)
	}
}

func (p rewindable) status() inspan.Status {
	st := inspan.Status{Session: p.log.ID(), Root: p.root}
	for e, err := range p.log.Read(context.Background(), 0) {
		if err == nil {
			st.Seq = e.Seq
		}
	}
	return st
}

// TestBackKeepsWhatOthersChanged checks that a file that someone else has changed since stays, unless the rewind is
// forced.
func TestBackKeepsWhatOthersChanged(t *testing.T) {
	p := newRewindable(t)
	p.put(t, "a", "before\n")
	p.say(t, "Work.")
	p.works(t, func() { p.put(t, "a", "agent\n") })
	p.put(t, "a", "person\n")
	way, err := p.To(t.Context(), p.status(), "last", true, false)
	if err != nil || len(way.Plan.Kept) != 1 || way.To != 0 || !strings.Contains(way.Lines(false)[0], "a stays: ") {
		t.Fatalf("%+v, %v", way, err)
	}
	if done, err := way.Restore(false)(t.Context(), nil); done != nil || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
	p.has(t, "a", "person\n")
	if !strings.Contains(way.Lines(true)[0], "is overwritten") {
		t.Errorf("%q", way.Lines(true))
	}
	if done, err := way.Restore(true)(t.Context(), nil); done == nil || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
	p.has(t, "a", "before\n")
}

// TestSensitiveFilesStay checks that no checkpoint has a key, and that no rewind brings one back.
func TestSensitiveFilesStay(t *testing.T) {
	p := newRewindable(t)
	p.put(t, "node_modules/x/index.js", "before\n")
	p.put(t, ".git/hooks/pre-commit", "before\n")
	p.put(t, "a", "before\n")
	p.say(t, "Work.")
	p.works(t, func() {
		for _, name := range []string{"node_modules/x/index.js", ".git/hooks/pre-commit", "a"} {
			p.put(t, name, "after\n")
		}
	})
	way, err := p.To(t.Context(), p.status(), "last", true, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := way.Restore(true)(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.has(t, "a", "before\n")
	p.has(t, "node_modules/x/index.js", "after\n")
	p.has(t, ".git/hooks/pre-commit", "after\n")
}

// TestCrashBetweenCheckpoints checks that changes are undone even if a crash has prevented their second checkpoint.
func TestCrashBetweenCheckpoints(t *testing.T) {
	p := newRewindable(t)
	p.put(t, "a", "before\n")
	p.say(t, "Work.")
	take, err := p.Checkpointing(t.Context(), p.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, c)
	p.put(t, "a", "after\n")
	way, err := p.To(t.Context(), p.status(), "last", true, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := way.Restore(false)(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.has(t, "a", "before\n")
}

func TestNoWay(t *testing.T) {
	p := newRewindable(t)
	to := func(named string, files, conversation bool) (*running.Way, error) {
		return p.To(t.Context(), p.status(), named, files, conversation)
	}
	if _, err := to("last", true, true); !misused(err) {
		t.Errorf("nothing was said: %v", err)
	}
	if _, err := to("", true, true); err == nil || misused(err) {
		t.Errorf("nothing was rewound: %v", err)
	}
	said := p.say(t, "one")
	for _, named := range []string{"0", "1", "-1", "first", "999", "2.5", " 3", "18446744073709551616"} {
		if way, err := to(named, false, true); !misused(err) {
			t.Errorf("%q is %+v, %v", named, way, err)
		}
	}
	if _, err := to("last", true, false); err == nil {
		t.Error("files go back, and nothing was changed")
	}
	way, err := to("last", true, true)
	if err != nil || way.To != said-1 {
		t.Fatalf("the conversation alone: %+v, %v", way, err)
	}
	if lines := way.Lines(false); len(lines) != 2 || lines[0] != "no file changes" {
		t.Errorf("%q", lines)
	}
	if done, err := way.Restore(true)(t.Context(), nil); done != nil || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
	p.Config.Checkpoints.Off = true
	if _, err := to("last", true, true); err == nil || !strings.Contains(err.Error(), "checkpoints are off") {
		t.Errorf("got %v", err)
	}
	if take, err := p.Checkpointing(t.Context(), p.root, nil); take != nil || err != nil {
		t.Errorf("checkpoints that are off: %v", err)
	}
	if _, err := p.Points(t.Context(), "20990101-000000-none"); err == nil {
		t.Error("a session that is not there has points")
	}
}

// TestHomeIsNoProject checks that no checkpoints are kept of a folder that the home folder is in.
func TestHomeIsNoProject(t *testing.T) {
	p := newRewindable(t)
	t.Setenv("HOME", p.root)
	if take, err := p.Checkpointing(t.Context(), p.root, nil); take != nil || err != nil {
		t.Errorf("a checkpoint of the home folder: %v", err)
	}
}

// TestRedoEnds checks that a conversation which has gone on is not taken back, and its files are.
func TestRedoEnds(t *testing.T) {
	p := newRewindable(t)
	one := p.say(t, "one")
	p.write(t, event.Rewound{To: one - 1, Of: one})
	if way, err := p.Redo(t.Context(), p.log.ID(), p.root); err != nil || way.To != one {
		t.Errorf("%+v, %v", way, err)
	}
	p.say(t, "two")
	if way, err := p.Redo(t.Context(), p.log.ID(), p.root); err == nil {
		t.Errorf("%+v", way)
	}
}

func TestLasting(t *testing.T) {
	p := newRewindable(t)
	in := func(name string) string { return filepath.Join(p.root, name) }
	call := func(id string, outcome event.Outcome, effects ...tool.Effect) {
		t.Helper()
		p.write(t, event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: "bash"}}},
			event.Judged{Call: id, Action: tool.Allow, Effects: effects}, event.Started{Call: id})
		if outcome != "" {
			p.write(t, event.Ended{Call: id, Outcome: outcome})
		}
	}
	call("inside", event.OutcomeOK, tool.Effect{Kind: tool.Write, Path: in("a")}, tool.Effect{Kind: tool.Read, Path: "/etc/hosts"})
	call("own", event.OutcomeOK, tool.Effect{Kind: tool.Write, Path: "/tmp/x", Temporary: true})
	call("outside", event.OutcomeOK, tool.Effect{Kind: tool.Write, Path: "/etc/x"}, tool.Effect{Kind: tool.Write, Path: "/etc/x"})
	call("net", event.OutcomeFailed,
		tool.Effect{Kind: tool.Execute, Text: "curl x"}, tool.Effect{Kind: tool.Network, Text: "example.com"},
		tool.Effect{Kind: tool.Execute, Text: "make"}, tool.Effect{Kind: tool.Network, Text: "*"})
	call("secret", event.OutcomeOK, tool.Effect{Kind: tool.Read, Path: in(".env"), Sensitive: "holds keys"},
		tool.Effect{Kind: tool.Write, Path: in(".env"), Sensitive: "holds keys"})
	call("any", "", tool.Effect{Kind: tool.External}, tool.Effect{Kind: tool.External, Text: "send mail"})
	// A call that was judged and has not begun has done nothing.
	p.write(t, event.Replied{Parts: llm.Parts{llm.Call{ID: "denied", Name: "bash"}}},
		event.Judged{Call: "denied", Action: tool.Deny, Effects: []tool.Effect{{Kind: tool.External}}}, event.Ended{
			Call:    "denied",
			Outcome: event.OutcomeDenied,
		})
	p.write(t, event.Finished{Job: "1", Kept: true, Command: "serve", PID: 42}, event.Finished{Job: "2"})
	list, err := p.Lasting(t.Context(), p.log.ID())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	keys := map[string]bool{}
	for _, l := range list {
		got = append(got, l.Outcome+": "+strings.Join(l.Effects, "; "))
		if l.Outcome != "kept" && (l.Key == "" || keys[l.Key]) || l.Tool != "bash" || l.Seq == 0 {
			t.Errorf("%+v", l)
		}
		keys[l.Key] = true
	}
	want := []string{
		"ok: wrote /tmp/x, which the end of the session may have copied to the machine",
		"ok: changed /etc/x",
		"failed: curl x: talked to example.com; make: could reach any host",
		"ok: read " + in(".env") + ", which holds keys; changed " + in(".env") + ", which holds keys",
		": could do anything; was to send mail",
		"kept: serve: continues after the session, in process 42",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := p.Lasting(t.Context(), p.log.ID())
	if diff := cmp.Diff(list, again); diff != "" || err != nil {
		t.Errorf("the keys change: %v\n%s", err, diff)
	}
}

// TestBackTellsOfBackgroundWork checks that a rewind and the list of effects name changes by background agents since,
// with the agent whose rewind undoes them, and no earlier changes and none for a waiting call.
func TestBackTellsOfBackgroundWork(t *testing.T) {
	p := newRewindable(t)
	agent := func(name string, background bool, root string) rewindable {
		t.Helper()
		child := p
		log, _, err := p.Sessions.Child(t.Context(), p.log.ID(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		if err := log.Lease(t.Context()); err != nil {
			t.Fatal(err)
		}
		child.log = log
		child.write(t, event.Opened{Format: 1, Root: p.root, Parent: p.log.ID(), Agent: "worker"})
		p.write(t, event.Spawned{Child: log.ID(), Agent: "worker", Background: background, Root: root})
		return child
	}
	works := func(child rewindable, name string) {
		t.Helper()
		child.works(t, func() { child.put(t, name, "x") })
		p.write(t, event.Returned{Child: child.log.ID(), Reason: event.ReasonDone})
	}
	p.say(t, "first")
	works(agent("early", true, ""), "early")
	p.say(t, "second")
	late := agent("late", true, "")
	works(late, "late")
	works(agent("awaited", false, ""), "awaited")
	works(agent("apart", true, "/elsewhere"), "apart")
	way, err := p.To(t.Context(), p.status(), "last", true, true)
	if err != nil {
		t.Fatal(err)
	}
	id := late.log.ID()
	want := "late stays: agent " + id + " changed it in the background; 'inspan rewind " + id + "' takes that back"
	if lines := strings.Join(way.Lines(true), "\n"); !strings.HasPrefix(lines, want+"\nthe conversation returns to event ") {
		t.Errorf("%s", lines)
	}
	if _, err := p.To(t.Context(), p.status(), "last", true, false); !errors.Is(err, running.ErrNothingToRewind) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	list, err := p.Lasting(t.Context(), p.log.ID())
	if err != nil || len(list) != 2 || list[1].Agent != id || list[1].Outcome != "background" ||
		strings.Join(list[1].Effects, "; ") != "changed late in the workspace; 'inspan rewind "+id+"' takes that back" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestParked opens a session that needs no model, and can be looked at.
func TestParked(t *testing.T) {
	p := newRewindable(t)
	p.say(t, "one")
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := p.Parked(t.Context(), p.log.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if st := s.Status(); st.Session != p.log.ID() || st.Root != p.root {
		t.Errorf("%+v", st)
	}
	if _, err := p.Parked(t.Context(), "none"); err == nil {
		t.Error("a session that is not there was opened")
	}
}

// TestBackTellsWhatLiesApart checks that a rewind names the files that calls have written outside the workspace,
// even in an additional folder, because these are in no checkpoint and stay.
func TestBackTellsWhatLiesApart(t *testing.T) {
	p := newRewindable(t)
	beside := filepath.Join(t.TempDir(), "made")
	p.say(t, "Work.")
	p.works(t, func() { p.put(t, "made", "x") })
	p.write(t, event.Ended{Call: "c", Outcome: event.OutcomeOK, Parts: llm.Say("x"), Files: []tool.File{
		{Path: beside, Digest: tool.Digest([]byte("x")), Written: true}, {Path: filepath.Join(p.root, "made"), Written: true}, {Path: "/etc/hosts", Digest: "read"},
	}})
	way, err := p.To(t.Context(), p.status(), "last", true, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		want := "made is removed, because the agent created it\n" + beside + " stays: it is outside the workspace, and checkpoints cover only the workspace\n"
		if lines := strings.Join(way.Lines(force), "\n"); !strings.HasPrefix(lines, want+"the conversation returns to event ") {
			t.Errorf("%s", lines)
		}
	}
}
