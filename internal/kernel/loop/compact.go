package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// Compacting is the text of the Progress with which a compaction begins. It ends with Compacted or Kept, or
// with the run.
const Compacting = "compacting the conversation"

// Reasons to compact.
const (
	CompactWindow   event.Compaction = "window"   // the next prompt would use reserved room
	CompactOverflow event.Compaction = "overflow" // the model refused the prompt as too long
	CompactAsked    event.Compaction = "asked"    // someone asked for it
)

// Compaction is the history of compactions.
type Compaction struct {
	Wanted *event.Compact `json:"wanted,omitempty"` // an open request for a compaction
	Times  int            `json:"times,omitempty"`  // number of compactions
	// The session's turns at the last attempt, plus one; 0 if there was none in this run.
	Tried int `json:"tried,omitempty"`
	After int `json:"after,omitempty"` // tokens of the prompt after the last one
	// Unshown counts the person's messages that compactions left out entirely.
	Unshown Unshown `json:"unshown,omitzero"`
	// Kept gives the reason why a compaction was due, if the last attempt failed; empty after a success.
	Kept event.Compaction `json:"kept,omitempty"`
	// Refused counts failed attempts in a row. Wait is the turn before which the window alone causes no new attempt,
	// because each one costs requests as long as a prompt.
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

// maxDoublings bounds the turns between two attempts after failures: they double each time, up to 16.
const maxDoublings = 4

// Measured holds the provider's last count of tokens and its ratio to our estimate, so only the new part of the
// next prompt must be estimated.
type Measured struct {
	Route    string  `json:"route,omitempty"` // the model that counted; empty if there is no count
	Tokens   int     `json:"tokens,omitempty"`
	Messages int     `json:"messages,omitempty"` // how many messages Tokens covers, besides the system prompt and tools
	Ratio    float64 `json:"ratio,omitempty"`    // recent ratio of counted to estimated tokens of messages; 0 if unknown
	// Fixed is the ratio for a whole prompt, from the last count without an earlier one to subtract. It applies to the
	// system prompt and the tools, which are most of a first prompt but not part of its later growth.
	Fixed float64 `json:"fixed,omitempty"`
}

// ratios returns the ratios without the count, for when the conversation is replaced.
func (m Measured) ratios() Measured { return Measured{Ratio: m.Ratio, Fixed: m.Fixed} }

// measure reads the provider's count from a reply, before the reply is pushed.
func (s *State) measure(b event.Replied) {
	if b.Usage.Estimated || b.Usage.Prompt() == 0 {
		return
	}
	if b.Usage.Prompt() > s.ReportedWindow {
		s.ReportedWindow = 0 // the model accepts more than was reported
	}
	old := s.Measured
	s.index.fixed = s.estimateFixed()
	counted, estimated := b.Usage.Prompt(), s.estimatePrompt()
	fixed := old.Fixed
	if whole := float64(counted) / float64(max(estimated, 1)); estimated >= minMeasured {
		fixed = min(max(whole, 1/maxRatio), maxRatio)
	}
	if old.Route == b.Route && old.Messages > 0 && old.Messages <= len(s.Messages) {
		// The growth is more accurate than the total, because providers add tokens of their own to that.
		counted -= old.Tokens
		estimated = tokens(s.Messages[old.Messages:])
		fixed = old.Fixed
	}
	ratio := old.Ratio
	if estimated >= minMeasured {
		ratio = min(max(float64(counted)/float64(estimated), 1/maxRatio), maxRatio)
		if old.Route == b.Route && old.Ratio > 0 {
			ratio = (ratio + old.Ratio) / 2
		}
	}
	s.Measured = Measured{Route: b.Route, Ratio: ratio, Fixed: fixed, Tokens: b.Usage.Prompt() +
		b.Usage.Output - b.Usage.Reasoning, Messages: len(s.Messages)}
}

const (
	minMeasured = 100 // minimum tokens for a meaningful ratio
	maxRatio    = 4.0 // largest plausible error of an estimate; beyond it something else is measured
)

func tokens(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += m.Tokens()
	}
	return n
}

// Tokens returns the approximate size of the next prompt: the provider's last count plus an estimate of the newer
// messages.
func (s *State) Tokens() int {
	m := s.Measured
	if m.Route == "" || m.Messages > len(s.Messages) {
		return s.Fixed() + s.corrected(s.estimatePrompt()-s.estimateFixed())
	}
	return m.Tokens + s.corrected(tokens(s.Messages[m.Messages:]))
}

// Warm reports whether the provider may have cached the beginning of the next prompt.
func (s *State) Warm() bool { return s.Measured.Route != "" && !s.Pruning.Cold }

// Fixed returns the approximate tokens of the system prompt and the tools.
func (s *State) Fixed() int {
	if s.Measured.Fixed == 0 {
		return s.corrected(s.estimateFixed())
	}
	return int(float64(s.estimateFixed()) * s.Measured.Fixed)
}

// estimateFixed is Fixed without the measured correction.
func (s *State) estimateFixed() int {
	if s.index.fixed > 0 {
		return s.index.fixed
	}
	return llm.Request{System: s.System, Tools: s.Tools}.Tokens()
}

// estimatePrompt is Tokens without any count or correction by the provider.
func (s *State) estimatePrompt() int {
	return s.estimateFixed() + s.index.tokens + tokens(s.Messages[s.index.messages:])
}

// corrected multiplies an estimate by the measured ratio.
func (s *State) corrected(tokens int) int {
	if s.Measured.Ratio == 0 {
		return tokens
	}
	return int(float64(tokens) * s.Measured.Ratio)
}

// Count returns the approximate tokens of a message in this conversation.
func (s *State) Count(m llm.Message) int { return s.corrected(m.Tokens()) }

// Room returns how many tokens a prompt may have before it is compacted; 0 if unknown.
func (s *State) Room() int {
	w := s.WindowNow()
	return max(0, w.Tokens-w.Reserve)
}

// WindowNow returns the window of the models that may answer now: the configured one, or a smaller one that a
// server or a router has reported since.
func (s *State) WindowNow() event.Window {
	if s.ReportedWindow > 0 && (s.Window.Tokens == 0 || s.ReportedWindow < s.Window.Tokens) {
		return event.Window{Tokens: s.ReportedWindow, Reserve: s.ReportedWindow / reportedReserve}
	}
	return s.Window
}

// A reported window has no reserve of its own, so 1/reportedReserve of it is kept free for the reply.
const reportedReserve = 4

// full reports whether a compaction is due because the next prompt needs reserved room. If the last compaction left
// too much, the next one waits until the conversation has grown by a tenth of the room.
func (s *State) full() bool {
	room := s.Room()
	if room == 0 || s.compactionTried() || s.Total.Turns < s.Compaction.Wait {
		return false
	}
	n := s.Tokens()
	return n > room && n > s.Compaction.After+room/10
}

// compactionTried reports whether a compaction was done or failed since the model's last reply in this run.
func (s *State) compactionTried() bool {
	return s.Compaction.Tried > 0 && s.Compaction.Tried == s.Total.Turns+1
}

// compaction returns the compaction that must be done before anything else. A provider that counts more tokens than
// we do may refuse the result. Then the next compaction leaves less, until that is impossible.
func (s *State) compaction() (Compact, bool) {
	r := &s.Run
	switch {
	case s.Compaction.Wanted != nil && !r.Asking:
		return Compact{Why: CompactAsked, Focus: s.Compaction.Wanted.Focus}, true
	case !r.Active || s.compactionTried() && s.Compaction.Kept == CompactOverflow:
	case s.overflowed():
		return Compact{Why: CompactOverflow}, true
	}
	return Compact{}, false
}

func (s *State) kept(b event.Kept) {
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	c := &s.Compaction
	c.Wanted, c.Tried, c.Kept = nil, s.Total.Turns+1, cmp.Or(b.Why, CompactOverflow)
	if c.Kept != CompactAsked {
		c.Refused++
		c.Wait = s.Total.Turns + 1<<min(c.Refused, maxDoublings)
	}
}

// overflowed reports whether the provider refused the conversation because of its length.
func (s *State) overflowed() bool {
	return s.Run.Failed != nil && reaction.To(s.Run.Failed.Cause) == reaction.Compact || s.Run.Reply == replyWindow
}

// shortened lets a run continue whose conversation was too long.
func (s *State) shortened() {
	s.Run.Failed = nil
	if s.Run.Reply == replyWindow {
		s.Run.Reply = replyLength // so that the model is told to continue
	}
}

// Compacted returns the event that replaces the conversation with a shorter one: b with its figures and snapshot
// filled in. The state does not change.
func (s *State) Compacted(b event.Compacted, to Shortened) (event.Compacted, error) {
	next := *s
	next.Messages, next.Person, next.Events, next.index = s.withoutReferences(to.Messages), to.Person, to.Events, messageIndex{}
	next.CallsDropped = true
	next.Total.Usage = next.Total.Usage.Add(b.Usage)
	next.Total.Cost += b.Cost
	next.Measured = s.Measured.ratios() // the count was for the old conversation
	next.AddedSources, next.Pruning.Upto = nil, 0
	next.shortened()
	b.Before, b.After, b.Of = s.Tokens(), next.Tokens(), s.Seq
	next.Compaction = Compaction{Times: s.Compaction.Times + 1, Tried: s.Total.Turns + 1, After: b.After, Unshown: to.Unshown}
	var err error
	b.Snapshot, err = next.Snapshot()
	return b, err
}
