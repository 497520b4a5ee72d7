package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
)

// toolOf returns the tool that a question is about; empty if unknown.
func toolOf(q *transcript.Question) string {
	switch {
	case q.Call != nil:
		return q.Call.Call.Name
	case q.Raised != nil:
		return q.Raised.Tool
	}
	return ""
}

// answeredElsewhere says how a question was settled without an answer from here.
func answeredElsewhere(q *transcript.Question, d event.Decided) string {
	name := cmp.Or(toolOf(q), "the question")
	by := words.AnsweredBy(d)
	switch {
	case by == words.TooLate("").Reason:
		return name + ": " + by
	case d.Answer != "":
		return by + ": " + d.Answer
	case d.Allow:
		return by + ": " + name + " is allowed"
	}
	return by + ": " + name + " is denied"
}

// summary returns the line that ends a run.
func summary(s *transcript.Stop) string {
	fields := []string{strings.ReplaceAll(string(s.Stopped.Reason), "_", " "), text.Count(s.Turns, "turn"), clock(s.Took)}
	if s.Cost > 0 {
		fields = append(fields, words.Dollars(s.Cost))
	}
	return strings.Join(fields, " · ")
}

// clock formats a duration in a few characters.
func clock(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// ago formats the time since a moment.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// shortAge is ago for a narrow column.
func shortAge(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
