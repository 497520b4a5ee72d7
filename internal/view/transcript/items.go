package transcript

import (
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Item is one thing that a person sees. It is a pointer to one of the types below, and stays
// the same pointer for as long as the thing goes on.
//
// Every item has a Seq, the number of the event that brought it. Those with 0 come from
// transient events alone: they are of the moment, and nobody has to remember them.
type Item interface{ item() }

// Said is what somebody told the session.
type Said struct {
	Seq    uint64
	Time   time.Time
	Text   string // in words
	Parts  llm.Parts
	By     string // empty: the person at the terminal
	Origin event.Origin
	// Steered says that it was meant for the run that went on. Heard is set once the model
	// is asked with it: until then it waits, for the next request or the end of the run.
	Steered, Heard bool
}

// Reply is what the model says. While it is written it grows.
type Reply struct {
	Seq     uint64 // 0: it is not in the log yet
	Time    time.Time
	State   ReplyState
	Text    string
	Thought string
	Parts   llm.Parts // as it stands in the log; nil while it is written
	Route   string    // who answered
	Usage   llm.Usage
	Cost    float64

	text, thought strings.Builder
}

// ReplyState is how far a reply is.
type ReplyState int

// States of a reply.
const (
	Written ReplyState = iota // more of it may come
	Whole                     // Text and Thought are as the log has them
	Void                      // it broke off and counts for nothing
)

// Call is one use of a tool, from the reply or the call that makes it to its end.
type Call struct {
	Seq      uint64   // of the reply, or of the verdict if a call has made it; 0: that was before the first event
	Call     llm.Call // as it will run
	State    CallState
	Judged   *event.Judged  // nil: nobody has judged it
	Question *Question      // what was asked about it; nil: nothing was
	Decided  *event.Decided // the answer; nil: there is none
	Started  time.Time
	Latest   string      // what it showed last while it runs; empty until it shows something
	Ended    event.Ended // once State is Over
	Parent   *Call       // that has made it; nil: the model has

	printed []byte
}

// CallState is how far a call is.
type CallState int

// States of a call.
const (
	Made CallState = iota
	Judged
	Waiting // for somebody's decision
	Running
	Over
)

// Effects are those that it was judged by; none if nobody has judged it.
func (c *Call) Effects() []tool.Effect {
	if c.Judged == nil {
		return nil
	}
	return c.Judged.Effects
}

// Depth is how many calls are above it.
func (c *Call) Depth() int {
	if c.Parent == nil {
		return 0
	}
	return c.Parent.Depth() + 1
}

// DeniedBy names who or what denied a call, and why.
func (c *Call) DeniedBy() (by, reason string) {
	switch {
	case c.Decided != nil && !c.Decided.Allow:
		return c.Decided.By, c.Decided.Reason
	case c.Judged != nil:
		return c.Judged.By, c.Judged.Reason
	}
	return "", ""
}

// Note is something that is told in a sentence.
type Note struct {
	Seq    uint64
	Time   time.Time
	Of     event.Body // that it tells of
	Text   string     // may be empty: then only some readers tell of it, in words of their own
	Notice bool       // a person should notice it
	// First says that a Switched is what the session began with.
	First bool
}

// Question waits for somebody's decision: on a call of the session, or on what a child or a
// running call has raised.
type Question struct {
	Seq     uint64
	ID      string        // that an event.Decided names
	Call    *Call         // nil: it was raised
	Raised  *event.Raised // nil: a call waits
	Preview string
	Rules   []string
	Offers  []event.Offer
	Until   time.Time
	Answer  *event.Decided // nil: there is none, and there will be none once Closed is set
	Closed  bool           // it no longer waits
}

// Wait is a time for which nothing happens, such as before a request is sent again. It ends
// with the next event.
type Wait struct {
	Seq     uint64
	Why     string // in words of others
	What    string // comes then
	Seconds float64
	Until   time.Time
}

// Child is a session that works for this one.
type Child struct {
	Seq      uint64
	Spawned  event.Spawned
	Since    time.Time
	Returned *event.Returned // nil: it works
}

// Stop is the end of a run, with what that came to.
type Stop struct {
	Seq     uint64
	Time    time.Time
	Stopped event.Stopped
	Turns   int
	Cost    float64 // US dollars
	Took    time.Duration
}

func (*Said) item()     {}
func (*Reply) item()    {}
func (*Call) item()     {}
func (*Note) item()     {}
func (*Question) item() {}
func (*Wait) item()     {}
func (*Child) item()    {}
func (*Stop) item()     {}
