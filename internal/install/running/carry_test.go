package running_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// fleet is machines with folders of their own. One at a time has its own at the path of the workspace.
type fleet struct {
	t     *testing.T
	store *session.Store
	root  string
	at    *machine
}

// machine is one of a fleet.
type machine struct {
	*fleet
	carriers *running.Carriers
	saved    string // where its workspace is while another machine is at work
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{t: t, store: &session.Store{Dir: filepath.Join(top, "sessions")}, root: filepath.Join(top, "work")}
}

func (f *fleet) machine() *machine {
	dir := f.t.TempDir()
	return &machine{f, &running.Carriers{Dir: filepath.Join(dir, "copies"), Sessions: f.store}, filepath.Join(dir, "saved")}
}

// here makes it the machine at work.
func (m *machine) here() {
	m.t.Helper()
	if m.at == m {
		return
	}
	if m.at != nil {
		if err := os.Rename(m.root, m.at.saved); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.t.Fatal(err)
		}
	}
	if err := os.Rename(m.saved, m.root); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	m.at = m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) files() (names []string) {
	m.t.Helper()
	list, err := os.ReadDir(m.root)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// host makes agents whose tool writes files into the workspace: after so many turns each line is a call.
func (m *machine) host(top bool, turns int, lines ...string) *inspan.Host {
	text := strings.Repeat("-- reply --\nDone.\n", turns)
	for _, line := range lines {
		text += "-- reply --\ncall: write {\"name\":\"" + line + "\"}\n"
	}
	write := tool.New("write", "Writes.", func(_ context.Context, _ *tool.Call, in struct {
		Name string `json:"name"`
	},
	) (tool.Result, error) {
		return tool.Text("written"), os.WriteFile(filepath.Join(m.root, in.Name), []byte(in.Name), 0o600)
	})
	write.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Execute, Text: "write"}}, nil
	}
	return &inspan.Host{Store: m.store, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		model, err := script.Parse([]byte(text + "-- reply --\nDone.\n"))
		a := &inspan.Agent{Model: model, Tools: []tool.Tool{write}, Mode: "yolo", Env: tool.Env{Root: at.Root}}
		m.carriers.At(m.root).Wire(a, at, top)
		return a, err
	}}
}

// begins makes the workspace and a session there.
func (m *machine) begins(files ...string) string {
	m.t.Helper()
	m.here()
	if err := os.Mkdir(m.root, 0o700); err != nil {
		m.t.Fatal(err)
	}
	for _, name := range files {
		m.write(name, name)
	}
	if err := m.carriers.At(m.root).Begin(); err != nil {
		m.t.Fatal(err)
	}
	s, err := m.host(true, 0).New(m.t.Context(), m.root)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return s.ID()
}

func (m *machine) arrive(id string) error {
	m.here()
	return m.carriers.At(m.root).Arrive(m.t.Context(), id)
}

// opens brings a session here.
func (m *machine) opens(id string, lines ...string) *inspan.Session {
	m.t.Helper()
	if err := m.arrive(id); err != nil {
		m.t.Fatal(err)
	}
	w, err := m.host(true, 0).Watch(m.t.Context(), id)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	s, err := m.host(true, w.Status().Turns, lines...).Open(m.t.Context(), id)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// runs has a session write files here.
func (m *machine) runs(id string, lines ...string) {
	m.t.Helper()
	s := m.opens(id, lines...)
	err := (&inspan.Conductor{Session: s}).Run(m.t.Context(), event.Say("go"))
	if err = errors.Join(err, s.Close()); err != nil {
		m.t.Fatal(err)
	}
}

// states are those in the log of a session.
func (f *fleet) states(id string) (out []event.Workspace) {
	f.t.Helper()
	for e, err := range store.Events(f.t.Context(), f.store, id) {
		if err != nil {
			f.t.Fatal(err)
		}
		if w, is := e.Body.(event.Workspace); is {
			out = append(out, w)
		}
	}
	return out
}

func (f *fleet) want(got []string, want ...string) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("the workspace has %q, want %q", got, want)
	}
}

// TestCarrierMoves moves a session to another machine and back: each finds the other's work, and nothing from its own
// stale folder.
func TestCarrierMoves(t *testing.T) {
	f := newFleet(t)
	a, b := f.machine(), f.machine()
	id := a.begins("first")
	a.runs(id, "one")
	a.write("dying", "x") // a call that has not ended
	b.runs(id, "two")
	f.want(b.files(), "first", "one", "two")
	if err := a.arrive(id); err != nil {
		t.Fatal(err)
	}
	f.want(a.files(), "first", "one", "two")
	a.runs(id)
	copies := map[string]bool{}
	for n, w := range f.states(id) {
		if copies[w.Copy] = true; w.N != uint64(n+1) {
			t.Errorf("state %d has the number %d", n+1, w.N)
		}
	}
	if len(copies) != 3 {
		t.Errorf("%d copies", len(copies))
	}
}

// TestCarrierStays checks when a folder is left as it is: it is ahead of the state in the log, or is that.
func TestCarrierStays(t *testing.T) {
	f := newFleet(t)
	a, b := f.machine(), f.machine()
	id := a.begins("first")
	a.runs(id, "one")
	a.write("dying", "x")
	fresh := &machine{f, &running.Carriers{Dir: a.carriers.Dir, Sessions: f.store}, a.saved} // another process there
	if err := fresh.carriers.At(f.root).Arrive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	f.want(a.files(), "dying", "first", "one")
	for range 2 { // only looked at
		if err := b.arrive(id); err != nil {
			t.Fatal(err)
		}
	}
	b.write("mark", "x")
	if err := b.arrive(id); err != nil {
		t.Fatal(err)
	}
	f.want(b.files(), "first", "mark", "one")
	a.runs(id, "two")
	if err := b.arrive(id); err != nil {
		t.Fatal(err)
	}
	f.want(b.files(), "dying", "first", "one", "two")
}

// TestCarrierMadeAnew checks that a folder that may be incomplete is made again: it is not identified, or the machine
// was restarted since.
func TestCarrierMadeAnew(t *testing.T) {
	for name, harm := range map[string]func(mark string) error{
		"no mark":      os.Remove,
		"another boot": func(mark string) error { return rewrite(mark, "Boot", "another") },
		"another copy": func(mark string) error { return rewrite(mark, "Copy", "another") },
		"half a mark":  func(mark string) error { return os.Truncate(mark, 5) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			a := f.machine()
			id := a.begins("first")
			a.runs(id, "one")
			a.write("stale", "x")
			marks, err := filepath.Glob(filepath.Join(a.carriers.Dir, "*.copy"))
			if err != nil || len(marks) != 1 {
				t.Fatal(marks, err)
			}
			if err := harm(marks[0]); err != nil {
				t.Fatal(err)
			}
			if err := a.arrive(id); err != nil {
				t.Fatal(err)
			}
			f.want(a.files(), "first", "one")
		})
	}
}

func rewrite(path, field, value string) error {
	data, err := os.ReadFile(path)
	var all map[string]any
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return err
	}
	all[field] = value
	data, err = json.Marshal(all)
	return errors.Join(err, os.WriteFile(path, data, 0o600))
}

// TestCarrierTooLarge checks that a session whose workspace is too large continues where it is, says so once, and is
// refused elsewhere.
func TestCarrierTooLarge(t *testing.T) {
	f := newFleet(t)
	a, b := f.machine(), f.machine()
	a.carriers.Most = 1000
	id := a.begins("first")
	if err := b.arrive(id); err != nil {
		t.Fatal(err)
	}
	a.here()
	a.write("large", strings.Repeat("x", 1001))
	a.runs(id, "one", "two")
	a.runs(id, "three")
	f.want(a.files(), "first", "large", "one", "three", "two")
	states, notes := f.states(id), 0
	for e, err := range store.Events(t.Context(), f.store, id) {
		if err != nil {
			t.Fatal(err)
		}
		if n, is := e.Body.(event.Note); is && n.Topic == "workspace" {
			notes++
		}
	}
	if last := states[len(states)-1]; len(states) != 2 || last.Stays == "" || last.Bytes <= 1000 || last.Manifest != "" || notes != 1 {
		t.Errorf("%d notes, states %+v", notes, states)
	}
	var stays *running.StaysError
	if err := b.arrive(id); !errors.As(err, &stays) || !strings.Contains(err.Error(), "1,000") {
		t.Errorf("another machine: %v", err)
	}
}

// TestCarrierMoved checks that a session that is open here does not continue after it has run elsewhere.
func TestCarrierMoved(t *testing.T) {
	for _, began := range []bool{false, true} {
		f := newFleet(t)
		a, b := f.machine(), f.machine()
		id := a.begins("first")
		s := a.opens(id, "one", "two")
		if began {
			if err := (&inspan.Conductor{Session: s}).Run(t.Context(), event.Say("go")); err != nil {
				t.Fatal(err)
			}
		}
		b.runs(id, "elsewhere")
		a.here()
		err := (&inspan.Conductor{Session: s}).Run(t.Context(), event.Say("go"))
		if !errors.Is(err, running.ErrMoved) || !running.Elsewhere(err) {
			t.Errorf("began %v: the run ends with %v", began, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if states := f.states(id); states[len(states)-1].Copy == states[0].Copy {
			t.Errorf("began %v: the old copy has the last word", began)
		}
	}
}

// TestCarrierOfChildren checks that the work of a subagent in its parent's workspace moves with the parent, even before
// the subagent has returned, and that a workspace of its own does not count.
func TestCarrierOfChildren(t *testing.T) {
	f := newFleet(t)
	a, b := f.machine(), f.machine()
	id := a.begins("first")
	s := a.opens(id)
	child, err := a.host(false, 0, "by-child").Child(t.Context(), id, "c", f.root)
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.host(false, 0).Child(t.Context(), id, "d", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		s.Send(t.Context(), event.Spawned{Child: child.ID(), Task: "write"}),
		s.Send(t.Context(), event.Spawned{Child: own.ID(), Task: "write", Root: "/elsewhere"}),
		(&inspan.Conductor{Session: child}).Run(t.Context(), event.Say("go")),
		(&inspan.Conductor{Session: own}).Run(t.Context(), event.Say("go")),
		child.Close(), own.Close(), s.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	if states := f.states(child.ID()); len(states) != 1 || states[0].N != 2 || len(f.states(own.ID())) > 0 {
		t.Errorf("the child has the states %+v", states)
	}
	if err := b.arrive(id); err != nil {
		t.Fatal(err)
	}
	f.want(b.files(), "by-child", "first")

	late := b.opens(id) // and now the child does more where it was
	a.here()
	child, err = a.host(false, 2, "more").Child(t.Context(), id, "c", f.root)
	if err == nil {
		err = errors.Join((&inspan.Conductor{Session: child}).Run(t.Context(), event.Say("go")), child.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.here()
	if err := (&inspan.Conductor{Session: late}).Run(t.Context(), event.Say("go")); !errors.Is(err, running.ErrMoved) {
		t.Errorf("where the session was opened before that, its run ends with %v", err)
	}
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCarrierTidies checks that blobs of states that are no longer needed are removed, and all of them when the
// workspace is forgotten.
func TestCarrierTidies(t *testing.T) {
	f := newFleet(t)
	a := f.machine()
	id := a.begins("first")
	var names []string
	for n := range 150 {
		names = append(names, fmt.Sprint("f", n))
	}
	a.runs(id, names...)
	log, err := f.store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	blobs := func() int {
		names, err := log.Blobs().(interface {
			Names(ctx context.Context) ([]string, error)
		}).Names(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := blobs(); n > 60 || n < 2 {
		t.Errorf("behind 150 changes there are %d blobs", n)
	}
	if held, err := a.carriers.Held(t.Context(), id); err != nil || held < 300 {
		t.Errorf("the workspace holds %d bytes: %v", held, err)
	}
	before := blobs()
	if err := a.carriers.Forget(t.Context(), id); err != nil || blobs() >= before {
		t.Errorf("forgotten, there are %d blobs of %d: %v", blobs(), before, err)
	}
	if held, err := a.carriers.Held(t.Context(), id); err != nil || held != 0 {
		t.Errorf("forgotten, it holds %d bytes: %v", held, err)
	}
	if err := a.carriers.Forget(t.Context(), id); err != nil {
		t.Errorf("forgotten twice: %v", err)
	}
	roots, err := a.carriers.Roots()
	if err != nil || !slices.Equal(roots, []string{f.root}) {
		t.Errorf("roots %q, %v", roots, err)
	}
	if err := a.carriers.Drop(f.root); err != nil {
		t.Fatal(err)
	}
	if roots, err = a.carriers.Roots(); err != nil || len(roots) > 0 {
		t.Errorf("dropped, roots %q, %v", roots, err)
	}
	if _, err := os.Stat(f.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dropped, the folder: %v", err)
	}
}

// TestCarrierElsewhere checks that a session whose workspace has another path is refused, and that a session that did
// not travel before begins to, where its folder is.
func TestCarrierElsewhere(t *testing.T) {
	f := newFleet(t)
	a := f.machine()
	id := a.begins("first")
	if err := a.carriers.At(f.root+"x").Arrive(t.Context(), id); err == nil || !strings.Contains(err.Error(), f.root+"x") {
		t.Errorf("another path: %v", err)
	}
	plain, err := (&inspan.Host{Store: f.store, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{}, Env: tool.Env{Root: at.Root}}, nil
	}}).New(t.Context(), f.root)
	if err == nil {
		err = plain.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	a.runs(plain.ID(), "one")
	if states := f.states(plain.ID()); len(states) != 2 {
		t.Errorf("it has the states %+v", states)
	}
	if err := os.RemoveAll(f.root); err != nil {
		t.Fatal(err)
	}
	b := f.machine()
	if err := b.arrive(plain.ID()); err != nil {
		t.Fatal(err)
	}
	f.want(b.files(), "first", "one")
}
