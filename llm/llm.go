// Package llm is the vocabulary spoken with language models: messages made of
// parts, requests, streamed chunks, token usage, prices and classified errors.
//
// It knows no vendor. Adapters for one vendor's wire each live in the packages
// below it and implement [Model].
//
// Use it to write an adapter for another vendor, to wrap a model (as packages limit, prompted and router
// do), or to ask a model without an agent. A program that only runs agents needs a [Model] from one of the
// packages below, and little else of this one.
//
// # Compatibility
//
// [Model] stays as it is. Structs get new fields whose zero value changes nothing. Kinds of errors, stops and parts
// get new values, so a switch over them needs a default; a [Part] of a later version is read as [Unknown]. The JSON
// of messages is the format of session logs, and stays readable forever. The adapters below this package follow the
// wires of their vendors; they are configured by [Endpoint] alone, and so share its promises.
package llm

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/inspan/inspan/internal/base/memo"
)

// A Model answers requests. Implementations must be safe for concurrent use
// and are proven by harnesstest.TestModel.
type Model interface {
	// Info describes the model. It performs no I/O and always returns the
	// same value.
	Info() Info

	// Stream sends one request and yields what comes back.
	//
	// A successful stream yields any number of delta chunks and then, last,
	// one chunk whose Reply is set. A failed stream yields one error, last,
	// which is always an [*Error]; chunks yielded before it are void except
	// as text a person has already seen. Nothing follows a Reply or an error.
	//
	// Stream does not retry. It ends promptly with KindCancelled when ctx is
	// done, and releases its connection when the consumer stops early.
	// The request is only read, never changed or kept.
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Info holds the known facts about a model, without a request to it.
type Info struct {
	Provider  string // configured name of the provider: "anthropic", "ollama"
	Model     string // the vendor's own model id
	Window    int    // context window in tokens; 0 if unknown
	MaxOutput int    // most output tokens of one reply; 0 if unknown
	Prices    Prices // empty if unknown
	Images    bool   // accepts Image parts
	NoTools   bool   // known not to accept tools
	Assumed   bool   // no one states Window, so it is assumed
}

// Route is the name a person uses for the model, "provider/model". It also
// marks who wrote reasoning: see [Reasoning].
func (i Info) Route() string { return i.Provider + "/" + i.Model }

// A Request is one complete question to a model. Its bytes on the wire are a
// pure function of its value, so equal requests hit the same prompt cache.
type Request struct {
	// System holds the blocks of the system prompt, most stable first.
	System []string
	// Tools the model may call, in a stable order.
	Tools []ToolSpec
	// Messages alternate as the conversation did. Every Call is answered by
	// exactly one Result in the next user message.
	Messages []Message
	// MaxOutput bounds the reply in tokens; 0 leaves it to the adapter, which
	// takes Info.MaxOutput where the wire demands a number.
	MaxOutput int
	// Effort asks for reasoning: "" or one of [Efforts]. The adapter sends the nearest effort that the model
	// accepts. Empty means the vendor's default; models without reasoning ignore it.
	Effort string
	// Session is a stable key of the conversation, for caches that want one.
	Session string

	// Pin is the route that last answered in the run in progress; empty if none has. A model that chooses among
	// others stays with it while the run makes progress, since its reasoning is useless to any other.
	Pin string
	// Purpose names the reason for a request that is not the next turn, such as "summary"; empty means the next
	// turn. A model that chooses may consider it.
	Purpose string
	// Private says which private text the conversation has held, see [Error] and [Routed]; if empty, only the
	// text of the request counts. A model that chooses sends the request only to models that may see that text.
	Private string `json:"-"`
	// Work describes the run so far. It is not sent.
	Work Work `json:"-"`
	// Memo holds the encoding of earlier requests of the conversation, so that only new parts are encoded. It
	// is not sent and does not affect the bytes of a request. The driver of a session sets it; if nil, everything
	// is encoded.
	Memo *memo.Memo `json:"-"`
}

// Work describes the progress of a run to a model that chooses among others, as recorded in the log. The zero
// value means unknown.
type Work struct {
	Person  []int  // indexes of the messages in a person's own words; if nil, all of the user's texts may be
	Turns   int    // of the run so far
	Files   int    // that the run has changed
	Failing int    // failed calls since the last check that succeeded
	Again   int    // how often the most repeated call returned the same result
	Useless int    // unusable replies in a row
	Judged  string // a judge's word on the task, see [Routed]; empty if none
	Cut     bool   // the conversation was cut to fit a window that applies for now
}

// Bytes returns the size of the request's text: messages, calls, results, tools and system prompt, without
// images. About four bytes make a token.
func (r Request) Bytes() int {
	n := 0
	for _, s := range r.System {
		n += len(s)
	}
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		n += m.Parts.Bytes()
	}
	return n
}

// ToolSpec is how a tool is described to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the argument object
	// Vendor is the vendor's own type for the tool: a wire of theirs that has it sends it instead of the
	// description and the schema. All others leave it out.
	Vendor string `json:"vendor,omitempty"`
}

// A Chunk is one step of a streamed reply. Exactly one field is set.
type Chunk struct {
	Text      string     // text the model has just added
	Reasoning string     // reasoning text just added, for display
	Call      *CallDelta // a tool call being written, for display
	Retry     *Retry     // everything streamed so far is void; see Retry
	Routed    *Routed    // everything streamed so far is void; see Routed
	Reply     *Reply     // the complete reply, always last
}

// CallDelta is a piece of a call that the model is writing. The whole call is in the Reply.
type CallDelta struct {
	Name string `json:"name,omitempty"`
	Args string `json:"args,omitempty"` // argument text just added; may be any fragment of JSON
}

// Retry says that a wrapper will send the request again after Wait. The stream so far is void and will be streamed
// again.
type Retry struct {
	Attempt int     // number of the next attempt; 1 if the first is delayed
	Wait    float64 // seconds until then
	Cause   *Error
}

// Routed says which of several models was chosen, before anything that this model streams. It comes again when
// another takes over.
type Routed struct {
	Info   Info   // of the model that answers now
	Rule   string // name of the rule that chose it
	Reason string // what the rule saw, and why others were passed over, for people
	Cause  *Error // why the previous model was given up; nil for the first
	// Window is the window in tokens of the largest model that may see this conversation, if not all may; 0
	// means the window of the choosing model's Info.
	Window int
	// Private says which private text the conversation holds, so that only some models may see it and its
	// consequences; empty if none.
	Private string
	// Judge is the cost of asking another model how to choose; nil if none was asked.
	Judge *Spent
	// Judged is the judge's word on the task, "hard" or "easy"; empty if none.
	Judged string
}

// Spent is the consumption of an answer that is not the reply to the request itself.
type Spent struct {
	Info   Info // of the model that answered
	Usage  Usage
	Millis int64 // duration; 0 if unknown
}

// A Reply is a complete answer.
type Reply struct {
	Parts     Parts // Text, Reasoning and Call parts in the model's order
	Stop      Stop
	Usage     Usage
	Route     string // "provider/model" that really answered
	RequestID string // the vendor's id for this exchange; may be empty
	ID        string // the vendor's id for the reply itself; may be empty
	Server    string // that sent it, "host:port"; may be empty
}

// Calls returns the tool calls of the reply, in order.
func (r *Reply) Calls() []Call { return r.Parts.Calls() }

// Used returns the usage of the reply to a request, or an estimate if the vendor gave no figures.
func (r *Reply) Used(req Request) Usage {
	if r.Usage != (Usage{}) {
		return r.Usage
	}
	return Usage{Input: req.Bytes() / 4, Output: r.Parts.Bytes() / 4, Estimated: true}
}

// Stop is the reason why a reply ended.
type Stop string

// Stops. A vendor's unknown reason becomes StopOther, never an error.
const (
	StopEnd     Stop = "end"     // the model was finished
	StopCalls   Stop = "calls"   // it waits for results of its calls
	StopLength  Stop = "length"  // cut by the output limit; calls are incomplete
	StopPause   Stop = "pause"   // the vendor paused; send the history again to continue
	StopRefusal Stop = "refusal" // it declined, or a filter did
	StopWindow  Stop = "window"  // the context window is full; the text so far is good
	StopCut     Stop = "cut"     // interrupted by us; text is partial
	StopSpoken  Stop = "spoken"  // its text contains something like a call, which may not be one; nothing was called
	StopOther   Stop = "other"
)
