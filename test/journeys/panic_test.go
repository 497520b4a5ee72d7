package journeys_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestToolsThatCrash checks that a panic in any function of a tool becomes a failed call, which the model reads, or a
// note in the person's question.
func TestToolsThatCrash(t *testing.T) {
	for name, tc := range map[string]struct {
		crash   func(*tool.Tool)
		outcome event.Outcome
		says    string
	}{
		"effects": {func(t *tool.Tool) {
			t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { panic("boom") }
		}, event.OutcomeInvalid, "note was not run, its Effects crashed: boom"},
		"effects for rewritten arguments": {func(t *tool.Tool) {
			t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
				if strings.Contains(string(c.Args), "other") {
					panic("boom")
				}
				return []tool.Effect{writes("/w/a")}, nil
			}
		}, event.OutcomeInvalid, "note was not run, its Effects crashed: boom"},
		"mend": {func(t *tool.Tool) {
			t.Normalize = func(map[string]any) { panic("boom") }
		}, event.OutcomeInvalid, "note was not run, the check of its arguments crashed: boom"},
		"stands": {func(t *tool.Tool) {
			t.Resolve = func(context.Context, *tool.Call) (string, json.RawMessage, error) { panic("boom") }
		}, event.OutcomeInvalid, "note was not run, its Resolve crashed: boom"},
		"run": {func(t *tool.Tool) {
			t.Run = func(context.Context, *tool.Call) (tool.Result, error) { panic("boom") }
		}, event.OutcomeFailed, "the tool crashed: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			broken := l.writer()
			tc.crash(&broken)
			a := inspan.Agent{
				Model: scripted(t, oneNote, "Done."), Tools: []tool.Tool{broken}, Mode: "edit", Env: tool.Env{Root: "/w"},
				Judges: []tool.Judge{tool.JudgeFunc(func(context.Context, *tool.Call, []tool.Effect) (v tool.Verdict, err error) {
					if strings.HasPrefix(name, "effects for") {
						v.Args = json.RawMessage(`{"word":"other"}`)
					}
					return v, nil
				})},
			}
			events := collect(t, a.Run(t.Context(), "go"))
			end := last[event.Ended](t, events)
			if text := end.Parts.Text(); end.Outcome != tc.outcome || !strings.HasPrefix(text, tc.says+"\n") || !strings.Contains(text, "panic_test.go") {
				t.Errorf("ended %s: %s", end.Outcome, text)
			}
			if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone || len(l.runs) > 0 {
				t.Errorf("stopped as %s, ran %q", r, l.runs)
			}
		})
	}
}

// TestPreviewThatCrashes checks that the question says that a preview is missing.
func TestPreviewThatCrashes(t *testing.T) {
	l := &ledger{}
	broken := l.writer()
	broken.Preview = func(context.Context, *tool.Call) (string, error) { panic("boom") }
	a := &inspan.Agent{Model: scripted(t, oneNote, "Done."), Tools: []tool.Tool{broken}, Env: tool.Env{Root: "/w"}}
	c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
	shown := ""
	c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
		shown = p.Preview
		return allow(ctx, p)
	}
	if err := c.Run(t.Context(), said("go")); err != nil || len(l.runs) != 1 {
		t.Errorf("ran %q: %v", l.runs, err)
	}
	if shown != "(no preview of this call: the preview crashed: boom)" {
		t.Errorf("shown %q", shown)
	}
}

// bomb is a judge and a hook that panics at some moments.
type bomb struct{ grants, judges, asked bool }

func (b *bomb) Grants() bool {
	if b.grants {
		panic("boom")
	}
	return true
}

func (b *bomb) Judge(context.Context, *tool.Call, []tool.Effect) (tool.Verdict, error) {
	if b.asked = true; b.judges {
		panic("boom")
	}
	return tool.Verdict{}, nil
}

func (b *bomb) At(context.Context, tool.Point) (tool.Outcome, error) { panic("boom") }

// TestJudgesThatCrash checks that a judge that panics denies, like one that fails.
func TestJudgesThatCrash(t *testing.T) {
	for name, b := range map[string]*bomb{"judge": {judges: true}, "grants": {grants: true}} {
		l := &ledger{}
		a := inspan.Agent{
			Model: scripted(t, oneNote, "Done."), Tools: []tool.Tool{l.writer()}, Mode: "ask", Unattended: true, Env: tool.Env{Root: "/w"},
			Judges: []tool.Judge{b},
		}
		events := collect(t, a.Run(t.Context(), "go"))
		j := last[event.Judged](t, events)
		if j.Action != tool.Deny || !strings.Contains(j.Reason, "the judge crashed: boom") || len(l.runs) > 0 || b.asked != b.judges {
			t.Errorf("%s: judged %+v, ran %q", name, j, l.runs)
		}
		if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone {
			t.Errorf("%s: stopped as %s", name, r)
		}
	}
}

// TestHooksThatCrash checks that a hook that panics is one that fails, at every moment: it denies calls, is noted, and
// ends neither the program nor the session.
func TestHooksThatCrash(t *testing.T) {
	l := &ledger{}
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){}}
	a := &inspan.Agent{
		Model: scripted(t, oneNote, "Done.", "Done."), Tools: []tool.Tool{l.writer()}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Hooks: []tool.Hook{h},
	}
	for _, m := range tool.Moments() {
		if m != tool.BeforeCall {
			h.say[m] = func(tool.Point) (tool.Outcome, error) { panic("boom at " + m) }
		}
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, said("go"))
	if end := last[event.Ended](t, events); len(l.runs) != 1 || !strings.Contains(end.Parts.Text(), "a hook failed: the hook crashed: boom at after_call") {
		t.Errorf("ran %q: %s", l.runs, end.Parts.Text())
	}
	noted := map[string]bool{}
	for _, n := range bodiesOf[event.Note](events) {
		_, at, _ := strings.Cut(n.Text, "the hook crashed: boom at ")
		at, _, _ = strings.Cut(at, "\n")
		noted[at] = true
	}
	if !noted["session_start"] || !noted["prompt"] || !noted["stop"] {
		t.Errorf("noted %v", noted)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "boom at session_end") {
		t.Errorf("closed: %v", err)
	}

	a.Model, a.Hooks, l.runs = scripted(t, oneNote, "Done."), []tool.Hook{&bomb{}}, nil
	events = collect(t, a.Run(t.Context(), "go"))
	if j := last[event.Judged](t, events); j.Action != tool.Deny || !strings.Contains(j.Reason, "the hook crashed: boom") || len(l.runs) > 0 {
		t.Errorf("judged %+v, ran %q", j, l.runs)
	}
}

// brittle is a model that panics in its first replies: at once, after some text, or after the whole reply.
type brittle struct {
	llm.Model
	when string
	left int
}

func (m *brittle) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if m.left--; m.left < 0 {
		return m.Model.Stream(ctx, req)
	}
	if m.when == "at once" {
		panic("boom")
	}
	return func(yield func(llm.Chunk, error) bool) {
		if m.when == "behind text" && yield(llm.Chunk{Text: "I will"}, nil) {
			panic("boom")
		}
		for chunk, err := range m.Model.Stream(ctx, req) {
			if !yield(chunk, err) {
				panic("boom")
			}
		}
	}
}

// TestModelsThatCrash checks that a panic of a model is a failed reply, which is not requested endlessly, and that the
// session continues with the next reply.
func TestModelsThatCrash(t *testing.T) {
	for when, want := range map[string]event.Reason{
		"at once": event.ReasonFailed, "behind text": event.ReasonFailed, "behind the reply": event.ReasonDone,
	} {
		t.Run(when, func(t *testing.T) {
			m := &brittle{scripted(t, "Done."), when, 1}
			s := open(t, &inspan.Agent{Model: m, Unattended: true}, event.NewMemory("s"))
			events := drivenTo(t, s, said("go"))
			if st := last[event.Stopped](t, events); st.Reason != want || m.left != 0 {
				t.Errorf("stopped %+v, %d left", st, m.left)
			}
			if want == event.ReasonDone {
				return
			}
			f := last[event.Failed](t, events)
			if f.Cause != llm.KindPanic || !strings.HasPrefix(f.Message, "panic: the model crashed: boom\n") || !strings.Contains(f.Message, "panic_test.go") {
				t.Errorf("failed %+v", f)
			}
			if st := last[event.Stopped](t, drivenTo(t, s, said("again"))); st.Reason != event.ReasonDone {
				t.Errorf("stopped %+v", st)
			}
		})
	}
}

// TestConductorsThatCrash checks that a panic in a function of a conductor, or of its agent, ends the run with an
// error that names it, and that the session can be run again, even by others.
func TestConductorsThatCrash(t *testing.T) {
	armed := true
	boom := func() {
		if armed {
			panic("boom")
		}
	}
	for name, tc := range map[string]struct {
		crash func(*inspan.Conductor, *inspan.Agent)
		says  string
	}{
		"see": {func(c *inspan.Conductor, _ *inspan.Agent) {
			c.OnEvent = func(event.Event) error { boom(); return nil }
		}, "Conductor.OnEvent crashed: boom"},
		"see in a question": {func(c *inspan.Conductor, _ *inspan.Agent) {
			c.OnEvent = func(e event.Event) error {
				if _, ok := e.Body.(event.Waiting); ok {
					boom()
				}
				return nil
			}
		}, "Conductor.OnEvent crashed: boom"},
		"ask": {func(c *inspan.Conductor, _ *inspan.Agent) {
			c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) { boom(); return allow(ctx, p) }
		}, "Conductor.Ask crashed: boom"},
		"before": {func(c *inspan.Conductor, _ *inspan.Agent) {
			c.BeforeRun = func() []event.Body { boom(); return nil }
		}, "Conductor.BeforeRun crashed: boom"},
		"after": {func(c *inspan.Conductor, _ *inspan.Agent) {
			c.AfterRun = func(context.Context, inspan.Status) ([]event.Body, error) { boom(); return nil, nil }
		}, "Conductor.AfterRun crashed: boom"},
		"secrets": {func(_ *inspan.Conductor, a *inspan.Agent) {
			opened := false
			a.Secrets.Values = func() map[string]string {
				if opened {
					boom()
				}
				opened = true
				return nil
			}
		}, "the run crashed: boom"},
		"joined": {func(_ *inspan.Conductor, a *inspan.Agent) {
			a.Lifecycle.Started = func(*inspan.Session) { boom() }
		}, "the run crashed: boom"},
		"checkpoint": {func(_ *inspan.Conductor, a *inspan.Agent) {
			a.Workspace.Checkpoint = func(context.Context) (event.Checkpoint, error) { boom(); return event.Checkpoint{}, nil }
		}, "the run crashed: boom"},
	} {
		for _, together := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				armed = true
				l := &ledger{}
				a := &inspan.Agent{Model: scripted(t, oneNote, "Done.", "Done."), Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: t.TempDir()}}
				a.Rules = []inspan.Rule{{Action: tool.Allow, Text: "note"}}
				if strings.Contains(tc.says, "Ask") || strings.Contains(name, "question") {
					a.Rules = nil
				}
				host := &inspan.Host{Dir: t.TempDir(), Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) { return a, nil }}
				c := &inspan.Conductor{Ask: allow, AskConcurrently: together}
				tc.crash(c, a)
				s, err := host.New(t.Context(), a.Env.Root)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				c.Session = s
				err = c.Run(t.Context(), said("go"))
				if err == nil || !strings.HasPrefix(err.Error(), tc.says+"\n") || !strings.Contains(err.Error(), "panic_test.go") {
					t.Fatalf("the error is %v", err)
				}
				armed = false
				other, err := host.Open(t.Context(), s.ID())
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				for _, next := range []*inspan.Session{other, s} {
					c.Session = next
					if err := c.Run(t.Context(), said("go on")); err != nil || c.Session.Status().Stopped.Reason != event.ReasonDone {
						t.Errorf("then: %v, stopped %+v", err, c.Session.Status().Stopped)
					}
				}
			})
		}
	}
}

// TestConsumersThatCrash checks that a panic in the loop over a run reaches its caller, and that the session can be
// run again, even by others.
func TestConsumersThatCrash(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, oneNote, "Done."), Tools: []tool.Tool{l.writer()}, Mode: "yolo", Env: tool.Env{Root: t.TempDir()}}
	host := &inspan.Host{Dir: t.TempDir(), Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) { return a, nil }}
	s, err := host.New(t.Context(), a.Env.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, at := range []string{"claimed", "asked", "delta", "judged"} {
		func() {
			defer func() {
				if p := recover(); p != "boom at "+at {
					t.Errorf("recovered %v", p)
				}
			}()
			for e, err := range s.Run(t.Context(), said("go")) {
				if err != nil || e.Body.Kind() == at {
					panic("boom at " + at)
				}
			}
		}()
	}
	other, err := host.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if st := last[event.Stopped](t, drivenTo(t, other, said("go on"))); st.Reason != event.ReasonDone || len(l.runs) != 1 {
		t.Errorf("stopped %+v, ran %q", st, l.runs)
	}
}

// TestCrashOfARunThatNobodySees checks that a panic after the consumer has left is not shown to it.
func TestCrashOfARunThatNobodySees(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneNote, "Done."), Tools: []tool.Tool{l.writer()}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Workspace: inspan.Workspace{Checkpoint: func(context.Context) (event.Checkpoint, error) {
			if len(l.runs) > 0 {
				panic("boom")
			}
			return event.Checkpoint{ID: "a"}, nil
		}},
	}
	s := open(t, a, event.NewMemory("s"))
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Kind() == "ended" {
			break
		}
	}
	a.Workspace.Checkpoint = nil
	if st := last[event.Stopped](t, drivenTo(t, s)); st.Reason != event.ReasonDone {
		t.Errorf("stopped %+v", st)
	}
}

// TestPartsThatCrash checks that panics in the parts that open and close with a session become errors.
func TestPartsThatCrash(t *testing.T) {
	boom := func() { panic("boom") }
	a := &inspan.Agent{
		Model: scripted(t, "Done."), Env: tool.Env{Root: t.TempDir()},
		Lifecycle: inspan.Lifecycle{Shutdown: func(bool, tool.Mode) inspan.Leftovers { boom(); return inspan.Leftovers{} }, Close: func() error { boom(); return nil }},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Rewind(t.Context(), 0, func(context.Context, *event.Restored) (*event.Restored, error) { boom(); return nil, nil })
	if err == nil || !strings.HasPrefix(err.Error(), "the rewind crashed: boom") {
		t.Errorf("rewound: %v", err)
	}
	drivenTo(t, s, said("go"))
	err = s.Close()
	if err == nil || !strings.Contains(err.Error(), "Lifecycle.Shutdown crashed: boom") || !strings.Contains(err.Error(), "Lifecycle.Close crashed: boom") {
		t.Errorf("closed: %v", err)
	}
	a.Secrets.Values = func() map[string]string { boom(); return nil }
	if _, err := a.Open(t.Context(), event.NewMemory("s")); err == nil || !strings.Contains(err.Error(), "the agent crashed: boom") {
		t.Errorf("opened: %v", err)
	}
	host := &inspan.Host{Dir: t.TempDir(), Agent: func(context.Context, inspan.SessionSpec) (*inspan.Agent, error) { boom(); return nil, nil }}
	if _, err := host.New(t.Context(), a.Env.Root); err == nil || !strings.Contains(err.Error(), "Host.Agent crashed: boom") {
		t.Errorf("made: %v", err)
	}
}

// brittleLog is a log that panics when it is waited for.
type brittleLog struct {
	*event.Memory
	on func() bool
}

func (l brittleLog) Wait(ctx context.Context, after uint64) error {
	if l.on() {
		panic("boom")
	}
	return l.Memory.Wait(ctx, after)
}

// TestLogsThatCrash checks that a log that panics in the background ends the run with an error: while the model is
// asked, while calls run, and while a question waits.
func TestLogsThatCrash(t *testing.T) {
	for _, at := range []string{"asked", "started", "waiting"} {
		var last atomic.Value
		last.Store("")
		slow := does("slow", writes("/w/a"), func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		a := &inspan.Agent{Model: &slowly{scripted(t, `call: slow {"word":"a"}`, "Done."), at == "asked"}, Tools: []tool.Tool{slow}, Env: tool.Env{Root: "/w"}}
		if at != "waiting" {
			a.Mode = "yolo"
		}
		log := brittleLog{event.NewMemory("s"), func() bool { return last.Load() == at }}
		c := &inspan.Conductor{Session: open(t, a, log), AnswerWait: -1}
		c.OnEvent = func(e event.Event) error { last.Store(e.Body.Kind()); return nil }
		err := c.Run(t.Context(), said("go"))
		st := c.Session.Status()
		failed := st.Stopped != nil && strings.Contains(st.Stopped.Detail, "the log crashed: boom")
		if (err == nil || !strings.Contains(err.Error(), "the log crashed: boom")) && !failed {
			t.Errorf("at %s: %v, stopped %+v", at, err, st.Stopped)
		}
	}
}

// slowly is a model that answers once it is interrupted, if it waits.
type slowly struct {
	llm.Model
	waits bool
}

func (m *slowly) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if !m.waits {
		return m.Model.Stream(ctx, req)
	}
	return func(yield func(llm.Chunk, error) bool) {
		<-ctx.Done()
		yield(llm.Chunk{}, context.Cause(ctx))
	}
}

// brokenBlobs is a store that panics.
type brokenBlobs struct{ tool.Blobs }

func (brokenBlobs) Put(context.Context, io.Reader) (string, error) { panic("boom") }

// TestBlobsThatCrash checks panics in the handling of a result.
func TestBlobsThatCrash(t *testing.T) {
	big := does("big", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) {
		return tool.Text(strings.Repeat("word ", 20_000)), nil
	})
	a := inspan.Agent{Model: scripted(t, `call: big {"word":"a"}`, "Done."), Tools: []tool.Tool{big}, Env: tool.Env{Root: "/w", Blobs: brokenBlobs{}}}
	events := collect(t, a.Run(t.Context(), "go"))
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeFailed || !strings.Contains(end.Parts.Text(), "crashed: boom") {
		t.Errorf("ended %s: %.300s", end.Outcome, end.Parts.Text())
	}
}

// TestAnswersThatAreNone checks that the result of Ask is stored only if it answers the question, and that anything
// else ends the run with an error that gives the reason why.
func TestAnswersThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(inspan.Pending) event.Body
		says   string // empty means it is an answer
	}{
		"another call": {func(p inspan.Pending) event.Body {
			return event.Decided{Call: "other", Question: p.Question, Allow: true}
		}, `its Call is "other"`},
		"no call": {func(p inspan.Pending) event.Body { return event.Decided{Question: p.Question, Allow: true} }, `its Call is ""`},
		"another question": {func(p inspan.Pending) event.Body {
			return event.Decided{Call: p.Call.ID, Question: p.Question + 1, Allow: true}
		}, "its Question is "},
		"another scope": {func(p inspan.Pending) event.Body {
			return event.Decided{Call: p.Call.ID, Allow: true, Scope: "sesion"}
		}, `there is no scope "sesion"`},
		"said": {func(inspan.Pending) event.Body { return event.Say("yes") }, `it is "said"`},
		"steered": {func(inspan.Pending) event.Body {
			return event.Steered{Origin: event.OriginPerson, Parts: llm.Say("yes")}
		}, `it is "steered"`},
		"no input":    {func(inspan.Pending) event.Body { return event.Stopped{} }, `it is "stopped"`},
		"no question": {func(p inspan.Pending) event.Body { return event.Decided{Call: p.Call.ID, Allow: true} }, ""},
		"interrupt":   {func(inspan.Pending) event.Body { return event.Cancelled{By: "ann"} }, ""},
	} {
		for _, together := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c, l := conducted(t, 0, oneNote, "Done.")
				c.AskConcurrently = together
				c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) { return tc.answer(p), nil }
				err := c.Run(t.Context(), said("go"))
				if tc.says == "" {
					if err != nil || c.Session.Status().Stopped == nil {
						t.Errorf("%v, stopped %+v", err, c.Session.Status().Stopped)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "was not stored") {
					t.Errorf("the error is %v", err)
				}
				before := c.Session.Status()
				c.Ask = allow
				if err := c.Run(t.Context()); err != nil || len(l.runs) != 1 || len(before.Waiting) != 1 {
					t.Errorf("then: %v, ran %q, waited %+v", err, l.runs, before.Waiting)
				}
				for e, err := range c.Session.Events(t.Context(), before.Seq) {
					if err != nil {
						t.Fatal(err)
					}
					if d, ok := e.Body.(event.Decided); ok && d.By == "ann" {
						break
					}
					switch e.Body.(type) {
					case event.Said, event.Steered, event.Decided:
						t.Fatalf("stored %+v", e.Body)
					}
				}
			})
		}
	}
}
