package tui_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// habit is a slash command or a key: the keys pressed in a session that has had one run, and the resulting screen.
type habit struct {
	name  string // of the command with its slash, or the action of the key
	keys  string
	shown []string
	gone  string          // is no longer shown; empty means nothing is looked for
	with  func(*tui.TUI)  // changes the front end; nil means nothing
	ends  bool            // the front end ends
	steps []script.Step   // of the model; none: one that thinks, calls look and answers
	first string          // keys before, whose effect shows then; see its shown
	then  []string        // shown before keys is pressed
	check func(s *screen) // nil means nothing more is checked
}

const (
	typing  = "say this"
	up      = "\x1b[A"
	down    = "\x1b[B"
	left    = "\x1b[D"
	right   = "\x1b[C"
	ctrlA   = "\x01"
	ctrlE   = "\x05"
	oneStep = "\x1b[1;5D" // back one word
)

func habits() []habit {
	return slices.Concat(commandHabits(), keyHabits(), editHabits())
}

// commandHabits has a row for each slash command.
func commandHabits() []habit {
	return []habit{
		{name: "/help", keys: "/help" + enter, shown: []string{"Commands:", "/rewind", "Esc closes"}, check: readAndGone},
		{name: "/new", keys: "/new" + enter, shown: []string{"is closed; /resume 2", "your next message starts a new session"}},
		{
			name: "/clear", keys: "/clear" + enter, shown: []string{"is closed; /resume 2", "your next message starts a new session"},
			with: whole, gone: "The first answer.", check: resumable,
		},
		{
			name:  "/status",
			keys:  "/status" + enter,
			shown: []string{"model ", "default effort", "mode ", "session ", "context ", "cost ", "sandbox "},
		},
		{
			name:  "/status",
			first: "/mode yolo" + enter + "y", then: []string{"· yolo"}, keys: "/status" + enter,
			shown: []string{"sandbox    not used in mode yolo: commands run without it"},
		},
		{name: "/resume", keys: "/resume" + enter, shown: []string{"resume (1 of 1)", "go"}},
		{name: "/sessions", keys: "/sessions" + enter, shown: []string{"just now", "go"}},
		{name: "/continue", keys: "/continue" + enter, shown: []string{"the run is done; type a new task"}},
		{name: "/loop", keys: "/loop 5m look" + enter, shown: []string{"repeats every 5m00s", "› look", "loop at"}},
		{name: "/model", keys: "/model nobody/x" + enter, shown: []string{"nobody"}},
		{
			name:  "/model",
			keys:  "/model openai/gpt-x" + enter,
			shown: []string{"· model openai/gpt-x answers your next message", "\nopenai/gpt-x · ask"},
			check: once,
		},
		{name: "/add-dir", keys: "/add-dir" + enter, shown: []string{"folders beside the workspace: none; /add-dir FOLDER opens one"}},
		{name: "/add-dir", keys: "/add-dir /none/such" + enter, shown: []string{"/none/such does not exist"}},
		{
			name: "/add-dir", first: "/add-dir /usr/share" + enter, then: []string{"/usr/share is open to the session"},
			keys: "/status" + enter, shown: []string{"folders    /usr/share"}, check: once,
		},
		{name: "/effort", keys: "/effort high" + enter, shown: []string{"now working at effort high"}},
		{name: "/effort", keys: "/effort hihg" + enter, shown: []string{`unknown effort "hihg"; use one of low, medium, high, xhigh, max`}},
		{name: "/effort", keys: "/effort" + enter, shown: []string{"effort (5 of 5)", "xhigh"}},
		{name: "/reasoning", keys: "/reasoning" + enter, shown: []string{"∙ it must be blue", "and nothing else"}},
		{
			name: "/theme", keys: "/theme light" + enter, shown: []string{"Set tui.theme in ", "config.toml."},
			check: stores("[tui]\ntheme = \"light\""), with: settled,
		},
		{
			name: "/output-style", keys: "/output-style concise" + enter, shown: []string{"in style concise; /new begins one", "Set output_style in "},
			check: stores(`output_style = "concise"`), with: settled,
		},
		{name: "/output-style", keys: "/output-style curt" + enter, shown: []string{`unknown output style "curt"; use one of concise, default, explanatory, learning`}},
		{name: "/output-style", keys: "/output-style" + enter, shown: []string{"output style (4 of 4)", "› default  now"}},
		{name: "/theme", keys: "/theme pink" + enter, shown: []string{`unknown theme "pink"; use one of dark, light, auto`}},
		{name: "/theme", keys: "/theme" + enter, shown: []string{"theme (3 of 3)", "› auto  now"}},
		{name: "/vim", keys: "/vim on" + enter, shown: []string{"Set tui.vim in ", "INSERT"}, check: stores("[tui]\nvim = true"), with: settled},
		{name: "/vim", keys: "/vim" + enter, shown: []string{"› off  now"}},
		{name: "/mode", keys: "/mode edit" + enter, shown: []string{"· edit"}},
		{name: "/mode", keys: "/mode" + enter, shown: []string{"mode (5 of 5)", "› ask  now · "}},
		{name: "/model", keys: "/model" + enter, shown: []string{"› script/commands  now"}},
		{name: "/btw", keys: "/btw" + enter, shown: []string{"write the question too"}},
		{name: "/btw", keys: "/btw what is it?" + enter, shown: []string{"btw: what is it?\n"}, check: asideOnly},
		{
			name: "/btw", first: `call: slow {"word":"x"}` + enter, then: []string{"▸ slow"}, keys: "/btw say: blue" + enter,
			shown: []string{"btw: say: blue\n", "\nblue\n", "▸ slow"}, check: asideInRun, steps: []script.Step{sayStep("The first answer.")},
		},
		{name: "/plan", keys: "/plan" + enter, shown: []string{"· plan ·"}},
		{
			name: "/plan", keys: "/plan look round" + enter, shown: []string{"· plan ·", "› look round", "a plan"},
			steps: []script.Step{sayStep("The first answer."), sayStep("a plan")},
		},
		{
			name: "/plan", first: "again" + enter, then: []string{"slow"}, keys: "/plan look round" + enter + ctrlC,
			steps: []script.Step{sayStep("The first answer."), call("slow", `{"word":"x"}`), sayStep("a plan")}, check: plannedLast,
		},
		{name: "/permissions", keys: "/permissions" + enter, shown: []string{"mode ask", "no rules"}},
		{name: "/context", keys: "/context" + enter, shown: []string{"of a window of 200,000"}},
		{name: "/compact", keys: "/compact" + enter, shown: []string{"not compacted"}},
		{name: "/cost", keys: "/cost" + enter, shown: []string{"REPLIES", "script/commands"}},
		{name: "/spend", keys: "/spend" + enter, shown: []string{"your message", "ask for short answers"}},
		{name: "/todo", keys: "/todo" + enter, shown: []string{"the todo list is empty"}},
		{name: "/diff", keys: "/diff" + enter, shown: []string{"nothing has changed a file"}},
		{name: "/undo", keys: "/undo" + enter, shown: []string{"no changes since then, according to the checkpoints; /rewind goes back"}},
		{name: "/rename", keys: "/rename" + enter, shown: []string{"write the title too"}},
		{name: "/rename", keys: "/rename the new name" + enter, shown: []string{"the session is called the new name"}, check: renamed},
		{name: "/usage", keys: "/usage" + enter, shown: []string{"REPLIES", "script/commands"}},
		{name: "/rewind", keys: "/rewind" + enter, shown: []string{"rewind to before (1 of 1)"}},
		{name: "/fork", keys: "/fork" + enter, shown: []string{"forked from "}},
		{name: "/export", keys: "/export" + enter, shown: []string{"written to "}, check: notTwice},
		{name: "/export", keys: "/export ~/talk.md" + enter, shown: []string{"written to "}, check: atHome},
		{
			name: "/export", keys: "/export out/talk.md" + enter, shown: []string{"if you mean it"},
			with: func(t *tui.TUI) { _ = os.Symlink(os.TempDir(), filepath.Join(t.Root, "out")) },
		},
		{name: "/export", keys: "/export " + filepath.Join(os.TempDir(), "no", "such", "folder") + enter, shown: []string{"no such file"}},
		{name: "/copy", keys: "/copy" + enter, shown: []string{"copied, if the terminal supports it"}},
		{name: "/tools", keys: "/tools" + enter, shown: []string{"read_file"}},
		{name: "/jobs", keys: "/jobs" + enter, shown: []string{"no background jobs were started"}},
		{name: "/subagents", keys: "/subagents" + enter, shown: []string{"there are no subagents yet"}},
		{name: "/team", keys: "/team" + enter, shown: []string{"there is no team yet"}},
		{name: "/config", keys: "/config" + enter, shown: []string{"workspace ", "sessions "}},
		{name: "/quit", keys: "/quit" + enter, ends: true},
		{name: "/exit", keys: "/exit" + enter, ends: true},
	}
}

// keyHabits has a row for each key except those that only edit.
func keyHabits() []habit {
	return []habit{
		{
			name:  "send",
			keys:  "again" + enter,
			shown: []string{"› again", "again? as you like"},
			steps: []script.Step{sayStep("The first answer."), sayStep("again? as you like")},
		},
		{name: "queue", keys: "/stat\t", shown: []string{"› /status\n"}},
		{name: "newline", keys: "one\ntwo", shown: []string{"› one\n  two"}},
		{name: "escape", keys: esc + esc, shown: []string{"rewind to before (1 of 1)"}},
		{name: "interrupt", keys: ctrlC, first: "half", then: []string{"› half"}, shown: []string{"press again to quit"}, gone: "half"},
		{name: "quit", keys: ctrlD, ends: true},
		{name: "mode", keys: "\x1b[Z", shown: []string{"· edit ·"}},
		{name: "background", keys: typing + "\x02X", shown: []string{"› say thiXs"}}, // nothing runs; see TestScreenBackground
		{name: "unfold", keys: ctrlO, shown: []string{"✓ blue\n    blue\n    blue\n    blue\n    blue\n    blue"}},
		{name: "reasoning", keys: "\x14", shown: []string{"∙ it must be blue", "and nothing else"}},
		{name: "search", keys: "\x12", shown: []string{"history (1 of 1)", "› go"}},
		{name: "search", keys: "\x12g" + enter, shown: []string{"› go\nscript"}},
		{name: "edit", first: "old", then: []string{"› old"}, keys: "\x07", shown: []string{"› written in an editor"}, with: withEditor},
		{name: "edit", keys: "\x07", shown: []string{"set $EDITOR to write in an editor"}},
		{
			name: "paste-image", keys: "\x16", shown: []string{"no image in the clipboard; you can paste the path of a file"},
			with: func(t *tui.TUI) { t.Clipboard = func(context.Context) ([]byte, error) { return nil, nil } },
		},
		{name: "?", keys: "?", shown: []string{"shift+tab   next permission mode", "/help lists all"}, gone: "› ?", check: shut("?", "/help lists all")},
		{name: "?", keys: "why?", shown: []string{"› why?"}, gone: "/help lists all"},
		{
			name:  "!",
			keys:  "!echo mine; echo two >&2; exit 3" + enter,
			shown: []string{"! echo mine; echo two >&2; exit 3\n  mine\n  two\n  [exit 3]"},
			check: toldTheModel,
		},
		{
			name: "!", keys: "!seq 30" + enter, first: "!seq 40; echo end" + enter, then: []string{"… 29 lines above", "  end"},
			shown: []string{"… 18 lines above", "  30"},
		},
		{name: "unfold", first: "!seq 40" + enter, then: []string{"… 28 lines above"}, keys: ctrlO, shown: []string{"! seq 40\n  1\n  2\n"}},
		{name: "!", keys: "!" + enter, shown: []string{"type a command after !"}},
	}
}

// editHabits has a row for each key that edits.
func editHabits() []habit {
	row := func(name, keys, shown string) habit {
		return habit{name: name, first: typing, then: []string{"› " + typing}, keys: keys, shown: []string{shown}}
	}
	return []habit{
		row("up", ctrlE+up, "› go"),
		row("down", up+down, "› say this"),
		row("left", left+"X", "› say thiXs"),
		row("right", ctrlA+right+"X", "› sXay this"),
		row("word-left", oneStep+"X", "› say Xthis"),
		row("word-right", ctrlA+"\x1b[1;5C"+"X", "› sayX this"),
		row("home", ctrlA+"X", "› Xsay this"),
		row("end", ctrlA+ctrlE+"X", "› say thisX"),
		row("backspace", "\x7f"+"X", "› say thiX"),
		row("delete", ctrlA+"\x1b[3~"+"X", "› Xay this"),
		row("delete-word", "\x17"+"X", "› say X"),
		row("delete-start", left+"\x15"+"X", "› Xs"),
		row("delete-end", ctrlA+right+"\x0b"+"X", "› sX"),
		{name: "page-up", keys: "\x1b[5~", with: whole, shown: []string{"› go"}},
		{name: "page-down", keys: "\x1b[5~\x1b[6~", with: whole, shown: []string{"■ done"}},
	}
}

// withEditor has an editor that writes something else.
func withEditor(t *tui.TUI) { t.Edit = func(path string) tea.ExecCommand { return &editing{path} } }

type editing struct{ path string }

func (e *editing) SetStdin(io.Reader)  {}
func (e *editing) SetStdout(io.Writer) {}
func (e *editing) SetStderr(io.Writer) {}

// Run implements tea.ExecCommand.
func (e *editing) Run() error {
	old, err := os.ReadFile(e.path)
	if err != nil || string(old) != "old" {
		return fmt.Errorf("%q, %w", old, err)
	}
	return os.WriteFile(e.path, []byte("written in an editor\n"), 0o600)
}

func whole(t *tui.TUI) { t.Fullscreen = true }

// exempt are keys that need a real terminal. TestSlashes of the command has them.
func exempt() []string { return []string{"suspend", "redraw"} }

// sent is the bytes that terminals send for a key.
func sent(key string) string {
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok && len(letter) == 1 {
		return string(rune(letter[0] & 0x1f))
	}
	if letter, ok := strings.CutPrefix(key, "alt+"); ok && len(letter) == 1 {
		return esc + letter
	}
	return map[string]string{
		"enter": enter, "tab": "\t", "esc": esc, "up": up, "down": down, "left": left, "right": right,
		"home": "\x1b[H", "end": "\x1b[F", "delete": "\x1b[3~", "pgup": "\x1b[5~", "pgdown": "\x1b[6~", "backspace": "\x7f",
		"shift+tab": "\x1b[Z", "ctrl+left": oneStep, "alt+left": "\x1b[1;3D", "ctrl+right": "\x1b[1;5C", "alt+right": "\x1b[1;3C",
		"alt+enter": esc + enter, "alt+backspace": esc + "\x7f",
		"shift+enter": "\x1b[13;2u", "shift+backspace": "\x1b[127;2u", "ctrl+backspace": "\x1b[127;5u",
	}[key]
}

// by are the rows of a list that press a key of an action, again with each other key that does it.
func by(t *testing.T, list []habit, b tui.Binding) (out []habit) {
	t.Helper()
	for _, h := range list {
		at := slices.IndexFunc(b.Keys, func(key string) bool { return strings.Contains(h.keys, sent(key)) })
		if h.name != b.Action || at < 0 {
			continue
		}
		for i, key := range b.Keys {
			if other := h; i != at {
				other.name, other.keys = h.name+" by "+key, strings.ReplaceAll(h.keys, sent(b.Keys[at]), sent(key))
				out = append(out, other)
			}
		}
		return out
	}
	t.Errorf("no row presses a key of %s", b.Action)
	return nil
}

// TestHabits checks the effect of every slash command and every key in a session that has had a run. One without a row
// fails, and so does one that can't be pressed.
func TestHabits(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("OPENAI_API_KEY", "not-a-key")
	have := map[string]bool{}
	list := habits()
	for _, b := range tui.Bindings() {
		for _, key := range b.Keys {
			if sent(key) == "" {
				t.Errorf("it is not known what a terminal sends for %s", key)
			}
		}
		if !slices.Contains(exempt(), b.Action) {
			list = append(list, by(t, list, b)...)
		}
	}
	for _, h := range list {
		have[h.name] = true
		t.Run(strings.TrimPrefix(h.name, "/")+" "+strings.Trim(h.keys, "\r\n\x1b"), func(t *testing.T) { h.holds(t) })
	}
	for _, c := range tui.Commands() {
		if !have["/"+c.Name] {
			t.Errorf("/%s has no row", c.Name)
		}
	}
}

func (h habit) holds(t *testing.T) {
	steps := h.steps
	if steps == nil {
		steps = []script.Step{
			{Parts: slices.Concat(llm.Parts{llm.Reasoning{Text: "it must be blue\nand nothing else"}}, call("look", `{"word":"blue"}`).Parts)},
			sayStep("The first answer."),
		}
	}
	s := start(t, 90, 40, h.with, steps...)
	s.typed("go", enter)
	s.shows("The first answer.", "■ done")
	s.press(h.first)
	s.shows(h.then...)
	s.press(h.keys)
	if h.ends {
		if code, err := s.ends(); code != 0 || err != nil {
			t.Errorf("code %d, %v", code, err)
		}
		s.restored()
		return
	}
	s.shows(h.shown...)
	if h.gone != "" {
		s.wait("no "+h.gone, func(text string) bool { return !strings.Contains(text, h.gone) })
	}
	if h.check != nil {
		h.check(s)
	}
}

// once checks that past events are not printed again.
func once(s *screen) {
	s.t.Helper()
	if n := strings.Count(s.text(), "The first answer."); n != 1 {
		s.t.Errorf("the answer is shown %d times:\n%s", n, s.text())
	}
}

// settled has a settings file.
func settled(t *tui.TUI) { t.App.ConfigPath = filepath.Join(t.App.StateDir, "config.toml") }

// stores holds that a command has written a line of the table of the front end in it.
func stores(line string) func(s *screen) {
	return func(s *screen) {
		s.t.Helper()
		if raw, err := os.ReadFile(s.tui.App.ConfigPath); err != nil || !strings.Contains(string(raw), line+"\n") {
			s.t.Errorf("no %s in %q, %v", line, raw, err)
		}
	}
}

// notTwice holds that an export overwrites nothing.
func notTwice(s *screen) {
	s.press("/export" + enter)
	s.shows("! ", "/export FILE")
}

// atHome holds that ~ is the home folder.
func atHome(s *screen) {
	if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "talk.md")); err != nil {
		s.t.Error(err)
	}
}

// plannedLast holds that a task for mode plan, typed during a run, begins after it and in that mode.
func plannedLast(s *screen) {
	s.shows("· plan ·", "› look round", "a plan")
	list, err := s.tui.App.Store().List(s.t.Context())
	if err != nil || len(list) != 1 {
		s.t.Fatalf("%+v, %v", list, err)
	}
	var planned bool
	for e, err := range s.tui.App.Store().Events(s.t.Context(), list[0].ID) {
		if err != nil {
			s.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Switched:
			planned = planned || b.Mode == "plan"
		case event.Said:
			if b.Parts.Text() == "look round" && !planned {
				s.t.Error("the task began in the mode before")
			}
		}
	}
	if !planned {
		s.t.Error("the mode did not change")
	}
}

// asideOnly holds that a side question and its answer are in a session of their own, and only there.
func asideOnly(s *screen) {
	list, err := s.tui.App.Store().List(s.t.Context())
	if err != nil || len(list) != 2 {
		s.t.Fatalf("%+v, %v", list, err)
	}
	for _, info := range list {
		asked := false
		for e, err := range s.tui.App.Store().Events(s.t.Context(), info.ID) {
			if err != nil {
				s.t.Fatal(err)
			}
			b, said := e.Body.(event.Said)
			asked = asked || said && b.Parts.Text() == "what is it?"
		}
		if aside := info.Title == "btw: what is it?"; aside != asked {
			s.t.Errorf("session %s %q has the question: %v", info.ID, info.Title, asked)
		}
	}
}

// asideInRun holds that a side question does not stop the run, and that the run's call is not in its copy.
func asideInRun(s *screen) {
	list, err := s.tui.App.Store().List(s.t.Context())
	if err != nil || len(list) != 2 {
		s.t.Fatalf("%+v, %v", list, err)
	}
	for _, info := range list {
		calls := 0
		for e, err := range s.tui.App.Store().Events(s.t.Context(), info.ID) {
			switch b := e.Body.(type) {
			case event.Started:
				calls++
			case event.Ended:
				s.t.Errorf("call %s has ended in session %s", b.Call, info.ID)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
		if aside := strings.HasPrefix(info.Title, "btw:"); aside == (calls > 0) {
			s.t.Errorf("session %s %q has %d calls", info.ID, info.Title, calls)
		}
	}
	s.press(ctrlC)
	s.shows("■ cancelled")
}

// readAndGone holds that the help can be read to its end, and that nothing of it stays.
func readAndGone(s *screen) {
	s.press(" ")
	s.shows("Keys:", "shift+tab")
	s.press(" ")
	s.shows("Modes:")
	shut("\x1b", "Esc closes")(s)
	if text := s.text(); strings.Contains(text, "Modes:") {
		s.t.Errorf("something of the help stays:\n%s", text)
	}
}

// shut checks that a key closes the open panel, which leaves nothing on the screen.
func shut(key, text string) func(s *screen) {
	return func(s *screen) {
		s.press(key)
		s.wait("no "+text, func(shown string) bool { return !strings.Contains(shown, text) })
	}
}

// renamed holds that the list of sessions has the new title.
func renamed(s *screen) {
	s.press("/clear" + enter)
	s.shows("/resume")
	s.press("/resume" + enter)
	s.shows("resume (1 of 1)", "the new name")
}

// resumable holds that the session before /clear can be gone on with.
func resumable(s *screen) {
	s.press("/resume" + enter)
	s.shows("resume (1 of 1)", "go")
	s.press(enter)
	s.shows("The first answer.", "· session ")
}

// toldTheModel holds that a command of the person's is in the log as news of theirs.
func toldTheModel(s *screen) {
	s.t.Helper()
	list, err := s.tui.App.Store().List(s.t.Context())
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	var told []event.Said
	for e, err := range s.tui.App.Store().Events(s.t.Context(), list[0].ID) {
		if err != nil {
			s.t.Fatal(err)
		}
		if b, ok := e.Body.(event.Said); ok && b.Origin == event.OriginCommand {
			told = append(told, b)
		}
	}
	want := "The user ran a command in their own shell, outside of the sandbox:\n$ echo mine; echo two >&2; exit 3\nmine\ntwo\n[exit 3]"
	if len(told) != 1 || told[0].Parts.Text() != want || told[0].By != "your shell" {
		s.t.Errorf("%+v", told)
	}
}

// TestOwnCommandStops checks that Esc stops a command of the person's, and that the model reads so.
func TestOwnCommandStops(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	s := start(t, 80, 24, nil, sayStep("Fine."))
	s.press("!exec sleep 600" + enter)
	s.shows("! exec sleep 600", "Esc stops it")
	s.press(esc)
	s.shows("! exec sleep 600\n  [stopped by the user]")
	s.typed("go", enter)
	s.shows("Fine.", "■ done")
}

// TestNoKeyStays checks that no message repeats a pasted key, not even in part. Only the prompt shows it, until it is
// sent.
func TestNoKeyStays(t *testing.T) {
	const key = "sk-ant-api03-Rk3vTq8ZbN1xYw7LcJ5mHd2PfSa9UeG4oKiM"
	t.Setenv("SHELL", "/bin/sh")
	for _, row := range []struct {
		typed string
		shown []string
	}{
		{"/" + key, []string{"unknown command /***"}},
		{"/effort " + key, []string{`unknown effort "***"`}},
		{"/mode " + key, []string{"! ", "***"}},
		{"/model nobody/" + key, []string{"! ", "***"}},
		{"/resume " + key, []string{"! ", "***"}},
		{"/export /no/such/" + key, []string{"! ", "/no/such/***"}},
		{"!exec sleep 600 # " + key, []string{"! exec sleep 600 # ***", "Esc stops it"}},
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(row.typed, key, "KEY"), "/", " "), func(t *testing.T) {
			s := start(t, 200, 40, nil, sayStep("Fine."))
			s.typed("go", enter)
			s.shows("Fine.", "■ done")
			s.press(row.typed + enter)
			s.shows(row.shown...)
			s.press("\x15") // what is not sent stays in the prompt
			s.wait("no key", func(text string) bool { return !strings.Contains(text, key[:12]) })
		})
	}
	s := start(t, 200, 40, nil, call("slow", `{"word":"x"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("slow")
	s.press("use " + key + enter)
	s.wait("the message on its way, without a key", func(text string) bool {
		return strings.Contains(text, "steering: use ") && !strings.Contains(text, key[:12])
	})
}
