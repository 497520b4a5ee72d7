package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// TestLacks checks the status line before the first reply, and when the check runs.
func TestLacks(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, nil)
	now, what, asked := time.Unix(0, 0), "here does not answer", 0
	m.lacks.clock = func() time.Time { return now }
	m.lacks.ready = func(context.Context, string) (string, string, error) {
		asked++
		return "here/m", what, errors.New("no server")
	}
	status := func() string {
		comes(m, m.lacks.refresh(m.talk))
		lines := strings.Split(m.View().Content, "\n")
		return lines[len(lines)-1]
	}
	if got := status(); got != "here does not answer, see /status · here/m · ask" || asked != 1 {
		t.Errorf("%q, asked %d times", got, asked)
	}
	if status(); asked != 1 {
		t.Error("it is asked again at once")
	}
	now, what = now.Add(lackEvery), ""
	if got := status(); got != "here/m · ask" || asked != 2 {
		t.Errorf("%q, asked %d times", got, asked)
	}
	if now = now.Add(time.Hour); status() == "" || asked != 2 {
		t.Error("it is asked again although nothing is missing")
	}
	m.talk.coming = "there/n"
	if status(); asked != 3 {
		t.Error("another model is not asked about")
	}
	m.lacks.what = "there does not answer"
	m.talk.apply(events(event.Say("go"), event.Asked{}, event.Replied{Parts: llm.Say("Fine."), Stop: llm.StopEnd}))
	now = now.Add(time.Hour)
	if got := status(); strings.Contains(got, "does not answer") || asked != 3 {
		t.Errorf("it is told after a reply: %q", got)
	}
	// A narrow window drops less important parts.
	m = still(t, 30, 10, look{noColor: true}, nil)
	m.lacks.route, m.lacks.what = "anthropic/claude", "no key for anthropic"
	m.update(tea.WindowSizeMsg{Width: 30, Height: 10})
	if got := m.View().Content; !strings.Contains(got, "no key") {
		t.Error(got)
	}
}

// TestCustomLine checks that the line of the person's command is followed by the mode and the warnings, even if the
// line is long.
func TestCustomLine(t *testing.T) {
	m := still(t, 40, 10, look{noColor: true}, nil)
	for _, tc := range []struct{ printed, lacks, want string }{
		{"hi", "", "hi · ask"},
		{"hi", "no key for x", "hi · ask · no key for x, see /status"},
		{strings.Repeat("long ", 20), "", strings.Repeat("long ", 6) + "lo… · ask"},
		{strings.Repeat("long ", 20), "no key for x", "long… · ask · no key for x, see /status"},
		{"hi", "no key for a provider with a long name", "… · ask · no key for a provider with a…"},
	} {
		m.line.shown, m.lacks.what = tc.printed, tc.lacks
		lines := strings.Split(m.View().Content, "\n")
		if got := lines[len(lines)-1]; got != tc.want {
			t.Errorf("%q, wanted %q", got, tc.want)
		}
	}
	m.line.shown, m.lacks.what, m.talk.trouble = "hi", "", "the server does not answer"
	if got := m.View().Content; !strings.HasSuffix(got, "hi · ask · the server does not answer") {
		t.Error(got)
	}
}
