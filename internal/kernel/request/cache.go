package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

const (
	cacheLife  = 5 * time.Minute // the shortest time for which providers keep an entry
	cacheWorth = 2048            // tokens; providers hardly cache anything shorter
)

// CacheWatch compares the tokens that each reply read from the provider's prompt cache with the tokens that the previous
// reply left there. Requests only grow at their end, so an unexplained loss is a bug, in inspan or at the provider. It
// is not safe for concurrent use.
type CacheWatch struct {
	req   llm.Request // last request; shares memory with the state
	route string      // route that answered it; empty if the cache is known to be lost
	kept  int         // tokens in the cache after it
	at    time.Time   // when it was sent
}

// Observe forgets the cache if an event explains its loss.
func (w *CacheWatch) Observe(body event.Body) {
	switch b := body.(type) {
	case event.Switched:
		if b.Route != "" || b.Tools != nil || b.Effort != "" {
			w.route = ""
		}
	case event.Healed, event.Pruned, event.Compacted, event.Rewound:
		w.route = ""
	}
}

// Look takes a request, its reply, and when it was sent. It returns a note if the reply read less than half of the
// tokens that the cache should hold.
func (w *CacheWatch) Look(req llm.Request, r event.Replied, at time.Time) (note event.Note, lost bool) {
	before := *w
	*w = CacheWatch{req: req, route: r.Route, kept: r.Usage.CacheRead + r.Usage.CacheWrite, at: at}
	switch {
	case before.route != r.Route, at.Sub(before.at) > cacheLife, before.kept < cacheWorth:
		return note, false // no cached tokens expected
	case r.Usage.Prompt() < before.kept, r.Usage.CacheRead >= before.kept/2:
		return note, false // the figures are missing or good
	}
	return event.Note{Topic: "cache", Text: fmt.Sprintf("the prompt cache gave %d of the %d tokens it held %s ago; %s",
		r.Usage.CacheRead, before.kept, at.Sub(before.at).Round(time.Second), difference(before.req, req))}, true
}

// difference describes the first place in which a request differs from the beginning of the previous one.
func difference(before, now llm.Request) string {
	for _, part := range []struct {
		name        string
		before, now []any
	}{
		{"system block", list(before.System), list(now.System)},
		{"tool", list(before.Tools), list(now.Tools)},
		{"message", list(before.Messages), list(now.Messages)},
	} {
		for i, old := range part.before {
			if i == len(part.now) {
				return fmt.Sprintf("%s %d is gone", part.name, i+1)
			}
			a, b := encoded(old), encoded(part.now[i])
			if !bytes.Equal(a, b) {
				at := firstDifference(a, b)
				return fmt.Sprintf("%s %d differs from byte %d on: %q was %q", part.name, i+1, at, excerpt(b, at), excerpt(a, at))
			}
		}
	}
	return "the previous request was sent again unchanged"
}

func list[T any](items []T) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func excerpt(b []byte, at int) []byte { return b[at:min(at+40, len(b))] }
