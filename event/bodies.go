package event

import (
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Opened is the first event of a session.
//
// Emitted once, by whoever creates the session. It holds what never changes.
type Opened struct {
	Format int    `json:"format"`           // version of the log format: 1
	App    string `json:"app"`              // program and version that wrote it
	Root   string `json:"root,omitempty"`   // the workspace
	Parent string `json:"parent,omitempty"` // session that spawned this one
	Agent  string `json:"agent,omitempty"`  // the kind of agent that it spawned
	Levers Levers `json:"levers,omitzero"`  // what it works with, each default written out
	// Config is the digest of the configuration: settings, instructions, skills, memory, tools, levers, model and program.
	// Sessions with the same one were begun alike; empty: it is not known.
	Config string `json:"config,omitempty"`
	// Folder tells the workspace from others whatever it is called, on this machine; empty: nothing does.
	Folder string `json:"folder,omitempty"`
	// Labels are what whoever opened the session knows it by, such as a ticket or an experiment.
	Labels map[string]string `json:"labels,omitempty"`
	// Traceparent is the span of another program that the session belongs to, as W3C Trace Context
	// has it; empty: there is none.
	Traceparent string `json:"traceparent,omitempty"`
	Corpus      Corpus `json:"corpus,omitzero"` // what it answers questions from
}

// Forked says that everything before it was copied from another session.
//
// Emitted as the first event a fork writes itself. A run that was going on in
// the original is cancelled here.
type Forked struct {
	From string `json:"from"` // session id
	Seq  uint64 `json:"seq"`  // last event that was copied
}

// Titled names the session for people. The last one counts.
type Titled struct {
	Title string `json:"title"`
}

// Moved says that the workspace is another folder from now on, as it was renamed or moved.
//
// An input: any process may append it.
type Moved struct {
	Root string `json:"root"`
}

// Pinned says whether a person wants the session kept when old ones are removed. The last one
// counts.
//
// An input: any process may append it.
type Pinned struct {
	On bool `json:"on"`
}

// Said is what a person asks for. It starts a run, or waits for the current
// run to end and then starts one. Without parts it lets the run that stopped
// last go on, if it was not done.
//
// An input: any process may append it.
type Said struct {
	Parts  llm.Parts `json:"parts"`            // Text and Image
	By     string    `json:"by,omitempty"`     // who; empty: the user at the terminal
	Origin Origin    `json:"origin,omitempty"` // what By is
	// Message is the key of the program that sent this, so that it can send it twice: of
	// inputs with the same key the first one counts, and the others change nothing. Context is
	// what that program calls the conversation.
	Message string `json:"message,omitempty"`
	Context string `json:"context,omitempty"`
	Taint
}

// Withdrawn takes back a Said that waits for its run, so that it never begins one, or the tool that
// an Ended proposed, so that the session has it no longer. A Said that the model has heard stands, and
// nothing happens.
//
// An input: any process may append it.
type Withdrawn struct {
	Of uint64 `json:"of"` // sequence number of the Said or the Ended
}

// Say is the input of a person at the terminal who says text.
func Say(text string) Said { return Said{Parts: llm.Say(text)} }

// Typed is what a person typed at the terminal for this to be said: the text, or of a command that
// they ran "!" and its first line, which stands behind "$ " below the words for the model.
func (s Said) Typed() string {
	all := s.Parts.Text()
	_, command, told := strings.Cut(all, "\n$ ")
	if s.Origin != OriginCommand || !told {
		return all
	}
	line, _, _ := strings.Cut(command, "\n")
	return "!" + line
}

// Origin is whose words an input holds. Only those of a person are the person's wish:
// the task, what rules of consent rest on, and what a compaction keeps as such.
type Origin string

// Origins.
const (
	OriginPerson  Origin = ""
	OriginLead    Origin = "lead"    // the agent that the session works for; its words are the task
	OriginAgent   Origin = "agent"   // another agent; its words are news, and begin no run
	OriginHook    Origin = "hook"    // a program that the person has set up; news too
	OriginHarness Origin = "harness" // inspan itself; news too
	OriginCommand Origin = "command" // a command that the person ran; news too, as what it prints is no wish
)

// Leads reports whether the session works for whoever says it.
func (o Origin) Leads() bool { return o == OriginPerson || o == OriginLead }

// Steered is said into a run that goes on: the model sees it with the results
// of its current calls, before it is asked again. Outside a run it is a Said.
//
// An input: any process may append it. Also emitted by the driver to warn a
// model that repeats itself.
type Steered struct {
	Parts   llm.Parts `json:"parts"`
	By      string    `json:"by,omitempty"`
	Origin  Origin    `json:"origin,omitempty"`
	Message string    `json:"message,omitempty"` // as that of Said
	Why     []Why     `json:"why,omitempty"`     // of the harness
	Taint
}

// Decided answers a Waiting call, or one that a child has Raised.
//
// An input: any process may append it. It counts for one question only, and those of
// Also: of each the first decision that names it; all others change nothing.
type Decided struct {
	Call string `json:"call"` // id of the call, or of what was raised
	// Question is the sequence number of the Waiting or Raised that is answered. 0, as in
	// logs of version 0.1: the one with the id that is open where this stands in the log.
	Question uint64 `json:"question,omitempty"`
	Allow    bool   `json:"allow"`
	By       string `json:"by"`                // who decided
	Rule     string `json:"rule,omitempty"`    // by which rule, if it was one
	Scope    Scope  `json:"scope,omitempty"`   // what an Allow holds for
	Reach    Reach  `json:"reach,omitempty"`   // what an Allow for the session covers
	Reason   string `json:"reason,omitempty"`  // shown to the model when denied
	Answer   string `json:"answer,omitempty"`  // to a call that asks the person something
	Message  string `json:"message,omitempty"` // as that of Said
	// Also are the numbers of further questions that the same answer is for: of calls with the same
	// parent, see Judged, that were put together with this one. One that is not open by then, or is
	// none of those, does not count, nor does any with an Allow for longer than once.
	Also []uint64 `json:"also,omitempty"`
}

// Scope is what an approval holds for. Beyond the one call, it holds for the
// rules that the call's Waiting names, or one of its Offers, and for nothing else; where
// it names none, the approval is for the one call whatever it says.
type Scope string

// Scopes.
const (
	ScopeOnce    Scope = ""        // this call
	ScopeSession Scope = "session" // what is like it, in this session
	ScopeProject Scope = "project" // in all sessions of this workspace
	ScopeAlways  Scope = "always"  // in all sessions
)

// Cancelled interrupts the run. Text the model has written so far is kept;
// calls that run are stopped; calls that wait are not made. The harness sends it when the
// time of a run is used up, with Limit.
//
// An input: any process may append it.
type Cancelled struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// What was said meanwhile waits for whoever drives the session next, in the place
	// of being done now.
	All bool `json:"all,omitempty"`
	// ReasonMaxTime: the run stops for that, if its time is used up; else nothing is
	// interrupted. ReasonDone: a run that is done does not wait for jobs any longer.
	// ReasonRate: the run stops for that, as Reason says, and Rate is what was used up.
	// Empty: somebody wants it.
	Limit   Reason `json:"limit,omitempty"`
	Rate    *Rate  `json:"rate,omitempty"`
	Message string `json:"message,omitempty"` // as that of Said
}

// Claimed says that a driver took the session over. Calls that an earlier
// driver started and did not end are lost: those that only read run again,
// any other ends as OutcomeUnknown.
//
// Emitted when a driver starts, under the session's lease.
type Claimed struct {
	Epoch  uint64 `json:"epoch"`            // strictly increasing in a session
	By     string `json:"by"`               // host and process, for people
	Writer string `json:"writer,omitempty"` // random: tells this claim from every other
	// Nobody is there to answer while this driver works, and what runs in the background
	// at its normal end goes on.
	Unattended bool `json:"unattended,omitempty"`
	Keeps      bool `json:"keeps,omitempty"`
	// NoKeep says that it does not go on where bash is told to keep it either.
	NoKeep bool `json:"no_keep,omitempty"`
}

// Asked says that a request goes to the model.
//
// Emitted before the request. Replied or Failed follows, or a Claimed if the
// driver died; then the model is asked again.
type Asked struct {
	Turn  int    `json:"turn"`  // turn of the run, from 1
	Route string `json:"route"` // "provider/model"
}

// Replied is the model's reply.
//
// Emitted after Asked, once the reply is complete, or with Stop "cut" and the
// text so far when the run was interrupted. Its calls are ended one by one
// before the model is asked again.
type Replied struct {
	Parts     llm.Parts `json:"parts"` // Text, Reasoning, Call
	Stop      llm.Stop  `json:"stop"`
	Usage     llm.Usage `json:"usage"`
	Route     string    `json:"route"`                  // who really answered
	Cost      float64   `json:"cost,omitempty"`         // US dollars at the price of the day
	Unpriced  bool      `json:"unpriced,omitempty"`     // the price is not known: Cost is 0, or of an unknown tier at the standard price
	RequestID string    `json:"request_id,omitempty"`   // the vendor's
	ReplyID   string    `json:"reply_id,omitempty"`     // the vendor's, of the reply itself
	Server    string    `json:"server,omitempty"`       // that sent it, "host:port"
	Millis    int64     `json:"millis,omitempty"`       // from request to last byte
	First     int64     `json:"first_millis,omitempty"` // from request to the first of the reply; 0: not known
}

// Failed says that the model could not be had.
//
// Emitted after Asked instead of Replied. Retry tells whether the harness
// itself goes on; if not, the run stops as failed and a resume asks again.
type Failed struct {
	Cause   llm.Kind `json:"cause"`
	Message string   `json:"message"`         // for people
	Retry   float64  `json:"retry,omitempty"` // seconds until it is sent again; 0: given up
	Status  int      `json:"status,omitempty"`
	Millis  int64    `json:"millis,omitempty"` // from request to failure; 0: nothing was sent
	Limit   int      `json:"limit,omitempty"`  // tokens that are taken, if the prompt was too long and it was said
	// Route is the model whose answer was paid for all the same, such as one that a check has
	// refused; empty if none was. Usage and Cost are what that took.
	Route string    `json:"route,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
	Cost  float64   `json:"cost,omitempty"` // US dollars
}

// Routed says which of several models answers a request, and why it was taken.
//
// Emitted after Asked by a model that chooses, and again when the one chosen
// could not be had and another took over; then From and Cause tell of it. No
// model gets the reasoning of another.
type Routed struct {
	Route  string   `json:"route"`            // "provider/model"
	Rule   string   `json:"rule"`             // name of the rule
	Reason string   `json:"reason,omitempty"` // for people: what the rule saw
	From   string   `json:"from,omitempty"`   // the model given up
	Cause  llm.Kind `json:"cause,omitempty"`  // why it was
	Error  string   `json:"error,omitempty"`  // in the vendor's words
	Millis int64    `json:"millis,omitempty"` // that the model given up took, from request to failure
	Window int      `json:"window,omitempty"` // tokens that the largest model takes which may see the conversation; 0: all may
	// Private is what private text the conversation holds: from then on no request of the session
	// goes to a model that may not see it, also when only what came of it is left. Empty: none.
	Private string `json:"private,omitempty"`
	// Judge is the model that was asked how hard the task is, empty if none was; Usage and Cost
	// are what that took. Judged is what counts from then on: "hard", "easy", or empty.
	Judge  string    `json:"judge,omitempty"`
	Judged string    `json:"judged,omitempty"`
	Usage  llm.Usage `json:"usage,omitzero"`
	Cost   float64   `json:"cost,omitempty"` // US dollars
	// Took is how long the judge took, in milliseconds.
	Took int64 `json:"took_millis,omitempty"`
}

// Hooked says what hooks wanted at a moment of the session.
//
// Emitted after they ran, where they wanted something; for [tool.PromptSaid]
// always. What they say of a call stands in its Judged and Ended.
type Hooked struct {
	Moment tool.Moment `json:"moment"`
	By     string      `json:"by,omitempty"`
	Action tool.Action `json:"action,omitempty"` // deny: the run ends before the model is asked
	Reason string      `json:"reason,omitempty"`
	Text   string      `json:"text,omitempty"` // put before the model
}

// Healed says that the conversation so far goes to the model in a simpler form
// from here on, because a vendor refused it. The events stay as they are.
//
// Emitted after a Failed whose cause calls for it. Costs the prompt cache.
type Healed struct {
	Level Healing  `json:"level"`
	Cause llm.Kind `json:"cause"` // what the vendor refused it for
}

// Healing is how far a conversation is simplified. Each level holds for all
// that was said before it.
type Healing string

// Healings, the mildest first.
const (
	HealReasoning Healing = "reasoning" // the models' thinking is left out
	HealImages    Healing = "images"    // images become a line of text
	HealCalls     Healing = "calls"     // calls and results become text
)

// Pruned cuts old results of calls short in the conversation that the model
// sees. The events stay as they are, and the history tool finds them.
//
// Emitted before the model is asked, in batches, as each costs the prompt cache.
type Pruned struct {
	Upto   int     `json:"upto"` // of so many messages, from the first
	Why    Pruning `json:"why"`
	Before int     `json:"before"` // tokens of the prompt, about
	After  int     `json:"after"`
}

// Pruning is why results are cut short.
type Pruning string

// Prunings.
const (
	PruneWindow Pruning = "window" // the next prompt would use the reserve, and this spares a compaction
	PruneCold   Pruning = "cold"   // nothing of the prompt is cached any more, so that it costs nothing
)

// Added puts text before the model: a block of the system prompt, or context
// at the tail of the conversation.
//
// System blocks are emitted when the session is opened, before the first
// Said, and never after, so that the prompt's prefix stands.
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

// Switched changes what the session works with from here on. Empty fields
// change nothing.
//
// Emitted at the start of a session and whenever one of these changes.
// Changing Tools costs the prompt cache; a new Route costs it too, and leaves
// out the reasoning of the one before.
type Switched struct {
	Route  string         `json:"route,omitempty"` // model, "provider/model"
	Effort string         `json:"effort,omitempty"`
	Mode   tool.Mode      `json:"mode,omitempty"` // permission mode
	Tools  []llm.ToolSpec `json:"tools,omitempty"`
	// Retold is the digest of the tools that the session has by now, where requests keep Tools as they are and
	// a message has told the model what has changed, so that the prompt cache holds.
	Retold string  `json:"retold,omitempty"`
	Limits *Limits `json:"limits,omitempty"`
	Window *Window `json:"window,omitempty"`
	// Folders are all that calls may use as they may the workspace, without links. Nil: no change.
	Folders []string `json:"folders,omitzero"`
}

// Window is how much the model can be asked at once.
type Window struct {
	Tokens  int `json:"tokens"`  // context window of the model; 0: not known
	Reserve int `json:"reserve"` // tokens of it that stay free: a prompt that would use them is compacted first
}

// Limits bound a session. Reaching one stops the run with its own reason; a
// later Switched with a higher limit lets the next Said, which may be empty, go on with it.
type Limits struct {
	Turns int     `json:"turns"` // most turns of one run; 0: no limit
	Cost  float64 `json:"cost"`  // most US dollars of the session; 0: no limit
	// Most tokens of the session, prompts and replies; 0: no limit.
	Tokens int64 `json:"tokens,omitempty"`
	// Most seconds that one run may take, waits for people aside; 0: no limit.
	Seconds float64 `json:"seconds,omitempty"`
}

// Stopped ends a run.
//
// Emitted last in a run. A Said or Steered starts the next; a higher limit alone does not.
type Stopped struct {
	Reason Reason   `json:"reason"`
	Cause  llm.Kind `json:"cause,omitempty"`  // for failed, refused and budget: what the model call came to, if it was that
	Detail string   `json:"detail,omitempty"` // for people: which limit, what failed, what was repeated
	Digest string   `json:"digest,omitempty"` // of the folded state, to check replays; "version:hex"
}

// Reason is why a run ended.
type Reason string

// Reasons.
const (
	ReasonDone      Reason = "done"       // the model answered without calls
	ReasonMaxTurns  Reason = "max_turns"  // Limits.Turns
	ReasonBudget    Reason = "budget"     // Limits.Cost
	ReasonMaxTokens Reason = "max_tokens" // Limits.Tokens
	ReasonMaxTime   Reason = "max_time"   // Limits.Seconds
	ReasonRate      Reason = "rate"       // too much in a minute, with all that work for the session
	ReasonRefused   Reason = "refused"    // the model or a filter declined
	ReasonStuck     Reason = "stuck"      // the same call with the same result, again and again
	ReasonCancelled Reason = "cancelled"  // a person interrupted
	ReasonFailed    Reason = "failed"     // the model could not be had, or gave nothing usable
)

// Note is something worth knowing that changes nothing: a repaired log, a
// warning.
type Note struct {
	Topic string `json:"topic"` // short and stable, such as "recovered"
	Text  string `json:"text"`
}

// Served says how the MCP servers of a session are. It stands at the beginning of a run
// that has any, if that is the first in its process or something has changed.
type Served struct {
	Servers []Server `json:"servers"`
}

// Server is how one of them is.
type Server struct {
	Name  string `json:"name"`
	State string `json:"state"`         // "connecting", "ready", "changed", "login", "failed" or "off"
	Why   string `json:"why,omitempty"` // it is not ready, or which tools are held back; for people
	Tools int    `json:"tools"`         // that it has, as far as it is known
}

// Delta is text as the model writes it. Transient: the Replied that follows
// holds all of it. Void means that deltas since Asked do not count.
type Delta struct {
	Text      string         `json:"text,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	Call      *llm.CallDelta `json:"call,omitempty"`
	Void      bool           `json:"void,omitempty"`
}

// Compacting is the text of the Progress with which a compaction begins. It ends with
// Compacted or Kept, or with the run.
const Compacting = "compacting the conversation"

// Progress is what a running call shows, or the run itself if Call is empty.
// Transient.
type Progress struct {
	Call string  `json:"call"`
	Text string  `json:"text"`
	Wait float64 `json:"wait,omitempty"` // seconds until it goes on, if that is why it shows something
}
