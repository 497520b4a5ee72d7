package tui

import (
	"encoding/json"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestAnswerKeys checks the decision of each key of a question, in small letters and in capitals. An offered key
// without a row fails.
func TestAnswerKeys(t *testing.T) {
	rules := []string{"write(a)"}
	offers := []event.Offer{{Reach: event.ReachEdits, Rules: []string{"edits"}}, {Reach: event.ReachHost, Rules: []string{"network(h)"}}}
	rows := map[string]event.Decided{
		"y": {Allow: true},
		"s": {Allow: true, Scope: event.ScopeSession},
		"w": {Allow: true, Scope: event.ScopeSession, Reach: event.ReachEdits},
		"h": {Allow: true, Scope: event.ScopeSession, Reach: event.ReachHost},
		"p": {Allow: true, Scope: event.ScopeProject},
		"a": {Allow: true, Scope: event.ScopeAlways},
		"n": {},
	}
	offered := words.Options(rules, offers)
	if len(offered) != len(rows) {
		t.Errorf("%d keys are offered, %d have a row", len(offered), len(rows))
	}
	for _, o := range offered {
		want, ok := rows[o.Key]
		if !ok {
			t.Errorf("the key %s has no row", o.Key)
			continue
		}
		for _, key := range []rune{rune(o.Key[0]), rune(o.Key[0] - 'a' + 'A')} {
			m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{},
				event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "note", Args: json.RawMessage("{}")}, llm.Call{ID: "2", Name: "b"}}},
				event.Judged{Call: "1", Action: tool.Ask}, event.Judged{Call: "2", Action: tool.Ask},
				event.Waiting{Call: "1", Rules: rules, Offers: offers}, event.Waiting{Call: "2"}))
			m.View()
			see(m)
			m.key(tea.KeyPressMsg{Code: key, Text: string(key)})
			if len(m.talk.decided) == 0 { // it waits for a second letter
				m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
			}
			if len(m.talk.decided) != 1 {
				t.Errorf("%c decides nothing", key)
				continue
			}
			got, _ := m.talk.decided[0].(event.Decided)
			if got.Call != "1" || got.Allow != want.Allow || got.Scope != want.Scope || got.Reach != want.Reach {
				t.Errorf("%c: %+v", key, got)
			}
		}
	}
}
