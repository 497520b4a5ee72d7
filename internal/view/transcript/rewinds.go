package transcript

import (
	"iter"
	"slices"

	"github.com/inspan/inspan/event"
)

// rewinds knows which events a rewind has undone. A rewind that was itself undone does not count.
type rewinds struct {
	all   []span // each rewind, from the event to which it went back to its own event
	spans []span // the rewinds that count
}

// span is the events between two others, both exclusive.
type span struct{ from, to uint64 }

func (r *rewinds) add(at, to uint64) {
	if to >= at { // invalid
		return
	}
	r.all = append(r.all, span{to, at})
	r.spans = nil
	least := at
	for _, s := range slices.Backward(r.all) {
		if s.to <= least {
			r.spans = append(r.spans, s)
			least = s.from
		}
	}
}

func (r *rewinds) gone(seq uint64) bool {
	return slices.ContainsFunc(r.spans, func(s span) bool { return s.from < seq && seq < s.to })
}

// Rewound reads a log and returns a function that reports which of its events were undone, see [Fold.Gone]. It is for
// writers that can't change text that they have already written.
func Rewound(events iter.Seq2[event.Event, error]) (gone func(seq uint64) bool, err error) {
	var r rewinds
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if b, ok := e.Body.(event.Rewound); ok {
			r.add(e.Seq, b.To)
		}
	}
	return r.gone, nil
}
