package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Next is the next action. The driver performs it, appends the outcome, and asks again.
type Next interface{ next() }

// Ask means: send [State.Request] to the model, but not before the given time. Append Asked, then Replied or Failed.
type Ask struct {
	Turn      int
	NotBefore time.Time // zero means now
	WaitCause llm.Kind  // why it waits
}

// Heal means: the model refused the conversation. Append the body and continue.
type Heal struct{ Healed event.Healed }

// Compact means: shorten the conversation. Append the event from [State.Compacted], or Kept if that fails.
type Compact struct {
	Why   event.Compaction
	Focus string // the subject that matters most; empty means all of it
}

// Prune means: cut old results short. Append the body and continue.
type Prune struct{ Pruned event.Pruned }

// Judge means: get a verdict on each call. Append Judged for each, or Ended for one that can't run.
type Judge struct{ Calls []Call }

// RunCalls means: start these calls in addition to the running ones, or the first of them if not all fit. Append
// Started before a call starts and Ended when it ends.
type RunCalls struct{ Calls []Call }

// End means: these calls will not run. Append the bodies.
type End struct{ Ended []event.Ended }

// Steer means: tell the model something. Append the body.
type Steer struct{ Steered event.Steered }

// Await means: wait until a call ends or the log grows. Either no call can start while others run, or the model has
// given its final answer and background children or jobs are still running.
type Await struct{}

// Wait means: nothing can be done before an input arrives. Calls are those that wait for a decision. If there are none,
// the session waits for a message. Calls that are still running wait for decisions on their nested calls.
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
func (Await) next()    {}
func (Wait) next()     {}
func (Stop) next()     {}

// maxNudges is how many unusable replies in a row get a nudge before the run fails.
const maxNudges = 3

// By is the author of the loop's own events, such as messages to the model.
const By = "inspan"

// Next returns the next action. It changes nothing.
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
	if text := s.jobNews(); text != "" && !s.Run.Asking && !s.Run.Cancelled {
		return Steer{steer(text, WhyEnded)}
	}
	if stop, over := s.stopDue(); over {
		if stop.Reason == event.ReasonDone {
			if len(s.Arrivals) > 0 { // after this message, the first of them is admitted
				return Steer{steer("These messages waited for room in the context window:", WhyArrived)}
			}
			if steered, more := s.gate(); more {
				return Steer{steered}
			}
			if s.hasBackgroundChildren() || s.awaitsJobs() {
				return Await{}
			}
		}
		stop.Digest = s.Digest()
		return Stop{stop}
	}
	if text, why := s.nudge(); text != "" {
		return Steer{steer(text, why)}
	}
	if text := s.budgetWarning(); text != "" {
		return Steer{steer(text, WhyBudget)}
	}
	if pruned, ok := s.pruning(); ok {
		return Prune{pruned}
	}
	if s.full() {
		return Compact{Why: CompactWindow}
	}
	if pruned, ok := s.lastPruning(); ok {
		return Prune{pruned}
	}
	return s.ask()
}

// maxOffered bounds the calls that a table offers to start at a time. More may be ready.
const maxOffered = 16

// nextCall returns the next action while the last reply has unfinished calls.
func (s *State) nextCall() Next {
	if ends := s.endsOfUnrun(s.calls); len(ends) > 0 {
		return End{ends}
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

// endsOfUnrun returns the ends of calls that will not run, nested ones too.
func (s *State) endsOfUnrun(t *table) []event.Ended {
	var ends []event.Ended
	for c := range t.callers {
		ends = append(ends, s.endsOfUnrun(c.nestedTable)...)
	}
	if !s.Run.Cancelled && t.in[phaseLost]+t.in[phaseCut]+t.in[phaseDenied] == 0 {
		return ends
	}
	for i := range t.calls {
		c := &t.calls[i]
		end, ok := s.endUnrun(*c)
		if !ok {
			continue
		}
		ends = append(append(ends, s.attributeEnds(c.Unfinished())...), end)
	}
	return ends
}

// attributeEnds makes the ends of nested calls that did not run say who stopped them.
func (s *State) attributeEnds(ends []event.Ended) []event.Ended {
	for i := range ends {
		if s.Run.Cancelled && !s.Run.OutOfTime && ends[i].Outcome == event.OutcomeCancelled {
			ends[i].Parts = llm.Say("Not run: " + s.interruption() + ".")
		}
	}
	return ends
}

// endUnrun returns the end of a call that will not run; false if the call runs, may still run or has ended.
func (s *State) endUnrun(c Call) (event.Ended, bool) {
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
		return end(event.OutcomeCancelled, "Stopped before it finished: "+s.interruption()+"."+c.Account())
	case s.Run.OutOfTime && c.Begun:
		return end(event.OutcomeUnknown,
			"Outcome unknown: the program ended while this call ran, and the run's time was used up before the call could run again.")
	case s.Run.OutOfTime:
		return end(event.OutcomeCancelled, "Not run: the time of the run is used up.")
	case s.Run.Cancelled && c.Begun:
		return end(event.OutcomeUnknown,
			"Outcome unknown: the program ended while this call ran. Before it could run again, "+s.interruption()+".")
	case s.Run.Cancelled:
		return end(event.OutcomeCancelled, "Not run: "+s.interruption()+".")
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

// stopDue returns how the run ends, and whether it is over.
func (s *State) stopDue() (event.Stopped, bool) {
	r := &s.Run
	stop := func(reason event.Reason, format string, args ...any) (event.Stopped, bool) {
		return event.Stopped{Reason: reason, Detail: fmt.Sprintf(format, args...)}, true
	}
	switch {
	case r.OutOfTime && (r.Reply != replyAnswer || s.hasBackgroundChildren() || s.awaitsJobs()):
		return stop(event.ReasonMaxTime, timeUsed, r.Used(), s.Limits.Seconds)
	case r.BreakerReason != "":
		return stop(event.ReasonRate, "%s", r.BreakerReason)
	case r.Cancelled && !r.OutOfTime:
		return stop(event.ReasonCancelled, "%s", r.HookDenial)
	case r.Failed != nil:
		return event.Stopped{Reason: reasonOf(r.Failed.Cause), Cause: r.Failed.Cause, Detail: r.Failed.Message}, true
	case r.Reply == replyRefusal:
		return stop(event.ReasonRefused, "the model declined to answer")
	case r.Reply == replyAnswer:
		return stop(event.ReasonDone, "")
	case r.Reply == replyWindow:
		return stop(event.ReasonFailed, "the context window is full; the reply was cut")
	case r.Nudges > maxNudges && r.Reply == replyThought:
		return stop(event.ReasonFailed, "the model sent only reasoning, even when asked again for an answer; its reasoning: %s", r.Thought)
	case r.Nudges > maxNudges:
		return stop(event.ReasonFailed, "%d replies in a row were empty or cut by the output limit", r.Nudges)
	case s.stuck():
		return stop(event.ReasonStuck, "the same call returned the same result %d times: %s", r.Repeats.Most, r.Repeats.Worst)
	case s.Limits.Turns > 0 && r.Turn >= s.Limits.Turns:
		return stop(event.ReasonMaxTurns, "%d turns used of %d", r.Turn, s.Limits.Turns)
	}
	reason, detail := s.Spent()
	return event.Stopped{Reason: reason, Detail: detail}, reason != ""
}

// Spent returns which limit of cost, tokens or time is used up, and the figures; empty if none is.
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

// reasonOf returns the reason why a run stops after a failed request.
func reasonOf(cause llm.Kind) event.Reason {
	switch cause {
	case llm.KindRefused:
		return event.ReasonRefused
	case llm.KindBudget:
		return event.ReasonBudget
	}
	return event.ReasonFailed
}

// nudge returns the message to a model whose last reply was unusable or that repeats itself; otherwise empty.
func (s *State) nudge() (text string, why event.Why) {
	r := &s.Run
	switch {
	case r.Reply == replyEmpty:
		return "Your reply was empty. Continue with the task, or say that it is finished.", WhyReply
	case r.Reply == replyThought:
		return "Your reply contained only reasoning, which the user can't see. Answer in text, or continue with the task.", WhyReply
	case r.Reply == replyCallAsText:
		return "No tool was called: your reply contains what looks like a tool call, but as text. To make the call, use the format in which " +
			"your tools are called, or write the call alone, without a code block and with no text after it. " +
			"If you meant no call, give your answer again.", WhyReply
	case r.Reply == replyLength:
		return "Your reply was cut by the output limit. Continue exactly where it stopped.", WhyReply
	case r.Reply == replyCut:
		return "Your reply was cut. Continue exactly where it stopped.", WhyReply
	case s.repeating():
		return fmt.Sprintf("You have made the same call %d times, and it returned the same result each time: %s. "+
			"Repeating it will change nothing. Try something different, or say what blocks you.",
			r.Repeats.Most, r.Repeats.Worst), WhyRepeats
	}
	return "", ""
}

// stuck reports whether the same call has returned the same result too often.
func (s *State) stuck() bool {
	return s.Levers.Repeats != "off" && s.Run.Repeats.Most >= s.Levers.Repeats.Strength(stuckAt)
}

// repeating reports whether the model must be warned that it repeats itself.
func (s *State) repeating() bool {
	r := &s.Run
	unusable := []replyKind{replyEmpty, replyThought, replyCallAsText, replyLength, replyCut}
	return r.Repeats.Most >= steerAt && !r.Repeats.Warned && s.Levers.Repeats != "off" && !slices.Contains(unusable, r.Reply)
}
