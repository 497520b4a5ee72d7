package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Results of agents in the background and mail of other agents come when they come, and several at
// once. Each alone fits in the window; all together they would overrun it, be summed up before anybody
// has read them, and the next ones again. So they are let in, in their order, as far as the window has
// room, and a line says which wait:
//
//   - whenever words can be put before the model: when a reply, its calls or a request have ended;
//   - as long as they leave half of the room to the work;
//   - the first that waits in any case before a final answer counts. If it does not fit then, that is
//     what compaction is for;
//   - the line comes again only when twice as many wait as it told of, and names a few: lines on
//     hundreds that come one by one would use up the room themselves.

// arrived puts words of an agent before the model as soon as it can hear them and there is room.
func (s *State) arrived(from string, parts llm.Parts) {
	w := words{Parts: parts}
	if s.Levers.Arrivals.Active(s.Unattended) {
		w.From = from
	}
	s.steered(w, event.OriginAgent)
}

// say puts words before the model, those that have arrived only as far as there is room.
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

// put puts words before the model.
func (s *State) put(w words) {
	if w.Person {
		s.Person, s.Events = append(s.Person, len(s.Messages)), append(s.Events, w.Seq)
		s.Run.Heard = strings.TrimPrefix(s.Run.Heard+"\n"+w.Parts.Text(), "\n")
	}
	s.push(llm.User, w.Parts)
}

// admit lets in what waits, as far as there is room; the first also if there is none, where one must
// come in.
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
		s.Run.Reply = replyNone // an answer was given without it
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

// waitingArrivals says what waits for room.
func (s *State) waitingArrivals() string {
	var list []string
	for _, w := range s.Later {
		list = append(list, fmt.Sprintf("from %s (about %d tokens)", w.From, s.arrivalTokens(w)))
	}
	return fmt.Sprintf("There is no room in the context window for %d of these yet. They come by themselves, in this order, as soon as there "+
		"is, or when you answer: %s", len(s.Later), strings.Join(most(list), ", "))
}

// late asks the model to go on, as what has waited for room comes in now.
func (s *State) late() (event.Steered, bool) {
	return steer("What has waited for room in the context window comes now.", event.WhyArrived), len(s.Later) > 0
}
