package router

import (
	"sync"
	"time"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// Limits that make a route unhealthy, and for how long.
const (
	patience    = 2                // failures in a row that may pass
	longWait    = 20 * time.Second // a vendor that asks for more is given up at once
	firstPause  = 30 * time.Second // doubled with every further failure
	longestWait = 10 * time.Minute // unless the vendor says longer
	mostWait    = time.Hour        // whatever the vendor says
)

// Health remembers which models failed recently. A model is unhealthy
//
//   - after two temporary failures in a row, or one for which the vendor demands a wait of more than 20 seconds;
//   - at once after a failure that waiting does not cure, such as wrong credentials or an exhausted quota.
//
// It stays unhealthy for as long as the vendor asks, but at most an hour, or for 30 seconds, which double with
// each further failure up to ten minutes. A reply makes it healthy again.
//
// The zero value knows of no failure. Safe for concurrent use; do not copy.
type Health struct {
	mu     sync.Mutex
	models map[string]Condition
}

// Condition is the health of one model.
type Condition struct {
	Failures int       // in a row
	Kind     llm.Kind  // of the last one
	Last     time.Time // when that was
	Until    time.Time // it is unhealthy until then; zero or past: it is healthy
}

// View is a snapshot of [Health], with the time of a decision. Models that are not in it are healthy. It must
// not be changed.
type View struct {
	At     time.Time
	Models map[string]Condition // by "provider/model"
}

// healthy reports whether a model may be asked first.
func (v View) healthy(route string) bool { return !v.Models[route].Until.After(v.At) }

// View returns a snapshot.
func (h *Health) View() View {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := View{At: time.Now(), Models: make(map[string]Condition, len(h.models))}
	for route, c := range h.models {
		v.Models[route] = c
	}
	return v
}

// Failed records a failure of the model "provider/model" and reports whether it is now unhealthy. Failures
// caused by the request itself don't count.
func (h *Health) Failed(route string, e *llm.Error) (unhealthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, c := time.Now(), h.models[route]
	atOnce := e.RetryAfter > longWait
	switch reaction.To(e.Kind) {
	case reaction.Retry:
	case reaction.Await, reaction.Elsewhere:
		atOnce = true
	default:
		return c.Until.After(now)
	}
	c.Failures, c.Kind, c.Last = c.Failures+1, e.Kind, now
	if atOnce || c.Failures >= patience {
		if until := now.Add(pause(c.Failures, e)); until.After(c.Until) {
			c.Until = until
		}
	}
	if h.models == nil {
		h.models = map[string]Condition{}
	}
	h.models[route] = c
	return c.Until.After(now)
}

// Answered records a reply of the model to a request sent at began. Failures since then still count.
func (h *Health) Answered(route string, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.models[route].Last.After(began) {
		delete(h.models, route)
	}
}

// pause returns how long a model is not asked after so many failures.
func pause(failures int, e *llm.Error) time.Duration {
	if e.RetryAfter > 0 {
		return min(e.RetryAfter, mostWait)
	}
	doublings := min(max(failures-patience, 0), 10)
	return min(firstPause<<doublings, longestWait)
}
