package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Next is what must happen now. The driver does it, appends the outcome, and asks again.
type Next interface{ next() }

// Ask means: send Request to the model, but not before the given time. Append Asked, then Replied or Failed.
type Ask struct {
	Turn      int
	NotBefore time.Time // zero means now
	Awaits    llm.Kind  // why it waits
}

// Heal means: the model refused the conversation. Append the body and continue.
type Heal struct{ Healed event.Healed }

// Compact means: shorten the conversation. Append Compacted with the state from [State.Compacted], or Kept.
type Compact struct {
	Why   event.Compaction
	Focus string // what matters most; empty means everything
}

// Prune means: cut old results short. Append the body and continue.
type Prune struct{ Pruned event.Pruned }

// Judge means: get a verdict on each call. Append Judged for each, or Ended for one that can't run.
type Judge struct{ Calls []Call }

// RunCalls means: start these calls beside the running ones, the first ones first if there is not room for all.
// Append Started before, and Ended as each ends.
type RunCalls struct{ Calls []Call }

// End means: these calls will not run. Append the bodies.
type End struct{ Ended []event.Ended }

// Steer means: tell the model something. Append the body.
type Steer struct{ Steered event.Steered }

// Wait means: nothing can be done before an input arrives; calls that make calls may still be running, and only
// wait. Calls are those that
// wait for a decision; if there are none, the session waits for a message.
type Wait struct{ Calls []Call }

// Stop means: the run is over. Append the body.
type Stop struct{ Stopped event.Stopped }

func (Ask) next()      {}
func (Heal) next()     {}
func (Compact) next()  {}
func (Prune) next()    {}
func (Judge) next()    {}
func (RunCalls) next() {}
func (End) next()      {}
func (Steer) next()    {}
func (Wait) next()     {}
func (Stop) next()     {}

// maxNudges is how many unusable replies in a row are answered with a nudge before the run fails.
const maxNudges = 3

// By is how the loop signs its own messages to the model.
const By = "inspan"

// Next returns what must happen now. It changes nothing.
func (s *State) Next() Next {
	if s.Run.Active && len(s.Run.Calls) > 0 {
		return s.nextCall()
	}
	if c, ok := s.compaction(); ok && !s.Run.Cancelled {
		return c
	}
	if !s.Run.Active {
		return Wait{}
	}
	if pruned, ok := s.lastPruning(); ok && s.overflowed() && !s.Run.Cancelled {
		return Prune{pruned}
	}
	if healed, ok := s.healing(); ok && !s.Run.Cancelled {
		return Heal{healed}
	}
	if text := s.news(); text != "" && !s.Run.Asking && !s.Run.Cancelled {
		return Steer{steer(text, event.WhyEnded)}
	}
	if stop, over := s.over(); over {
		if stop.Reason == event.ReasonDone {
			if steered, more := s.late(); more {
				return Steer{steered}
			}
			if steered, more := s.gate(); more {
				return Steer{steered}
			}
			if s.awaiting() || s.awaitsJobs() {
				return Await{}
			}
		}
		stop.Digest = s.Digest()
		return Stop{stop}
	}
	if text, why := s.nudge(); text != "" {
		return Steer{steer(text, why)}
	}
	if text := s.budget(); text != "" {
		return Steer{steer(text, event.WhyBudget)}
	}
	if pruned, ok := s.pruning(); ok {
		return Prune{pruned}
	}
	if s.full() {
		return Compact{Why: event.CompactWindow}
	}
	if pruned, ok := s.lastPruning(); ok {
		return Prune{pruned}
	}
	return s.ask()
}

// atOnce is the most calls that one table offers at a time; more may be ready.
const atOnce = 16

// nextCall moves the calls of the last reply on.
func (s *State) nextCall() Next {
	if dead := s.deadOf(s.calls); len(dead) > 0 {
		return End{dead}
	}
	if s.calls.in[phaseNew] > 0 {
		return Judge{s.calls.all(phaseNew)}
	}
	if ready := s.startable(s.calls); len(ready) > 0 {
		return RunCalls{ready}
	}
	if s.calls.in[phaseRunning] > 0 && !s.calls.stalled() {
		return Await{}
	}
	return Wait{s.Waiting()}
}

// deadOf returns the ends of calls that will not run.
func (s *State) deadOf(t *table) []event.Ended {
	var dead []event.Ended
	for c := range t.callers {
		dead = append(dead, s.deadOf(c.inner)...)
	}
	if !s.Run.Cancelled && t.in[phaseLost]+t.in[phaseCut]+t.in[phaseDenied] == 0 {
		return dead
	}
	for i := range t.calls {
		c := &t.calls[i]
		end, over := s.unrun(*c)
		if !over {
			continue
		}
		dead = append(append(dead, s.interrupted(c.Unfinished())...), end)
	}
	return dead
}

// interrupted completes the ends of nested calls. A call that had not begun says who stopped it.
func (s *State) interrupted(ends []event.Ended) []event.Ended {
	for i := range ends {
		if s.Run.Cancelled && !s.Run.Late && ends[i].Outcome == event.OutcomeCancelled {
			ends[i].Parts = llm.Say("Not run: " + s.interrupter() + ".")
		}
	}
	return ends
}

// unrun returns the end of a call that will not run, and whether it is such a call.
func (s *State) unrun(c Call) (event.Ended, bool) {
	end := func(o event.Outcome, text string) (event.Ended, bool) {
		return event.Ended{Call: c.ID, Parent: c.Parent, Outcome: o, Parts: llm.Say(text)}, true
	}
	switch {
	case c.Phase == phaseEnded, c.Phase == phaseRunning: // ended by its driver
		return event.Ended{}, false
	case c.Phase == phaseLost:
		return end(event.OutcomeUnknown, "Outcome unknown: the program was interrupted while this call ran. "+
			"It may have happened wholly, partly or not at all. Check before you repeat it.")
	case c.Phase == phaseCut:
		return end(event.OutcomeCut, "Not run: your reply was cut before the call was complete. Make the call again, shorter.")
	case s.Run.Cancelled && c.Begun && c.Caller:
		return end(event.OutcomeCancelled, "Interrupted before it had finished."+c.Account())
	case s.Run.Late && c.Begun:
		return end(event.OutcomeUnknown,
			"Outcome unknown: this call had begun when the program ended, and the time of the run was used up before it was made again.")
	case s.Run.Late:
		return end(event.OutcomeCancelled, "Not run: the time of the run is used up.")
	case s.Run.Cancelled && c.Begun:
		return end(event.OutcomeUnknown,
			"Outcome unknown: this call had begun when the program ended, and "+s.interrupter()+" before it was made again.")
	case s.Run.Cancelled:
		return end(event.OutcomeCancelled, "Not run: "+s.interrupter()+".")
	case c.Phase == phaseDenied:
		text := "Denied"
		if c.By != "" {
			text += " by " + c.By
		}
		if c.Reason == "" {
			return end(event.OutcomeDenied, text+".")
		}
		return end(event.OutcomeDenied, text+": "+c.Reason)
	}
	return event.Ended{}, false
}

// over reports whether the run is over, and how it ends.
func (s *State) over() (event.Stopped, bool) {
	r := &s.Run
	stop := func(reason event.Reason, format string, args ...any) (event.Stopped, bool) {
		return event.Stopped{Reason: reason, Detail: fmt.Sprintf(format, args...)}, true
	}
	switch {
	case r.Late && (r.Reply != replyAnswer || s.awaiting() || s.awaitsJobs()):
		return stop(event.ReasonMaxTime, timeUsed, r.Used(), s.Limits.Seconds)
	case r.Braked != "":
		return stop(event.ReasonRate, "%s", r.Braked)
	case r.Cancelled && !r.Late:
		return stop(event.ReasonCancelled, "%s", r.Denied)
	case r.Failed != nil:
		return event.Stopped{Reason: reasonOf(r.Failed.Cause), Cause: r.Failed.Cause, Detail: r.Failed.Message}, true
	case r.Reply == replyRefusal:
		return stop(event.ReasonRefused, "the model declined to answer")
	case r.Reply == replyAnswer:
		return stop(event.ReasonDone, "")
	case r.Reply == replyWindow:
		return stop(event.ReasonFailed, "the context window is full; the reply was cut")
	case r.Nudges > maxNudges && r.Reply == replyThought:
		return stop(event.ReasonFailed, "the model has thought and not answered, although it was asked again; its thoughts were: %s", r.Thought)
	case r.Nudges > maxNudges:
		return stop(event.ReasonFailed, "%d replies in a row were empty or cut by the output limit", r.Nudges)
	case s.stuck():
		return stop(event.ReasonStuck, "the same call brought the same result %d times: %s", r.Repeats.Most, r.Repeats.Worst)
	case s.Limits.Turns > 0 && r.Turn >= s.Limits.Turns:
		return stop(event.ReasonMaxTurns, "%d turns used of %d", r.Turn, s.Limits.Turns)
	}
	reason, detail := s.Spent()
	return event.Stopped{Reason: reason, Detail: detail}, reason != ""
}

// Spent returns which limit except turns the session has used up, and how; empty if none.
func (s *State) Spent() (reason event.Reason, detail string) {
	switch l := s.Limits; {
	case l.Cost > 0 && s.Total.Cost >= l.Cost:
		return event.ReasonBudget, fmt.Sprintf("$%.4f spent of $%.4f", s.Total.Cost, l.Cost)
	case l.Tokens > 0 && s.Total.tokens() >= l.Tokens:
		return event.ReasonMaxTokens, fmt.Sprintf("%d tokens used of %d", s.Total.tokens(), l.Tokens)
	case l.Seconds > 0 && s.Run.Used() >= l.Seconds:
		return event.ReasonMaxTime, fmt.Sprintf(timeUsed, s.Run.Used(), l.Seconds)
	}
	return "", ""
}

const timeUsed = "%.0f seconds used of %.0f"

// reasonOf returns why a run ends whose model request failed.
func reasonOf(cause llm.Kind) event.Reason {
	switch cause {
	case llm.KindRefused:
		return event.ReasonRefused
	case llm.KindBudget:
		return event.ReasonBudget
	}
	return event.ReasonFailed
}

// nudge returns what the model must hear before it is asked again, and why; empty if nothing.
func (s *State) nudge() (text string, why event.Why) {
	r := &s.Run
	switch {
	case r.Reply == replyEmpty:
		return "Your reply was empty. Go on with the task, or say in words that it is finished.", event.WhyReply
	case r.Reply == replyThought:
		return "Your reply had thoughts and nothing else, which nobody sees. Give your answer as text, or go on with the task.", event.WhyReply
	case r.Reply == replySpoken:
		return "Nothing was called: your reply has what looks like a call of a tool in its text, and that runs nothing. If it is still to be " +
			"done, make the call now in the way that your tools are called, or write it alone, without a code block and with nothing behind it. " +
			"If no call was meant, give your answer again.", event.WhyReply
	case r.Reply == replyLength:
		return "Your reply was cut by the output limit. Go on exactly where it stopped.", event.WhyReply
	case r.Reply == replyCut:
		return "Your reply was cut. Go on exactly where it stopped.", event.WhyReply
	case s.repeating():
		return fmt.Sprintf("You have made the same call %d times and it brought the same result each time: %s. "+
			"Making it again will change nothing. Try something different, or say what stands in the way.",
			r.Repeats.Most, r.Repeats.Worst), event.WhyRepeats
	}
	return "", ""
}

// stuck reports whether the same call has brought the same result too often.
func (s *State) stuck() bool {
	return s.Levers.Repeats != event.LeverOff && s.Run.Repeats.Most >= s.Levers.Repeats.Strength(stuckAt)
}

// repeating reports whether the model must be told that it repeats itself.
func (s *State) repeating() bool {
	r := &s.Run
	unusable := []replyKind{replyEmpty, replyThought, replySpoken, replyLength, replyCut}
	return r.Repeats.Most >= steerAt && !r.Repeats.Warned && s.Levers.Repeats != event.LeverOff && !slices.Contains(unusable, r.Reply)
}
