package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

// events numbers bodies the way a log would.
func events(bodies ...event.Body) []event.Event {
	var out []event.Event
	for i, b := range bodies {
		out = append(out, event.Event{Seq: uint64(i) + 1, Session: "s", Body: b})
	}
	return out
}

func replied(b event.Replied) event.Body {
	b.Parts, b.Stop, b.Route = llm.Say("Hi."), llm.StopEnd, "a/b"
	return b
}

func TestTotalCost(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second event.Replied
		want          string
	}{
		"known":  {event.Replied{Cost: 0.25}, event.Replied{Cost: 0.5}, `0.75`},
		"partly": {event.Replied{Cost: 0.25}, event.Replied{Unpriced: true}, ``},
		"free":   {event.Replied{}, event.Replied{}, `0`},
	} {
		var b bytes.Buffer
		list := events(event.Opened{App: "a 1"}, replied(tc.first), replied(tc.second))
		if err := transcript.ATIF(&b, sequence(list), blobPath); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Final map[string]json.RawMessage `json:"final_metrics"`
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if cost := string(got.Final["total_cost_usd"]); cost != tc.want {
			t.Errorf("%s: total cost %q, want %q", name, cost, tc.want)
		}
	}
}

func TestLongResultsAreShortened(t *testing.T) {
	var b bytes.Buffer
	list := events(
		event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "look", Args: json.RawMessage(`{}`)}}},
		event.Ended{Call: "1", Outcome: event.OutcomeOK, Parts: llm.Say("x" + strings.Repeat("é", 4000))},
	)
	if err := transcript.Markdown(&b, sequence(list)); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); len(text) > 5000 || !strings.Contains(text, "4001 bytes more") || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("%d bytes, ending in %q", b.Len(), b.Bytes()[b.Len()-60:])
	}
}

func TestExportsPassErrorsOn(t *testing.T) {
	damaged := errors.New("damaged")
	broken := func(yield func(event.Event, error) bool) { yield(event.Event{}, damaged) }
	if err := transcript.Markdown(new(bytes.Buffer), broken); !errors.Is(err, damaged) {
		t.Errorf("markdown: %v", err)
	}
	if err := transcript.ATIF(new(bytes.Buffer), broken, blobPath); !errors.Is(err, damaged) {
		t.Errorf("atif: %v", err)
	}
	if err := transcript.ATIF(new(bytes.Buffer), sequence(nil), blobPath); err == nil {
		t.Error("a trajectory without a step is not valid, and there was no error")
	}
}

// TestExportsMarkWhatWasRewound checks that exports keep rewound parts and mark them, and that an undone rewind does
// not count.
func TestExportsMarkWhatWasRewound(t *testing.T) {
	said := func(text string) event.Body { return event.Say(text) }
	start := []event.Body{event.Opened{App: "a 1"}, said("one"), replied(event.Replied{}), said("two"), replied(event.Replied{})}
	for name, tc := range map[string]struct {
		more []event.Body
		gone string // what is marked
	}{
		"nothing":        {nil, ""},
		"the end":        {[]event.Body{event.Rewound{To: 3, Of: 5}}, "two Hi."},
		"and it goes on": {[]event.Body{event.Rewound{To: 3, Of: 5}, said("three")}, "two Hi."},
		"taken back":     {[]event.Body{event.Rewound{To: 3, Of: 5}, said("three"), event.Rewound{To: 5, Of: 7}, said("four")}, "three"},
		"twice": {
			[]event.Body{event.Rewound{To: 3, Of: 5}, said("three"), event.Rewound{To: 1, Of: 7}, said("four")},
			"one Hi. two Hi. three",
		},
	} {
		list := events(append(slices.Clone(start), tc.more...)...)
		var md, atif bytes.Buffer
		if err := errors.Join(transcript.Markdown(&md, sequence(list)), transcript.ATIF(&atif, sequence(list), blobPath)); err != nil {
			t.Fatal(err)
		}
		var marked []string
		for i, part := range strings.Split(md.String(), "*What follows was rewound: it no longer counts.*") {
			if i > 0 {
				text, _, ended := strings.Cut(part, "*The rewound part ends here")
				if !ended {
					t.Errorf("%s: the part has no end", name)
				}
				for _, line := range strings.Split(text, "\n") {
					if line != "" && line[0] != '#' {
						marked = append(marked, line)
					}
				}
			}
		}
		if got := strings.Join(marked, " "); got != tc.gone {
			t.Errorf("%s: markdown marks %q, want %q:\n%s", name, got, tc.gone, md.String())
		}
		var got struct {
			Steps []struct {
				Message string
				Extra   struct{ Rewound bool }
			}
		}
		if err := json.Unmarshal(atif.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		marked = nil
		for _, s := range got.Steps {
			if s.Extra.Rewound {
				marked = append(marked, s.Message)
			}
		}
		if got := strings.Join(marked, " "); got != tc.gone {
			t.Errorf("%s: ATIF marks %q, want %q", name, got, tc.gone)
		}
	}
}
