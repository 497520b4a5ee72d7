package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Compaction is the history of compactions.
type Compaction struct {
	Wanted *event.Compact `json:"wanted,omitempty"` // requested by someone
	Times  int            `json:"times,omitempty"`  // how many were done
	// one more than the session's turns at the last attempt; 0 if there was none in this run
	Tried int `json:"tried,omitempty"`
	After int `json:"after,omitempty"` // tokens of the prompt that the last one left
	// Unshown counts the person's messages that compactions have left out entirely.
	Unshown Unshown `json:"unshown,omitzero"`
	// Why the last one was due that was not done; empty if it was done.
	Kept event.Compaction `json:"kept,omitempty"`
	// How many in a row were not done, and the turn before which none is attempted for the window alone: each
	// attempt costs requests as long as a prompt.
	Refused int `json:"refused,omitempty"`
	Wait    int `json:"wait,omitempty"`
}

// Unshown counts messages of the person, and names the events of the first and the last; 0 means unknown.
type Unshown struct {
	Messages int    `json:"messages,omitempty"`
	First    uint64 `json:"first,omitempty"`
	Last     uint64 `json:"last,omitempty"`
}

// Shortened is a conversation after a compaction.
type Shortened struct {
	Messages []llm.Message
	Person   []int    // as in Conversation
	Events   []uint64 // as in Conversation
	Unshown  Unshown
}

// mostDoublings bounds the turns between two attempts after failures: they double each time, up to 16.
const mostDoublings = 4

// Measured compares the provider's count of tokens with our estimate, so that only the new part of the next
// prompt has to be estimated.
type Measured struct {
	Route    string  `json:"route,omitempty"` // whose count it is; empty if there is none
	Tokens   int     `json:"tokens,omitempty"`
	Messages int     `json:"messages,omitempty"` // how many messages Tokens covers, together with everything before them
	Ratio    float64 `json:"ratio,omitempty"`    // recent ratio of counted tokens to our estimate of messages; 0 if unknown
	// Fixed is that ratio for a whole prompt, from the last time when there was nothing to subtract. It applies
	// to the system prompt and the tools, which are most of a first prompt and no part of the growth later.
	Fixed float64 `json:"fixed,omitempty"`
}

// ratios returns the values that remain useful without the count they come from.
func (m Measured) ratios() Measured { return Measured{Ratio: m.Ratio, Fixed: m.Fixed} }

// measure reads the provider's count from a reply, before the reply is pushed.
func (s *State) measure(b event.Replied) {
	if b.Usage.Estimated || b.Usage.Prompt() == 0 {
		return
	}
	if b.Usage.Prompt() > s.Bound {
		s.Bound = 0 // the model takes more than was stated
	}
	old := s.Measured
	counted, guessed := b.Usage.Prompt(), s.estimate()
	fixed := old.Fixed
	if whole := float64(counted) / float64(max(guessed, 1)); guessed >= leastMeasured {
		fixed = min(max(whole, 1/mostOff), mostOff)
	}
	if old.Route == b.Route && old.Messages > 0 && old.Messages <= len(s.Messages) {
		// The growth says more than the total, to which vendors add tokens of their own.
		counted -= old.Tokens
		guessed = tokens(s.Messages[old.Messages:])
		fixed = old.Fixed
	}
	ratio := old.Ratio
	if guessed >= leastMeasured {
		ratio = min(max(float64(counted)/float64(guessed), 1/mostOff), mostOff)
		if old.Route == b.Route && old.Ratio > 0 {
			ratio = (ratio + old.Ratio) / 2
		}
	}
	s.Measured = Measured{Route: b.Route, Ratio: ratio, Fixed: fixed, Tokens: b.Usage.Prompt() +
		b.Usage.Output - b.Usage.Reasoning, Messages: len(s.Messages)}
}

const (
	leastMeasured = 100 // tokens from which a ratio is meaningful
	mostOff       = 4.0 // largest plausible error of an estimate; beyond it something else is measured
)

func tokens(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += m.Tokens()
	}
	return n
}

// Tokens returns the approximate size of the next prompt: what the provider counted last, plus an estimate of
// what came since.
func (s *State) Tokens() int {
	m := s.Measured
	if m.Route == "" || m.Messages > len(s.Messages) {
		return s.Fixed() + s.scaled(s.estimate()-s.fixed())
	}
	return m.Tokens + s.scaled(tokens(s.Messages[m.Messages:]))
}

// Warm reports whether a vendor may have cached the beginning of the next prompt.
func (s *State) Warm() bool { return s.Measured.Route != "" && !s.Pruning.Cold }

// Fixed returns the approximate tokens of a prompt that are not messages.
func (s *State) Fixed() int {
	if s.Measured.Fixed == 0 {
		return s.scaled(s.fixed())
	}
	return int(float64(s.fixed()) * s.Measured.Fixed)
}

// fixed is Fixed without correction.
func (s *State) fixed() int { return llm.Request{System: s.System, Tools: s.Tools}.Tokens() }

// estimate is the approximate size of the next prompt, without correction.
func (s *State) estimate() int {
	return s.fixed() + s.sight.tokens + tokens(s.Messages[s.sight.messages:])
}

// scaled corrects an estimate by the error of the last ones.
func (s *State) scaled(tokens int) int {
	if s.Measured.Ratio == 0 {
		return tokens
	}
	return int(float64(tokens) * s.Measured.Ratio)
}

// Count returns the approximate tokens of a message in this conversation.
func (s *State) Count(m llm.Message) int { return s.scaled(m.Tokens()) }

// Room returns how many tokens a prompt may have before it is compacted; 0 if unknown.
func (s *State) Room() int {
	w := s.WindowNow()
	return max(0, w.Tokens-w.Reserve)
}

// WindowNow returns the window of the models that may answer now: the one the session was opened with, or a
// smaller one if a server or a router has reported it since.
func (s *State) WindowNow() event.Window {
	if s.Bound > 0 && (s.Window.Tokens == 0 || s.Bound < s.Window.Tokens) {
		return event.Window{Tokens: s.Bound, Reserve: s.Bound / boundReserve}
	}
	return s.Window
}

// If only some models may answer, 1/boundReserve of a window is reserved for the reply.
const boundReserve = 4

// full reports whether the next prompt would use reserved room. If the last compaction left too much, another
// one helps only after the conversation has grown.
func (s *State) full() bool {
	room := s.Room()
	if room == 0 || s.tried() || s.Total.Turns < s.Compaction.Wait {
		return false
	}
	n := s.Tokens()
	return n > room && n > s.Compaction.After+room/10
}

// tried reports whether the model has replied nothing since a compaction of this run was done or failed.
func (s *State) tried() bool {
	return s.Compaction.Tried > 0 && s.Compaction.Tried == s.Total.Turns+1
}

// compaction returns the compaction that must be done before anything else. A vendor that counts more than we
// do may refuse the result; then the next one leaves less, until that is impossible.
func (s *State) compaction() (Compact, bool) {
	r := &s.Run
	switch {
	case s.Compaction.Wanted != nil && !r.Asking:
		return Compact{Why: event.CompactAsked, Focus: s.Compaction.Wanted.Focus}, true
	case !r.Active || s.tried() && s.Compaction.Kept == event.CompactOverflow:
	case s.overflowed():
		return Compact{Why: event.CompactOverflow}, true
	}
	return Compact{}, false
}

func (s *State) kept(b event.Kept) {
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	c := &s.Compaction
	c.Wanted, c.Tried, c.Kept = nil, s.Total.Turns+1, cmp.Or(b.Why, event.CompactOverflow)
	if c.Kept != event.CompactAsked {
		c.Refused++
		c.Wait = s.Total.Turns + 1<<min(c.Refused, mostDoublings)
	}
}

// overflowed reports whether the vendor refuses the conversation because of its length.
func (s *State) overflowed() bool {
	return s.Run.Failed != nil && s.Run.Failed.Cause.Policy() == llm.PolicyCompact || s.Run.Reply == replyWindow
}

// shortened continues a run whose conversation was too long.
func (s *State) shortened() {
	s.Run.Failed = nil
	if s.Run.Reply == replyWindow {
		s.Run.Reply = replyLength // so that the model is told to continue
	}
}

// Compacted returns the event for a compaction to another conversation. It completes the figures in b. The
// state itself does not change.
func (s *State) Compacted(b event.Compacted, to Shortened) (event.Compacted, error) {
	next := *s
	next.Messages, next.Person, next.Events, next.sight = s.unreferred(to.Messages), to.Person, to.Events, sight{}
	next.Lacks = true
	next.Total.Usage = next.Total.Usage.Add(b.Usage)
	next.Total.Cost += b.Cost
	next.Measured = s.Measured.ratios() // the count was for the old conversation
	next.Noted, next.Pruning.Upto = nil, 0
	next.shortened()
	b.Before, b.After, b.Of = s.Tokens(), next.Tokens(), s.Seq
	next.Compaction = Compaction{Times: s.Compaction.Times + 1, Tried: s.Total.Turns + 1, After: b.After, Unshown: to.Unshown}
	var err error
	b.Snapshot, err = next.Snapshot()
	return b, err
}
