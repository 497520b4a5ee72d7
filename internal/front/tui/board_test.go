package tui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// boardOf shows the board of an installation in a terminal of a size.
func boardOf(t testing.TB, a *app.App, width, height int) (*screen, *string) {
	t.Helper()
	s, in := newScreen(t, width, height)
	opened := new(string)
	b := &tui.Board{TUI: &tui.TUI{App: a, Root: t.TempDir(), In: in, Out: s, Width: width, Height: height}}
	s.runs(func(ctx context.Context) (code int, err error) {
		*opened, _, err = b.Run(ctx)
		return 0, err
	})
	s.shows("1 waiting", "Enter opens")
	return s, opened
}

// goes runs a session in this process, which waits for answers from elsewhere. It returns the session, and a function
// that waits for its end.
func goes(t *testing.T, a *app.App, task string, steps ...script.Step) (s *inspan.Session, ended func()) {
	t.Helper()
	h := &inspan.Host{Dir: a.Store().Dir, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		return &inspan.Agent{Model: &script.Model{Steps: steps}, Tools: agentTools(), Env: tool.Env{Root: at.Root}, Limits: inspan.Limits{Retry: -1}}, nil
	}}
	s, err := h.New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- (&inspan.Conductor{Session: s, AnswerWait: -1}).Run(t.Context(), event.Say(task))
	}()
	t.Cleanup(func() { _ = s.Close() })
	return s, func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func newApp(t testing.TB) *app.App {
	return app.New(&config.Installation{StateDir: t.TempDir()})
}

// decisions are those in the log of a session.
func decisions(t *testing.T, a *app.App, id string) (out []event.Decided) {
	t.Helper()
	for e, err := range a.Store().Events(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Body.(event.Decided); ok {
			out = append(out, d)
		}
	}
	return out
}

// TestBoardAnswers answers the questions of two sessions from the board. A key before the question
// was seen answers nothing, and an answer names the question that was shown.
func TestBoardAnswers(t *testing.T) {
	a := newApp(t)
	first, firstEnded := goes(t, a, "paint it", call("note", `{"word":"blue"}`), call("note", `{"word":"green"}`), sayStep("Over."))
	second, secondEnded := goes(t, a, "name a bird", call("ask", `{"question":"Which bird?","options":["heron","egret"]}`), sayStep("Well."))
	s, _ := boardOf(t, a, 120, 30)
	s.shows("1 waiting 2", "note asks", "Which bird?")

	s.press("2")
	s.shows("[2 running 0]", "No session matches.")
	s.press("1/name a")
	s.wait("the one row", func(text string) bool {
		return !strings.Contains(text, "note asks") && strings.Contains(text, "Which bird?")
	})
	s.press(esc)
	s.shows("note asks", "Which bird?", "Enter opens")
	s.press("/said by nobody" + enter) // searches
	s.shows("No session matches.", "said in these: said by nobody")
	s.press(esc)
	s.shows("Enter opens")
	s.press("/paint" + enter)
	s.shows("said in these: paint", "paint it")
	s.press("y")
	s.shows("? note asks", "one moment", `"word": "blue"`)
	s.press("yyy")
	s.shows("or say what to do instead")
	if n := len(decisions(t, a, first.ID())); n > 0 {
		t.Fatalf("%d answers to a question that nobody has seen", n)
	}
	s.press("y")
	s.wait("the answered question to close", func(text string) bool { return !strings.Contains(text, "? note") })
	s.press(esc)
	s.shows(`note asks: {"word":"green"}`)
	s.press("n") // shows it
	s.shows(`"word": "green"`)
	s.shows("or say what to do instead")
	s.press("use red" + enter)
	firstEnded()
	got := decisions(t, a, first.ID())
	if len(got) != 2 || !got[0].Allow || got[0].Question == 0 || got[1].Allow || got[1].Reason != "use red" ||
		got[1].Question == got[0].Question {
		t.Errorf("%+v", got)
	}

	s.shows("5 done 1", "Which bird?")
	s.press("1")
	s.wait("the one row", func(text string) bool {
		return strings.Contains(text, "[1 waiting 1]") && !strings.Contains(text, "paint it")
	})
	s.press("y")
	s.shows("your answer")
	s.press("2" + enter)
	secondEnded()
	if got := decisions(t, a, second.ID()); len(got) != 1 || got[0].Answer != "egret" {
		t.Errorf("%+v", got)
	}
	s.press(esc)
	s.wait("all sessions again", func(text string) bool {
		return strings.Contains(text, "5 done 2") && !strings.Contains(text, "[1 waiting")
	})
	s.press("q")
	if _, err := s.ends(); err != nil {
		t.Error(err)
	}
}

// TestBoardQuestionGone closes a question that someone else has answered, and keeps one that the person leaves open.
func TestBoardQuestionGone(t *testing.T) {
	a := newApp(t)
	session, ended := goes(t, a, "paint it", call("note", `{"word":"blue"}`), sayStep("Over."))
	s, opened := boardOf(t, a, 40, 16)
	s.shows("note asks")
	s.press("y")
	s.shows("or say what to do instead")
	s.press(esc)
	s.wait("the list", func(text string) bool { return !strings.Contains(text, "say what to do") })
	if n := len(decisions(t, a, session.ID())); n > 0 {
		t.Errorf("%d answers", n)
	}
	s.press("y")
	s.shows("or say what to do instead")
	p := session.Status().Waiting[0]
	if _, err := a.Send(t.Context(), session.ID(), app.Message{By: "another", Allow: p.Call.ID, For: "once"}); err != nil {
		t.Fatal(err)
	}
	s.shows("the question is no longer open")
	ended()
	// What was decided on that question counts for no other.
	_, err := a.Send(t.Context(), session.ID(), app.Message{By: "late", Allow: p.Call.ID, For: "once", Question: p.Question})
	if err == nil || !strings.Contains(err.Error(), "no longer open") {
		t.Error(err)
	}
	s.shows("5 done 1")
	s.press(enter)
	if _, err := s.ends(); err != nil || *opened != session.ID() {
		t.Errorf("%q, %v", *opened, err)
	}
}
