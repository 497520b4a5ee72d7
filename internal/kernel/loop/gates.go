package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Reasons to steer.
const (
	WhyReply   event.Why = "reply"   // the reply was empty or cut
	WhyRepeats event.Why = "repeats" // the same call brings the same result
	WhyEnded   event.Why = "ended"   // jobs have ended
	WhyJobs    event.Why = "jobs"    // jobs are running beside a final answer
	WhyArrived event.Why = "arrived" // the first message of other agents comes in now, although the window has no room
	WhyLeft    event.Why = "left"    // processes left by commands run beside a final answer, and end with the run
	WhyTodo    event.Why = "todo"    // items of the to-do list are open
	WhyVerify  event.Why = "verify"  // files were changed and not checked
	WhyBudget  event.Why = "budget"  // turns, time, money or tokens run out
)

// A final answer passes gates before it ends the run. A gate asks the model about open work or missing evidence. All
// gates together ask at most maxRounds times in a run. The question about jobs does not count, and comes once for
// each job. If nothing has changed since a gate asked, the answer passes, so finished work costs one extra turn.
const (
	maxRounds = 2
	maxTask   = 1500 // bytes of the task that a gate repeats
	maxListed = 12   // files and items that a gate lists
)

// gate returns the message that the model gets instead of ending the run with its final answer, if any.
func (s *State) gate() (event.Steered, bool) {
	r := &s.Run
	if r.Reply != replyAnswer || r.Cancelled {
		return event.Steered{}, false
	}
	if e, ok := s.askAboutBackground(); ok {
		return e, true
	}
	if r.GateRounds >= maxRounds || s.hasBackgroundChildren() || s.awaitsJobs() {
		return event.Steered{}, false
	}
	var why []event.Why
	var texts []string
	if text := s.openTodos(); text != "" && s.Levers.Todo.Active(s.Unattended) {
		why, texts = append(why, WhyTodo), append(texts, text)
	}
	if text := s.uncheckedWork(); text != "" && s.Levers.Verify.Active(s.Unattended) {
		why, texts = append(why, WhyVerify), append(texts, text)
	}
	text := strings.Join(texts, "\n\n")
	return steer(text, why...), len(why) > 0 && text != r.LastGate
}

// steer returns a message from inspan itself to the model.
func steer(text string, why ...event.Why) event.Steered {
	return event.Steered{By: By, Origin: event.OriginHarness, Why: why, Parts: llm.Say(text)}
}

// recordSteer records messages of the harness, so that it doesn't repeat them.
func (s *State) recordSteer(b event.Steered) {
	if b.By != By {
		return
	}
	gates := false
	for _, why := range b.Why {
		switch why {
		case WhyEnded:
			s.UnreportedEnds = nil
		case WhyJobs:
			s.Jobs = slices.Clone(s.Jobs)
			for i := range s.Jobs {
				s.Jobs[i].Reported = true
			}
		case WhyLeft:
			s.LeftReported = true
		case WhyTodo, WhyVerify:
			gates = true
		case WhyBudget:
			s.Run.WarnedPercent = s.dueWarning()
		case WhyRepeats:
			s.Run.Repeats.Warned = true
		}
	}
	if gates {
		s.Run.GateRounds++
		s.Run.LastGate = b.Parts.Text()
	}
	if len(b.Why) == 0 && s.repeating() { // version 0.1 stored no reasons
		s.Run.Repeats.Warned = true
	}
}

// openTodos asks the model to finish the open items of its to-do list; empty if there are none.
func (s *State) openTodos() string {
	var open []string
	for _, t := range s.Todo {
		if t.State != tool.TodoDone {
			open = append(open, "- "+shortLine(t.Text))
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "Your todo list still has open items:\n" + strings.Join(abbreviate(open), "\n") +
		"\nDo them now. If an item is no longer needed, remove it from the list and say why."
}

// uncheckedWork asks the model to check its work: it names changed files without a later check, and the last check
// if it failed. It returns an empty text if there is nothing to check.
func (s *State) uncheckedWork() string {
	if len(s.Work.Unchecked) == 0 && !s.Run.CheckFailed {
		return ""
	}
	var names []string
	for _, path := range s.Work.Unchecked {
		names = append(names, text.Below(s.Root, path))
	}
	evidence := "No command has checked them since they were changed."
	if last, ok := s.lastCheck(); ok && last.Failed {
		evidence = fmt.Sprintf("The last check failed: %s, exit code %d.", shortLine(last.Command), last.Exit)
		if last.Line != "" {
			evidence += " It said: " + last.Line
		}
	}
	if len(names) > 0 {
		evidence = "Changed files: " + strings.Join(abbreviate(names), ", ") + ". " + evidence
	}
	return "Before you finish, read the task again:\n> " +
		strings.ReplaceAll(truncate(strings.TrimSpace(s.Asked()), maxTask), "\n", "\n> ") + "\n\n" + evidence +
		"\nRun a check for each part of the task, and fix any part that fails. If no check is possible, say so and answer again."
}

func (s *State) lastCheck() (Ran, bool) {
	for _, r := range slices.Backward(s.Work.Ran) {
		if r.Check {
			return r, true
		}
	}
	return Ran{}, false
}

// abbreviate shortens a list to its first entries and the number of the others.
func abbreviate(list []string) []string {
	if more := len(list) - maxListed; more > 0 {
		return append(slices.Clone(list[:maxListed]), fmt.Sprintf("and %d more", more))
	}
	return list
}

// warningLevels returns the percentages of a limit at which the model is warned.
func warningLevels() []int { return []int{50, 80, 95} }

// minTurnLimit is the smallest limit of turns that the model is warned about.
const minTurnLimit = 10

// share is how much of a limit is used up.
type share struct {
	used, limit float64
	format      string // of both values
}

func (s *State) shares() []share {
	l := s.Limits
	list := []share{
		{s.Total.Cost, l.Cost, "$%.2f of $%.2f"},
		{float64(s.Total.tokens()), float64(l.Tokens), "%.0f of %.0f tokens"},
		{s.Run.Used(), l.Seconds, "%.0f of %.0f seconds"},
	}
	if l.Turns >= minTurnLimit {
		list = append(list, share{float64(s.Run.Turn), float64(l.Turns), "%.0f of %.0f turns"})
	}
	return slices.DeleteFunc(list, func(sh share) bool { return sh.limit <= 0 })
}

// dueWarning returns the highest warning level that any limit has reached; 0 if none.
func (s *State) dueWarning() int {
	due := 0
	for _, sh := range s.shares() {
		for _, percent := range warningLevels() {
			if sh.used*100 >= sh.limit*float64(percent) {
				due = max(due, percent)
			}
		}
	}
	return due
}

// budgetWarning tells the model how much of its limits is used, whenever another warning level is reached; otherwise
// empty.
func (s *State) budgetWarning() string {
	due := s.dueWarning()
	if due <= s.Run.WarnedPercent || !s.Levers.Budget.Active(s.Unattended) {
		return ""
	}
	var used []string
	for _, sh := range s.shares() {
		if sh.used*100 >= sh.limit*float64(warningLevels()[0]) {
			used = append(used, fmt.Sprintf(sh.format, sh.used, sh.limit))
		}
	}
	text := "[used: " + strings.Join(used, ", ") + "]"
	switch {
	case due >= 95:
		return text + " Begin nothing new. Leave everything in a valid state, and answer now with what is done and what is left."
	case due >= 80:
		return text + " Finish what matters most, check it, and keep the last turns for leaving everything in a valid state."
	}
	return text
}
