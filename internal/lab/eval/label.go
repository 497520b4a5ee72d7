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

// Label is a person's verdict on a trial.
type Label struct {
	Time   time.Time `json:"time"`
	Task   string    `json:"task"`
	Try    int       `json:"try"`
	Passed bool      `json:"passed"`
	By     string    `json:"by,omitempty"`
}

// Label stores a person's verdict on a trial of a run. The last one counts.
func (f Folder) Label(ctx context.Context, run *Run, l Label) error {
	if !slices.ContainsFunc(run.Trials, func(t Trial) bool { return t.Task == l.Task && t.Try == l.Try }) {
		return words.Misuse{Err: fmt.Errorf("run %s has no trial of task %s with try %d", run.ID, words.OneLine(l.Task, 100), l.Try)}
	}
	l.Time = time.Now().UTC().Round(0)
	return appendLine(ctx, f.path(run.ID, labelsFile), l)
}

// Labels returns people's verdicts on the trials of a run, the last one for each.
func (f Folder) Labels(run *Run) (map[string]Label, error) {
	list, err := readLines[Label](f.path(run.ID, labelsFile))
	last := map[string]Label{}
	for _, l := range list {
		last[trialKey(l.Task, l.Try)] = l
	}
	return last, err
}

func trialKey(task string, try int) string { return fmt.Sprint(task, "#", try) }

// Agreement is how often a grader agrees with people.
type Agreement struct {
	Grader string  `json:"grader"` // "the checker" decides the outcome
	Both   int     `json:"both"`   // passed by people and the grader
	None   int     `json:"none"`   // passed by neither
	Lax    int     `json:"lax"`    // passed only by the grader
	Strict int     `json:"strict"` // passed only by people
	Share  float64 `json:"share"`  // of agreement
	// Kappa is Cohen's: 1 is full agreement, 0 is agreement by chance.
	Kappa float64 `json:"kappa"`
}

// Outcomes is the name that [Calibrate] gives to the outcome of trials.
const Outcomes = "the outcome"

// Calibrate compares graders with people's verdicts on the same trials. Only trials with a label count and are not
// [Broken].
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
	if math.IsNaN(a.Kappa) { // all of one kind: they necessarily agree
		a.Kappa = 1
	}
}
