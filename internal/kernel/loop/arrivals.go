package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Arrivals are results of background agents and messages of other agents. Several may come at once. Each fits in
// the context window, but together they could overflow it, and would be summarised before the model reads them.
// So they are admitted in order while the window has room, and a line tells the model which ones wait:
//
//   - They are admitted whenever a message can be added: after a reply, its calls, or a request.
//   - They may take half of the free room. The rest is for work.
//   - Before a final answer ends the run, the first waiting arrival is admitted even without room. If it does not
//     fit, compaction makes room.
//   - The line names only a few arrivals, and is repeated only when twice as many wait as it last counted. Otherwise
//     lines about hundreds of arrivals would fill the window themselves.

// deliverArrival passes an agent's message to the model at the next opportunity with room for it.
func (s *State) deliverArrival(from string, parts llm.Parts) {
	m := message{Parts: parts}
	if s.Levers.Arrivals.Active(s.Unattended) {
		m.From = from
	}
	s.deliver(m, event.OriginAgent)
}

// addMessages appends messages to the conversation. Arrivals wait until there is room.
func (s *State) addMessages(list ...message) {
	for _, m := range list {
		if m.From != "" {
			s.Arrivals = append(slices.Clone(s.Arrivals), m)
			continue
		}
		s.appendMessage(m)
	}
	s.admitArrivals(false)
}

// appendMessage appends a message to the conversation, and notes whether it is in a person's words.
func (s *State) appendMessage(m message) {
	if m.Person {
		s.Person, s.Events = append(s.Person, len(s.Messages)), append(s.Events, m.Seq)
		s.Run.UnseenText = strings.TrimPrefix(s.Run.UnseenText+"\n"+m.Parts.Text(), "\n")
	}
	s.push(llm.User, m.Parts)
}

// admitArrivals appends waiting arrivals while there is room. If atLeastOne is set, the first needs no room.
func (s *State) admitArrivals(atLeastOne bool) {
	if len(s.Arrivals) == 0 {
		return
	}
	free, taken, n := s.Room()-s.Tokens(), 0, 0
	for _, m := range s.Arrivals {
		taken += s.arrivalTokens(m)
		if fits := s.Room() == 0 || taken <= free/2 || atLeastOne && n == 0; !fits {
			break
		}
		s.appendMessage(m)
		n++
		s.Run.Reply = replyNone // the answer was given without it
	}
	s.Arrivals, s.ArrivalsListed = slices.Clone(s.Arrivals[n:]), max(0, s.ArrivalsListed-n)
	if len(s.Arrivals) > 0 && len(s.Arrivals) >= 2*s.ArrivalsListed {
		s.ArrivalsListed = len(s.Arrivals)
		// The text is part of the fold and must not change.
		var list []string
		for _, m := range s.Arrivals {
			list = append(list, fmt.Sprintf("from %s (about %d tokens)", m.From, s.arrivalTokens(m)))
		}
		s.push(llm.User, llm.Say(fmt.Sprintf("[There is no room in the context window for %d of these yet. They come by themselves, in this order, as soon as there "+
			"is, or when you answer: %s]", len(s.Arrivals), strings.Join(abbreviate(list), ", "))))
	}
}

func (s *State) arrivalTokens(m message) int {
	return s.Count(llm.Message{Role: llm.User, Parts: m.Parts})
}
