package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Results of background agents and messages of other agents come at any time, several at once. Each fits in the
// window, but together they would overrun it, and be summarised before anyone has read them. So they are
// admitted in order while the window has room, and a line says which wait:
//
//   - They come in whenever words can be passed to the model: after a reply, its calls, or a request.
//   - They may take half of the free room; the rest is for work.
//   - The first waiting one comes in before a final answer counts, even without room. If it does not fit,
//     compaction makes room.
//   - The line is repeated only when twice as many wait as it named last, and names a few, because lines about
//     hundreds of arrivals would use up the room themselves.

// arrived passes words of an agent to the model as soon as it can hear them and there is room.
func (s *State) arrived(from string, parts llm.Parts) {
	w := words{Parts: parts}
	if s.Levers.Arrivals.Active(s.Unattended) {
		w.From = from
	}
	s.steered(w, event.OriginAgent)
}

// say passes words to the model; arrivals only as far as there is room.
func (s *State) say(list ...words) {
	for _, w := range list {
		if w.From != "" {
			s.Later = append(slices.Clone(s.Later), w)
			continue
		}
		s.put(w)
	}
	s.admit(false)
}

// put appends words to the conversation.
func (s *State) put(w words) {
	if w.Person {
		s.Person, s.Events = append(s.Person, len(s.Messages)), append(s.Events, w.Seq)
		s.Run.Heard = strings.TrimPrefix(s.Run.Heard+"\n"+w.Parts.Text(), "\n")
	}
	s.push(llm.User, w.Parts)
}

// admit lets in waiting arrivals as far as there is room. If one is set, the first comes in even without room.
func (s *State) admit(one bool) {
	if len(s.Later) == 0 {
		return
	}
	left, taken, n := s.Room()-s.Tokens(), 0, 0
	for _, w := range s.Later {
		taken += s.arrivalTokens(w)
		if fits := s.Room() == 0 || taken <= left/2 || one && n == 0; !fits {
			break
		}
		s.put(w)
		n++
		s.Run.Reply = replyNone // the answer was given without it
	}
	s.Later, s.Listed = slices.Clone(s.Later[n:]), max(0, s.Listed-n)
	if len(s.Later) > 0 && len(s.Later) >= 2*s.Listed {
		s.Listed = len(s.Later)
		s.push(llm.User, llm.Say("["+s.waitingArrivals()+"]"))
	}
}

func (s *State) arrivalTokens(w words) int {
	return s.Count(llm.Message{Role: llm.User, Parts: w.Parts})
}

// waitingArrivals says which arrivals wait for room.
func (s *State) waitingArrivals() string {
	var list []string
	for _, w := range s.Later {
		list = append(list, fmt.Sprintf("from %s (about %d tokens)", w.From, s.arrivalTokens(w)))
	}
	return fmt.Sprintf("There is no room in the context window for %d of these yet. They come by themselves, in this order, as soon as there "+
		"is, or when you answer: %s", len(s.Later), strings.Join(most(list), ", "))
}

// late makes the model continue because an arrival that waited comes in now.
func (s *State) late() (event.Steered, bool) {
	return steer("What has waited for room in the context window comes now.", event.WhyArrived), len(s.Later) > 0
}
