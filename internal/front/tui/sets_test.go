package tui

import (
	"fmt"
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

// TestSetOfCalls checks that calls which are asked for together are one question, which can't be allowed before its end
// was on the screen, and whose answer is for all of them.
func TestSetOfCalls(t *testing.T) {
	bodies := []event.Body{
		event.Say("go"),
		event.Asked{},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "p", Name: "script"}}},
		event.Judged{Call: "p", Action: tool.Allow, Caller: true},
		event.Started{Call: "p"},
	}
	for i := range 30 {
		id := fmt.Sprint("p/", i+1)
		bodies = append(bodies, event.Judged{
			Call: id, Parent: "p", Tool: "note", Args: fmt.Appendf(nil, `{"word":"w%d"}`, i+1), Action: tool.Ask, RequestedAhead: i > 0,
			Effects: []tool.Effect{{Kind: tool.Write, Path: fmt.Sprint("/w/", i+1)}},
		}, event.Waiting{Call: id, Rules: []string{"note"}})
	}
	at := time.Unix(1000, 0)
	m := still(t, 80, 24, look{noColor: true}, events(bodies...))
	m.now = func() time.Time { return at }
	m.Host = func(app.Options, func(string)) *inspan.Host { return &inspan.Host{} }
	m.talk.running = true
	m.View()
	at = at.Add(seeing)
	presses(m, letter('y'))
	a, open := m.box().(*ask)
	if !open || len(m.talk.decided) > 0 || !strings.Contains(a.problem, "page down") ||
		!strings.Contains(a.title, "a set of 30 calls asks") {
		t.Fatalf("decided %+v, %+v", m.talk.decided, a)
	}
	if body := strings.Join(a.body, "\n"); !strings.Contains(body, "write 30 files below /w") || !strings.Contains(body, `"w30"`) || len(a.options) != 2 {
		t.Errorf("%s\n%v", body, a.options)
	}
	for range 40 {
		presses(m, pressed(tea.KeyPgDown))
	}
	at = at.Add(seeing)
	presses(m, letter('y'))
	if len(m.talk.decided) != 1 {
		t.Fatalf("decided %+v", m.talk.decided)
	}
	d := m.talk.decided[0].(event.Decided)
	var also []uint64
	for i := range 29 {
		also = append(also, uint64(9+2*i))
	}
	if !d.Allow || d.Call != "p/1" || d.Question != 7 || !slices.Equal(d.Also, also) {
		t.Errorf("decided %+v", d)
	}
	if m.View(); m.box() != nil {
		t.Error("something is asked again")
	}
}
