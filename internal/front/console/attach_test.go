package console_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// screen is the output so far.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until the text was printed.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	testkit.WaitFor(t, text, func() bool { return strings.Contains(s.String(), text) }, s.String)
}

// elsewhere is a session on disk with the steps of a model, and a function that opens it for watching.
func elsewhere(t *testing.T, ran *[]string, steps ...script.Step) (*inspan.Session, func() *inspan.Watch) {
	t.Helper()
	s, host := hosted(t, ran, steps...)
	return s, func() *inspan.Watch { return watched(t, host, s.ID()) }
}

// watched opens a session of a host to be looked at.
func watched(t *testing.T, host *inspan.Host, id string) *inspan.Watch {
	t.Helper()
	w, err := host.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// hosted is a session on disk with the steps of a model, and the host that has it.
func hosted(t *testing.T, ran *[]string, steps ...script.Step) (*inspan.Session, *inspan.Host) {
	t.Helper()
	note := tool.New("note", "notes a word", func(_ context.Context, _ *tool.Call, in noteArgs) (tool.Result, error) {
		*ran = append(*ran, in.Word)
		return tool.Text("noted"), nil
	})
	note.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	host := &inspan.Host{Dir: t.TempDir(), Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{Steps: steps}, Mode: "ask", Env: tool.Env{Root: at.Root}, Tools: []tool.Tool{
			note, testkit.Fill("note", `{"word":"one"}`, `{"word":"two"}`),
		}}, nil
	}}
	s, err := host.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, host
}

// TestAttachAndRunOn has one console run a session without a person, and another watch it, answer, and see the end.
func TestAttachAndRunOn(t *testing.T) {
	var ran []string
	s, watch := elsewhere(t, &ran, step("I write.", "one"), step("Again.", "two"),
		step("Once more.", "three"), script.Step{Parts: llm.Say("Done.")})
	var log screen
	code := make(chan int, 1)
	go func() { code <- (&console.Console{Out: &log, Err: &log}).RunOn(t.Context(), s, event.Say("go")) }()
	log.shows(t, "open question")

	w := watch()
	var screen screen
	c := &console.Console{Out: &screen, Err: &screen, Color: true}
	typed, keys := io.Pipe()
	var kept []string
	a := console.Attachment{
		Person: console.NewPerson(c, typed, &screen),
		Driven: func(context.Context) (bool, error) { return true, nil },
		Remember: func(_ context.Context, root string, scope event.Scope, rules []string) error {
			kept = append(kept, root, string(scope), strings.Join(rules, " "))
			return nil
		},
	}
	seen := make(chan int, 1)
	go func() {
		code, err := c.Attach(t.Context(), w, a)
		if err != nil {
			t.Error(err)
		}
		seen <- code
	}()
	screen.shows(t, "\x1b[33m? note asks")
	screen.shows(t, "1 Yes (y)")
	types := func(line string) {
		if _, err := io.WriteString(keys, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	types("")
	screen.shows(t, "Please answer")
	types("y")
	screen.shows(t, `"two"`)
	if strings.Contains(screen.String(), "answered in") {
		t.Errorf("one's own answer is another's:\n%s", screen.String())
	}
	types("rather not")
	screen.shows(t, "rather not")
	screen.shows(t, `"three"`)
	st := w.Status()
	types("p")
	if code := <-code; code != console.ExitDone {
		t.Errorf("the run ends with %d:\n%s", code, log.String())
	}
	if code := <-seen; code != console.ExitDone {
		t.Errorf("who looks at it ends with %d:\n%s", code, screen.String())
	}
	if turns := s.Status().Turns; !slices.Equal(ran, []string{"one", "three"}) || turns != 4 {
		t.Errorf("ran %q in %d turns", ran, turns)
	}
	if want := []string{st.Root, "project", strings.Join(st.Waiting[0].Rules, " ")}; !slices.Equal(kept, want) || want[2] == "" {
		t.Errorf("kept %q, want %q", kept, want)
	}
}

// late is a store whose logs report new events only when the test allows it.
type late struct {
	store.Store
	let chan struct{}
}

func (l late) Open(ctx context.Context, id string) (store.Log, error) {
	log, err := l.Store.Open(ctx, id)
	return lateLog{log, l.let}, err
}

type lateLog struct {
	store.Log
	let chan struct{}
}

func (l lateLog) Wait(ctx context.Context, after uint64) error {
	select {
	case <-l.let:
		return l.Log.Wait(ctx, after)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAttachSeesTheEnd checks that a run without a driver is shown to its end, however late the last part is read.
func TestAttachSeesTheEnd(t *testing.T) {
	var ran []string
	s, host := hosted(t, &ran, script.Step{Parts: llm.Say("Done.")})
	let := make(chan struct{})
	host = &inspan.Host{Store: late{host.Sessions(), let}}
	w := watched(t, host, s.ID())
	looks, asked := 0, false
	var screen screen
	code, err := (&console.Console{Out: &screen, Err: &screen}).Attach(t.Context(), w, console.Attachment{
		Driven: func(context.Context) (bool, error) {
			if asked {
				return false, nil
			}
			asked = true
			for _, err := range s.Run(t.Context(), event.Say("go")) {
				if err != nil {
					t.Error(err)
				}
			}
			return false, nil
		},
		Lost: func() error {
			if looks++; looks == 5 {
				close(let)
			}
			return nil
		},
	})
	if said := screen.String(); err != nil || code != console.ExitDone || !strings.Contains(said, "Done.") {
		t.Errorf("code %d, %v, says %q", code, err, said)
	}
}

// TestAttachIsLeftBefore checks that the hint about the keys is printed, and that a person who leaves before that
// learns how to return.
func TestAttachIsLeftBefore(t *testing.T) {
	var ran []string
	_, watch := elsewhere(t, &ran)
	var screen screen
	c := &console.Console{Out: &screen, Err: &screen}
	code, err := c.Attach(t.Context(), watch(), console.Attachment{
		Greeting: "Ctrl-C detaches", Left: func() bool { return strings.Contains(screen.String(), "detaches") },
		Driven: func(context.Context) (bool, error) { return true, nil },
	})
	if said := screen.String(); err != nil || code != console.ExitDone || !strings.HasPrefix(said, "Ctrl-C detaches\n\ndetached; session ") {
		t.Errorf("code %d, %v, says %q", code, err, said)
	}
}

// TestAttachToWhatNobodyDrives ends by itself.
func TestAttachToWhatNobodyDrives(t *testing.T) {
	nobody := func(context.Context) (bool, error) { return false, nil }
	somebody := func(context.Context) (bool, error) { return true, nil }
	gone := func(c *console.Console) *console.Person {
		return console.NewPerson(c, strings.NewReader(""), io.Discard)
	}
	for name, tc := range map[string]struct {
		steps  []script.Step
		stop   bool // after the model was asked, as a crash would
		driven func(context.Context) (bool, error)
		person func(*console.Console) *console.Person
		code   int
		shown  string
	}{
		"it asks": {
			[]script.Step{step("I write.", "one")},
			false,
			nobody, nil, console.ExitWaiting, "a question is open, and no process here",
		},
		"it is done": {[]script.Step{{Parts: llm.Say("Done.")}}, false, nobody, nil, console.ExitDone, "— done"},
		"it was broken": {
			[]script.Step{{Parts: llm.Say("Done.")}},
			true,
			nobody, nil, console.ExitError, "is no longer running; continue it with: inspan resume",
		},
		"the person is it": {[]script.Step{step("I write.", "one")}, false, somebody, gone, console.ExitDone, "detached; session"},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			s, watch := elsewhere(t, &ran, tc.steps...)
			for e, err := range s.Run(t.Context(), event.Say("go")) {
				if err != nil {
					t.Fatal(err)
				}
				if _, asked := e.Body.(event.Asked); asked && tc.stop {
					break
				}
			}
			var screen screen
			c := &console.Console{Out: &screen, Err: &screen}
			a := console.Attachment{Driven: tc.driven, Leaves: true}
			if tc.person != nil {
				a.Person = tc.person(c)
			}
			code, err := c.Attach(t.Context(), watch(), a)
			if err != nil {
				_, _ = io.WriteString(&screen, err.Error())
			}
			if code != tc.code || (err != nil) != (code == console.ExitError) || !strings.Contains(screen.String(), tc.shown) {
				t.Errorf("code %d, %v\n%s", code, err, screen.String())
			}
		})
	}
}

// TestAttachFromAPipe takes a line that is there from the start as the answer to the open question, and reports a
// question that can't be answered here.
func TestAttachFromAPipe(t *testing.T) {
	for typed, want := range map[string]string{"y\n": "— done", "": "? note asks"} {
		var ran []string
		s, watch := elsewhere(t, &ran, step("I write.", "one"), script.Step{Parts: llm.Say("Done.")})
		var log, screen screen
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan int, 2)
		go func() { done <- (&console.Console{Out: &log, Err: &log}).RunOn(ctx, s, event.Say("go")) }()
		log.shows(t, "open question")
		c := &console.Console{Out: &screen, Err: &screen}
		a := console.Attachment{
			Person: console.NewPerson(c, strings.NewReader(typed), &screen),
			Driven: func(context.Context) (bool, error) { return ctx.Err() == nil, nil },
		}
		w := watch()
		go func() {
			code, err := c.Attach(t.Context(), w, a)
			if err != nil {
				t.Error(err)
			}
			done <- code
		}()
		screen.shows(t, want)
		stop()
		<-done
		<-done
		if strings.Contains(screen.String(), "told the model") || (typed != "") != slices.Equal(ran, []string{"one"}) {
			t.Errorf("typed %q: ran %q\n%s", typed, ran, screen.String())
		}
	}
}
