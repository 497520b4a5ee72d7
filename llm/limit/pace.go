package limit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/inspan/inspan/llm"
)

// pace is the state of a limit. Times are in nanoseconds since 1970.
type pace struct {
	Requests int64 `json:"requests"` // when the next request would come if all came evenly
	Tokens   int64 `json:"tokens"`   // the same for the next token
	Written  int64 `json:"written"`
	pause
}

// pause is a pause that the vendor has asked for.
type pause struct {
	Paused int64    `json:"paused"`          // nothing but probes is sent until then
	Kind   llm.Kind `json:"kind"`            // why
	Probe  int64    `json:"probe,omitempty"` // when the next probe may be sent
}

// probeEvery is how often one request is sent during a pause.
const probeEvery = 5 * time.Minute

// longestPause bounds the effect of one response of a vendor. Quotas renew within a day; the hour is for clock
// differences.
func longestPause(k llm.Kind) time.Duration {
	if k == llm.KindQuota {
		return 25 * time.Hour
	}
	return time.Hour
}

// bound limits a state to values that this package could have written, no matter who wrote them: an older version,
// or an attacker. At most an hour's worth is owed.
func (s *pace) bound(now int64) {
	owed := now + int64(time.Hour)
	s.Requests, s.Tokens = min(max(s.Requests, 0), owed), min(max(s.Tokens, 0), owed)
	s.Paused = min(s.Paused, now+int64(longestPause(s.Kind)))
	s.Probe = min(s.Probe, now+int64(probeEvery))
}

// tolerance is how far requests may run ahead of an even pace: a tenth of a minute's allowance may be sent at
// once.
const tolerance = int64(6 * time.Second)

// skew is how far clocks may differ. A state from a later time is ignored.
const skew = int64(time.Minute)

// due returns when something that arrives now may be sent, and when the next one of its kind is due. next is
// when this one was due, and cost the time that it takes up.
//
// It is the generic cell rate algorithm in its form as virtual scheduling (ITU-T Recommendation I.371, annex
// A), which is equivalent to a token bucket but only has to remember one time.
func due(next, now, cost int64) (start, after int64) {
	return max(now, next-tolerance), max(now, next) + cost
}

// share returns the time that n of perMinute take up.
func share(n, perMinute int) int64 {
	return int64(float64(time.Minute) * float64(n) / float64(perMinute))
}

// place is a request's place in the queue.
type place struct {
	start            int64 // when it may be sent, pauses aside
	requests, tokens int64 // the time it takes up; 0 means it takes up none
	probe            bool  // it is sent in spite of the pause
	pause
}

// after reports whether the request can only be sent after a time.
func (p place) after(t time.Time) bool {
	return p.start > t.UnixNano() || !p.probe && p.Paused > t.UnixNano()
}

// left returns how long a request must still wait, and why; nil if it need not.
func (p place) left() (time.Duration, *llm.Error) {
	now := time.Now().UnixNano()
	wait, paused := time.Duration(p.start-now), time.Duration(p.Paused-now)
	switch {
	case p.probe:
	case paused > 0 && (paused >= wait || paused > longestWait):
		return p.held(now)
	}
	if wait > 0 {
		return wait, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: wait, Message: "held back to keep to the limits of this key", Err: errHeld}
	}
	return 0, nil
}

// errHeld marks a request that was not sent because of a limit here, not by the vendor. It pauses nothing.
var errHeld = errors.New("held back")

// longestJitter bounds the random addition to a pause.
const longestJitter = time.Minute

// held returns how long a pause delays a request. Not all requests return at its end at once: each waits up to
// a tenth longer. In a long pause, another request may learn earlier that it is over, or this one may be the
// next probe.
func (p place) held(now int64) (time.Duration, *llm.Error) {
	left := time.Duration(p.Paused - now)
	wait := left + rand.N(min(left/10, longestJitter)+1)
	if p.Kind == llm.KindQuota {
		return wait, &llm.Error{Kind: p.Kind, RetryAfter: wait, Message: "an allowance of this key is used up; nothing was sent"}
	}
	if probe := time.Duration(p.Probe - now); left > longestWait {
		wait = min(wait, max(probe, time.Second))
	}
	e := &llm.Error{Kind: llm.KindRateLimited, RetryAfter: wait, Message: "the vendor asked this key to wait"}
	if left > wait {
		e.Message = fmt.Sprintf("the vendor asked this key to wait, so nothing was sent; every %v one request tries whether that still holds",
			probeEvery)
	}
	return wait, e
}
