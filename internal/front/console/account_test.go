package console

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestAccount folds logs into denials and sensitive places.
func TestAccount(t *testing.T) {
	replied := func(ids ...string) event.Body {
		var parts llm.Parts
		for _, id := range ids {
			parts = append(parts, llm.Call{ID: id, Name: "edit_file"})
		}
		return event.Replied{Parts: parts}
	}
	change := []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}
	read := []tool.Effect{{Kind: tool.Read, Path: "/w/.env", Sensitive: "is named like a secret"}}
	denied := func(id string, effects []tool.Effect) []event.Body {
		return []event.Body{
			event.Judged{Call: id, Action: tool.Deny, By: "mode ask", Reason: "it would change /w/a", Effects: effects},
			event.Ended{Call: id, Outcome: event.OutcomeDenied},
		}
	}
	made := func(id string, effects []tool.Effect) []event.Body {
		return []event.Body{
			event.Judged{Call: id, Action: tool.Allow, Effects: effects},
			event.Started{Call: id},
			event.Ended{Call: id, Outcome: event.OutcomeOK},
		}
	}
	denial := Denial{Call: "1", Tool: "edit_file", By: "mode ask", Reason: "it would change /w/a"}
	touched := Touched{Call: "1", Tool: "edit_file", Kind: tool.Read, Path: "/w/.env", Why: "is named like a secret"}
	for name, tc := range map[string]struct {
		log     [][]event.Body
		denials []Denial
		touched []Touched
		nothing bool
	}{
		"nothing was called":  {},
		"a change was denied": {[][]event.Body{{replied("1")}, denied("1", change)}, []Denial{denial}, nil, true},
		"what is not understood was": {
			[][]event.Body{{replied("1")}, denied("1", []tool.Effect{{Kind: tool.External}})},
			[]Denial{denial},
			nil, true,
		},
		"mode plan denied it": {
			[][]event.Body{{
				replied("1"),
				event.Judged{Call: "1", Action: tool.Deny, By: "mode plan", Reason: "x", Effects: change},
				event.Ended{Call: "1", Outcome: event.OutcomeDenied},
			}},
			[]Denial{{Call: "1", Tool: "edit_file", By: "mode plan", Reason: "x"}},
			nil, false,
		},
		"a reading was denied": {[][]event.Body{{replied("1")}, denied("1", read)}, []Denial{denial}, nil, false},
		"one of two changes was": {
			[][]event.Body{{replied("1", "2")}, denied("1", change), made("2", change)},
			[]Denial{denial},
			nil, false,
		},
		"only readings were made": {[][]event.Body{
			{replied("1", "2")},
			denied("1", change),
			made("2", []tool.Effect{{Kind: tool.Read, Path: "/w/b"}}),
		}, []Denial{denial}, nil, true},
		"a sensitive place was read": {[][]event.Body{{replied("1")}, made("1", read)}, nil, []Touched{touched}, false},
		"it asked, and nothing is yet": {
			[][]event.Body{{replied("1"), event.Judged{Call: "1", Action: tool.Ask, Effects: read}}},
			nil, nil, false,
		},
		"a person said no": {
			[][]event.Body{{
				replied("1"),
				event.Judged{Call: "1", Action: tool.Ask, By: "mode ask", Effects: change},
				event.Waiting{Call: "1"},
				event.Decided{Call: "1", By: "the user", Reason: "not that"},
				event.Ended{Call: "1", Outcome: event.OutcomeDenied},
			}},
			[]Denial{{Call: "1", Tool: "edit_file", By: "the user", Reason: "not that"}},
			nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newView(&Console{Form: JSON, Err: io.Discard})
			for _, bodies := range tc.log {
				for _, b := range bodies {
					if err := a.event(event.Event{Body: b}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if d := cmp.Diff(tc.denials, a.denials, cmpopts.IgnoreUnexported(Denial{})); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.touched, a.touched); d != "" {
				t.Error(d)
			}
			if a.deniedEverything() != tc.nothing {
				t.Errorf("nothing done: %t", !tc.nothing)
			}
		})
	}
}

// TestAccountGoesOn checks that a call which waited since an earlier run counts.
func TestAccountGoesOn(t *testing.T) {
	a := newView(&Console{Form: JSON, Err: io.Discard})
	a.open(inspan.Pending{Waits: true, Call: llm.Call{ID: "1", Name: "edit_file"}, Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}})
	for _, b := range []event.Body{
		event.Decided{Call: "1", Allow: true, By: "the user"},
		event.Started{Call: "1"},
		event.Ended{Call: "1", Outcome: event.OutcomeOK},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "2", Name: "edit_file"}}},
		event.Judged{Call: "2", Action: tool.Deny, Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/b"}}},
		event.Ended{Call: "2", Outcome: event.OutcomeDenied},
	} {
		if err := a.event(event.Event{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	if a.deniedEverything() {
		t.Error("the first change was made")
	}
}
