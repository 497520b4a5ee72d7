// Package llm is the vocabulary spoken with language models: messages made of
// parts, requests, streamed chunks, token usage, prices and classified errors.
//
// It knows no vendor and imports nothing of this module. Adapters for one
// vendor's wire each live in the packages below it and implement [Model].
//
// Use it to write an adapter for another vendor, to wrap a model (as packages limit, prompted and router
// do), or to ask a model without an agent. A program that only runs agents needs a [Model] from one of the
// packages below, and little else of this one.
//
// # Compatibility
//
// [Model] stays as it is. Structs get new fields whose zero value changes nothing. Kinds of errors, stops and
// parts get new values, so a switch over them needs a default; a [Part] of a later version is read as
// [Unknown]. The JSON of messages is what session logs hold, and is read for ever.
package llm

import (
	"context"
	"encoding/json"
	"iter"
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

// Info is what is known of a model without asking it.
type Info struct {
	Provider  string // configured name of the provider: "anthropic", "ollama"
	Model     string // the vendor's own model id
	Window    int    // context window in tokens; 0 if unknown
	MaxOutput int    // most output tokens of one reply; 0 if unknown
	Prices    Prices // empty if unknown
	Images    bool   // accepts Image parts
	NoTools   bool   // known not to accept tools
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
	// Effort asks for reasoning: "" or one of [Efforts], of which an adapter sends as
	// much as the model takes. Empty leaves
	// the vendor's default; models without reasoning ignore it.
	Effort string
	// Session is a stable key of the conversation, for caches that want one.
	Session string

	// Pin is the route that answered last in the run that goes on; empty if none
	// has. A model that chooses among others stays with it as long as it gets on,
	// as its reasoning is of use to no other.
	Pin string
	// Purpose says what is asked for beside the conversation, such as
	// "summary"; empty: its next turn. A model that chooses may heed it.
	Purpose string
	// Private says what private text the conversation has held that this request is a part of,
	// as an [Error] or a [Routed] said; empty: what the request shows counts. A model that chooses sends it
	// only to models that may see that.
	Private string `json:"-"`
	// Work is what is known of the work beside the messages. None of it is sent.
	Work Work `json:"-"`
	// Memo has what earlier requests of the conversation were encoded to, so that only what is
	// new is encoded. None of it is sent, and the bytes of a request do not depend on it. Nil: all
	// is encoded.
	Memo *Memo `json:"-"`
}

// Work tells a model that chooses among others how the run that it is asked for stands, from the log of
// its session. The zero value knows of nothing.
type Work struct {
	Person  []int  // indexes of the messages that hold a person's own words; nil: all of the user's texts may be
	Turns   int    // that the run has taken
	Files   int    // that it has changed
	Failing int    // calls of it that have failed since the last check that succeeded
	Again   int    // most times that the same call of it has brought the same result
	Useless int    // replies in a row of which nothing could be made
	Judged  string // what a judge has said of its task, as a [Routed] has told; empty: nothing
	Cut     bool   // the conversation was cut to fit a window while it lasts
}

// Bytes counts the text of the request: what is said, called and returned, the
// tools and the system prompt. About four make a token. Images are left out.
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

// CallDelta tells how far the model has come in writing a call. The call
// itself is in the Reply.
type CallDelta struct {
	Name string `json:"name,omitempty"`
	Args string `json:"args,omitempty"` // argument text just added; may be any fragment of JSON
}

// Retry says that a wrapper will send the request again after Wait. What was
// streamed before is void and will be streamed anew.
type Retry struct {
	Attempt int     // number of the attempt that comes; 1 if the first is held back
	Wait    float64 // seconds until then
	Cause   *Error
}

// Routed says which of several models a model has chosen, before anything that
// this one streams. It comes again when another takes over.
type Routed struct {
	Info   Info   // of the model that answers now
	Rule   string // name of the rule that chose it
	Reason string // for people: what the rule saw, and why others were passed over
	Cause  *Error // why the one before it was given up; nil if it is the first
	// Window is how many tokens the largest model takes that may see this conversation, where
	// not all may; 0: as many as Info of the model that chooses says.
	Window int
	// Private says what private text the conversation holds, so that only some models may see
	// it and what came of it; empty: none.
	Private string
	// Judge is what it took to ask another model how to choose; nil: none was asked.
	Judge *Spent
	// Judged is what it said of the task, "hard" or "easy"; empty: nothing.
	Judged string
}

// Spent is what an answer has used that is no reply to the request itself.
type Spent struct {
	Info   Info // of the model that gave it
	Usage  Usage
	Millis int64 // that it took; 0: not known
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

// Used returns the usage of the reply to a request, or an estimate where the
// vendor gave no figures at all: four bytes are about one token.
func (r *Reply) Used(req Request) Usage {
	if r.Usage != (Usage{}) {
		return r.Usage
	}
	return Usage{Input: req.Bytes() / 4, Output: r.Parts.Bytes() / 4, Estimated: true}
}

// Stop tells why a reply ended.
type Stop string

// Stops. A vendor's unknown reason becomes StopOther, never an error.
const (
	StopEnd     Stop = "end"     // the model was finished
	StopCalls   Stop = "calls"   // it wants results of its calls
	StopLength  Stop = "length"  // cut by the output limit; calls are incomplete
	StopPause   Stop = "pause"   // the vendor paused; send the history again to go on
	StopRefusal Stop = "refusal" // it declined, or a filter did
	StopWindow  Stop = "window"  // the context window is full; the text so far is good
	StopCut     Stop = "cut"     // interrupted by us; text is partial
	StopSpoken  Stop = "spoken"  // its text has what looks like a call and may be none; nothing was called
	StopOther   Stop = "other"
)
