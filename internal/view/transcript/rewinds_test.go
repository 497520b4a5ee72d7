package transcript_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
)

// rewound is a log of so many events, with rewinds by the number of their event.
func rewound(n uint64, to map[uint64]uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for seq := uint64(1); seq <= n; seq++ {
			e := event.Event{Seq: seq, Body: event.Note{Text: "n"}}
			if back, ok := to[seq]; ok {
				e.Body = event.Rewound{To: back}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestRewound(t *testing.T) {
	for name, c := range map[string]struct {
		n    uint64
		to   map[uint64]uint64
		gone []uint64
	}{
		"none":           {5, nil, nil},
		"one":            {8, map[uint64]uint64{6: 2}, []uint64{3, 4, 5}},
		"two":            {9, map[uint64]uint64{4: 2, 8: 6}, []uint64{3, 7}},
		"one in another": {9, map[uint64]uint64{4: 2, 7: 3}, []uint64{4, 5, 6}},
		"over another":   {9, map[uint64]uint64{4: 2, 7: 1}, []uint64{2, 3, 4, 5, 6}},
		"to the rewind":  {9, map[uint64]uint64{4: 2, 7: 4}, []uint64{3, 5, 6}},
		"to what comes":  {9, map[uint64]uint64{4: 2, 6: 8, 7: 5}, []uint64{3, 6}},
		"the last event": {4, map[uint64]uint64{4: 1}, []uint64{2, 3}},
	} {
		var f transcript.Fold
		for e, err := range rewound(c.n, c.to) {
			if err != nil {
				t.Fatal(err)
			}
			f.Apply(e)
		}
		gone, err := transcript.Rewound(rewound(c.n, c.to))
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint64]bool{}
		for _, seq := range c.gone {
			want[seq] = true
		}
		for seq := uint64(0); seq <= c.n+1; seq++ {
			if gone(seq) != want[seq] || f.Gone(seq) != want[seq] {
				t.Errorf("%s: event %d is gone: %v, as it was folded %v", name, seq, gone(seq), f.Gone(seq))
			}
		}
	}
}

func TestRewoundLogThatBreaksOff(t *testing.T) {
	broken := errors.New("broken")
	if _, err := transcript.Rewound(func(yield func(event.Event, error) bool) { yield(event.Event{}, broken) }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestRewindEndsWhatGoesOn(t *testing.T) {
	var s session
	s.do(said("go"), calls(bash("1")), event.Waiting{Call: "1"}, event.Steered{},
		said("next"), event.Raised{ID: "q", Child: "s.1"}, event.Delta{Text: "I"})
	got := s.do(event.Rewound{To: 1})
	if want := `reply "I" void, question 1 closed true, note of rewound "the conversation was rewound to event ` +
		`1"`; got != want {
		t.Errorf("got %s", got)
	}
	if s.Run.Busy || len(s.Queued()) != 0 || len(s.Waiting()) != 0 || len(s.Raised()) != 1 {
		t.Errorf("it goes on with %+v", s.Now)
	}
}
