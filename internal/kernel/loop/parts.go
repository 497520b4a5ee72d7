package loop

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Identity is which session it is, and how far it has come.
type Identity struct {
	Seq     uint64    `json:"seq"`         // last event applied
	At      time.Time `json:"at,omitzero"` // its time
	Session string    `json:"session"`
	Agent   string    `json:"agent,omitempty"` // the kind of agent, if it was spawned
	Epoch   uint64    `json:"epoch"`           // of the last driver
	Root    string    `json:"root"`
	Title   string    `json:"title,omitempty"`
	Within  string    `json:"within,omitempty"` // traceparent of the span that it belongs to

	Corpus    event.Corpus    `json:"corpus,omitzero"`    // what it answers questions from
	Workspace event.Workspace `json:"workspace,omitzero"` // where the state of the workspace is, if that travels
}

// Setup is what the model is asked with, and what holds for its calls.
type Setup struct {
	System  []string       `json:"system"`
	Sources []string       `json:"sources,omitempty"` // of the blocks of System, one each
	Tools   []llm.ToolSpec `json:"tools"`
	Retold  string         `json:"retold,omitempty"` // digest of what a message has told of them since, as that of event.Switched
	Route   string         `json:"route"`
	Effort  string         `json:"effort,omitempty"`
	Mode    tool.Mode      `json:"mode"`
	Limits  event.Limits   `json:"limits"`
	Folders []string       `json:"folders,omitempty"` // beside the workspace, that calls may use as they may that
}

// Conversation is what was said.
type Conversation struct {
	Messages []llm.Message `json:"messages"`         // as the model sees it
	Lacks    bool          `json:"lacks,omitempty"`  // calls were made that Messages no longer hold
	Person   []int         `json:"person"`           // indexes of messages that hold a person's own words
	Events   []uint64      `json:"events,omitempty"` // in which those were said, one each; 0: an earlier version has folded it
	Queue    []queued      `json:"queue"`            // said while a run went on
}

// Knowledge is what the session and the person know of the work.
type Knowledge struct {
	Seen    map[string]string `json:"seen"` // digest of each file when last read or written
	Cwd     string            `json:"cwd,omitempty"`
	Aside   []words           `json:"aside,omitempty"`   // to be put before the model with what the person says next
	Noted   []string          `json:"noted,omitempty"`   // sources of what was added at the tail
	Task    string            `json:"task,omitempty"`    // what was asked for last
	Before  string            `json:"before,omitempty"`  // what it goes on with, if it is a few words
	TaskBy  event.Origin      `json:"task_by,omitempty"` // who did
	Granted []string          `json:"granted,omitempty"` // rules that a person allowed for the session
	Todo    []tool.Todo       `json:"todo,omitempty"`
	// Store is what calls have left for later ones.
	Store   map[string]json.RawMessage `json:"store,omitempty"`
	Lasting []Lasting                  `json:"lasting,omitempty"` // results that compaction keeps, the oldest first
	Answers []Answer                   `json:"answers,omitempty"` // what the person said to calls, the oldest first
	Taken   []string                   `json:"taken,omitempty"`   // keys of inputs that count, the oldest first
	// Written are the tools that the model has written, in the order in which their names came.
	Written []Written `json:"written,omitempty"`
}

// Background is what goes on beside the conversation.
type Background struct {
	Jobs     []Job            `json:"jobs,omitempty"`      // that run, the oldest first
	Untold   []event.Finished `json:"untold,omitempty"`    // ends of jobs that the model has not heard of
	Told     []string         `json:"told,omitempty"`      // jobs whose end the model has heard of before the log
	Busy     bool             `json:"busy,omitempty"`      // something that calls have started goes on, and is not a job
	BusyTold bool             `json:"busy_told,omitempty"` // the model was told of it beside a final answer
	Steps    map[string]Step  `json:"steps,omitempty"`     // that programs perform on the session, by id
	Later    []words          `json:"later,omitempty"`     // of other agents, for which there is no room yet, in their order
	Listed   int              `json:"listed,omitempty"`    // of them, of which the model was told that they wait
}

// Shared is what the session has with its children.
type Shared struct {
	Tasks  Tasks      `json:"tasks,omitzero"`
	Raised []Question `json:"raised,omitempty"` // by them, and by calls that run, that nobody has answered
	Braked event.Rate `json:"braked,omitzero"`  // what they had used up in a minute when the breaker stopped them last
}

// Context is how full the context window is, and what is done about it.
type Context struct {
	Window     event.Window `json:"window"`
	Confided   string       `json:"confided,omitempty"` // the private text that models have seen, as event.Routed says
	Bound      int          `json:"bound,omitempty"`    // tokens that the models take which may answer now; 0: as many as Window says
	Last       string       `json:"last,omitempty"`     // route that answered last
	Measured   Measured     `json:"measured"`
	Compaction Compaction   `json:"compaction"`
	Pruning    Pruning      `json:"pruning,omitzero"`
}

// Claim is what the last driver said of itself.
type Claim struct {
	Unattended bool `json:"unattended,omitempty"` // nobody is there to answer
	Keeps      bool `json:"keeps,omitempty"`      // jobs go on after its normal end
	NoKeep     bool `json:"no_keep,omitempty"`    // none can
}

// derived follows from the rest, and is not stored.
type derived struct {
	starts int // that were begun since the state was folded first
	sight  sight
	calls  *table // of Run.Calls; nil if there are none
}

// Total sums up a session.
type Total struct {
	Turns    int       `json:"turns"`
	Calls    int       `json:"calls"`
	Again    int       `json:"again,omitempty"` // of the calls, those whose result the model saw already
	Usage    llm.Usage `json:"usage"`
	Cost     float64   `json:"cost"`     // US dollars
	Unpriced bool      `json:"unpriced"` // some replies had no known price
}

func (t Total) tokens() int64 { return int64(t.Usage.Prompt()) + int64(t.Usage.Output) }

// Run is the run in progress, or the last one.
type Run struct {
	Active    bool           `json:"active"`
	New       bool           `json:"new,omitempty"`       // it has been said, and no driver has come since
	Turn      int            `json:"turn"`                // turns asked so far
	Seconds   float64        `json:"seconds,omitempty"`   // it has taken up to what its driver did last; see pass
	Unproven  float64        `json:"unproven,omitempty"`  // seconds since, if the driver still lived
	Asking    bool           `json:"asking"`              // a request is open
	NotBefore time.Time      `json:"not_before,omitzero"` // when the model may be asked again
	Awaits    llm.Kind       `json:"awaits,omitempty"`    // why not before
	Route     string         `json:"route,omitempty"`     // that made the last calls of the run
	Calls     []Call         `json:"calls"`               // of the last reply, until all have ended
	Steer     []words        `json:"steer"`               // to be put before the model with the results
	Reply     replyKind      `json:"reply"`               // what the last reply was
	Again     replyKind      `json:"again,omitempty"`     // the same, where it was asked for once more and may be no better then
	Thought   string         `json:"thought,omitempty"`   // all that it had, if that were thoughts
	Nudges    int            `json:"nudges"`              // unusable replies in a row
	Heard     string         `json:"heard,omitempty"`     // the person's words that no hook has seen and no model
	Rounds    int            `json:"rounds,omitempty"`    // how often a hook has made it go on
	Gates     int            `json:"gates,omitempty"`     // how often a gate has
	Gate      string         `json:"gate,omitempty"`      // what they have put last
	Warned    int            `json:"warned,omitempty"`    // of which part of its limits the model was told, in percent
	Answered  time.Time      `json:"answered,omitzero"`   // when the model answered last
	Broken    bool           `json:"broken,omitempty"`    // its last check has failed
	Failing   int            `json:"failing,omitempty"`   // calls that have failed since the last check that succeeded
	Impatient bool           `json:"impatient,omitempty"` // it has waited long enough for its jobs
	Cancelled bool           `json:"cancelled"`
	Late      bool           `json:"late,omitempty"`   // it was, as its time is used up
	Held      bool           `json:"held,omitempty"`   // what was said meanwhile waits for the next driver
	Denied    string         `json:"denied,omitempty"` // why a hook has cancelled it
	Braked    string         `json:"braked,omitempty"` // why the breaker has
	Paused    *event.Paused  `json:"paused,omitempty"` // last wait of all that work for the session
	Failed    *event.Failed  `json:"failed,omitempty"`
	Repeats   repeats        `json:"repeats"`
	Stopped   *event.Stopped `json:"stopped,omitempty"` // how it ended; nil while Active
}

// words are to be put before the model.
type words struct {
	Parts  llm.Parts `json:"parts"`
	Person bool      `json:"person,omitempty"` // of whoever the session works for: a person's own, or the lead's
	Seq    uint64    `json:"seq,omitempty"`    // of the event, of a person's
	From   string    `json:"from,omitempty"`   // agent whose they are, if they wait for room; see arrivals.go
}

// Call is a call of the last reply on its way to a result.
type Call struct {
	llm.Call
	Seq     uint64        `json:"seq,omitempty"` // of the reply that made it; 0: made by version 0.1
	Phase   phase         `json:"phase"`
	Begun   bool          `json:"begun,omitempty"`   // it was started, once at least
	Started uint64        `json:"started,omitempty"` // the event of that, the last one
	Tool    string        `json:"tool,omitempty"`    // that is called, if Name stands for it
	Effects []tool.Effect `json:"effects"`
	Cwd     string        `json:"cwd,omitempty"`     // where it was judged
	Private bool          `json:"private,omitempty"` // see event.Judged
	By      string        `json:"by,omitempty"`      // who gave the verdict
	Reason  string        `json:"reason,omitempty"`  // for the verdict
	Preview string        `json:"preview,omitempty"`
	Answer  string        `json:"answer,omitempty"` // of the person, to a question
	Worded  bool          `json:"worded,omitempty"` // the person has answered in words, or said why not
	Rules   []string      `json:"rules,omitempty"`  // that would allow it
	Offers  []event.Offer `json:"offers,omitempty"` // as those of event.Waiting
	Until   time.Time     `json:"until,omitzero"`   // when no answer becomes a no
	Asked   uint64        `json:"asked,omitempty"`  // its Waiting: the sequence number
	Shown   []tool.File   `json:"shown,omitempty"`  // as that of event.Waiting, and as others that were shown have left them since
	Ended   *event.Ended  `json:"ended,omitempty"`
	Over    uint64        `json:"over,omitempty"` // the event that ended it, of one that another has made

	Caller bool   `json:"caller,omitempty"` // it may make calls of its own
	Made   []Call `json:"made,omitempty"`   // those, in order
	Parent string `json:"parent,omitempty"` // the call that has made it; empty: the model has
	Wants  string `json:"wants,omitempty"`  // digest of what its parent asked for
	Ahead  bool   `json:"ahead,omitempty"`  // its parent has not come to it, see ahead.go
	inner  *table // of Made
}

// Answer is what the person said when a call asked.
type Answer struct {
	Seq  uint64 `json:"seq"`  // of the end of the call
	Call string `json:"call"` // its id
	To   string `json:"to"`   // what it asked, as it was shown
	Text string `json:"text"` // its result
}

// phase is how far a call has come.
type phase string

const (
	phaseNew     phase = "new"     // to be judged
	phaseWaiting phase = "waiting" // for a decision
	phaseReady   phase = "ready"   // may run
	phaseRunning phase = "running"
	phaseEnded   phase = "ended"
	phaseDenied  phase = "denied" // to be ended without a run, like the next two
	phaseCut     phase = "cut"
	phaseLost    phase = "lost"
)

// replyKind is what the loop makes of a reply.
type replyKind string

const (
	replyNone    replyKind = ""
	replyAnswer  replyKind = "answer" // text and no calls
	replyCalls   replyKind = "calls"
	replyEmpty   replyKind = "empty"
	replyThought replyKind = "thought" // thoughts and nothing else
	replySpoken  replyKind = "spoken"  // text that has what looks like a call
	replyLength  replyKind = "length"  // text, cut by the output limit
	replyPause   replyKind = "pause"
	replyRefusal replyKind = "refusal"
	replyWindow  replyKind = "window" // text, cut because the context window is full
	replyCut     replyKind = "cut"    // text, cut by us
)
