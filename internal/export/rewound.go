package export

import (
	"iter"
	"slices"

	"github.com/inspan/inspan/event"
)

// rewound tells which events no longer count, as the conversation was taken back to before
// them and has gone on elsewhere since. A rewind that was taken back in turn counts as none.
func rewound(events iter.Seq2[event.Event, error]) (func(seq uint64) bool, error) {
	type turn struct{ at, to uint64 } // from here on, the conversation goes on there
	var turns []turn
	var last uint64
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		last = max(last, e.Seq)
		if b, ok := e.Body.(event.Rewound); ok {
			turns = append(turns, turn{e.Seq, b.To})
		}
	}
	type span struct{ from, to uint64 }
	var counts []span // from the last one back
	at := last
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].at <= at {
			counts = append(counts, span{turns[i].at, at})
			at = turns[i].to
		}
	}
	counts = append(counts, span{0, at})
	return func(seq uint64) bool {
		return seq <= last && !slices.ContainsFunc(counts, func(s span) bool { return s.from <= seq && seq <= s.to })
	}, nil
}
