package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind classifies why a model call failed. Adapters classify once, from status, code and text; no one else reads
// vendor texts.
type Kind string

// Kinds.
const (
	KindTransient   Kind = "transient"         // a server fault or a broken connection before any reply
	KindRateLimited Kind = "rate_limited"      // too many requests; RetryAfter if the vendor said
	KindQuota       Kind = "quota"             // an allowance is used up until RetryAfter
	KindOverloaded  Kind = "overloaded"        // the vendor has no capacity now
	KindTimeout     Kind = "timeout"           // a deadline of ours passed; Phase says which
	KindStreamCut   Kind = "stream_cut"        // the stream ended without its proper end
	KindWindow      Kind = "context_overflow"  // the prompt does not fit; Used and Limit if known
	KindTooLarge    Kind = "payload_too_large" // the request has too many bytes
	KindAuthExpired Kind = "auth_expired"      // credentials can be renewed
	KindAuth        Kind = "auth"              // credentials are missing or wrong
	KindBilling     Kind = "billing"           // payment is needed
	KindRefused     Kind = "content_refused"   // a content filter rejected the prompt
	KindHistory     Kind = "invalid_history"   // the request is malformed in a way that repairing the history can cure
	KindInvalid     Kind = "invalid_request"   // the request is malformed
	KindNoModel     Kind = "model_not_found"   // no such model, or not for this account
	KindNoReply     Kind = "no_reply"          // the address answers with something that is not a model's reply: a web page, a redirect, text without an end
	KindNoTools     Kind = "tools_unsupported" // the model, or the way it is served, takes no tools
	KindBudget      Kind = "budget"            // a limit of ours on money is reached; nothing was sent
	KindPanic       Kind = "panic"             // the code that asks the model panicked; a fault of the program
	KindCancelled   Kind = "cancelled"         // the caller's context ended
)

// Error is a failed model call.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int           // HTTP status; 0 if none was received
	Code       string        // the vendor's error code; may be empty
	Message    string        // the vendor's words, for people
	Phase      string        // for KindTimeout: "connect", "first byte", "idle" or "total"
	RetryAfter time.Duration // how long the vendor asks to wait, never negative; 0 if it did not say
	Used       int           // for KindWindow: tokens of the prompt; 0 if unknown
	Limit      int           // for KindWindow: tokens allowed; 0 if unknown
	// Shorter is the window in tokens of a model that is up but was not asked, because the prompt of Used
	// tokens is too long for it; 0 if there is none. If waiting has not helped, a shorter prompt may.
	Shorter   int
	Private   string // for KindWindow: the private text that keeps the prompt from models with larger windows; empty if none
	Spent     *Spent // tokens used in spite of the failure, for example for an answer that was refused afterwards; nil if unknown
	RequestID string
	Err       error // underlying error; may be nil
}

// Error implements error: provider, kind, status and the vendor's words.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider + ": ")
	}
	switch {
	case e.Kind == KindTransient && e.Status != 0:
		b.WriteString("server error")
	case e.Kind == KindTransient:
		b.WriteString("temporary failure")
	default:
		b.WriteString(strings.ReplaceAll(string(e.Kind), "_", " "))
	}
	if e.Phase != "" {
		b.WriteString(" (" + e.Phase + ")")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an [*Error]: itself if it is one, KindCancelled for
// an ended context, and KindTransient for anything else. It returns nil for
// nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: KindCancelled, Err: err}
	}
	return &Error{Kind: KindTransient, Err: err}
}
