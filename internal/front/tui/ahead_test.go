package tui

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// asking is a front end before two calls that ask, at a clock that the test
// turns. The questions have not been drawn.
func asking(t *testing.T, effects ...tool.Effect) (m *model, now *time.Time) {
	t.Helper()
	at := time.Unix(1000, 0)
	m = still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "a"}, llm.Call{ID: "2", Name: "b"}}},
		event.Judged{Call: "1", Action: tool.Ask, Effects: effects}, event.Judged{
			Call:   "2",
			Action: tool.Ask,
		}, event.Waiting{Call: "1"}, event.Waiting{Call: "2"}))
	m.now = func() time.Time { return at }
	m.Host = func(app.Options, func(string)) *inspan.Host { return &inspan.Host{} }
	return m, &at
}

func presses(m *model, keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		m.Update(k)
		m.View()
	}
}

// Keys as a terminal sends them.
func letter(r rune) tea.KeyPressMsg  { return tea.KeyPressMsg{Code: r, Text: string(r)} }
func pressed(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r} }

// TestTypedAhead checks that no key pressed before a question was seen answers it, including a later yes.
func TestTypedAhead(t *testing.T) {
	down, send := pressed(tea.KeyDown), pressed(tea.KeyEnter)
	for _, tc := range []struct {
		name   string
		wait   time.Duration // after the question was drawn
		keys   []tea.KeyPressMsg
		allows int    // decisions
		prompt string // what is in it
	}{
		{"at once", 0, []tea.KeyPressMsg{letter('y'), send}, 0, ""},
		{"just before it counts as seen", seeing - 1, []tea.KeyPressMsg{letter('y'), send}, 0, ""},
		{"when it does", seeing, []tea.KeyPressMsg{letter('y'), send}, 1, ""},
		{"a word at once", 0, []tea.KeyPressMsg{letter('y'), letter('e'), letter('s'), send}, 0, ""},
		{"a sentence at once", 0, []tea.KeyPressMsg{letter('y'), letter('o'), letter('u'), send}, 0, "you"},
		{"arrows at once", 0, []tea.KeyPressMsg{down, send}, 0, ""},
		{"arrows just before", seeing - 1, []tea.KeyPressMsg{down, send}, 0, ""},
		{"arrows then", seeing, []tea.KeyPressMsg{down, send}, 1, ""},
		{"tab at once", 0, []tea.KeyPressMsg{pressed(tea.KeyTab), send}, 0, ""},
		{"a word that ends as an answer begins", seeing - 1, []tea.KeyPressMsg{letter('m'), letter('y'), send}, 0, "my"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, now := asking(t)
			m.View()
			*now = now.Add(tc.wait)
			presses(m, tc.keys[:len(tc.keys)-1]...)
			last := tc.keys[len(tc.keys)-1]
			presses(m, last)
			if m.unseen() || m.box() == nil { // nor once the question is back
				*now = now.Add(pausing)
				m.View()
				presses(m, last)
			}
			if len(m.talk.decided) != tc.allows || m.talk.opening || m.composer.prompt.text() != tc.prompt {
				t.Errorf("decided %v, a run %v, the prompt %q", m.talk.decided, m.talk.opening, m.composer.prompt.text())
			}
		})
	}
}

// TestQuestionStepsBack checks that a person who is typing when a question comes up sees the typed text, and the
// question again after a pause.
func TestQuestionStepsBack(t *testing.T) {
	m, now := asking(t)
	m.View()
	presses(m, letter('h'), letter('e'))
	if m.box() != nil || m.composer.prompt.text() != "he" {
		t.Fatalf("the question is there, the prompt has %q", m.composer.prompt.text())
	}
	*now = now.Add(seeing - 1)
	if presses(m, pressed(tea.KeyEnter), pressed(tea.KeyTab)); m.talk.opening || m.composer.prompt.text() != "he" {
		t.Error("enter was taken for the prompt")
	}
	*now = now.Add(pausing - seeing)
	if m.Update(tick{}); m.box() != nil {
		t.Error("it came back without a pause")
	}
	*now = now.Add(1)
	m.Update(tick{})
	if m.View(); m.box() == nil || !m.unseen() {
		t.Error("it does not come back, or counts as seen")
	}
	m.Update(tea.PasteMsg{Content: "y"})
	if m.box() != nil || m.composer.prompt.text() != "hey" {
		t.Errorf("pasted text went elsewhere: %q", m.composer.prompt.text())
	}
	*now = now.Add(pausing)
	m.View()
	*now = now.Add(seeing)
	m.Update(tea.PasteMsg{Content: "y"})
	if presses(m, pressed(tea.KeyEnter)); len(m.talk.decided) != 1 {
		t.Error("a question that was seen takes no answer")
	}
	if !m.unseen() {
		t.Error("the next question counts as seen")
	}
	if presses(m, letter('y'), pressed(tea.KeyEnter)); len(m.talk.decided) != 1 {
		t.Error("the answer to one question was one to the next")
	}
}

// TestUnseenQuestionIsLeft checks that a question that comes up does not keep anybody from interrupting.
func TestUnseenQuestionIsLeft(t *testing.T) {
	for name, key := range map[string]tea.KeyPressMsg{"esc": pressed(tea.KeyEscape), "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}} {
		m, _ := asking(t)
		m.View()
		if presses(m, key); !m.talk.opening {
			t.Errorf("%s does nothing", name)
		}
	}
	m, _ := asking(t, tool.Effect{Kind: tool.Question})
	m.View()
	if presses(m, pressed(tea.KeyEscape)); len(m.talk.decided) != 1 {
		t.Error("esc does not leave a question of the model")
	}
}

// TestDroppedKeys checks that keys that come too early leave a question as it is: it counts as seen when it has been
// there for long enough.
func TestDroppedKeys(t *testing.T) {
	down, send := pressed(tea.KeyDown), pressed(tea.KeyEnter)
	for _, early := range []rune{tea.KeyDown, tea.KeyUp, tea.KeyTab, tea.KeyEnter} {
		m, now := asking(t)
		m.View()
		*now = now.Add(seeing - 1)
		presses(m, pressed(early))
		*now = now.Add(1)
		if presses(m, down, send); len(m.talk.decided) != 1 {
			t.Errorf("%q put the question off", early)
		}
	}
	m, _ := asking(t)
	m.Update(down) // before there is any picture of it
	m.Update(send)
	if len(m.talk.decided) > 0 {
		t.Error("a question was answered that was never drawn")
	}
}

// TestSingleKeys checks that the key of a choice counts by itself, and that neither more of the same word nor a
// sentence that begins with it is another answer.
func TestSingleKeys(t *testing.T) {
	rules := func(m *model) { m.talk.view.Waiting()[0].Rules = []string{"write(a)"} }
	for name, tc := range map[string]struct {
		typed   string // "⏎" is Enter, "…" a wait of a tenth of a second
		decided []event.Decided
		prompt  string // what is in it at the end
		reply   string // what the question has
	}{
		"y":                      {"y", []event.Decided{{Allow: true}}, "", ""},
		"a capital letter":       {"Y", nil, "", "Y"},
		"capital and enter":      {"Y⏎", []event.Decided{{Allow: true}}, "", ""},
		"a sentence with Y":      {"You may use b⏎", []event.Decided{{Reason: "You may use b"}}, "", ""},
		"n":                      {"n", []event.Decided{{}}, "", ""},
		"yy":                     {"yy", []event.Decided{{Allow: true}}, "", ""},
		"yes":                    {"yes⏎", []event.Decided{{Allow: true}}, "", ""},
		"yes, slowly":            {"y…e…s…⏎", []event.Decided{{Allow: true}}, "", ""},
		"no":                     {"no⏎", []event.Decided{{}}, "", ""},
		"a sentence after no":    {"no, use b", []event.Decided{{}}, "no, use b", ""},
		"a message after yes":    {"ybash: x", []event.Decided{{Allow: true}}, "bash: x", ""},
		"session":                {"s……", []event.Decided{{Allow: true, Scope: event.ScopeSession}}, "", ""},
		"project":                {"p……", []event.Decided{{Allow: true, Scope: event.ScopeProject}}, "", ""},
		"always":                 {"a……", []event.Decided{{Allow: true, Scope: event.ScopeAlways}}, "", ""},
		"the word for it":        {"always⏎", []event.Decided{{Allow: true, Scope: event.ScopeAlways}}, "", ""},
		"the word, with a pause": {"a……lways⏎", []event.Decided{{Allow: true, Scope: event.ScopeAlways}}, "", ""},
		"not long enough":        {"s…", nil, "", "s"},
		"a sentence with p":      {"please use b……", nil, "", "please use b"},
		"any other letter":       {"u", nil, "", "u"},
		"words":                  {"use b⏎", []event.Decided{{Reason: "use b"}}, "", ""},
		"each question": {
			"y……………y……………",
			[]event.Decided{{Allow: true}, {Allow: true}},
			"", "",
		},
		"slow yes over two questions": {"y…e………s……………", []event.Decided{{Allow: true}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := asking(t)
			rules(m)
			m.View()
			*now = now.Add(seeing)
			for _, r := range tc.typed {
				switch r {
				case '…':
					*now = now.Add(100 * time.Millisecond)
					m.Update(tick{})
					m.View()
				case '⏎':
					presses(m, pressed(tea.KeyEnter))
				default:
					presses(m, letter(r))
				}
			}
			var got []event.Decided
			for _, b := range m.talk.decided {
				d := b.(event.Decided)
				got = append(got, event.Decided{Allow: d.Allow, Scope: d.Scope, Reason: d.Reason})
			}
			want := slices.Clone(tc.decided)
			for i := range want {
				if want[i].Allow && want[i].Scope == "" {
					want[i].Scope = event.ScopeOnce
				}
			}
			reply := ""
			if a, ok := m.box().(*ask); ok {
				reply = a.reply.text()
			}
			if !slices.EqualFunc(got, want, func(a, b event.Decided) bool { return reflect.DeepEqual(a, b) }) || m.composer.prompt.text() != tc.prompt || reply != tc.reply {
				t.Errorf("decided %+v, the prompt %q, the reply %q", got, m.composer.prompt.text(), reply)
			}
		})
	}
}

// TestDeadTime checks that the choices of a question are dim until they count.
func TestDeadTime(t *testing.T) {
	m, now := asking(t)
	m.screen.look.noColor = false
	if drawn := m.View().Content; !strings.Contains(drawn, "\x1b[2m  1 Yes (y)") || !strings.Contains(drawn, "one moment") {
		t.Errorf("the choices do not look dead:\n%q", drawn)
	}
	*now = now.Add(seeing)
	if drawn := m.View().Content; strings.Contains(drawn, "\x1b[2m  1 Yes (y)") || !strings.Contains(drawn, "1 Yes (y)") {
		t.Errorf("the choices do not look alive:\n%q", drawn)
	}
}

// TestRedrawWaits checks that the frame is redrawn only when no lines are on their way to the terminal, and that none
// go there until it is.
func TestRedrawWaits(t *testing.T) {
	m, _ := asking(t)
	m.View()
	m.screen.settled, m.screen.printing = true, true
	redraw := tea.KeyPressMsg{Code: 'l', Mod: tea.ModCtrl}
	if m.key(redraw) != nil {
		t.Error("the frame is redrawn while lines are on their way")
	}
	if m.screen.onPrinted() == nil {
		t.Error("the frame is not redrawn when they have arrived")
	}
	m.screen.print.lines = []string{"a line"}
	if m.screen.flush(m.talk.view) != nil {
		t.Error("a line goes there while the frame is redrawn")
	}
	if m.key(redraw) != nil {
		t.Error("the frame is redrawn before the line that waits")
	}
	m.screen.onMarkWritten(markWritten{m.screen.fence.last})
	m.screen.onMarkWritten(markWritten{m.screen.fence.last})
	if m.screen.flush(m.talk.view) == nil || m.screen.onPrinted() == nil {
		t.Error("the line never goes there, or the key is forgotten")
	}
}

// TestFence checks that lines are printed only when both marks of a fence have been written since the terminal lost our
// frame, and that frames older than a fence no longer take room.
func TestFence(t *testing.T) {
	m, _ := asking(t)
	s := m.screen
	s.heights, s.print.lines = []int{20}, []string{"a line"}
	if s.flush(m.talk.view) == nil || s.printing {
		t.Fatal("no fence was raised, or a line goes to a terminal without a frame")
	}
	s.onMarkWritten(markWritten{1})
	s.onFrameLost()
	s.onMarkWritten(markWritten{2})
	if s.settled {
		t.Error("a mark of the fence before the loss counts")
	}
	s.flush(m.talk.view)
	s.remember(4)
	s.onMarkWritten(markWritten{3})
	if s.settled {
		t.Error("one mark is enough")
	}
	s.onMarkWritten(markWritten{4})
	if !s.settled || s.maxLiveRows() != 20 {
		t.Errorf("settled %v; the tallest frame has %d rows, want 20", s.settled, s.maxLiveRows())
	}
	s.flush(m.talk.view)
	s.onMarkWritten(markWritten{5})
	s.onMarkWritten(markWritten{6})
	if s.maxLiveRows() != 4 {
		t.Errorf("the tallest frame has %d rows, want 4", s.maxLiveRows())
	}
}

// TestOutput checks that marks never reach the terminal, and all else does.
func TestOutput(t *testing.T) {
	var out bytes.Buffer
	passed := make(chan markWritten, 2)
	o := &output{out: &out, passed: func(m markWritten) { passed <- m }}
	text := "a" + markStart + "7" + markEnd + "b" + markStart + "8" + markEnd
	if n, err := o.Write([]byte(text)); n != len(text) || err != nil || out.String() != "ab" {
		t.Errorf("wrote %d of %d: %q, %v", n, len(text), out.String(), err)
	}
	if a, b := <-passed, <-passed; a.number+b.number != 15 {
		t.Errorf("marks %d and %d, want 7 and 8", a.number, b.number)
	}
}
