package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Old results of calls take most of a long conversation, and matter least. Cutting one short changes the prompt
// from there on, so the vendor's cache of the rest is lost. So many are cut at once, and only when the cache is
// lost anyway: before a compaction, or after a pause that no cache outlives. If a compaction was due and
// failed, any cut is better than none.

const (
	keepResults = 40_000 // tokens at the end of the conversation in which results stay whole; a third of the room in a small window
	leastPruned = 20_000 // tokens that a batch must save
	mostCached  = time.Hour
	prunedEnd   = 300 // bytes that stay of each end of a result
	leastCut    = 4 * prunedEnd
)

// Pruning is the history of pruning.
type Pruning struct {
	Upto int       `json:"upto,omitempty"` // how many messages have been looked at
	Last time.Time `json:"last,omitzero"`  // when a model last replied
	Cold bool      `json:"cold,omitempty"` // no part of the prompt can be cached any more
}

// cools records events that no prompt cache outlives: a pause, or another model.
func (s *State) cools(e event.Event) {
	p := &s.Pruning
	switch b := e.Body.(type) {
	case event.Replied:
		p.Last = e.Time
	case event.Switched:
		p.Cold = p.Cold || b.Route != "" && s.Route != "" && b.Route != s.Route
	default:
		p.Cold = p.Cold || !p.Last.IsZero() && e.Time.Sub(p.Last) > mostCached
	}
}

// pruning returns what to cut short before the model is asked.
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
	b := event.Pruned{Upto: upto, Why: event.PruneCold, Before: s.Tokens()}
	b.After = b.Before - saved
	if !full {
		return b, saved >= min(leastPruned, room/4)
	}
	b.Why = event.PruneWindow
	return b, b.After <= room-room/4 // otherwise a compaction would follow soon
}

// lastPruning returns what to cut short when compaction doesn't help: the vendor refuses the prompt, or the
// prompt uses reserved room and the last compaction failed. If the vendor refuses again, newer results are cut.
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
			return event.Pruned{Upto: upto, Why: event.PruneWindow, Before: before, After: before - saved}, true
		}
		if keep == 0 || !overflowed {
			return event.Pruned{}, false
		}
	}
}

// saved returns how many tokens are saved by cutting the results of the first messages short.
func (s *State) saved(upto int) int {
	saved := 0
	for i := s.Pruning.Upto; i < upto; i++ {
		if short, changed := s.prunedMessage(s.Messages[i]); changed {
			saved += s.Count(s.Messages[i]) - s.Count(short)
		}
	}
	return saved
}

// prunable returns how many messages there are before the last keep tokens.
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
	s.Messages = s.unreferred(s.Messages)
	for i := s.Pruning.Upto; i < upto; i++ {
		s.Messages[i], _ = s.prunedMessage(s.Messages[i])
	}
	s.Pruning.Upto = upto
	if s.overflowed() {
		s.shortened()
	}
	s.sight, s.Measured = sight{}, s.Measured.ratios()
}

// A result that the model can still see from the very same call is replaced by a line that refers to it.
const unchanged = "Unchanged: this very call brought the same before, to the letter, and that result still stands above: call "

// standsAbove is the line for a result that an earlier call brought too. It hints at the result by its number
// of lines and the first of them.
func standsAbove(call string, lines int, first string) string {
	return fmt.Sprintf("%s%q (%d lines, from %.80q). It holds.", unchanged, call, lines, first)
}

// unreferred replaces references to results that may be gone. The given messages don't change.
func (s *State) unreferred(messages []llm.Message) []llm.Message {
	out := slices.Clone(messages)
	for i, m := range out {
		parts := slices.Clone(m.Parts)
		for j, part := range parts {
			r, ok := part.(llm.Result)
			if !ok {
				continue
			}
			if rest, ok := strings.CutPrefix(r.Parts.Text(), unchanged); ok {
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

// prunedMessage returns a message with its results cut short, except for lasting ones, and whether it differs.
// The given message doesn't change.
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

// prunedResult returns what stays of a result; nil if it stays whole.
func prunedResult(r llm.Result, history bool) llm.Parts {
	text, images := r.Parts.Text(), 0
	for _, part := range r.Parts {
		if _, ok := part.(llm.Image); ok {
			images++
		}
	}
	if len(text) < leastCut && images == 0 {
		return nil
	}
	note := "[This result is old and was cut short.]"
	if history {
		note = fmt.Sprintf("[This result is old and was cut short. The history tool shows all of it, with call %q.]", r.CallID)
	}
	if images > 0 {
		note = "[An image was here that is no longer shown.]\n" + note
	}
	if len(text) < leastCut {
		return llm.Say(strings.TrimSpace(text + "\n" + note))
	}
	head, tail := text[:prunedEnd], text[len(text)-prunedEnd:]
	return llm.Say(strings.ToValidUTF8(head, "") + "\n[... " + fmt.Sprint(len(text)-2*prunedEnd) + " bytes left out ...]\n" +
		strings.ToValidUTF8(tail, "") + "\n" + note)
}
