package event

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Opened is the first event of a session.
//
// Emitted once, by the program that creates the session. It holds facts that never change.
type Opened struct {
	Format int    `json:"format"`           // version of the log format: 1
	App    string `json:"app"`              // program and version that wrote it
	Root   string `json:"root,omitempty"`   // the workspace
	Parent string `json:"parent,omitempty"` // session that spawned this one
	Agent  string `json:"agent,omitempty"`  // kind of agent that it spawned
	Levers Levers `json:"levers,omitzero"`  // levers in use, with each default written out
	// Config is the digest of the configuration: settings, instructions, skills, memory, tools, kinds of agents,
	// hooks, levers, model and program; empty if unknown.
	Config string `json:"config,omitempty"`
	// Folder is an identity of the workspace on this machine that survives renaming; empty if there is none.
	Folder string `json:"folder,omitempty"`
	// Labels are set by the program that opened the session, such as a ticket.
	Labels map[string]string `json:"labels,omitempty"`
	// Traceparent is the parent span in another program, in the form of W3C Trace Context; empty if none.
	Traceparent string `json:"traceparent,omitempty"`
	Corpus      Corpus `json:"corpus,omitzero"` // text that the session answers questions about
}

// Forked says that everything before it was copied from another session.
//
// Emitted as the first event that a fork writes itself. A run in progress is cancelled here.
type Forked struct {
	From string `json:"from"` // session id
	Seq  uint64 `json:"seq"`  // last event that was copied
}

// Titled names the session for people. The last one counts.
//
// An input.
type Titled struct {
	Title string `json:"title"`
}

// Moved says that the workspace was moved or renamed.
//
// An input.
type Moved struct {
	Root string `json:"root"`
}

// Pinned says whether to keep the session when old ones are removed. The last one counts.
//
// An input.
type Pinned struct {
	On bool `json:"on"`
}

// Said is a request by a person. It starts a run, or waits for the current run to end and then starts one.
// Without parts it continues a stopped run that was not done.
//
// An input.
type Said struct {
	Parts  llm.Parts `json:"parts"`            // Text and Image
	By     string    `json:"by,omitempty"`     // who said it; empty means the user at the terminal
	Origin Origin    `json:"origin,omitempty"` // kind of By; empty means a person
	// Message is the sender's key for this input: of inputs with the same key, only the first counts.
	Message string `json:"message,omitempty"`
	Context string `json:"context,omitempty"` // the sender's name for the conversation
	Taint
}

// Withdrawn takes back a Said that waits for its run, or a tool that an Ended proposed. If the model has already got
// the Said, nothing happens.
//
// An input.
type Withdrawn struct {
	Of uint64 `json:"of"` // sequence number of the Said or the Ended
}

// Say returns the input of a person at the terminal who says text.
func Say(text string) Said { return Said{Parts: llm.Say(text)} }

// Typed returns the text that the person typed at the terminal: the text, or "!" and the first line of a command
// that they ran. The model gets the command behind "$ ", below an introduction.
func (s Said) Typed() string {
	all := s.Parts.Text()
	_, command, told := strings.Cut(all, "\n$ ")
	if s.Origin != OriginCommand || !told {
		return all
	}
	line, _, _ := strings.Cut(command, "\n")
	return "!" + line
}

// Origin is the source of an input's words. Only a person's words are the person's wish: the task, the basis
// for rules of consent, and words that a compaction keeps as such.
type Origin string

// Origins.
const (
	OriginPerson  Origin = "person"
	OriginLead    Origin = "lead"    // the agent that the session works for; its words are the task
	OriginAgent   Origin = "agent"   // another agent; its words are news, and start no run
	OriginHook    Origin = "hook"    // a program that the person has set up; news too
	OriginHarness Origin = "harness" // inspan itself; news too
	OriginCommand Origin = "command" // a command that the person ran; news too, since its output is not a wish
)

// Leads reports whether words of this origin are orders: those of the person, or of the agent that the session
// works for.
func (o Origin) Leads() bool { return o == OriginPerson || o == OriginLead }

// Leads reports whether the session works for the one who says it.
func (s Said) Leads() bool { return s.Origin == "" || s.Origin.Leads() }

// Steered is said into a run in progress: the model sees it with the results of its current calls. Outside a run it
// is like a Said.
//
// An input. The driver also emits it to warn a model that repeats itself.
type Steered struct {
	Parts llm.Parts `json:"parts"`
	By    string    `json:"by,omitempty"`
	// Origin is the kind of By. In Go, an empty one is stored as the harness's; in the JSON of a log it means a person.
	Origin  Origin `json:"origin,omitempty"`
	Message string `json:"message,omitempty"` // as in Said
	Why     []Why  `json:"why,omitempty"`     // why the harness says it
	Taint
}

// stored is the form that logs have.
func (s Steered) stored() Steered {
	switch s.Origin {
	case "":
		s.Origin = OriginHarness
	case OriginPerson:
		s.Origin = ""
	}
	return s
}

// Decided answers a Waiting call, or a question that a child has Raised.
//
// An input. It answers one question, and those in Also. The first decision about a question counts.
type Decided struct {
	Call string `json:"call"` // id of the call, or of the raised question
	// Question is the sequence number of the Waiting or Raised that is answered. 0, as in logs of version 0.1,
	// means the open question with this id at this place in the log.
	Question uint64 `json:"question,omitempty"`
	Allow    bool   `json:"allow"`
	By       string `json:"by"`                // who decided
	Rule     string `json:"rule,omitempty"`    // the rule that decided, if one did
	Scope    Scope  `json:"scope,omitempty"`   // object of an Allow
	Reach    Reach  `json:"reach,omitempty"`   // calls that an Allow for the session covers
	Reason   string `json:"reason,omitempty"`  // shown to the model when denied
	Answer   string `json:"answer,omitempty"`  // to a call that asks the person something
	Message  string `json:"message,omitempty"` // as in Said
	// Args are the arguments that the person wants instead, for a waiting call of the model. Allow is then false, and
	// the call is judged again with these arguments. Ignored for a call within a call, which is then denied.
	Args json.RawMessage `json:"args,omitempty"`
	// Also are the numbers of further questions with the same answer: open ones of calls with the same parent, see
	// Judged. Other numbers are ignored, and so are all with an Allow for longer than once.
	Also []uint64 `json:"also,omitempty"`
}

// Scope is the extent of an approval. Beyond the one call, it applies to the rules named by the call's Waiting, or
// to one of its Offers, and to nothing else. If Waiting names no rules, the approval applies to the one call,
// whatever its scope.
type Scope string

// Scopes.
const (
	ScopeOnce    Scope = ""        // this call
	ScopeSession Scope = "session" // similar calls in this session
	ScopeProject Scope = "project" // in all sessions of this workspace
	ScopeAlways  Scope = "always"  // in all sessions
)

// Cancelled interrupts the run. The model's partial reply is kept, running calls are stopped, and waiting calls are
// not made.
//
// An input.
type Cancelled struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// All: messages that came meanwhile wait for the next driver.
	All bool `json:"all,omitempty"`
	// ReasonMaxTime: the run stops if its time is used up. ReasonDone: a finished run no longer waits for jobs.
	// ReasonRate: the run stops as Reason says, and Rate is the consumption. Empty means a person or program
	// interrupts.
	Limit   Reason `json:"limit,omitempty"`
	Rate    *Rate  `json:"rate,omitempty"`
	Message string `json:"message,omitempty"` // as in Said
}

// Claimed says that a driver took over the session. Of the calls that an earlier driver did not end, those that only
// read run again, and others end as OutcomeUnknown.
//
// Emitted when a driver starts, under the session's lease.
type Claimed struct {
	Epoch  uint64 `json:"epoch"`            // strictly increasing in a session
	By     string `json:"by"`               // host and process, for people
	Writer string `json:"writer,omitempty"` // random; distinguishes this claim from every other
	// Unattended: no person can answer while this driver works.
	Unattended bool `json:"unattended,omitempty"`
	Keeps      bool `json:"keeps,omitempty"`   // background commands continue after the driver's normal end
	NoKeep     bool `json:"no_keep,omitempty"` // background commands end with it, even if bash was told to keep them
}

// Asked says that a request goes to the model.
//
// Replied or Failed follows. If the driver died, a Claimed follows, and the model is asked again.
type Asked struct {
	Turn  int    `json:"turn"`  // turn of the run, from 1
	Route string `json:"route"` // "provider/model"
}

// Replied is the model's reply.
//
// Emitted after Asked when the reply is complete, or with Stop "cut" and the text so far when the run was
// interrupted.
type Replied struct {
	Parts     llm.Parts `json:"parts"` // Text, Reasoning, Call
	Stop      llm.Stop  `json:"stop"`
	Usage     llm.Usage `json:"usage"`
	Route     string    `json:"route"`                  // the model that really answered
	Cost      float64   `json:"cost,omitempty"`         // US dollars, at the price of the day
	Unpriced  bool      `json:"unpriced,omitempty"`     // price unknown: Cost is 0, or the standard price if only the tier is unknown
	RequestID string    `json:"request_id,omitempty"`   // given by the vendor
	ReplyID   string    `json:"reply_id,omitempty"`     // the vendor's id of the reply
	Server    string    `json:"server,omitempty"`       // "host:port" that sent the reply
	Millis    int64     `json:"millis,omitempty"`       // from the request to the last byte
	First     int64     `json:"first_millis,omitempty"` // to the first byte; 0 if unknown
}

// Failed says that the request to the model failed.
//
// Emitted after Asked instead of Replied. Without Retry the run stops as failed, and a resume asks again.
type Failed struct {
	Cause   llm.Kind `json:"cause"`
	Message string   `json:"message"`         // for people
	Retry   float64  `json:"retry,omitempty"` // seconds until the next attempt; 0 means given up
	Status  int      `json:"status,omitempty"`
	Millis  int64    `json:"millis,omitempty"` // from the request to the failure; 0 if nothing was sent
	Limit   int      `json:"limit,omitempty"`  // accepted tokens, if the prompt was too long and the vendor says so
	// Route is the model whose answer was paid for in spite of the failure, for example because a check refused it.
	Route string    `json:"route,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"` // of that answer
	Cost  float64   `json:"cost,omitempty"` // of that answer, in US dollars
}

// Routed says which of several models answers a request, and why it was chosen.
//
// Emitted after Asked by a model that chooses, and again, with From and Cause, when another took over.
type Routed struct {
	Route  string   `json:"route"`            // "provider/model"
	Rule   string   `json:"rule"`             // name of the rule
	Reason string   `json:"reason,omitempty"` // evidence for the rule, for people
	From   string   `json:"from,omitempty"`   // the model given up
	Cause  llm.Kind `json:"cause,omitempty"`  // why it was given up
	Error  string   `json:"error,omitempty"`  // in the vendor's words
	Millis int64    `json:"millis,omitempty"` // from the request to the failure of the model given up
	Window int      `json:"window,omitempty"` // window in tokens of the largest model that may see the conversation; 0 if all may
	// Private says which private text the conversation holds. No later request goes to a model that may not see it.
	Private string    `json:"private,omitempty"`
	Judge   string    `json:"judge,omitempty"`       // model that was asked how hard the task is
	Judged  string    `json:"judged,omitempty"`      // its answer: "hard", "easy", or empty
	Usage   llm.Usage `json:"usage,omitzero"`        // of the judge
	Cost    float64   `json:"cost,omitempty"`        // of the judge, in US dollars
	Took    int64     `json:"took_millis,omitempty"` // of the judge
}

// Hooked is the answer of hooks at a moment of the session.
//
// Emitted if a hook acted, and always for [tool.PromptSaid]. Answers about a call are in its Judged and Ended.
type Hooked struct {
	Moment tool.Moment `json:"moment"`
	By     string      `json:"by,omitempty"`
	Action tool.Action `json:"action,omitempty"` // deny means that the run ends before the model is asked
	Reason string      `json:"reason,omitempty"`
	Text   string      `json:"text,omitempty"` // passed to the model
}

// Healed says that the conversation so far goes to the model in a simpler form, because a vendor refused it. The
// events stay as they are.
//
// Emitted after Failed. Invalidates the prompt cache.
type Healed struct {
	Level Healing  `json:"level"`
	Cause llm.Kind `json:"cause"` // why the vendor refused it
}

// Healing is how far a conversation is simplified. Each level applies to everything before it: "reasoning" leaves
// out the models' thinking, "images" makes images a line of text, "calls" makes calls and results text.
type Healing string

// Pruned cuts old results of calls short in the conversation that the model sees. The events stay as they are,
// and the history tool finds them.
//
// Emitted in batches, since each one invalidates the prompt cache.
type Pruned struct {
	Upto   int     `json:"upto"` // how many messages it covers, from the first
	Why    Pruning `json:"why"`
	Before int     `json:"before"` // approximate tokens of the prompt
	After  int     `json:"after"`
}

// Pruning is the reason why results are cut short: "window" (the next prompt would use reserved room) or "cold" (no part of
// the prompt is cached any more, so pruning costs nothing).
type Pruning string

// Added gives text to the model: a block of the system prompt, or context at the end of the conversation.
//
// System blocks come before the first Said and never later, so that the beginning of the prompt stays the same.
type Added struct {
	Where  Place  `json:"where"`
	Source string `json:"source"` // where the text is from: a path, or a name of ours
	Text   string `json:"text"`
	Taint
}

// Place is where added text goes.
type Place string

// Places.
const (
	PlaceSystem Place = "system"
	PlaceTail   Place = "tail"
)

// Switched changes settings of the session from here on. Empty fields change nothing.
//
// A change of Tools invalidates the prompt cache. A new Route does too, and leaves out the previous model's
// reasoning.
type Switched struct {
	Route  string         `json:"route,omitempty"` // the model, as "provider/model"
	Effort string         `json:"effort,omitempty"`
	Mode   tool.Mode      `json:"mode,omitempty"` // permission mode
	Tools  []llm.ToolSpec `json:"tools,omitempty"`
	// Retold is the digest of the current tools if a message has told the model about changes while requests keep the
	// old Tools, for the prompt cache.
	Retold string  `json:"retold,omitempty"`
	Limits *Limits `json:"limits,omitempty"`
	Window *Window `json:"window,omitempty"`
	// Folders are all additional folders that calls may use like the workspace, without symbolic links.
	Folders []string `json:"folders,omitzero"`
}

// Window is the context window of the model.
type Window struct {
	Tokens  int `json:"tokens"`  // size in tokens; 0 if unknown
	Reserve int `json:"reserve"` // tokens reserved for the reply: a prompt that would use them is compacted first
	// Assumed is true if neither the settings, the price book nor the server states the size.
	Assumed bool `json:"assumed,omitempty"`
}

// Limits bound a session. Reaching one stops the run with its own reason. After a Switched with a higher limit,
// the next Said, which may be empty, continues the run.
type Limits struct {
	Turns int     `json:"turns"` // most turns of one run; 0 means no limit
	Cost  float64 `json:"cost"`  // most US dollars of the session; 0 means no limit
	// Most tokens of the session, prompts and replies together; 0 means no limit.
	Tokens int64 `json:"tokens,omitempty"`
	// Most seconds of one run, not counting waits for people; 0 means no limit.
	Seconds float64 `json:"seconds,omitempty"`
}

// Stopped ends a run.
//
// A Said or Steered starts the next; a higher limit alone does not.
type Stopped struct {
	Reason Reason   `json:"reason"`
	Cause  llm.Kind `json:"cause,omitempty"`  // for failed, refused and budget: how the request to the model failed, if it did
	Detail string   `json:"detail,omitempty"` // for people: the limit, the failure or the repeated call
	Digest string   `json:"digest,omitempty"` // digest of the folded state, to check replays; "version:hex"
}

// Reason is the reason why a run ended.
type Reason string

// Reasons.
const (
	ReasonDone      Reason = "done"       // the model answered without calls
	ReasonMaxTurns  Reason = "max_turns"  // Limits.Turns
	ReasonBudget    Reason = "budget"     // Limits.Cost
	ReasonMaxTokens Reason = "max_tokens" // Limits.Tokens
	ReasonMaxTime   Reason = "max_time"   // Limits.Seconds
	ReasonRate      Reason = "rate"       // too much in a minute, together with all sessions that work for this one
	ReasonRefused   Reason = "refused"    // the model or a filter declined
	ReasonStuck     Reason = "stuck"      // the same call returned the same result again and again
	ReasonCancelled Reason = "cancelled"  // a person interrupted
	ReasonFailed    Reason = "failed"     // the model was unavailable, or its replies were unusable
)

// Note is information that changes nothing: a repaired log, a warning.
type Note struct {
	Topic string `json:"topic"` // short and stable, such as "recovered"
	Text  string `json:"text"`
}

// Served is the state of the session's MCP servers, at the beginning of a run if it is new.
type Served struct {
	Servers []Server `json:"servers"`
}

// Server is the state of one MCP server.
type Server struct {
	Name  string `json:"name"`
	State string `json:"state"`         // "connecting", "ready", "changed", "login", "failed" or "off"
	Why   string `json:"why,omitempty"` // why it is not ready, or which tools are held back; for people
	Tools int    `json:"tools"`         // how many tools it has, as far as is known
}

// Delta is text as the model writes it. Transient: the Replied holds all of it. Void: the deltas since Asked do not
// count.
type Delta struct {
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	Call      *llm.CallDelta `json:"call,omitempty"`
	Void      bool           `json:"void,omitempty"`
}

// Progress is a line of progress of a running call, or of the run itself if Call is empty. Transient.
type Progress struct {
	Call string  `json:"call"`
	Text string  `json:"text"`
	Wait float64 `json:"wait,omitempty"` // seconds until it continues, if it waits
}
