package transcript

import (
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Item is one entry of the transcript: a pointer to one of the types below. The pointer stays the same while the item
// is in progress.
//
// Every item has a Seq, the number of its first event. Items with Seq 0 come from transient events, or from before the
// first folded event, and need not be remembered.
type Item interface{ item() }

// Said is a message to the session.
type Said struct {
	Seq    uint64
	Time   time.Time
	Text   string // see [Spoken]
	Parts  llm.Parts
	By     string // empty means the person at the terminal
	Origin event.Origin
	Why    []event.Why // why inspan itself sent it, see [event.Steered]
	// Steered means that it was sent into a run in progress. Heard is set when a request includes it. Until then it
	// waits for the next request or the end of the run.
	Steered, Heard bool
}

// Typed returns the text that the person at the terminal typed; empty if the message is not theirs.
func (s *Said) Typed() string {
	switch {
	case s.Origin == event.OriginCommand:
		return event.Said{Parts: s.Parts, Origin: s.Origin}.Typed()
	case s.By == "":
		return s.Text
	}
	return ""
}

// Reply is a reply of the model. It grows while it is written.
type Reply struct {
	Seq     uint64 // 0 until it is logged
	Time    time.Time
	State   ReplyState
	Text    string
	Thought string
	Parts   llm.Parts // as logged; nil while it is written
	Route   string    // the model that answered
	Usage   llm.Usage
	Cost    float64

	text, thought strings.Builder
}

// ReplyState is the progress of a reply.
type ReplyState int

// States of a reply.
const (
	Written ReplyState = iota // it may grow
	Whole                     // Text and Thought are as logged
	Void                      // it was cut off and will not be logged
)

// Call is one use of a tool.
type Call struct {
	Seq      uint64   // of the reply, or of the verdict if another call made it; 0 if that was before the first event
	Call     llm.Call // as it will run
	State    CallState
	Judged   *event.Judged  // nil if it was not judged
	Question *Question      // the question about it; nil if there is none
	Decided  *event.Decided // the answer; nil if there is none
	Started  time.Time
	Latest   string      // its last line of progress while it runs; empty before the first
	Ended    event.Ended // valid once State is Over
	Parent   *Call       // the call that made it; nil if the model did

	printed []byte
	reached bool // it was requested ahead, and its parent has reached it
}

// CallState is the progress of a call.
type CallState int

// States of a call.
const (
	Made CallState = iota
	Judged
	Waiting // for a decision
	Running
	Over
)

// Effects returns the judged effects; none if it was not judged.
func (c *Call) Effects() []tool.Effect {
	if c.Judged == nil {
		return nil
	}
	return c.Judged.Effects
}

// Depth returns how many ancestors it has.
func (c *Call) Depth() int {
	if c.Parent == nil {
		return 0
	}
	return c.Parent.Depth() + 1
}

// DeniedBy returns who or what denied a call, and why.
func (c *Call) DeniedBy() (by, reason string) {
	switch {
	case c.Decided != nil && !c.Decided.Allow:
		return c.Decided.By, c.Decided.Reason
	case c.Judged != nil:
		return c.Judged.By, c.Judged.Reason
	}
	return "", ""
}

// Approved reports whether a person was asked about exactly this call, and allowed it. A rule does not count, because
// no person has seen the call.
func (c *Call) Approved() bool {
	return c.Question != nil && c.Question.Answer != nil && c.Question.Answer.Allow && c.Question.Answer.Rule == ""
}

// Note is a sentence about an event.
type Note struct {
	Seq    uint64
	Time   time.Time
	Of     event.Body // the event's body
	Text   string     // if empty, only some front ends mention the event, in their own words
	Notice bool       // a person should notice it
	// First marks the Switched event at the beginning of the session.
	First bool
}

// Question is a question that waits for a decision: about a call of the session, or raised by a child or a running
// call.
type Question struct {
	Seq     uint64
	ID      string        // the Call of an event.Decided
	Call    *Call         // nil if it was raised
	Raised  *event.Raised // nil if a call waits
	Preview string
	Rules   []string
	Offers  []event.Offer
	Until   time.Time
	Answer  *event.Decided // nil if there is none; it no longer changes once Closed is set
	Closed  bool           // it no longer waits
}

// Wait is a pause, such as before a request is sent again. It ends with the next event.
type Wait struct {
	Seq     uint64
	Why     string // text by others
	What    string // the next action
	Seconds float64
	Until   time.Time
}

// Child is a session that works for this one.
type Child struct {
	Seq      uint64
	Spawned  event.Spawned
	Since    time.Time
	Returned *event.Returned // nil while it works
}

// Last returns the last event about the child.
func (c *Child) Last() event.Body {
	if c.Returned != nil {
		return *c.Returned
	}
	return c.Spawned
}

// Stop is the end of a run, with its usage.
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
