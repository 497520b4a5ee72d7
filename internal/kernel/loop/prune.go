package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Reasons to prune.
const (
	PruneWindow event.Pruning = "window" // the next prompt would use reserved room, and this avoids a compaction
	PruneCold   event.Pruning = "cold"   // no part of the prompt is cached any more, so pruning costs nothing
)

// Old results of calls fill most of a long conversation and matter least, so pruning shortens them. That changes
// the prompt from the first shortened result on, and the provider's cache of the rest is lost. Therefore pruning
// shortens many results at once, and only if the cache is lost anyway: before a compaction, after a long pause, or
// with a new model. After a failed compaction, any room gained is worth it.
//
// The texts below are part of the fold, so they must stay as they are: old logs must give the same conversation.

const (
	keepResults   = 40_000 // tokens at the end of the conversation in which results stay whole; at most a third of the room
	minSaved      = 20_000 // tokens that a batch must save
	cacheLifetime = time.Hour
	keptBytes     = 300 // bytes that stay at each end of a result
	minPrunable   = 4 * keptBytes
)

// Pruning is the history of pruning.
type Pruning struct {
	Upto int       `json:"upto,omitempty"` // how many messages, from the first, were pruned
	Last time.Time `json:"last,omitzero"`  // time of the model's last reply
	Cold bool      `json:"cold,omitempty"` // no provider has a cache of the prompt any more
}

// trackCache records whether a long pause or another model has made the prompt cache useless.
func (s *State) trackCache(e event.Event) {
	p := &s.Pruning
	switch b := e.Body.(type) {
	case event.Replied:
		p.Last = e.Time
	case event.Switched:
		p.Cold = p.Cold || b.Route != "" && s.Route != "" && b.Route != s.Route
	default:
		p.Cold = p.Cold || !p.Last.IsZero() && e.Time.Sub(p.Last) > cacheLifetime
	}
}

// pruning returns the pruning that is due before the next request, if any.
func (s *State) pruning() (event.Pruned, bool) {
	room := s.Room()
	full := s.full()
	if room == 0 || !full && !s.Pruning.Cold {
		return event.Pruned{}, false
	}
	upto := s.prunable(min(keepResults, room/3))
	if upto <= s.Pruning.Upto {
		return event.Pruned{}, false
	}
	saved := s.saved(upto)
	b := event.Pruned{Upto: upto, Why: PruneCold, Before: s.Tokens()}
	b.After = b.Before - saved
	if !full {
		return b, saved >= min(minSaved, room/4)
	}
	b.Why = PruneWindow
	return b, b.After <= room-room/4 // otherwise a compaction would follow soon
}

// lastPruning returns the pruning for when compaction has failed and the provider refuses the prompt, or the prompt
// needs reserved room. If the provider refuses again, newer results are pruned too.
func (s *State) lastPruning() (event.Pruned, bool) {
	room, overflowed := s.Room(), s.overflowed()
	tight := room > 0 && s.Tokens() > room && !s.full()
	if s.Compaction.Kept == "" || s.Run.Asking || !tight && !overflowed {
		return event.Pruned{}, false
	}
	if room == 0 {
		room = s.Tokens()
	}
	for keep := min(keepResults, room/3); ; keep /= 4 {
		upto := s.prunable(keep)
		if saved := s.saved(upto); saved > 0 {
			before := s.Tokens()
			return event.Pruned{Upto: upto, Why: PruneWindow, Before: before, After: before - saved}, true
		}
		if keep == 0 || !overflowed {
			return event.Pruned{}, false
		}
	}
}

// saved returns how many tokens pruning saves in the messages before upto.
func (s *State) saved(upto int) int {
	saved := 0
	for i := s.Pruning.Upto; i < upto; i++ {
		if short, changed := s.prunedMessage(s.Messages[i]); changed {
			saved += s.Count(s.Messages[i]) - s.Count(short)
		}
	}
	return saved
}

// prunable returns how many messages come before the last keep tokens.
func (s *State) prunable(keep int) int {
	i := len(s.Messages)
	for size := 0; i > 0; i-- {
		if size += s.Count(s.Messages[i-1]); size > keep {
			return i - 1
		}
	}
	return 0
}

func (s *State) prune(b event.Pruned) {
	upto := min(b.Upto, len(s.Messages))
	s.Messages = s.withoutReferences(s.Messages)
	for i := s.Pruning.Upto; i < upto; i++ {
		s.Messages[i], _ = s.prunedMessage(s.Messages[i])
	}
	s.Pruning.Upto = upto
	if s.overflowed() {
		s.shortened()
	}
	s.index, s.Measured = messageIndex{}, s.Measured.ratios()
}

// unchangedPrefix begins a reference to an equal result of an identical call.
const unchangedPrefix = "Unchanged: this very call brought the same before, to the letter, and that result still stands above: call "

// withoutReferences returns a copy of the messages in which references say that the result may no longer be in
// the conversation.
func (s *State) withoutReferences(messages []llm.Message) []llm.Message {
	out := slices.Clone(messages)
	for i, m := range out {
		parts := slices.Clone(m.Parts)
		for j, part := range parts {
			r, ok := part.(llm.Result)
			if !ok {
				continue
			}
			if rest, ok := strings.CutPrefix(r.Parts.Text(), unchangedPrefix); ok {
				call, _, _ := strings.Cut(rest, " (")
				said := "This very call brought the same as call " + call + " before it."
				if s.HasTool("history") {
					said += " The history tool shows that, with call " + call + "."
				}
				r.Parts = llm.Say(said)
				parts[j] = r
			}
		}
		out[i] = llm.Message{Role: m.Role, Parts: parts}
	}
	return out
}

// prunedMessage returns a copy of a message with its results shortened, except for lasting ones, and whether it
// differs.
func (s *State) prunedMessage(m llm.Message) (llm.Message, bool) {
	changed := false
	parts := slices.Clone(m.Parts)
	for i, part := range parts {
		r, ok := part.(llm.Result)
		if !ok || s.isLasting(r.CallID) {
			continue
		}
		if short := prunedResult(r, s.HasTool("history")); short != nil {
			r.Parts, changed = short, true
			parts[i] = r
		}
	}
	return llm.Message{Role: m.Role, Parts: parts}, changed
}

// prunedResult returns the shortened parts of a result; nil if it stays whole.
func prunedResult(r llm.Result, history bool) llm.Parts {
	text, images := r.Parts.Text(), 0
	for _, part := range r.Parts {
		if _, ok := part.(llm.Image); ok {
			images++
		}
	}
	if len(text) < minPrunable && images == 0 {
		return nil
	}
	note := "[This result is old and was cut short.]"
	if history {
		note = fmt.Sprintf("[This result is old and was cut short. The history tool shows all of it, with call %q.]", r.CallID)
	}
	if images > 0 {
		note = "[An image was here that is no longer shown.]\n" + note
	}
	if len(text) < minPrunable {
		return llm.Say(strings.TrimSpace(text + "\n" + note))
	}
	head, tail := text[:keptBytes], text[len(text)-keptBytes:]
	return llm.Say(strings.ToValidUTF8(head, "") + "\n[... " + fmt.Sprint(len(text)-2*keptBytes) + " bytes left out ...]\n" +
		strings.ToValidUTF8(tail, "") + "\n" + note)
}
