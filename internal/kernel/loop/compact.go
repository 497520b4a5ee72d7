package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Compaction is what is known of compactions.
type Compaction struct {
	Wanted *event.Compact `json:"wanted,omitempty"` // somebody asked for one
	Times  int            `json:"times,omitempty"`  // done so far
	// turns of the session, and one, when the last one was done or not done; 0: not in this run
	Tried int `json:"tried,omitempty"`
	After int `json:"after,omitempty"` // tokens of the prompt that it left
	// Unshown are the messages of the person that compactions have left out whole.
	Unshown Unshown `json:"unshown,omitzero"`
	// Why the last one was to be done that was not; empty if it was done.
	Kept event.Compaction `json:"kept,omitempty"`
	// How many in a row were not done, and the turns of the session before which none is
	// tried again for the window alone: each costs requests that are as long as a prompt.
	Refused int `json:"refused,omitempty"`
	Wait    int `json:"wait,omitempty"`
}

// Unshown counts messages of the person, and names the events in which the first and the last were said;
// 0: that is not known.
type Unshown struct {
	Messages int    `json:"messages,omitempty"`
	First    uint64 `json:"first,omitempty"`
	Last     uint64 `json:"last,omitempty"`
}

// Shortened is a conversation as a compaction leaves it.
type Shortened struct {
	Messages []llm.Message
	Person   []int    // as those of Conversation
	Events   []uint64 // as well
	Unshown  Unshown
}

// mostDoublings bounds the turns between two tries of what is not done: twice as many each
// time, 16 at most.
const mostDoublings = 4

// Measured compares what a provider counted with our own estimate, so that the
// estimate of the next prompt is one only of what is new in it.
type Measured struct {
	Route    string  `json:"route,omitempty"` // whose figures they are; empty: there are none
	Tokens   int     `json:"tokens,omitempty"`
	Messages int     `json:"messages,omitempty"` // of the conversation, that Tokens are for, with all before them
	Ratio    float64 `json:"ratio,omitempty"`    // of counted tokens to our estimate of messages, of late; 0: not known
	// Fixed is that ratio of a whole prompt, when there was last nothing to subtract. It holds for the
	// system prompt and the tools, which are most of a first prompt and have no part in later ones.
	Fixed float64 `json:"fixed,omitempty"`
}

// ratios are those that outlast the figures they come from.
func (m Measured) ratios() Measured { return Measured{Ratio: m.Ratio, Fixed: m.Fixed} }

// measure takes the provider's figures from a reply, before it is pushed.
func (s *State) measure(b event.Replied) {
	if b.Usage.Estimated || b.Usage.Prompt() == 0 {
		return
	}
	if b.Usage.Prompt() > s.Bound {
		s.Bound = 0 // more is taken than was said
	}
	old := s.Measured
	counted, guessed := b.Usage.Prompt(), s.estimate()
	fixed := old.Fixed
	if whole := float64(counted) / float64(max(guessed, 1)); guessed >= leastMeasured {
		fixed = min(max(whole, 1/mostOff), mostOff)
	}
	if old.Route == b.Route && old.Messages > 0 && old.Messages <= len(s.Messages) {
		// What is new tells more than the whole, to which vendors add their own.
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
	leastMeasured = 100 // tokens that say something of the ratio
	mostOff       = 4.0 // times that an estimate may be off; more is something else
)

func tokens(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += m.Tokens()
	}
	return n
}

// Tokens is about how many tokens the next prompt has: those that the provider
// counted last, and an estimate of what came since.
func (s *State) Tokens() int {
	m := s.Measured
	if m.Route == "" || m.Messages > len(s.Messages) {
		return s.Fixed() + s.scaled(s.estimate()-s.fixed())
	}
	return m.Tokens + s.scaled(tokens(s.Messages[m.Messages:]))
}

// Warm reports whether the next prompt begins with one that a vendor may have cached.
func (s *State) Warm() bool { return s.Measured.Route != "" && !s.Pruning.Cold }

// Fixed is about how many tokens of each prompt are no messages.
func (s *State) Fixed() int {
	if s.Measured.Fixed == 0 {
		return s.scaled(s.fixed())
	}
	return int(float64(s.fixed()) * s.Measured.Fixed)
}

// fixed is Fixed, uncorrected.
func (s *State) fixed() int { return llm.Request{System: s.System, Tools: s.Tools}.Tokens() }

// estimate is about how many tokens the next prompt has, uncorrected.
func (s *State) estimate() int {
	return s.fixed() + s.sight.tokens + tokens(s.Messages[s.sight.messages:])
}

// scaled is an estimate corrected by how far the last ones were off.
func (s *State) scaled(tokens int) int {
	if s.Measured.Ratio == 0 {
		return tokens
	}
	return int(float64(tokens) * s.Measured.Ratio)
}

// Count is about how many tokens a message of this conversation has.
func (s *State) Count(m llm.Message) int { return s.scaled(m.Tokens()) }

// Room is how many tokens a prompt may have before it is compacted; 0 if that
// is not known.
func (s *State) Room() int {
	w := s.WindowNow()
	return max(0, w.Tokens-w.Reserve)
}

// WindowNow is that of the models that may answer now: what the session was opened with, or less where a server
// or a router has said so since.
func (s *State) WindowNow() event.Window {
	if s.Bound > 0 && (s.Window.Tokens == 0 || s.Bound < s.Window.Tokens) {
		return event.Window{Tokens: s.Bound, Reserve: s.Bound / boundReserve}
	}
	return s.Window
}

// boundReserve is the part of a window that stays free for a reply where only some models may
// answer.
const boundReserve = 4

// full reports whether the next prompt would use what is kept free. Where the
// last compaction left too much, nothing is gained by the next one until more
// has come.
func (s *State) full() bool {
	room := s.Room()
	if room == 0 || s.tried() || s.Total.Turns < s.Compaction.Wait {
		return false
	}
	n := s.Tokens()
	return n > room && n > s.Compaction.After+room/10
}

// tried reports whether nothing has come from the model since a compaction of
// this run was done, or could not be done.
func (s *State) tried() bool {
	return s.Compaction.Tried > 0 && s.Compaction.Tried == s.Total.Turns+1
}

// compaction returns what compaction must be done before anything else. What a
// compaction left may still be refused, where a vendor counts more than we do:
// then the next one leaves less, until one can't.
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

// overflowed reports whether the vendor takes the conversation no more as it is.
func (s *State) overflowed() bool {
	return s.Run.Failed != nil && s.Run.Failed.Cause.Policy() == llm.PolicyCompact || s.Run.Reply == replyWindow
}

// shortened lets a run go on whose conversation was too long.
func (s *State) shortened() {
	s.Run.Failed = nil
	if s.Run.Reply == replyWindow {
		s.Run.Reply = replyLength // and is told to go on
	}
}

// Compacted returns the state with another conversation. It takes the body that
// tells of it for its figures and returns it whole. The state itself stays as it is.
func (s *State) Compacted(b event.Compacted, to Shortened) (event.Compacted, error) {
	next := *s
	next.Messages, next.Person, next.Events, next.sight = s.unreferred(to.Messages), to.Person, to.Events, sight{}
	next.Lacks = true
	next.Total.Usage = next.Total.Usage.Add(b.Usage)
	next.Total.Cost += b.Cost
	next.Measured = s.Measured.ratios() // of what is gone
	next.Noted, next.Pruning.Upto = nil, 0
	next.shortened()
	b.Before, b.After, b.Of = s.Tokens(), next.Tokens(), s.Seq
	next.Compaction = Compaction{Times: s.Compaction.Times + 1, Tried: s.Total.Turns + 1, After: b.After, Unshown: to.Unshown}
	var err error
	b.Snapshot, err = next.Snapshot()
	return b, err
}
