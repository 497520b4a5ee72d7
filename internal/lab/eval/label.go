package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/internal/view/words"
)

// Label is what a person says of a trial.
type Label struct {
	Time   time.Time `json:"time"`
	Task   string    `json:"task"`
	Try    int       `json:"try"`
	Passed bool      `json:"passed"`
	By     string    `json:"by,omitempty"`
}

// Label keeps what a person says of a trial of a run. The last word counts.
func (f Folder) Label(ctx context.Context, run *Run, l Label) error {
	if !slices.ContainsFunc(run.Trials, func(t Trial) bool { return t.Task == l.Task && t.Try == l.Try }) {
		return words.Misuse{Err: fmt.Errorf("run %s has no trial of task %s with try %d", run.ID, words.OneLine(l.Task, 100), l.Try)}
	}
	l.Time = time.Now().UTC().Round(0)
	return appendLine(ctx, f.path(run.ID, labelsFile), l)
}

// Labels are what people have said of the trials of a run, the last word for each.
func (f Folder) Labels(run *Run) (map[string]Label, error) {
	list, err := readLines[Label](f.path(run.ID, labelsFile))
	last := map[string]Label{}
	for _, l := range list {
		last[trialKey(l.Task, l.Try)] = l
	}
	return last, err
}

func trialKey(task string, try int) string { return fmt.Sprint(task, "#", try) }

// Agreement is how often a grader says what people say.
type Agreement struct {
	Grader string  `json:"grader"` // "the checker" is what decides the outcome
	Both   int     `json:"both"`   // that people and the grader let pass
	None   int     `json:"none"`   // that neither does
	Lax    int     `json:"lax"`    // that only the grader lets pass
	Strict int     `json:"strict"` // that only people let pass
	Share  float64 `json:"share"`  // in which they agree
	// Kappa is Cohen's: 1 is full agreement, 0 is what chance alone would bring.
	Kappa float64 `json:"kappa"`
}

// Outcomes is the name by which [Calibrate] has what decides the outcome of trials.
const Outcomes = "the outcome"

// Calibrate compares graders with what people say of the same trials. Only trials count that have a
// label and are not [Broken].
func Calibrate(run *Run, labels map[string]Label) (list []Agreement) {
	at := map[string]int{}
	add := func(grader string, says, person bool) {
		if _, known := at[grader]; !known {
			at[grader] = len(list)
			list = append(list, Agreement{Grader: grader})
		}
		a := &list[at[grader]]
		switch {
		case says && person:
			a.Both++
		case says:
			a.Lax++
		case person:
			a.Strict++
		default:
			a.None++
		}
	}
	for _, t := range run.Trials {
		l, ok := labels[trialKey(t.Task, t.Try)]
		if !ok || t.Outcome == Broken {
			continue
		}
		add(Outcomes, t.Outcome == Passed, l.Passed)
		for _, c := range t.Checks {
			add(c.Name, c.Passed, l.Passed)
		}
	}
	for i := range list {
		list[i].measure()
	}
	return list
}

func (a *Agreement) measure() {
	both, none, lax, strict := float64(a.Both), float64(a.None), float64(a.Lax), float64(a.Strict)
	a.Share = (both + none) / (both + none + lax + strict)
	a.Kappa, _ = stats.Kappa([][]int{{a.Both, a.Lax}, {a.Strict, a.None}}, 0.95)
	if math.IsNaN(a.Kappa) { // all is of one kind: they can't but agree
		a.Kappa = 1
	}
}
