package loop

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// A final answer passes gates before it ends the run. Each gate asks for evidence that the log lacks. All gates
// together ask at most maxRounds times in a run, apart from the question about jobs, which comes once for each job. A
// model that has done the work loses one turn at most.
const (
	maxRounds = 2
	maxTask   = 1500 // bytes of the task that a gate repeats
	maxNamed  = 12   // files and items that a gate names
)

// gate returns what the model must hear before its final answer ends the run.
func (s *State) gate() (event.Steered, bool) {
	r := &s.Run
	if r.Reply != replyAnswer || r.Cancelled {
		return event.Steered{}, false
	}
	if e, ok := s.stays(); ok {
		return e, true
	}
	if r.Gates >= maxRounds || s.awaiting() || s.awaitsJobs() {
		return event.Steered{}, false
	}
	var why []event.Why
	var texts []string
	if text := s.undone(); text != "" && s.Levers.Todo.Active(s.Unattended) {
		why, texts = append(why, event.WhyTodo), append(texts, text)
	}
	if text := s.unproven(); text != "" && s.Levers.Verify.Active(s.Unattended) {
		why, texts = append(why, event.WhyVerify), append(texts, text)
	}
	text := strings.Join(texts, "\n\n")
	return steer(text, why...), len(why) > 0 && text != r.Gate // it may end if nothing has changed since the gate asked
}

// steer is a message to the model by the harness itself.
func steer(text string, why ...event.Why) event.Steered {
	return event.Steered{By: By, Origin: event.OriginHarness, Why: why, Parts: llm.Say(text)}
}

// told records what the harness has told the model.
func (s *State) told(b event.Steered) {
	if b.By != By {
		return
	}
	gates := false
	for _, why := range b.Why {
		switch why {
		case event.WhyEnded:
			s.Untold = nil
		case event.WhyJobs:
			s.Jobs = slices.Clone(s.Jobs)
			for i := range s.Jobs {
				s.Jobs[i].Shown = true
			}
		case event.WhyLeft:
			s.BusyTold = true
		case event.WhyTodo, event.WhyVerify:
			gates = true
		case event.WhyBudget:
			s.Run.Warned = s.spent()
		case event.WhyRepeats:
			s.Run.Repeats.Warned = true
		}
	}
	if gates {
		s.Run.Gates++
		s.Run.Gate = b.Parts.Text()
	}
	if len(b.Why) == 0 && s.repeating() { // in the form of version 0.1
		s.Run.Repeats.Warned = true
	}
}

// undone lists the open items of the to-do list.
func (s *State) undone() string {
	var open []string
	for _, t := range s.Todo {
		if t.State != tool.TodoDone {
			open = append(open, "- "+opening(t.Text))
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "Your todo list still has open items:\n" + strings.Join(most(open), "\n") +
		"\nDo them now. If one is not needed, take it off the list and say why."
}

// unproven names what was changed and not checked since, or the last check of the run if it failed.
func (s *State) unproven() string {
	if len(s.Work.Unchecked) == 0 && !s.Run.Broken {
		return ""
	}
	var names []string
	for _, path := range s.Work.Unchecked {
		if rel, err := filepath.Rel(s.Root, path); err == nil && tool.Inside(s.Root, path) {
			path = rel
		}
		names = append(names, path)
	}
	shown := "No command has checked them since they were changed."
	if last, ok := s.lastCheck(); ok && last.Failed {
		shown = fmt.Sprintf("The last check failed: %s, exit code %d.", opening(last.Command), last.Exit)
		if last.Line != "" {
			shown += " It said: " + last.Line
		}
	}
	if len(names) > 0 {
		shown = "Changed files: " + strings.Join(most(names), ", ") + ". " + shown
	}
	return "Before you finish: the task was, word for word:\n> " +
		strings.ReplaceAll(cut(strings.TrimSpace(s.Asked()), maxTask), "\n", "\n> ") + "\n\n" + shown +
		"\nRun what proves that each part of the task is done, and mend what is not. If nothing can check it, answer again and say so."
}

func (s *State) lastCheck() (Ran, bool) {
	for _, r := range slices.Backward(s.Work.Ran) {
		if r.Check {
			return r, true
		}
	}
	return Ran{}, false
}

// most returns as much of a list as a gate names.
func most(list []string) []string {
	if more := len(list) - maxNamed; more > 0 {
		return append(slices.Clone(list[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return list
}

// Shares of a limit, in percent, at which the model is told what is left.
func warnings() []int { return []int{50, 80, 95} }

// leastLimit is the smallest limit of turns that the model is told about.
const leastLimit = 10

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
	if l.Turns >= leastLimit {
		list = append(list, share{float64(s.Run.Turn), float64(l.Turns), "%.0f of %.0f turns"})
	}
	return slices.DeleteFunc(list, func(sh share) bool { return sh.limit <= 0 })
}

// spent returns the highest warning that is due; 0 if none.
func (s *State) spent() int {
	due := 0
	for _, sh := range s.shares() {
		for _, percent := range warnings() {
			if sh.used*100 >= sh.limit*float64(percent) {
				due = max(due, percent)
			}
		}
	}
	return due
}

// budget says what is left of the limits whenever another warning level is reached; empty if the model knows.
func (s *State) budget() string {
	due := s.spent()
	if due <= s.Run.Warned || !s.Levers.Budget.Active(s.Unattended) {
		return ""
	}
	var used []string
	for _, sh := range s.shares() {
		if sh.used*100 >= sh.limit*float64(warnings()[0]) {
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
