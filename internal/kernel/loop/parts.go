package loop

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Identity is the identity of a session and its position in the log.
type Identity struct {
	Seq     uint64    `json:"seq"`         // last event applied
	At      time.Time `json:"at,omitzero"` // its time
	Session string    `json:"session"`
	Agent   string    `json:"agent,omitempty"` // kind of agent, if it was spawned
	Epoch   uint64    `json:"epoch"`           // of the last driver
	Root    string    `json:"root"`
	Title   string    `json:"title,omitempty"`
	Within  string    `json:"within,omitempty"` // traceparent of the parent span

	Corpus    event.Corpus    `json:"corpus,omitzero"`    // text that it answers questions about
	Workspace event.Workspace `json:"workspace,omitzero"` // where the state of a moving workspace is stored
}

// Setup is the fixed part of requests, and the settings for calls.
type Setup struct {
	System  []string       `json:"system"`
	Sources []string       `json:"sources,omitempty"` // one for each block of System
	Tools   []llm.ToolSpec `json:"tools"`
	Retold  string         `json:"retold,omitempty"` // digest of the tools that a message has described since, see event.Switched
	Route   string         `json:"route"`
	Effort  string         `json:"effort,omitempty"`
	Mode    tool.Mode      `json:"mode"`
	Limits  event.Limits   `json:"limits"`
	Folders []string       `json:"folders,omitempty"` // additional folders that calls may use like the workspace
}

// Conversation is the conversation so far.
type Conversation struct {
	Messages []llm.Message `json:"messages"`         // as the model sees it
	Lacks    bool          `json:"lacks,omitempty"`  // Messages no longer holds all calls
	Person   []int         `json:"person"`           // indexes of messages in a person's own words
	Events   []uint64      `json:"events,omitempty"` // events of those messages; 0 if an earlier version folded it
	Queue    []queued      `json:"queue"`            // messages that came during a run
}

// Knowledge is what the session knows about the work and the person's wishes.
type Knowledge struct {
	Seen    map[string]string `json:"seen"` // digest of each file when it was last read or written
	Cwd     string            `json:"cwd,omitempty"`
	Aside   []words           `json:"aside,omitempty"`   // passed to the model together with the person's next message
	Noted   []string          `json:"noted,omitempty"`   // sources of additions at the end of the conversation
	Task    string            `json:"task,omitempty"`    // the last request
	Before  string            `json:"before,omitempty"`  // the request before it, if Task is only a short follow-up
	TaskBy  event.Origin      `json:"task_by,omitempty"` // who made the request
	Granted []string          `json:"granted,omitempty"` // rules that a person allowed for the session
	Todo    []tool.Todo       `json:"todo,omitempty"`
	// Store holds values that calls have left for later ones.
	Store   map[string]json.RawMessage `json:"store,omitempty"`
	Lasting []Lasting                  `json:"lasting,omitempty"` // results that survive compaction, the oldest first
	Answers []Answer                   `json:"answers,omitempty"` // the person's answers to calls, the oldest first
	Taken   []string                   `json:"taken,omitempty"`   // keys of inputs that were accepted, the oldest first
	// Written holds the tools that the model has written, in the order in which their names appeared.
	Written []Written `json:"written,omitempty"`
}

// Background is the work beside the conversation.
type Background struct {
	Jobs     []Job            `json:"jobs,omitempty"`      // running jobs, the oldest first
	Untold   []event.Finished `json:"untold,omitempty"`    // ended jobs that the model has not heard of
	Told     []string         `json:"told,omitempty"`      // jobs whose end the model learned of before the log did
	Busy     bool             `json:"busy,omitempty"`      // calls have left something running that is not a job
	BusyTold bool             `json:"busy_told,omitempty"` // the model was told so beside a final answer
	Steps    map[string]Step  `json:"steps,omitempty"`     // steps that programs perform on the session, by id
	Later    []words          `json:"later,omitempty"`     // messages of other agents that wait for room, in order
	Listed   int              `json:"listed,omitempty"`    // how many of them the model was told about
}

// Shared is state that the session shares with its children.
type Shared struct {
	Tasks  Tasks      `json:"tasks,omitzero"`
	Raised []Question `json:"raised,omitempty"` // open questions of children and of running calls
	Braked event.Rate `json:"braked,omitzero"`  // consumption per minute when the breaker last stopped them
}

// Context is how full the context window is, and what was done about it.
type Context struct {
	Window     event.Window `json:"window"`
	Confided   string       `json:"confided,omitempty"` // private text that models have seen, see event.Routed
	Bound      int          `json:"bound,omitempty"`    // window in tokens of the models that may answer now; 0 means as Window says
	Measured   Measured     `json:"measured"`
	Compaction Compaction   `json:"compaction"`
	Pruning    Pruning      `json:"pruning,omitzero"`
}

// Claim is what the last driver declared.
type Claim struct {
	Unattended bool `json:"unattended,omitempty"` // nobody can answer
	Keeps      bool `json:"keeps,omitempty"`      // jobs continue after a normal end
	NoKeep     bool `json:"no_keep,omitempty"`    // no jobs can continue
}

// derived follows from the other fields and is not stored.
type derived struct {
	starts int // runs begun since the state was first folded
	sight  sight
	calls  *table // of Run.Calls; nil if there are none
}

// Total sums up a session.
type Total struct {
	Turns    int       `json:"turns"`
	Calls    int       `json:"calls"`
	Again    int       `json:"again,omitempty"` // calls whose result the model could still see
	Usage    llm.Usage `json:"usage"`
	Cost     float64   `json:"cost"`     // US dollars
	Unpriced bool      `json:"unpriced"` // some replies had no known price
}

func (t Total) tokens() int64 { return int64(t.Usage.Prompt()) + int64(t.Usage.Output) }

// Run is the run in progress, or the last one.
type Run struct {
	Active    bool           `json:"active"`
	New       bool           `json:"new,omitempty"`       // it has begun, and no driver has come since
	Turn      int            `json:"turn"`                // turns asked so far
	Seconds   float64        `json:"seconds,omitempty"`   // duration up to its driver's last event; see pass
	Unproven  float64        `json:"unproven,omitempty"`  // seconds since then, if the driver is still alive
	Asking    bool           `json:"asking"`              // a request is in progress
	NotBefore time.Time      `json:"not_before,omitzero"` // earliest time of the next request
	Awaits    llm.Kind       `json:"awaits,omitempty"`    // why it waits
	Route     string         `json:"route,omitempty"`     // route of the last reply
	Calls     []Call         `json:"calls"`               // calls of the last reply, until all have ended
	Steer     []words        `json:"steer"`               // passed to the model together with the results
	Reply     replyKind      `json:"reply"`               // kind of the last reply
	Again     replyKind      `json:"again,omitempty"`     // the kind that was asked for once more and may not get better
	Thought   string         `json:"thought,omitempty"`   // text of the last reply if it was only thoughts
	Nudges    int            `json:"nudges"`              // unusable replies in a row
	Heard     string         `json:"heard,omitempty"`     // the person's words that no hook and no model has seen
	Rounds    int            `json:"rounds,omitempty"`    // how often a hook has continued it
	Gates     int            `json:"gates,omitempty"`     // how often a gate has continued it
	Gate      string         `json:"gate,omitempty"`      // the last text of a gate
	Warned    int            `json:"warned,omitempty"`    // the share of its limits, in percent, that the model was last warned about
	Answered  time.Time      `json:"answered,omitzero"`   // time of the model's last reply
	Broken    bool           `json:"broken,omitempty"`    // its last check failed
	Failing   int            `json:"failing,omitempty"`   // failed calls since the last check that succeeded
	Wrote     []string       `json:"wrote,omitempty"`     // files that it has changed, each once
	Judged    string         `json:"judged,omitempty"`    // task category, see event.Routed
	Impatient bool           `json:"impatient,omitempty"` // it has waited long enough for its jobs
	Cancelled bool           `json:"cancelled"`
	Late      bool           `json:"late,omitempty"`   // cancelled because its time was used up
	Held      bool           `json:"held,omitempty"`   // messages that came meanwhile wait for the next driver
	Denied    string         `json:"denied,omitempty"` // why a hook cancelled it
	Braked    string         `json:"braked,omitempty"` // why the breaker stopped it
	Paused    *event.Paused  `json:"paused,omitempty"` // last wait of the session and its children together
	Failed    *event.Failed  `json:"failed,omitempty"`
	Repeats   repeats        `json:"repeats"`
	Stopped   *event.Stopped `json:"stopped,omitempty"` // how it ended; nil while Active
}

// words are text for the model.
type words struct {
	Parts  llm.Parts `json:"parts"`
	Person bool      `json:"person,omitempty"` // by the session's principal: a person, or the lead agent
	Seq    uint64    `json:"seq,omitempty"`    // event of a person's words
	From   string    `json:"from,omitempty"`   // the agent that wrote them, if they wait for room; see arrivals.go
}

// Call is a call of the last reply on its way to a result.
type Call struct {
	llm.Call
	Seq     uint64        `json:"seq,omitempty"` // of the reply that made it; 0 if version 0.1 wrote the log
	Phase   phase         `json:"phase"`
	Begun   bool          `json:"begun,omitempty"`   // it was started at least once
	Started uint64        `json:"started,omitempty"` // event of its last start
	Tool    string        `json:"tool,omitempty"`    // the tool that is called, if Name stands for another
	Effects []tool.Effect `json:"effects"`
	Cwd     string        `json:"cwd,omitempty"`     // where it was judged
	Private bool          `json:"private,omitempty"` // see event.Judged
	By      string        `json:"by,omitempty"`      // who gave the verdict
	Reason  string        `json:"reason,omitempty"`  // reason of the verdict
	Preview string        `json:"preview,omitempty"`
	Answer  string        `json:"answer,omitempty"` // a person's answer to its question
	Worded  bool          `json:"worded,omitempty"` // the person answered in words, or said why not
	Edited  bool          `json:"edited,omitempty"` // its arguments are a person's
	Rules   []string      `json:"rules,omitempty"`  // rules that would allow it
	Offers  []event.Offer `json:"offers,omitempty"` // as in event.Waiting
	Until   time.Time     `json:"until,omitzero"`   // when an open question counts as denied
	Asked   uint64        `json:"asked,omitempty"`  // number of its Waiting event
	Shown   []tool.File   `json:"shown,omitempty"`  // files as in event.Waiting, updated by the effects of other calls that were shown
	Ended   *event.Ended  `json:"ended,omitempty"`
	Over    uint64        `json:"over,omitempty"` // number of the event that ended it, if another call made it

	Caller bool   `json:"caller,omitempty"` // it may make calls of its own
	Made   []Call `json:"made,omitempty"`   // those calls, in order
	Parent string `json:"parent,omitempty"` // the call that made it; empty if the model did
	Wants  string `json:"wants,omitempty"`  // digest of what its parent asked for
	Ahead  bool   `json:"ahead,omitempty"`  // its parent has not come to it yet, see ahead.go
	inner  *table // of Made
}

// Answer is a person's answer to a question of a call.
type Answer struct {
	Seq  uint64 `json:"seq"`  // event that ended the call
	Call string `json:"call"` // id of the call
	To   string `json:"to"`   // the question as it was shown
	Text string `json:"text"` // the result
}

// phase is the progress of a call.
type phase string

const (
	phaseNew     phase = "new"     // to be judged
	phaseWaiting phase = "waiting" // for a decision
	phaseReady   phase = "ready"   // may run
	phaseRunning phase = "running"
	phaseEnded   phase = "ended"
	phaseDenied  phase = "denied" // to be ended without running, like the next two
	phaseCut     phase = "cut"
	phaseLost    phase = "lost"
)

// replyKind is how the loop classifies a reply.
type replyKind string

const (
	replyNone    replyKind = ""
	replyAnswer  replyKind = "answer" // text and no calls
	replyCalls   replyKind = "calls"
	replyEmpty   replyKind = "empty"
	replyThought replyKind = "thought" // thoughts and nothing else
	replySpoken  replyKind = "spoken"  // text that contains something like a call
	replyLength  replyKind = "length"  // text, cut by the output limit
	replyPause   replyKind = "pause"
	replyRefusal replyKind = "refusal"
	replyWindow  replyKind = "window" // text, cut because the context window is full
	replyCut     replyKind = "cut"    // text, cut by us
)
