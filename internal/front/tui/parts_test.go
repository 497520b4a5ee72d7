package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// events numbers bodies, a second apart; deltas and progress stay transient.
func events(bodies ...event.Body) []event.Event {
	var out []event.Event
	for i, b := range bodies {
		e := event.Event{Seq: uint64(i + 1), Time: time.Unix(int64(i), 0), Session: "s", Body: b}
		switch b.(type) {
		case event.Delta, event.Progress:
			e.Seq = 0
		}
		out = append(out, e)
	}
	return out
}

func replied(text string) event.Body { return event.Replied{Parts: llm.Say(text), Stop: llm.StopEnd} }

func plain(t *testing.T, bodies ...event.Body) string {
	t.Helper()
	return drawn(still(t, 80, 24, look{noColor: true}, events(bodies...)))
}

func TestReplyThatBreaksOff(t *testing.T) {
	got := plain(t, event.Say("go"), event.Asked{}, event.Delta{Text: "One.\n\nTwo"},
		event.Delta{Void: true}, event.Delta{Text: "Three."}, replied("Three."))
	if !strings.Contains(got, "Three.") || strings.Contains(got, "Two") {
		t.Error(got)
	}
	// What is in the scrollback already can't be taken back, so it is said.
	m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{}, event.Delta{Text: "One.\n\nTwo"}))
	m.screen.flush(m.talk.view)
	m.talk.apply(events(event.Asked{}, event.Asked{}, event.Asked{}, event.Delta{Void: true}, event.Delta{Text: "Three."}, replied("Three.")))
	if got := drawn(m); !strings.Contains(got, "One.\n· ignore the text above") ||
		!strings.Contains(got, "Three.") || strings.Contains(got, "Two") {
		t.Error(got)
	}
}

func TestReplyThatIsNotWhatCame(t *testing.T) {
	got := plain(t, event.Say("go"), event.Asked{}, event.Delta{Text: "The key is 1234."}, replied("The key is «key»."))
	if !strings.Contains(got, "The key is «key».") || strings.Contains(got, "1234") {
		t.Error(got)
	}
}

func TestNothingDrivesTheTerminal(t *testing.T) {
	evil := "a\x1b[2Jb\x1b]52;c;eA==\x07c\u202ed\u200be\rf\x9bg\x00"
	args, _ := json.Marshal(map[string]any{"command": evil})
	call := llm.Call{ID: "1", Name: "bash" + evil, Args: args}
	bodies := []event.Body{
		event.Switched{Route: "r" + evil, Mode: "ask"},
		event.Say(evil),
		event.Asked{},
		event.Delta{Reasoning: evil},
		event.Delta{Text: evil},
		event.Delta{Call: &llm.CallDelta{Name: evil}},
		event.Replied{Parts: llm.Parts{llm.Text{Text: evil}, call}},
		event.Judged{Call: "1", Action: tool.Ask, Reason: evil, Effects: []tool.Effect{
			{Kind: tool.Network, Text: evil},
			{Kind: tool.Write, Path: evil},
			{Kind: tool.External, Text: evil},
		}},
		event.Waiting{Call: "1", Preview: evil, Rules: []string{evil}},
		event.Decided{Call: "1", Allow: true, Scope: event.Scope(evil)},
		event.Started{Call: "1"},
		event.Progress{Call: "1", Text: evil},
		event.Note{Text: evil},
		event.Failed{Message: evil, Retry: 3},
		event.Routed{Route: evil, Error: evil, From: evil},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Say(evil), By: evil},
		event.Kept{Reason: evil},
		event.Ended{
			Call: "1", Outcome: event.Outcome("ok"), Parts: llm.Say(evil), Files: []tool.File{{Path: evil, Diff: evil}},
			Todo: []tool.Todo{{Text: evil, State: tool.TodoDoing}}, Show: evil,
		},
		event.Stopped{Reason: event.ReasonStuck, Detail: evil},
	}
	for i := range bodies {
		m := still(t, 80, 24, look{noColor: true}, events(bodies[:i+1]...))
		m.talk.running = i%2 == 0
		m.hints.text = "a"
		m.commands.showText(m.commands.facts().todo())
		m.commands.showText(startedJobs(m.talk.view.jobs))
		m.commands.diff("")
		got := drawn(m)
		for _, r := range got {
			if r != '\n' && text.Hidden.Has(r) {
				t.Fatalf("after %s: %q in %q", bodies[i].Kind(), r, got)
			}
		}
	}
}

// TestAllOfACallCanBeSeen checks that every line of a question can be reached, on any terminal.
func TestAllOfACallCanBeSeen(t *testing.T) {
	var diff strings.Builder
	for i := range 120 {
		fmt.Fprintf(&diff, "+line %d. %s\n", i, strings.Repeat("x", 2*i))
	}
	want := strings.ReplaceAll(diff.String(), "\n", "")
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 6}, {20, 5}, {200, 60}} {
		m := still(t, size[0], size[1], look{noColor: true}, events(event.Say("go"), event.Asked{},
			event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "edit", Args: json.RawMessage("{}")}}},
			event.Judged{Call: "1", Action: tool.Ask, Reason: "it would"}, event.Waiting{Call: "1", Preview: diff.String()}))
		var seen []string
		for shown := ""; ; {
			if m.View().Content == shown {
				break
			}
			shown = m.View().Content
			body := m.questions.ask.body
			if size[1] <= 6 { // the title scrolls too
				body = slices.Concat([]string{m.questions.ask.title}, body)
			}
			for i := m.questions.ask.top; i < m.questions.ask.top+m.questions.ask.page && i < len(body); i++ {
				if line := body[i]; i >= len(seen) && strings.Contains(shown, line) {
					seen = append(seen, line)
				}
			}
			m.key(tea.KeyPressMsg{Code: tea.KeyPgDown})
		}
		got := strings.ReplaceAll(strings.Join(seen, "\n"), "\n    ", "")
		if !strings.Contains(got, want) {
			t.Errorf("%v: not all was seen", size)
		}
	}
}

// TestChoicesAreSeen checks that a question shows all its choices in the smallest window: by their keys if there is no
// room for words, with the words of the chosen one.
func TestChoicesAreSeen(t *testing.T) {
	approve := event.Waiting{
		Call: "1", Preview: "-a\n+b\n", Rules: []string{"write(a)"},
		Offers: []event.Offer{{Reach: event.ReachEdits, Rules: []string{"write(**)"}}},
	}
	ask := []event.Body{
		event.Judged{Call: "1", Action: tool.Ask, Effects: []tool.Effect{{Kind: tool.Question}}}, event.Waiting{Call: "1"},
	}
	for name, c := range map[string]struct {
		bodies       []event.Body
		keys, chosen string
	}{
		"approval": {[]event.Body{event.Judged{Call: "1", Action: tool.Ask, Reason: "it would"}, approve}, "  y s ", "  ›y Yes"},
		"question": {ask, "  1 2 3", "  ›1 heron"},
	} {
		call := llm.Call{ID: "1", Name: "note", Args: json.RawMessage(`{"question":"Which?","options":["heron","egret","a very long name of a bird"]}`)}
		m := still(t, 20, 5, look{noColor: true}, events(slices.Concat([]event.Body{
			event.Say("go"), event.Asked{}, event.Replied{Parts: llm.Parts{call}},
		}, c.bodies)...))
		if got := m.View().Content; !strings.Contains(got, c.keys) || !strings.Contains(got, "? note") || strings.Count(got, "\n") != 3 {
			t.Errorf("%s:\n%s", name, got)
		}
		see(m)
		m.key(tea.KeyPressMsg{Code: tea.KeyDown})
		if got := m.View().Content; !strings.Contains(got, c.chosen) {
			t.Errorf("%s: the choice is not shown:\n%s", name, got)
		}
	}
}

func TestPendingOfAnswers(t *testing.T) {
	two := events(event.Say("go"), event.Asked{}, event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "a"}, llm.Call{ID: "2", Name: "b"}}},
		event.Judged{Call: "1", Action: tool.Ask}, event.Judged{Call: "2", Action: tool.Ask}, event.Waiting{Call: "1"}, event.Waiting{Call: "2"})
	m := still(t, 80, 24, look{noColor: true}, two)
	if got := m.View().Content; !strings.Contains(got, "? a asks (1 more waits)") {
		t.Fatal(got)
	}
	see(m)
	m.key(tea.KeyPressMsg{Code: 's', Text: "s"})
	m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
	if !strings.Contains(m.View().Content, "No rule is safe for this call") {
		t.Error("an approval without a rule must be for once only")
	}
	m.key(tea.KeyPressMsg{Code: 'y', Text: "y"})
	m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
	if got := m.View().Content; !strings.Contains(got, "? b asks\n") || len(m.talk.decided) != 1 {
		t.Fatal(got)
	}
	four := events(event.Say("go"), event.Asked{}, event.Replied{Parts: llm.Parts{
		llm.Call{ID: "1", Name: "a"}, llm.Call{ID: "2", Name: "b"}, llm.Call{ID: "3", Name: "c"},
	}}, event.Waiting{Call: "1"}, event.Waiting{Call: "2"}, event.Waiting{Call: "3"},
		event.Decided{Call: "1", Question: 4}, event.Raised{ID: "4", Child: "s.1", Tool: "d"})
	m = still(t, 80, 24, look{noColor: true}, four)
	if got := m.View().Content; !strings.Contains(got, "asks (2 more wait)") {
		t.Fatal(got)
	}
}

func TestCountdown(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{}, event.Failed{Message: "too many requests", Retry: 30}))
	m.talk.running = true
	if got := m.View().Content; !strings.Contains(got, "retrying in 30s") {
		t.Error(got)
	}
	m.talk.apply([]event.Event{{Seq: 4, Time: time.Unix(4, 0), Body: event.Asked{}}})
	if got := m.View().Content; strings.Contains(got, "retrying") {
		t.Error(got)
	}
}

func TestEventsCountOnce(t *testing.T) {
	list := events(event.Say("go"), event.Asked{}, replied("Yes."), event.Stopped{Reason: event.ReasonDone})
	m := still(t, 80, 24, look{noColor: true}, append(list, list...))
	if got := drawn(m); strings.Count(got, "Yes.") != 1 || m.talk.view.Spent.Turns != 1 {
		t.Error(got)
	}
}

func TestEditor(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(e *editor)
		want string // with | where the cursor is
	}{
		{"insert", func(e *editor) { e.set("ac"); e.at = 1; e.insert(atomsOf("b")...) }, "ab|c"},
		{"cut in front", func(e *editor) { e.set("ab"); e.cut(-1, 1) }, "|b"},
		{"cut behind the end", func(e *editor) { e.set("ab"); e.cut(1, 9) }, "a|"},
		{"clusters", func(e *editor) { e.set("a👩‍👩‍👧e\u0301"); e.cut(e.at-1, e.at) }, "a👩‍👩‍👧|"},
		{"word", func(e *editor) { e.set("one two.three  "); e.cut(e.word(), e.at) }, "one two.|"},
		{"word end", func(e *editor) { e.set("one, two"); e.at = 3; e.at = e.wordEnd() }, "one, two|"},
		{"up", func(e *editor) { e.set("abcd\nx\nabcd"); e.up(80); e.up(80) }, "abcd|\nx\nabcd"},
		{"down", func(e *editor) { e.set("abc\nabc"); e.at = 1; e.down(80) }, "abc\na|bc"},
		{"wrapped up", func(e *editor) { e.set("abcdefgh"); e.up(3) }, "abcde|fgh"},
		{"line ends", func(e *editor) { e.set("ab\ncd"); e.at = e.lineStart(); e.cut(e.at, e.lineEnd()) }, "ab\n|"},
		{"nothing evil", func(e *editor) { e.set("a\x1b[2J\u202eb\r\nc\rd\te") }, "a[2Jb\nc\nd    e|"},
		{"pasted", func(e *editor) { e.insert(atom{shown: "[pasted]", whole: "all of it"}, atom{shown: "!"}) }, "[pasted]!|"},
	} {
		var e editor
		tc.do(&e)
		if got := textOf(e.atoms[:e.at]) + "|" + textOf(e.atoms[e.at:]); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	e := editor{}
	if e.up(10) || e.down(10) {
		t.Error("an empty editor has no other line")
	}
	e.insert(atom{shown: "[pasted]", whole: "all of it"}, atom{shown: "!"},
		atom{shown: "[image x]", image: llm.Image{MediaType: "image/png", Data: []byte{1}}})
	want := llm.Parts{llm.Text{Text: "all of it![image x]"}, llm.Image{MediaType: "image/png", Data: []byte{1}}}
	if diff := cmp.Diff(want, e.parts()); diff != "" {
		t.Error(diff)
	}
}

// FuzzEditor checks that whatever is typed, each row fits and the cursor is in it.
func FuzzEditor(f *testing.F) {
	f.Add("hello wörld 漢字\n👩‍👩‍👧 x", 7, "udlrh")
	f.Add("\u202e\x1b\x00\xff\xfe", 1, "rrdd")
	f.Fuzz(func(t *testing.T, text string, width int, moves string) {
		width = 2 + (width%60+60)%60
		var e editor
		e.set(text)
		actions := map[rune]string{
			'u': "up", 'd': "down", 'l': "left", 'r': "right", 'h': "home", 'b': "backspace", 'w': "delete-word",
			'k': "delete-end", 'n': "newline", 'e': "word-right",
		}
		for _, r := range moves {
			e.key(tea.KeyPressMsg{Code: r, Text: string(r)}, actions[r], width)
			rows := e.rows(width)
			y, x := e.cursorCell(rows, width)
			if e.at < 0 || e.at > len(e.atoms) || y < 0 || y >= len(rows) || x < 0 || x > width {
				t.Fatalf("the cursor is at %d, row %d cell %d of %v", e.at, y, x, rows)
			}
			for _, r := range rows {
				if n := e.cells(r.from, r.to); n > width && r.to-r.from > 1 {
					t.Fatalf("a row of %d cells in %d", n, width)
				}
			}
		}
		if harmful(e.text()) {
			t.Fatalf("unsafe: %q", e.text())
		}
	})
}

// harmful reports whether text could drive the terminal or hide something.
func harmful(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && text.Hidden.Has(r) })
}

// FuzzText checks that lines are harmless and fit.
func FuzzText(f *testing.F) {
	f.Add("a\tb\x1b[31m\u202e漢字漢字 👩‍👩‍👧 long line of words", 5)
	f.Add(" 0\x88", 5)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 4 + (width%100+100)%100
		for _, safe := range []string{clean(s), text.VisibleLines(s)} {
			for _, line := range slices.Concat(wrap(safe, width, "  "), wrapAnywhere(safe, width, "  ")) {
				if harmful(line) || strings.Contains(line, "\n") {
					t.Fatalf("unsafe: %q", line)
				}
				if n := ansi.StringWidth(line); n > width {
					t.Fatalf("%d cells of %d: %q", n, width, line)
				}
			}
		}
	})
}

func TestBrokenLosesNothing(t *testing.T) {
	text := "rm  -rf   a b \"c  d\"  \n  && echo   " + strings.Repeat("long ", 40)
	got := strings.Join(wrapAnywhere(text, 20, "    "), "\n")
	if strings.ReplaceAll(got, "\n    ", "") != "    "+strings.ReplaceAll(text, "\n", "") {
		t.Errorf("%q", got)
	}
}

func TestPump(t *testing.T) {
	var got []any
	p := newPump(func(msg any) { got = append(got, msg) })
	for i := range 1000 {
		p.put(event.Event{Body: event.Delta{Text: "a"}})
		p.put(event.Event{Body: event.Progress{Call: "1", Text: fmt.Sprint(i)}})
		p.put(event.Event{Body: event.Progress{Call: "2", Text: fmt.Sprint(i)}})
	}
	p.put(event.Event{Seq: 1, Body: event.Note{Text: "x"}})
	p.put(event.Event{Body: event.Progress{Call: "1", Text: "after"}})
	p.put(runEnded{})
	for some, _ := p.flush(); some; some, _ = p.flush() {
	}
	last, ok := got[len(got)-1].(runEnded)
	if !ok || last.err != nil {
		t.Fatalf("the end comes last, not %v", got[len(got)-1])
	}
	text, notes, progress, shown := "", 0, "", 0
	for _, msg := range got[:len(got)-1] {
		for _, e := range msg.(batch) {
			switch b := e.Body.(type) {
			case event.Delta:
				text += b.Text
			case event.Note:
				notes++
			case event.Progress:
				progress += b.Call + ":" + b.Text + " "
				shown++
			}
		}
	}
	if shown > 3 {
		t.Errorf("progress is shown %d times: %.200s", shown, progress)
	}
	if len(text) != 1000 || notes != 1 || !strings.HasSuffix(progress, "1:after ") ||
		!strings.Contains(progress, "2:999") || !strings.Contains(progress, "1:999") {
		t.Errorf("%d bytes, %d notes, %.200q", len(text), notes, progress)
	}
}

func TestPumpFoldsAndCutsFrames(t *testing.T) {
	var sizes []int
	p := newPump(func(msg any) {
		n := 0
		for _, e := range msg.(batch) {
			n += len(e.Body.(event.Delta).Text)
		}
		sizes = append(sizes, n)
	})
	for range 50_000 {
		p.put(event.Event{Body: event.Delta{Text: "0123456789"}})
	}
	if len(p.pending) > 500_000/frameText+1 {
		t.Errorf("%d things wait", len(p.pending))
	}
	total := 0
	for some, more := p.flush(); some; some, more = p.flush() {
		if more != (len(p.pending) > 0) {
			t.Errorf("more: %v, and %d things wait", more, len(p.pending))
		}
	}
	for _, n := range sizes {
		if total += n; n > 2*frameText {
			t.Errorf("a frame of %d bytes", n)
		}
	}
	if total != 500_000 {
		t.Errorf("%d bytes", total)
	}
}

func TestPumpKeepsTheOrder(t *testing.T) {
	var kinds []string
	p := newPump(func(msg any) {
		for _, e := range msg.(batch) {
			d := e.Body.(event.Delta)
			switch {
			case d.Void:
				kinds = append(kinds, "void")
			case d.Call != nil:
				kinds = append(kinds, d.Call.Name+"("+d.Call.Args+")")
			default:
				kinds = append(kinds, d.Reasoning+d.Text)
			}
		}
	})
	for _, d := range []event.Delta{
		{Reasoning: "hm"},
		{Reasoning: "m", Text: "A"},
		{Text: "B"},
		{Void: true},
		{Text: "C"},
		{Call: &llm.CallDelta{Name: "a", Args: "1"}},
		{Call: &llm.CallDelta{Args: "2"}},
		{Call: &llm.CallDelta{Name: "b"}},
		{Text: "D"},
	} {
		p.put(event.Event{Body: d})
	}
	p.flush()
	if diff := cmp.Diff([]string{"hmm", "AB", "void", "C", "a(12)", "b()", "D"}, kinds); diff != "" {
		t.Error(diff)
	}
}

// TestTooLateIsTakenUp checks that an input sent while a run ends starts another, in whichever order the two are
// noticed.
func TestTooLateIsTakenUp(t *testing.T) {
	for _, sentFirst := range []bool{true, false} {
		a := inspan.Agent{Model: &script.Model{Steps: []script.Step{{Parts: llm.Say("Done.")}, {Parts: llm.Say("Taken up.")}}}}
		s, err := a.Open(t.Context(), event.NewMemory("m"))
		if err != nil {
			t.Fatal(err)
		}
		m := still(t, 80, 24, look{noColor: true}, nil)
		messages := make(chan any, 1)
		m.talk.runner = &runner{
			ctx: t.Context(), pump: newPump(func(any) {}),
			send: func(msg any) { messages <- msg }, guard: func(f func()) func() { return f },
		}
		m.talk.runner.take(&localSession{Session: s, pump: m.talk.runner.pump})
		m.talk.start(event.Say("go"))
		m.talk.runner.running.Wait() // the model has not heard of it
		m.talk.runner.post(m.talk.next(event.Say("late"), "late"))
		if sentFirst {
			m.update(<-messages)
			m.update(runEnded{})
		} else {
			m.update(runEnded{})
			m.update(<-messages)
		}
		m.talk.runner.running.Wait()
		if st := s.Status(); st.Stopped == nil || st.Turns != 2 {
			t.Errorf("sent first %v: %+v", sentFirst, st)
		}
		if err := m.talk.runner.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatIsSaidMeanwhile checks that text typed while a session was being opened goes back into the prompt if opening
// fails, and that a mode does not.
func TestWhatIsSaidMeanwhile(t *testing.T) {
	for _, tc := range []struct {
		held event.Body
		want string
	}{{event.Say("hello"), "hello"}, {event.Switched{Mode: "plan"}, ""}} {
		m := still(t, 80, 24, look{noColor: true}, nil)
		m.talk.opening = true
		m.composer.history.add("hello")
		m.talk.start(tc.held)
		m.update(sessionOpened{err: errors.New("there is none")})
		if m.composer.prompt.text() != tc.want || m.talk.opening || m.talk.held != nil {
			t.Errorf("%T: prompt %q, held %v", tc.held, m.composer.prompt.text(), m.talk.held)
		}
	}
}

// TestPictureStaysSmallWhilePrinting checks that a picture does not grow into the room that lines on their way to the
// terminal were given.
func TestPictureStaysSmallWhilePrinting(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{}, event.Delta{Text: strings.Repeat("word ", 300)}))
	m.talk.view.blocks = m.screen.print.take(m.talk.view.blocks)
	m.talk.running = true
	m.screen.print.lines = m.screen.print.lines[:0]
	for range 20 {
		m.screen.print.lines = append(m.screen.print.lines, "x")
	}
	m.screen.settled, m.screen.heights = true, []int{2}
	if m.screen.flush(m.talk.view) == nil {
		t.Fatal("nothing is printed")
	}
	rows, given := strings.Count(m.View().Content, "\n")+1, 20-len(m.screen.print.lines)
	if rows+given >= 24 {
		t.Errorf("%d rows and %d lines", rows, given)
	}
	m.update(printed{})
	if more := strings.Count(m.View().Content, "\n") + 1; more <= rows {
		t.Errorf("%d rows are left of %d", more, rows)
	}
}

func TestCommandsOffered(t *testing.T) {
	m := still(t, 80, 24, look{}, nil)
	for typed, want := range map[string]string{
		"mode": "/mode /model", "MOD": "/mode /model", "ew": "/new /rewind", "re": "/resume /rename /rewind /reasoning",
		"sandbox": "/status", "ctx": "/context", "xyz": "", "st": "/status /cost /output-style",
	} {
		var got []string
		for _, c := range m.commands.all().matching(typed) {
			got = append(got, c.text)
		}
		want = strings.TrimSuffix(want, " ")
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
	// The list scrolls, and says where in it one is.
	m.composer.prompt.set("/")
	m.composer.offerCompletions()
	for range 9 {
		m.composer.offer.move("down")
	}
	lines := m.composer.offer.lines(look{width: 80, noColor: true}, 6)
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "› /") })
	if n := len(m.commands.all()); len(lines) != 6 || at < 0 || !strings.Contains(lines[at], fmt.Sprintf("(10 of %d)", n)) {
		t.Errorf("%q", lines)
	}
}

func TestSlash(t *testing.T) {
	for text, want := range map[string]string{
		"/help": "help|", "/model a/b": "model|a/b", "/etc/hosts is odd": "", "/": "", "no /help": "",
		"/compact the\ntests": "compact|the\ntests", "/a\nb": "a|b",
	} {
		name, args, ok := words.Slash(text)
		if got := name + "|" + args; ok && got != want || !ok && want != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestPickersFindWhatIsWritten checks that a list first shows items with the search as written, and that added items do
// not move the mark.
func TestPickersFindWhatIsWritten(t *testing.T) {
	p := &picker{items: []choice{
		{"session number 177", "today"}, {"session number 131", "id 77"}, {"77 is no number", ""}, {"Session Number 77", ""}, {"other", ""},
	}}
	for typed, want := range map[string][]int{
		"number 77": {3, 0, 2, 1}, "": {0, 1, 2, 3, 4}, "NUMBER 77": {3, 0, 2, 1}, "77": {0, 2, 3, 1}, "today": {0}, "nothing": nil,
	} {
		p.find = editor{}
		p.find.insert(atomsOf(typed)...)
		if got := p.found(); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, not %v", typed, got, want)
		}
	}
	p.find, p.at = editor{}, 0
	p.find.insert(atomsOf("number 131")...)
	p.add("number 131", "number 131", "other number 131")
	if found := p.found(); len(found) != 3 || found[p.at] != 1 {
		t.Errorf("found %v, marked %d", found, p.at)
	}
}

func TestFuzzyFiles(t *testing.T) {
	names := []string{"docs/model.md", "internal/front/tui/model.go", "internal/front/tui/model_test.go", "Makefile", "m/o/d/e/l.txt"}
	if got := fuzzy(names, "model.go", 9); len(got) == 0 || got[0] != "internal/front/tui/model.go" {
		t.Error(got)
	}
	if got := fuzzy(names, "imt", 9); len(got) == 0 || got[0] != "internal/front/tui/model_test.go" {
		t.Error(got)
	}
	if got := fuzzy(names, "Make", 9); len(got) != 1 {
		t.Error(got)
	}
	if got := fuzzy(names, "", 2); len(got) != 2 {
		t.Error(got)
	}
}

func TestCells(t *testing.T) {
	for _, line := range []string{
		"", "plain", "\x1b[1m› \x1b[0mbold", "\x1b[38;5;160m███\x1b[0m", "\x1b[1mred\x1b[0m.", "漢字", "e\u0301",
		"1\ufe0f\u20e3", "👩‍👩‍👧", "\x1b[2Ja", "\x1b]0;t\x07a", "a\x1b", "a\x1b[", "a\x1b[1", "\x1b[mb", "a\tb",
	} {
		if got, want := cells(line), ansi.StringWidth(line); got != want {
			t.Errorf("%q: %d cells, want %d", line, got, want)
		}
	}
}

// TestNewsBeginNoRun checks that messages of others to a resting session are shown, and do not make it look like an
// interrupted run.
func TestNewsBeginNoRun(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, events(event.Steered{Parts: llm.Say("the build is red"), By: "hook", Origin: event.OriginHook}))
	if got := drawn(m); m.talk.cutOff() || !strings.Contains(got, "hook: the build is red") {
		t.Errorf("cut off %v: %s", m.talk.cutOff(), got)
	}
}

// TestCostOfAllThatWasSpent compares the status line with the figure that limits are checked against.
func TestCostOfAllThatWasSpent(t *testing.T) {
	got := plain(t, event.Say("go"), event.Asked{}, event.Routed{Route: "a/b", Rule: "r", Cost: 1},
		event.Failed{Message: "refused", Cost: 2}, event.Asked{},
		event.Replied{Parts: llm.Say("Yes."), Cost: 4}, event.Stopped{Reason: event.ReasonDone})
	if strings.Count(got, "$7.00") != 2 { // below the run, and in the status
		t.Error(got)
	}
}

// TestPanelEnds checks that Home and End go to the ends of our own text, at each size.
func TestPanelEnds(t *testing.T) {
	var text []string
	for i := range 50 {
		text = append(text, fmt.Sprint("line ", i))
	}
	p := &panel{text: strings.Join(text, "\n"), close: func() {}}
	for _, rows := range []int{10, 4, 20} {
		for action, want := range map[string]string{"end": "line 49", "home": "line 0"} {
			p.lines(look{width: 60, noColor: true}, rows)
			p.key(tea.KeyPressMsg{}, action)
			if out, _, _ := p.lines(look{width: 60, noColor: true}, rows); !slices.Contains(out, want) || len(out) != rows {
				t.Errorf("%s in %d rows: %q", action, rows, out)
			}
		}
	}
}
