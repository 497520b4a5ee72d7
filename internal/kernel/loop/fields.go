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
	At      time.Time `json:"at,omitzero"` // time of that event
	Session string    `json:"session"`
	Agent   string    `json:"agent,omitempty"` // kind of agent, if it was spawned
	Epoch   uint64    `json:"epoch"`           // of the last driver
	Root    string    `json:"root"`
	Title   string    `json:"title,omitempty"`
	Within  string    `json:"within,omitempty"` // traceparent of the parent span

	Corpus    event.Corpus    `json:"corpus,omitzero"`    // text that it answers questions about
	Workspace event.Workspace `json:"workspace,omitzero"` // where the state of a moving workspace is stored
}

// DefaultTurns is the limit of turns of one run in a new session, unless the agent sets another.
const DefaultTurns = 200

// Setup is the fixed part of requests, and the settings for calls.
type Setup struct {
	System  []string       `json:"system"`
	Sources []string       `json:"sources,omitempty"` // one for each block of System
	Tools   []llm.ToolSpec `json:"tools"`
	Retold  string         `json:"retold,omitempty"` // digest of the tools as a later message described them, see event.Switched
	Route   string         `json:"route"`
	Effort  string         `json:"effort,omitempty"`
	Mode    tool.Mode      `json:"mode"`
	Limits  event.Limits   `json:"limits"`
	Folders []string       `json:"folders,omitempty"` // additional folders that calls may use like the workspace
}

// Conversation is the conversation so far.
type Conversation struct {
	Messages     []llm.Message `json:"messages"`         // as the model sees it
	CallsDropped bool          `json:"lacks,omitempty"`  // Messages no longer holds all calls of the session
	Person       []int         `json:"person"`           // indexes of messages in a person's own words
	Events       []uint64      `json:"events,omitempty"` // events of those messages; 0 if an earlier version wrote the snapshot
	Queue        []queued      `json:"queue"`            // a person's messages that came during a run
}

// Knowledge holds facts about the work and the person's wishes.
type Knowledge struct {
	Seen         map[string]string `json:"seen"` // digest of each file when it was last read or written
	Cwd          string            `json:"cwd,omitempty"`
	NextMessage  []message         `json:"aside,omitempty"`   // texts that go to the model with the person's next message
	AddedSources []string          `json:"noted,omitempty"`   // sources of additions at the end of the conversation
	Task         string            `json:"task,omitempty"`    // the last request
	EarlierTask  string            `json:"before,omitempty"`  // the request before it, if Task is only a short follow-up
	TaskBy       event.Origin      `json:"task_by,omitempty"` // who made the request
	Granted      []string          `json:"granted,omitempty"` // rules that a person allowed for the session
	Todo         []tool.Todo       `json:"todo,omitempty"`
	// Store holds values that calls stored for later calls.
	Store     map[string]json.RawMessage `json:"store,omitempty"`
	Lasting   []Lasting                  `json:"lasting,omitempty"` // results that survive compaction, the oldest first
	Answers   []Answer                   `json:"answers,omitempty"` // the person's answers to calls, the oldest first
	InputKeys []string                   `json:"taken,omitempty"`   // keys of accepted inputs, the oldest first
	// WrittenTools holds the tools that the model has written, in the order of their first appearance.
	WrittenTools []Written `json:"written,omitempty"`
}

// Background is work that continues without the model.
type Background struct {
	Jobs           []Job            `json:"jobs,omitempty"`      // running jobs, the oldest first
	UnreportedEnds []event.Finished `json:"untold,omitempty"`    // ends of jobs that the model does not know yet
	ReportedEnds   []string         `json:"told,omitempty"`      // jobs whose end a result reported before its event was appended
	LeftProcesses  bool             `json:"busy,omitempty"`      // a call left a process running that is not a job
	LeftReported   bool             `json:"busy_told,omitempty"` // the model was told so after a final answer
	Steps          map[string]Step  `json:"steps,omitempty"`     // steps that programs perform on the session, by id
	Arrivals       []message        `json:"later,omitempty"`     // messages of other agents that wait for room, in order
	ArrivalsListed int              `json:"listed,omitempty"`    // how many of them the last line about them counted
}

// Shared is state that the session shares with its children.
type Shared struct {
	Tasks       Tasks      `json:"tasks,omitzero"`
	Raised      []Question `json:"raised,omitempty"` // open questions of children and of running calls
	BreakerRate event.Rate `json:"braked,omitzero"`  // usage per minute when the breaker last stopped them
}

// Context describes the context window: its size, its use, and attempts to make room.
type Context struct {
	Window         event.Window `json:"window"`
	PrivateText    string       `json:"confided,omitempty"` // tag of private text in the conversation, see event.Routed
	ReportedWindow int          `json:"bound,omitempty"`    // tokens, if the models that may answer have a smaller window; 0 means as in Window
	Measured       Measured     `json:"measured"`
	Compaction     Compaction   `json:"compaction"`
	Pruning        Pruning      `json:"pruning,omitzero"`
}

// Claim is the declaration of the last driver.
type Claim struct {
	Unattended bool `json:"unattended,omitempty"` // no one answers questions
	Keeps      bool `json:"keeps,omitempty"`      // jobs continue after a normal end
	NoKeep     bool `json:"no_keep,omitempty"`    // no jobs can continue
}

// derived holds fields that are computed from the others and not stored.
type derived struct {
	starts int // runs begun since this process opened the session
	index  messageIndex
	calls  *table // of Run.Calls; nil if there are none
}

// Total sums up a session.
type Total struct {
	Turns    int       `json:"turns"`
	Calls    int       `json:"calls"`
	Again    int       `json:"again,omitempty"` // results that the model could still see from an earlier call
	Usage    llm.Usage `json:"usage"`
	Cost     float64   `json:"cost"`     // US dollars
	Unpriced bool      `json:"unpriced"` // some replies had no known price
}

func (t Total) tokens() int64 { return int64(t.Usage.Prompt()) + int64(t.Usage.Output) }

// Run is the run in progress, or the last one.
type Run struct {
	Active             bool           `json:"active"`
	Unclaimed          bool           `json:"new,omitempty"`       // no driver has claimed the session since it began
	Turn               int            `json:"turn"`                // turns asked so far
	Seconds            float64        `json:"seconds,omitempty"`   // duration up to its driver's last event; see addTime
	UnconfirmedSeconds float64        `json:"unproven,omitempty"`  // duration since then, counted if the driver turns out to be alive
	Asking             bool           `json:"asking"`              // a request is in progress
	NotBefore          time.Time      `json:"not_before,omitzero"` // earliest time of the next request
	WaitCause          llm.Kind       `json:"awaits,omitempty"`    // why the next request waits
	Route              string         `json:"route,omitempty"`     // route of the last reply
	Calls              []Call         `json:"calls"`               // calls of the last reply, until all have ended
	Steer              []message      `json:"steer"`               // messages for the model, sent with the results
	Reply              replyKind      `json:"reply"`               // kind of the last reply
	Retried            replyKind      `json:"again,omitempty"`     // kind of the previous reply, if the model was asked for a better one
	Thought            string         `json:"thought,omitempty"`   // text of the last reply, if it was only reasoning
	Nudges             int            `json:"nudges"`              // unusable replies in a row
	UnseenText         string         `json:"heard,omitempty"`     // the person's text that neither a hook nor a model has seen
	HookRounds         int            `json:"rounds,omitempty"`    // how often a hook prevented its end
	GateRounds         int            `json:"gates,omitempty"`     // how often a gate prevented its end
	LastGate           string         `json:"gate,omitempty"`      // text of the last gate
	WarnedPercent      int            `json:"warned,omitempty"`    // share of a limit, in percent, in the last warning to the model
	Answered           time.Time      `json:"answered,omitzero"`   // time of the model's last reply
	CheckFailed        bool           `json:"broken,omitempty"`    // its last check failed
	FailedCalls        int            `json:"failing,omitempty"`   // failed calls since the last successful check
	ChangedFiles       []string       `json:"wrote,omitempty"`     // files that it changed, each once
	Category           string         `json:"judged,omitempty"`    // task category, see event.Routed
	JobsTimedOut       bool           `json:"impatient,omitempty"` // it no longer waits for its jobs
	Cancelled          bool           `json:"cancelled"`
	OutOfTime          bool           `json:"late,omitempty"`   // cancelled because its time was used up
	QueueHeld          bool           `json:"held,omitempty"`   // queued messages wait for the next driver
	HookDenial         string         `json:"denied,omitempty"` // why a hook cancelled it
	BreakerReason      string         `json:"braked,omitempty"` // why the breaker stopped it
	Paused             *event.Paused  `json:"paused,omitempty"` // last pause of the session and its children
	Failed             *event.Failed  `json:"failed,omitempty"`
	Repeats            repeats        `json:"repeats"`
	Stopped            *event.Stopped `json:"stopped,omitempty"` // how it ended; nil while Active
}

// message is text for the model, on its way into the conversation.
type message struct {
	Parts  llm.Parts `json:"parts"`
	Person bool      `json:"person,omitempty"` // written by the person or the lead
	Seq    uint64    `json:"seq,omitempty"`    // event of a person's message
	From   string    `json:"from,omitempty"`   // the agent that wrote it, if it needs room; see arrivals.go
}

// Call is a call of the last reply on its way to a result.
type Call struct {
	llm.Call
	Seq             uint64        `json:"seq,omitempty"` // of the reply that made it; 0 if version 0.1 wrote the log
	Phase           phase         `json:"phase"`
	Begun           bool          `json:"begun,omitempty"`   // it was started at least once
	StartedSeq      uint64        `json:"started,omitempty"` // its last Started event
	Tool            string        `json:"tool,omitempty"`    // the tool that runs, if Name represents another
	Effects         []tool.Effect `json:"effects"`
	Cwd             string        `json:"cwd,omitempty"`     // working directory when it was judged
	Private         bool          `json:"private,omitempty"` // see event.Judged
	By              string        `json:"by,omitempty"`      // the judge or person who decided
	Reason          string        `json:"reason,omitempty"`  // why
	Preview         string        `json:"preview,omitempty"`
	Answer          string        `json:"answer,omitempty"` // a person's answer to its question
	AnsweredInWords bool          `json:"worded,omitempty"` // the person answered in words, or gave a reason for denying
	Edited          bool          `json:"edited,omitempty"` // a person changed its arguments
	Rules           []string      `json:"rules,omitempty"`  // rules that would allow it
	Offers          []event.Offer `json:"offers,omitempty"` // as in event.Waiting
	Until           time.Time     `json:"until,omitzero"`   // when its question times out and the call is denied
	WaitingSeq      uint64        `json:"asked,omitempty"`  // its Waiting event
	Shown           []tool.File   `json:"shown,omitempty"`  // files as in event.Waiting, updated by approved changes of other calls
	Ended           *event.Ended  `json:"ended,omitempty"`
	EndedSeq        uint64        `json:"over,omitempty"` // event that ended it, for a nested call

	Caller         bool   `json:"caller,omitempty"` // it may make calls of its own
	Nested         []Call `json:"made,omitempty"`   // the calls it made, in order
	Parent         string `json:"parent,omitempty"` // the call that made it; empty if the model did
	RequestDigest  string `json:"wants,omitempty"`  // digest of the request by its parent
	RequestedAhead bool   `json:"ahead,omitempty"`  // its parent has not reached it yet, see ahead.go
	nestedTable    *table // of Nested
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
	phaseNew     phase = "new"     // not judged yet
	phaseWaiting phase = "waiting" // waits for a decision
	phaseReady   phase = "ready"   // may run
	phaseRunning phase = "running"
	phaseEnded   phase = "ended"
	// The loop ends calls in the following phases without running them.
	phaseDenied phase = "denied"
	phaseCut    phase = "cut"  // the reply was cut, so the call may be incomplete
	phaseLost   phase = "lost" // its process is gone
)

// replyKind is how the loop classifies a reply.
type replyKind string

const (
	replyNone       replyKind = ""
	replyAnswer     replyKind = "answer" // text and no calls
	replyCalls      replyKind = "calls"
	replyEmpty      replyKind = "empty"
	replyThought    replyKind = "thought" // only reasoning
	replyCallAsText replyKind = "spoken"  // text that looks like a call
	replyLength     replyKind = "length"  // text, cut by the output limit
	replyPause      replyKind = "pause"
	replyRefusal    replyKind = "refusal"
	replyWindow     replyKind = "window" // text, cut because the context window is full
	replyCut        replyKind = "cut"    // text, cut by inspan
)
