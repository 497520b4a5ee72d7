// Package fake is shared by the fake servers of all vendors: the neutral answer that they render, the writing
// of an event stream with all possible accidents, and connections in memory.
package fake

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/llm"
)

// An Answer is a fake server's response to one request. The zero value is an empty reply.
type Answer struct {
	// Parts of the reply: Text, Reasoning and Call. A Call's Invalid, if set,
	// is sent as its arguments. Reasoning whose Opaque is the JSON string
	// "redacted" is hidden by the vendor, where the vendor does that.
	Parts llm.Parts
	Stop  llm.Stop // empty means StopCalls if there are calls, else StopEnd
	// StopReason is the vendor's own word; it overrides Stop.
	StopReason string
	Usage      llm.Usage

	// Status is that of an error answer; 0 means a reply. Type, Code and Message are those of the error in the
	// vendor's form; if Body is set, it is sent instead.
	Status  int
	Type    string
	Code    string
	Message string
	Body    string
	Header  http.Header // added to the answer's

	// Split is the largest size of the pieces in which text is streamed, in bytes; 0 means 24.
	Split int
	// Write is how many bytes are written and flushed at once; 0 means an event.
	Write int
	// CutAt breaks the connection instead of sending this event; 1 is the first, 0 means none. Clean ends the body
	// there as if it were complete.
	CutAt int
	Clean bool
	// ErrorAt sends the error instead of this event and ends; 0 means none.
	ErrorAt int
	// Hold is waited for before event HoldAt, or before the header if HoldAt is 0. nil means no waiting.
	Hold   <-chan struct{}
	HoldAt int
	// Pace is how long to wait before every event; 0 means none.
	Pace time.Duration
}

// Befallen returns the answer with an accident: the connection breaks in the middle of it, or it hangs in a
// phase, "first byte" or "idle"; in "total" it continues for long.
func (a Answer) Befallen(cut bool, phase string) Answer {
	const middle = 6 // events
	if cut {
		a.CutAt = middle
	}
	switch phase {
	case "first byte":
		a.Hold = make(chan struct{})
	case "idle":
		a.Hold, a.HoldAt = make(chan struct{}), middle
	case "total":
		a.Pace = time.Second
	}
	return a
}

// Reason returns the stop to render.
func (a Answer) Reason() llm.Stop {
	if a.Stop != "" {
		return a.Stop
	}
	if len(a.Parts.Calls()) > 0 {
		return llm.StopCalls
	}
	return llm.StopEnd
}

// Decide returns the answer to a request, with its header set. ok is false if the answer is an error, which
// fail has written then: the refusal, or the error from answer. A nil answer is an empty reply.
func Decide(w http.ResponseWriter, r *http.Request, body []byte, refusal *Answer,
	answer func(*http.Request, []byte) Answer, fail func(http.ResponseWriter, Answer),
) (a Answer, ok bool) {
	switch {
	case refusal != nil:
		a = *refusal
	case answer != nil:
		a = answer(r, body)
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.Status >= 300 {
		fail(w, a)
		return a, false
	}
	return a, true
}

// Pieces cuts s as it is streamed, never inside a character.
func (a Answer) Pieces(s string) []string {
	size := a.Split
	if size <= 0 {
		size = 24
	}
	pieces := make([]string, 0, len(s)/size+1)
	for len(s) > size {
		n := size
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		pieces = append(pieces, s[:n])
		s = s[n:]
	}
	if s != "" {
		pieces = append(pieces, s)
	}
	return pieces
}

// ArgText returns the argument text of a call as the vendor streams it.
func ArgText(c llm.Call) string {
	if c.Invalid != "" {
		return c.Invalid
	}
	return string(c.Args)
}

// A Stream writes the events of one answer.
type Stream struct {
	w     http.ResponseWriter
	flush http.Flusher
	r     *http.Request
	a     Answer
	n     int
	fail  []byte // the event that reports the error
	over  bool
}

// NewStream sends the header of an event stream. fail is the whole event that
// reports a.Message in the vendor's form.
func NewStream(w http.ResponseWriter, r *http.Request, a Answer, fail []byte) *Stream {
	s := &Stream{w: w, r: r, a: a, fail: fail}
	s.flush, _ = w.(http.Flusher)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if a.Hold != nil && a.HoldAt == 0 {
		s.wait()
	}
	return s
}

func (s *Stream) wait() {
	select {
	case <-s.a.Hold:
	case <-s.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func (s *Stream) pace() {
	timer := time.NewTimer(s.a.Pace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// Send writes one whole event, with whatever is to happen to it. The accident
// of a cut connection is a panic with [http.ErrAbortHandler].
func (s *Stream) Send(event []byte) {
	if s.over {
		return
	}
	s.n++
	if s.a.Hold != nil && s.a.HoldAt == s.n {
		s.Flush()
		s.wait()
	}
	if s.a.Pace > 0 {
		s.Flush()
		s.pace()
	}
	switch s.n {
	case s.a.CutAt:
		s.Flush()
		s.over = true
		if !s.a.Clean {
			panic(http.ErrAbortHandler)
		}
		return
	case s.a.ErrorAt:
		event, s.over = s.fail, true
	}
	if s.a.Write <= 0 {
		_, _ = s.w.Write(event)
		return
	}
	for len(event) > 0 {
		n := min(s.a.Write, len(event))
		_, _ = s.w.Write(event[:n])
		s.Flush()
		event = event[n:]
	}
}

// Flush sends the written data to the client.
func (s *Stream) Flush() {
	if s.flush != nil {
		s.flush.Flush()
	}
}

// A Gauge counts requests being answered. Safe for concurrent use.
type Gauge struct{ n atomic.Int64 }

// Enter counts a request, until leave is called.
func (g *Gauge) Enter() (leave func()) {
	g.n.Add(1)
	return func() { g.n.Add(-1) }
}

// Value returns the current count.
func (g *Gauge) Value() int { return int(g.n.Load()) }

// Quote returns text as a JSON string, by code independent of the adapters that read it.
func Quote(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can be encoded, and a Builder takes it
	return strings.TrimSuffix(b.String(), "\n")
}
