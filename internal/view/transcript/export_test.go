package transcript

import "github.com/inspan/inspan/event"

// Knows reports whether the fold has a case for a body.
func (f *Fold) Knows(b event.Body) bool {
	_, known := f.apply(event.Event{Seq: 1, Body: b})
	return known
}
