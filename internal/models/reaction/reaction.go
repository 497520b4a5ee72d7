// Package reaction decides what to do after a request to a model has failed. No other code decides on it.
package reaction

import "github.com/inspan/inspan/llm"

// Reaction is what to do about a failure.
type Reaction string

// Reactions.
const (
	Retry     Reaction = "retry"     // send it again, after RetryAfter or a growing pause
	Await     Reaction = "await"     // the same, but it may take hours: use another model, or wait if there is time
	Renew     Reaction = "renew"     // send it again with fresh credentials, once
	Heal      Reaction = "heal"      // send the conversation in a simpler form
	Shrink    Reaction = "shrink"    // send it with less in it: images first
	Compact   Reaction = "compact"   // shorten the conversation, or use a model with a larger window
	Elsewhere Reaction = "elsewhere" // another model may answer; this one won't
	Stop      Reaction = "stop"      // nothing helps
)

// To returns the reaction to a kind of failure.
func To(k llm.Kind) Reaction {
	switch k {
	case llm.KindTransient, llm.KindRateLimited, llm.KindOverloaded, llm.KindTimeout, llm.KindStreamCut:
		return Retry
	case llm.KindQuota:
		return Await
	case llm.KindAuthExpired:
		return Renew
	case llm.KindHistory:
		return Heal
	case llm.KindTooLarge:
		return Shrink
	case llm.KindWindow:
		return Compact
	case llm.KindAuth, llm.KindBilling, llm.KindNoModel, llm.KindNoReply, llm.KindNoTools:
		return Elsewhere
	}
	return Stop // KindRefused, KindInvalid, KindBudget, KindPanic, KindCancelled
}
