package tui_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

func TestWholeSession(t *testing.T) {
	s := start(t, 80, 24, nil, call("look", `{"word":"blue"}`), call("note", `{"word":"red"}`), sayStep("All **done**, see `a`."))
	if entries, err := os.ReadDir(filepath.Join(s.tui.App.StateDir, "sessions")); len(entries) > 0 {
		t.Errorf("an empty start left %v %v", entries, err)
	}
	s.typed("do it", enter)
	s.shows("› do it", "▸ look", "blue", "+3 lines", "? note asks", "changes /", "1 Yes (y)", "or say what to do instead")
	s.press(ctrlO) // the last result whole
	s.wait("all lines", func(text string) bool { return strings.Count(text, "blue") == 11 })
	s.press(enter)
	s.shows("Please answer; nothing runs before you do.")
	s.press("y" + enter)
	text := s.shows("noted red", "■ done · 3 turns")
	for _, want := range []string{"All ", "done", "0% of 200k"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	s.wait("the question to go", func(text string) bool { return !strings.Contains(text, "? note asks") })
	s.press(ctrlD)
	code, err := s.ends()
	if text := s.text(); code != 0 || err != nil || !strings.Contains(text, "continue with: inspan resume ") ||
		strings.Contains(text, "say what to do") {
		t.Errorf("code %d, %v:\n%s", code, err, text)
	}
	s.restored()
}

// restored holds that the terminal is as it was.
func (s *screen) restored() {
	s.t.Helper()
	raw := s.raw.String()
	for _, pair := range [][2]string{{"\x1b[?2004h", "\x1b[?2004l"}, {"\x1b[?25l", "\x1b[?25h"}, {"\x1b[?1049h", "\x1b[?1049l"}} {
		if on, off := strings.LastIndex(raw, pair[0]), strings.LastIndex(raw, pair[1]); on > off {
			s.t.Errorf("%q is left", pair[0])
		}
	}
	if strings.Contains(raw, "\x1b]0;evil") {
		s.t.Error("a tool has driven the terminal")
	}
}

func TestDecisions(t *testing.T) {
	for _, tc := range []struct {
		name, keys string
		shown      string
	}{
		{"no", "n", "Denied by the user."},
		{"no with enter", "no" + enter, "Denied by the user."},
		{"yes", "y", "noted red"},
		{"yes with enter", "yes" + enter, "noted red"},
		{"instead", "do it in b" + enter, "Denied by the user: do it in b"},
		{"words that begin with a letter of a choice", "please use b" + enter, "Denied by the user: please use b"},
		{"session", "s", "allowed in this session: write(a)"},
		{"a number", "2", "allowed in this session: write(a)"},
		{"the number of no", "6", "Denied by the user."},
		{"words that begin with a number", "2 files at most" + enter, "Denied by the user: 2 files at most"},
		{"arrows", "\x1b[B\x1b[B" + enter, "allowed in this session: write(a)"},
		{"interrupt", ctrlC, "■ cancelled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, 80, 24, nil, call("note", `{"word":"red"}`), sayStep("Over."))
			s.typed("go", enter)
			s.shows("? note asks", "changes to a in this session", "or say what to do instead")
			s.press(tc.keys)
			text := s.shows(tc.shown, "■ ")
			if allowed := strings.Contains(tc.shown, "allowed") || tc.shown == "noted red"; allowed != strings.Contains(text, "noted red") {
				t.Errorf("it ran, or did not:\n%s", text)
			}
		})
	}
}

// TestApprovalsAreListed checks that approvals for the session are among the rules in force, even after a resume.
func TestApprovalsAreListed(t *testing.T) {
	for key, rule := range map[string]string{
		"s": "  allow  write(a)  (this session: approved with s, at note)",
		"w": "  allow  edits  (this session: approved with w, all edits, at note)",
	} {
		s := start(t, 80, 30, nil, call("note", `{"word":"red"}`), sayStep("Over."))
		s.typed("go", enter)
		s.shows("except guarded ones (w)", "or say what to do instead")
		s.press(key)
		s.shows("■ done")
		s.press("/permissions" + enter)
		if text := s.shows("mode ask\n" + rule); strings.Contains(text, "no rules") {
			t.Error(text)
		}
		s.press("/resume last" + enter)
		s.shows("· session ")
		s.press("/permissions" + enter)
		s.wait("the rule again", func(text string) bool { return strings.Count(text, rule) == 2 })
	}
}

// TestQuestionWaitsForAPause checks that a question never takes the rest of typed text for an answer.
func TestQuestionWaitsForAPause(t *testing.T) {
	s := start(t, 80, 24, nil, call("note", `{"word":"red"}`), sayStep("Over."))
	s.typed("go", enter+"half a wo")
	s.shows("› go", "half a wo")
	s.press("rd" + enter)
	s.shows("? note asks", "or say what to do instead")
	s.press("y" + enter)
	if text := s.shows("noted red", "half a word", "■ done"); strings.Contains(text, "Denied") {
		t.Error(text)
	}
}

func TestEscInterruptsAtTheQuestion(t *testing.T) {
	s := start(t, 80, 24, nil, call("note", `{"word":"red"}`))
	s.typed("go", enter)
	s.shows("? note asks")
	s.press(esc)
	s.shows("■ cancelled")
}

func TestSteerQueueInterrupt(t *testing.T) {
	s := start(t, 80, 24, nil, call("slow", `{"word":"turning"}`), sayStep("Fine."), sayStep("Later too."))
	s.typed("go", enter)
	s.shows("▸ slow", "turning")
	s.typed("in German", enter)
	s.shows("↳ steering: in German")
	s.typed("then tidy up", "\t")
	s.shows("↳ queued: then tidy up")
	s.press(ctrlC)
	s.shows("› in German", "› then tidy up", "■ done", "✗ cancelled")
	s.wait("nothing to be pending", func(text string) bool { return !strings.Contains(text, "↳") })
}

// TestEscTakesTheQueueBack checks that Esc puts queued text back into the prompt, and that the run continues until it
// is pressed again.
func TestEscTakesTheQueueBack(t *testing.T) {
	s := start(t, 80, 24, nil, call("slow", `{"word":"turning"}`), sayStep("Fine."))
	s.typed("go", enter)
	s.shows("▸ slow", "turning")
	s.press("\x1b[200~" + strings.Repeat("line\n", 120) + "\x1b[201~")
	s.shows("[pasted 120 lines]")
	s.press("\t")
	s.shows("↳ queued: line line")
	s.typed("then tidy up", "\t")
	s.shows("↳ queued: then tidy up")
	s.press(esc)
	s.shows("› [pasted 120 lines]\n  then tidy up", "press again to interrupt")
	s.wait("an empty queue", func(text string) bool { return !strings.Contains(text, "↳") })
	s.press(esc)
	text := s.shows("■ cancelled")
	if strings.Contains(text, "Fine.") {
		t.Error(text)
	}
	s.press(enter)
	s.shows("Fine.", "■ done")
}

// TestEscTakesBackWhatIsOnItsWay checks that queued text that the run has not noticed yet, because its model
// answers, is back in the prompt at once and in order, and that nothing of it runs after an interrupt.
func TestEscTakesBackWhatIsOnItsWay(t *testing.T) {
	for name, second := range map[string]string{"then": "", "at once": esc} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 80, 24, nil, script.Step{Parts: llm.Say("Never."), Delay: time.Hour})
			s.typed("go", enter)
			s.shows("› go\n", "working")
			for _, text := range []string{"one", "two", "three"} {
				s.typed(text, "\t")
				s.shows("↳ queued: " + text)
			}
			s.press(esc + second)
			s.wait("the queue in the prompt", func(text string) bool {
				return strings.Contains(text, "› one\n  two\n  three\n") && !strings.Contains(text, "↳")
			})
			if second == "" {
				s.shows("the queued text is back in the prompt; press again to interrupt")
				s.press(esc)
			}
			s.shows("■ cancelled")
			s.press(ctrlC)
			text := s.shows("› say what to do")
			if strings.Contains(text, "› one") || strings.Contains(text, "› three") || strings.Count(text, "■ cancelled") != 1 {
				t.Errorf("what was taken back ran:\n%s", text)
			}
		})
	}
}

// TestEscTwiceAtOnce checks that two presses that arrive in one read count as two.
func TestEscTwiceAtOnce(t *testing.T) {
	s := start(t, 80, 24, nil, call("slow", `{"word":"turning"}`), sayStep("Fine."))
	s.typed("go", enter)
	s.shows("▸ slow", "turning")
	s.press(esc + esc)
	s.shows("■ cancelled")
	s.wait("the run to end", func(text string) bool { return strings.Contains(text, "say what to do") })
	s.press(esc + esc)
	s.shows("rewind to before (1 of 1)")
}

// TestCommandAtAQuestion checks that a command is never the answer to a question.
func TestCommandAtAQuestion(t *testing.T) {
	for name, step := range map[string]script.Step{
		"consent": call("note", `{"word":"red"}`),
		"answer":  call("ask", `{"question":"Which?","options":["/new","b"]}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 80, 24, func(t *tui.TUI) {
				t.Commands = []tui.Command{
					{Name: "told", Print: func(_ context.Context, args string) (string, error) { return "told " + args, nil }},
					{Name: "asked", Prompt: func(context.Context, string) (string, error) { return "something else", nil }},
				}
			}, step, sayStep("Over."))
			s.typed("go", enter)
			s.shows(map[string]string{"consent": "or say what to do instead", "answer": "your answer"}[name])
			for _, c := range []struct{ typed, shown string }{
				{"/todo", "the todo list is empty"},
				{"/told twice", "told twice"},
				{"/new", "Please answer first; /new does not work during a question."},
				{"/asked", "Please answer first; /asked does not work during a question."},
			} {
				s.press(c.typed + enter)
				s.shows(c.shown)
			}
			s.press("/quit" + enter)
			if code, err := s.ends(); code != 0 || err != nil {
				t.Error(code, err)
			}
			list, err := s.tui.App.Store().List(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			for e, err := range s.tui.App.Store().Events(t.Context(), list[0].ID) {
				if err != nil {
					t.Fatal(err)
				}
				switch e.Body.(type) {
				case event.Decided, event.Cancelled:
					t.Errorf("a command was an answer, or who leaves took the question back: %+v", e.Body)
				}
			}
		})
	}
}

// TestDecidedElsewhere checks that the front end sees decisions of others.
func TestDecidedElsewhere(t *testing.T) {
	s := start(t, 80, 24, nil, call("note", `{"word":"red"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("? note asks")
	other := s.tui.Host(app.Options{}, nil)
	session, err := other.Open(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, err := range session.Run(t.Context()) {
		if _, held := errors.AsType[*inspan.DrivenError](err); !held {
			t.Errorf("a session that asks is held by nobody: %v", err)
		}
	}
	for _, p := range session.Status().Waiting {
		if err := session.Send(t.Context(), event.Decided{Call: p.Call.ID, Allow: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	s.shows("answered by ann: note is allowed", "noted red", "Over.", "■ done")
	s.wait("no question", func(text string) bool { return !strings.Contains(text, "? note asks") })
	s.typed("and now", enter)
	s.wait("another run", func(text string) bool { return strings.Count(text, "■ done") == 2 })
}

func TestQuestionOfACall(t *testing.T) {
	step := call("ask", `{"question":"Which colour?","options":["blue","green"]}`)
	for _, tc := range []struct{ keys, shown string }{
		{"2" + enter, "the person said green"},
		{"\x1b[B" + enter, "the person said blue"},
		{"red" + enter, "the person said red"},
		{esc, "✗ denied"},
	} {
		s := start(t, 80, 24, nil, step, sayStep("Over."))
		s.typed("go", enter)
		s.shows("Which colour?", "1 blue", "2 green", "your answer")
		s.press(tc.keys)
		s.shows(tc.shown, "■ done")
	}
}

// TestLongOptionsAreWhole checks that an option that fits into no line is shown whole.
func TestLongOptionsAreWhole(t *testing.T) {
	long := "sqlite, because it needs no server and is in the standard library of Python, which is what this project uses"
	step := call("ask", `{"question":"Which?","options":["`+long+`","postgres"]}`)
	for _, width := range []int{80, 40} {
		s := start(t, width, 24, nil, step, sayStep("Over."))
		s.typed("go", enter)
		text := s.shows("Which?", "2 postgres", "your answer")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), "1 "+long+" 2 postgres") {
			t.Error(text)
		}
		s.press("\x1b[B\x1b[B" + enter)
		s.shows("the person said postgres", "■ done")
	}
}

// TestResumeOfAnotherFolder says that the session which is opened works elsewhere.
func TestResumeOfAnotherFolder(t *testing.T) {
	s := start(t, 100, 24, nil, sayStep("One."))
	s.typed("go", enter)
	s.shows("■ done")
	id, _ := s.modes()
	there := start(t, 100, 24, func(next *tui.TUI) { next.App, next.Host, next.Session = s.tui.App, s.tui.Host, id })
	there.shows("· session "+id, "! it works in another folder: ")
	here := start(t, 100, 24, func(next *tui.TUI) {
		next.App, next.Host, next.Session, next.Root = s.tui.App, s.tui.Host, id, s.tui.Root
	})
	if text := here.shows("· session " + id); strings.Contains(text, "another folder") {
		t.Error(text)
	}
}

// TestStatusSaysWhatContextSays checks that one figure tells how full the window is, also where the model only guesses
// how long its prompt was.
func TestStatusSaysWhatContextSays(t *testing.T) {
	s := start(t, 100, 24, nil, script.Step{Parts: llm.Say("One."), Usage: llm.Usage{Input: 100_000, Estimated: true}})
	s.typed("go", enter)
	s.shows("■ done", " 0% of 200k")
	s.press("/context" + enter)
	s.shows("tokens, 0.1% of a window of 200,000")
}

// TestDiffNamesWhatCommandsChanged checks that /diff also names files whose change no call has shown, until it is
// undone.
func TestDiffNamesWhatCommandsChanged(t *testing.T) {
	s := start(t, 80, 30, func(front *tui.TUI) {
		run := tool.New("run", "writes", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
			return tool.Text("made"), os.WriteFile(filepath.Join(c.Env.Root, "b.txt"), []byte("new\n"), 0o600)
		})
		run.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
			return []tool.Effect{{Kind: tool.Write, Path: filepath.Join(c.Env.Root, "b.txt")}}, nil
		}
		front.Options.Mode = tool.ModeEdit
		front.Host = func(o app.Options, _ func(string)) *inspan.Host {
			return &inspan.Host{Dir: front.App.Store().Dir, Agent: func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				take, err := front.App.Rewind.Checkpointing(ctx, at.Root, nil)
				return &inspan.Agent{
					Model: &script.Model{Steps: []script.Step{call("run", `{}`), sayStep("Over.")}}, Tools: []tool.Tool{run},
					Mode: o.Mode, Env: tool.Env{Root: at.Root}, Limits: inspan.Limits{Retry: -1}, Workspace: inspan.Workspace{Checkpoint: take},
				}, err
			}}
		}
	})
	s.typed("go", enter)
	s.shows("Over.", "■ done", "say what to do")
	s.press("/diff" + enter)
	if text := s.shows("Changed by commands; /undo knows these files too:\n  b.txt                     created"); strings.Contains(text, "nothing has changed") {
		t.Error(text)
	}
	s.press("/undo" + enter)
	s.shows("b.txt is removed", "y yes")
	s.press("y")
	s.shows("1 file")
	s.press("/diff" + enter)
	s.shows("nothing has changed a file, or all changes were undone")
}

func TestResumeAndHistory(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("First answer."), sayStep("Second answer."))
	s.typed("first thing", enter)
	s.shows("■ done")
	s.press(ctrlD)
	_, _ = s.ends()
	again := start(t, 80, 24, func(next *tui.TUI) {
		next.App, next.Host, next.Session, next.Root = s.tui.App, s.tui.Host, "?", s.tui.Root
	})
	again.shows("resume (1 of 1)", "first thing")
	again.press(enter)
	again.shows("First answer.", "· session ")
	again.press("\x1b[A") // what was said before
	again.shows("› first thing\n")
	again.press(" again" + enter)
	again.shows("› first thing again", "Second answer.")
}

func TestNewSessionAndUnknownCommand(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("One."))
	s.typed("a", enter)
	s.shows("■ done")
	s.press("/new" + enter)
	s.shows("your next message starts a new session")
	s.typed("b", enter)
	s.wait("two answers", func(text string) bool {
		return strings.Count(text, "One.") == 2 && strings.Count(text, "■ done") == 2
	})
	s.press("/hlep" + enter)
	s.shows(`unknown command /hlep; did you mean "help"?`)
	s.press(ctrlC + "/help" + enter)
	s.shows("/resume [id]", "Esc closes")
	if list, err := s.tui.App.Store().List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

func TestModes(t *testing.T) {
	s := start(t, 80, 24, nil, call("note", `{"word":"red"}`), sayStep("Over."))
	s.shows("\nask")
	s.press("\x1b[Z")
	s.shows("\nedit")
	s.press("\x1b[Z")
	s.shows("\nauto")
	s.typed("go", enter)
	s.shows("noted red", "■ done")
	s.press("/mode yolo" + enter)
	s.shows("nothing asks any more", "y yes")
	s.press("y")
	s.shows("· yolo ·")
}

// TestModesAtOnce checks that each press counts, even while the switch before it is on its way to the log.
func TestModesAtOnce(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("Over."))
	s.typed("go", enter+strings.Repeat("\x1b[Z", 3)) // while the session is opened
	s.shows("■ done", "· plan ·")
	for _, at := range []string{"auto", "edit", "ask"} { // three steps each, of four
		s.press(strings.Repeat("\x1b[Z", 3))
		s.wait(at, func(text string) bool {
			return !strings.Contains(text, "now working in mode") && strings.Contains(text, "· "+at+" ·") && !strings.Contains(text, "after this run")
		})
	}
}

// TestModeAtAQuestion checks that a mode that is chosen at a question answers it, if it lets the call run.
func TestModeAtAQuestion(t *testing.T) {
	s := start(t, 80, 24, nil, call("note", `{"word":"red"}`), call("note", `{"word":"blue"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("? note asks", "or say what to do instead")
	s.press("\x1b[Z")
	s.shows("· edit ·", "answered by mode edit: note is allowed")
	s.shows("noted red", "noted blue", "■ done", "script/commands · edit")
	s.wait("no question", func(text string) bool { return !strings.Contains(text, "? note asks") })
}

// TestMissingServer checks that a missing server of the settings is reported before the first message, with advice.
func TestMissingServer(t *testing.T) {
	s := start(t, 90, 24, func(t *tui.TUI) {
		t.Host = nil
		t.App.Config.Model = "here/m"
		t.App.Config.Providers = map[string]config.Provider{"here": {Kind: "openai", BaseURL: "http://127.0.0.1:1"}}
	})
	s.shows("here does not answer, see /status · here/m · ask")
	s.press("/status" + enter)
	s.shows("here does not answer: no server listens at 127.0.0.1:1")
}

// TestAllOfAResult checks that Ctrl-O shows a whole result, even one that is too long for the log.
func TestAllOfAResult(t *testing.T) {
	for name, change := range map[string]func(*tui.TUI){"inline": nil, "fullscreen": func(t *tui.TUI) { t.Fullscreen = true }} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 200, 400, change, call("look", `{"word":"`+strings.Repeat("x", 9000)+`MIDDLE"}`), sayStep("Seen."))
			s.typed("go", enter)
			s.shows("Seen.", "■ done")
			s.press(ctrlO)
			s.wait("all of it", func(text string) bool {
				return strings.Count(text, "MIDDLE") >= 6 && !strings.Contains(text, "left out")
			})
		})
	}
}

func TestFullscreen(t *testing.T) {
	s := start(t, 60, 16, func(t *tui.TUI) { t.Fullscreen = true }, call("look", `{"word":"blue"}`),
		sayStep(strings.Repeat("word\n\n", 30)+"the end"))
	s.typed("go", enter)
	s.shows("the end", "■ done")
	s.press("\x1b[5~\x1b[5~\x1b[5~\x1b[5~\x1b[5~\x1b[5~")
	s.shows("› go", "▸ look", "+3 lines")
	s.press(ctrlO)
	s.wait("all lines", func(text string) bool { return strings.Count(text, "blue") >= 6 && !strings.Contains(text, "+3 lines") })
	s.press(ctrlD)
	_, _ = s.ends()
	s.restored()
}

func TestPasteAndImage(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("Seen."))
	picture := filepath.Join(s.tui.Root, "a b.png")
	if err := os.WriteFile(picture, []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.press("\x1b[200~" + strings.Repeat("line\n", 120) + "\x1b[201~")
	s.shows("[pasted 120 lines]")
	s.press("\x1b[200~" + strings.ReplaceAll(picture, " ", `\ `) + "\x1b[201~")
	s.shows("[image a b.png]")
	s.press(enter)
	s.shows("Seen.", "■ done")
	list, err := s.tui.App.Store().List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	said := ""
	for e, err := range s.tui.App.Store().Events(t.Context(), list[0].ID) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Kind() == "said" {
			raw, _ := json.Marshal(e.Body)
			said = string(raw)
		}
	}
	if strings.Count(said, "line\\n") != 120 || !strings.Contains(said, `"media_type":"image/png"`) {
		t.Errorf("said: %.300s", said)
	}
}

func TestFileCompletion(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("Yes."))
	for _, name := range []string{"main.go", "notes.txt", "hidden.log", ".gitignore"} {
		if err := os.WriteFile(filepath.Join(s.tui.Root, name), []byte("*.log\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.press("look at @")
	text := s.shows("@main.go", "@notes.txt")
	if strings.Contains(text, "hidden.log") {
		t.Error("an ignored file is offered")
	}
	s.press("nt")
	s.wait("one offer", func(text string) bool { return !strings.Contains(text, "@main.go") })
	s.press("\t")
	s.shows("› look at @notes.txt\n")
}

func TestLimits(t *testing.T) {
	s := start(t, 80, 24, func(t *tui.TUI) {
		host := t.Host
		t.Host = func(o app.Options, warn func(string)) *inspan.Host {
			h := host(o, warn)
			make := h.Agent
			h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				a, err := make(ctx, at)
				if at.New {
					a.Limits.Turns = 1
				}
				return a, err
			}
			return h
		}
	}, call("look", `{"word":"a"}`), call("look", `{"word":"b"}`), sayStep("At last."))
	s.typed("go", enter)
	s.shows("1 Yes, continue with twice the limit (y)", "2 No, stop here (n)", "y or n")
	s.press("y")
	s.shows("? 2 turns used of 2", "y or n")
	s.press("yes" + enter)
	s.shows("At last.")
}

func TestTodo(t *testing.T) {
	s := start(t, 80, 24, nil, call("todo", `{}`), call("slow", `{"word":"x"}`))
	s.typed("go", enter)
	s.shows("☑ read", "▣ write it", "☐ test")
	s.press(esc)
	s.wait("the list to go", func(text string) bool {
		return !strings.Contains(text, "▣") && strings.Contains(text, "■ cancelled")
	})
	s.press("/todo" + enter)
	s.shows("▣ write it")
}

func TestRewind(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("One."), sayStep("Two."))
	s.typed("alpha", enter)
	s.shows("One.", "■ done")
	s.typed("beta", enter)
	s.shows("Two.")
	s.wait("the end", func(text string) bool { return strings.Count(text, "■ done") == 2 })
	s.press("/rewind" + enter)
	s.shows("rewind to before (2 of 2)")
	s.press(enter)
	s.shows("only the conversation")
	s.press("\x1b[B\x1b[B" + enter)
	s.shows("the conversation returns to event")
	s.press("y")
	s.shows("the conversation was rewound")
	s.wait("it in the prompt, to be changed", func(text string) bool { return strings.Count(text, "› beta\n") == 2 })
}

func TestPanicRestoresTheTerminal(t *testing.T) {
	s := start(t, 80, 24, func(t *tui.TUI) {
		t.Commands = []tui.Command{{Name: "boom", Print: func(context.Context, string) (string, error) { panic("boom") }}}
	})
	s.press("/boom" + enter)
	code, err := s.ends()
	if code == 0 || err == nil {
		t.Errorf("code %d, %v", code, err)
	}
	s.restored()
}

// panicky is a model with a flaw.
type panicky struct{ script.Model }

func (*panicky) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] { panic("a flaw") }

// TestPanicOfAModelIsShown checks that a model that panics ends its run and nothing else.
func TestPanicOfAModelIsShown(t *testing.T) {
	s := start(t, 80, 24, func(t *tui.TUI) {
		t.Host = func(app.Options, func(string)) *inspan.Host {
			return &inspan.Host{Dir: t.App.Store().Dir, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				return &inspan.Agent{Model: &panicky{}, Env: tool.Env{Root: at.Root}}, nil
			}}
		}
	})
	s.press("go" + enter)
	s.shows("panic: the model crashed: a flaw", "say what to do")
	s.press(ctrlD)
	if code, err := s.ends(); code != 0 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	s.restored()
}

func TestQuitInterrupts(t *testing.T) {
	s := start(t, 80, 24, nil, call("slow", `{"word":"turning"}`))
	s.typed("go", enter)
	s.shows("turning")
	s.press(ctrlC + ctrlC) // at once: the run may end before a screen between the two is seen
	if code, err := s.ends(); code != 0 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	s.restored()
}

// TestInterruptIsOver checks that the hint about an interrupt disappears with the run that it ends, and that the queued
// run continues.
func TestInterruptIsOver(t *testing.T) {
	s := start(t, 80, 24, nil, call("slow", `{"word":"turning"}`), call("slow", `{"word":"heron"}`))
	s.typed("go", enter)
	s.shows("turning")
	s.typed("more", "\t")
	s.shows("queued: more")
	s.press(ctrlC)
	s.wait("the next run alone", func(text string) bool {
		return strings.Contains(text, "heron") && !strings.Contains(text, "press again to quit")
	})
}

// TestConfirmIsWhole checks that a confirmation shows everything that a yes does.
func TestConfirmIsWhole(t *testing.T) {
	s := start(t, 40, 12, nil)
	s.typed("/mode yolo", enter)
	s.shows("even deleting files", "network", "y yes · n no")
}

func TestNobodyLeavesJunkOnASmallTerminal(t *testing.T) {
	s := start(t, 40, 10, nil, call("note", `{"word":"`+strings.Repeat("long 漢字 ", 60)+`"}`), sayStep(strings.Repeat("😀 שלום 漢字 ", 40)))
	s.typed("go", enter)
	s.shows("pgup, pgdown", "or say what to do instead")
	s.press("\x1b[6~")
	s.press("y" + enter)
	s.wait("nothing but the end", func(text string) bool {
		return strings.Contains(text, "■ done") && strings.Count(text, "? note asks") == 0 &&
			strings.Count(text, "working") == 0 && strings.Count(text, "say what to do") == 1
	})
}

// TestRulesAreSeenFirst checks that an approval for longer than a call counts when the rules have been on the screen.
func TestRulesAreSeenFirst(t *testing.T) {
	s := start(t, 40, 10, nil, call("note", `{"word":"`+strings.Repeat("long ", 80)+`"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("pgup, pgdown", "or say what to do instead")
	s.press("s")
	if text := s.shows("The choices are above", "(s)"); strings.Contains(text, "Over.") {
		t.Errorf("it counts unseen:\n%s", text)
	}
	s.press("s")
	s.shows("Over.")
}

// TestQuitBesideAQuestion checks that a call that runs next to a question does not continue without a person.
func TestQuitBesideAQuestion(t *testing.T) {
	both := script.Step{Parts: slices.Concat(call("slow", `{"word":"turning"}`).Parts, call("note", `{"word":"red"}`).Parts)}
	s := start(t, 80, 24, nil, both, sayStep("Over."))
	s.typed("go", enter)
	s.shows("▸ slow", "turning", "? note asks", "or say what to do instead")
	s.press(ctrlD)
	if code, err := s.ends(); code != 0 || err != nil {
		t.Error(code, err)
	}
	id, _ := s.modes()
	w, err := s.tui.Host(app.Options{}, nil).Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if st := w.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled {
		t.Errorf("%+v", st)
	}
}
