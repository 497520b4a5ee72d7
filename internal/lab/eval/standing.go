package eval

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Standing is the state of a run for a person. For held-out tasks it shows only which trials are done.
type Standing struct {
	Run     string         `json:"run"`
	Suite   string         `json:"suite"`
	Config  string         `json:"config"`
	Model   string         `json:"model,omitempty"`
	Began   time.Time      `json:"began"`
	Working bool           `json:"working" jsonschema:"a process performs it now"`
	HeldOut bool           `json:"held_out,omitempty" jsonschema:"then passed and failed trials are not told apart"`
	All     int            `json:"all" jsonschema:"trials that it is to have"`
	Counts  map[string]int `json:"counts" jsonschema:"trials by state: passed, failed, broken, done, running or open"`
	Cost    float64        `json:"cost" jsonschema:"US dollars of what has ended"`
	Budget  float64        `json:"budget,omitempty" jsonschema:"US dollars; 0: no limit"`
	Until   *time.Time     `json:"until,omitempty" jsonschema:"when its time is over"`
	Left    float64        `json:"left,omitempty" jsonschema:"seconds that it may still take, from how long trials took so far"`
	Tasks   []StandingTask `json:"tasks,omitempty"`
}

// StandingTask is a task of a run.
type StandingTask struct {
	Task  string        `json:"task"`
	Tries []StandingTry `json:"tries"`
}

// StandingTry is one trial of it.
type StandingTry struct {
	State   string `json:"state" jsonschema:"passed, failed, broken, done, running or open"`
	Session string `json:"session,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// The rest is of trials that have ended, except held-out ones.
	Cost    float64 `json:"cost,omitempty" jsonschema:"US dollars"`
	Seconds float64 `json:"seconds,omitempty"`
	Checks  []Check `json:"checks,omitempty" jsonschema:"of the graders"`
	Printed string  `json:"printed,omitempty" jsonschema:"the end of the output of a checker that failed"`
}

// mostShown is how much of a checker's output is shown of each trial.
const mostShown = 1000

// The states of trials in addition to the outcomes.
const (
	tryDone    = "done" // held out
	tryRunning = "running"
	tryOpen    = "open"
)

// bounds are the limits of the current work on a run, in boundsFile.
type bounds struct {
	Began  time.Time `json:"began"`
	Jobs   int       `json:"jobs"`
	Budget float64   `json:"budget,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

const boundsFile = "bounds.json"

// noteBounds records the limits of the work, for those who look at the run meanwhile.
func (w *work) noteBounds() error {
	b := bounds{Began: time.Now().UTC(), Jobs: max(1, w.Jobs), Budget: max(w.Budget, 0)}
	if w.Time > 0 {
		b.Until = b.Began.Add(w.Time)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return keep.Write(w.folder.path(w.h.ID, boundsFile), raw)
}

// working reports whether a process works on a run. A process that begins just then waits for this check.
func (f Folder) working(id string) bool {
	lock, err := os.Open(f.path(id, lockFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer lock.Close()
	free, _ := keep.TryLock(lock, true)
	_ = keep.Unlock(lock)
	return !free
}

// Standing returns the current state of a run; the id is as for [Folder.Open].
func (f Folder) Standing(_ context.Context, id string) (s Standing, err error) {
	run, err := f.Open(id)
	if err != nil {
		return s, err
	}
	h, err := f.header(run.ID)
	if err != nil {
		return s, err
	}
	claims, err := readLines[claim](f.path(run.ID, claimsFile))
	if err != nil {
		return s, err
	}
	s = Standing{
		Run: run.ID, Suite: run.Suite, Config: run.Config, Model: run.Model, Began: run.Began, HeldOut: run.Split == HeldOut,
		Working: f.working(run.ID), All: len(h.Tasks) * max(1, run.Tries), Counts: map[string]int{}, Budget: h.Budget,
	}
	var b bounds
	if raw, err := keep.Read(f.path(run.ID, boundsFile)); err == nil && json.Unmarshal(raw, &b) == nil {
		if s.Budget = b.Budget; s.Working && !b.Until.IsZero() {
			s.Until = &b.Until
		}
	}
	states := s.states(run, claims)
	tasks := slices.Clone(h.Tasks)
	slices.Sort(tasks)
	for _, task := range tasks {
		t := StandingTask{Task: task}
		for try := 1; try <= max(1, run.Tries); try++ {
			one := states[claimKey{task, try}]
			if one.State == "" {
				one.State = tryOpen
			}
			s.Counts[one.State]++
			t.Tries = append(t.Tries, one)
		}
		s.Tasks = append(s.Tasks, t)
	}
	if left := s.Counts[tryOpen] + s.Counts[tryRunning]; s.Working && s.Left > 0 {
		s.Left *= float64(left) / float64(min(max(1, b.Jobs), max(1, left)))
	} else {
		s.Left = 0
	}
	return s, nil
}

// states returns the states of the trials that have begun, and adds up their costs. Left is the average
// duration of one.
func (s *Standing) states(run *Run, claims []claim) map[claimKey]StandingTry {
	states, timed := map[claimKey]StandingTry{}, 0.0
	for _, c := range claims { // the last of a trial counts
		s.Cost += c.Cost
		if c.Broken == "" && !c.Void && s.Working {
			states[claimKey{c.Task, c.Try}] = StandingTry{State: tryRunning, Session: c.Session}
		} else {
			delete(states, claimKey{c.Task, c.Try})
		}
	}
	for i := range run.Trials {
		t := &run.Trials[i]
		one := StandingTry{State: string(t.Outcome), Session: t.Session, Reason: t.Reason, Cost: t.Cost, Seconds: t.Seconds, Checks: t.Checks}
		if t.Outcome == Failed {
			one.Printed = strings.ToValidUTF8(t.Printed[max(0, len(t.Printed)-mostShown):], "")
		}
		if s.HeldOut && t.Outcome != Broken {
			one = StandingTry{State: tryDone}
		}
		states[claimKey{t.Task, t.Try}] = one
		if !t.Cached && t.Outcome != Broken { // as in [work.count]
			s.Cost += t.Cost
			s.Left += t.Seconds
			timed++
		}
	}
	s.Left /= max(1, timed)
	return states
}

// Recent returns the last runs, newest first, without their tasks.
func (f Folder) Recent(ctx context.Context, most int) ([]Standing, error) {
	ids, err := f.IDs()
	if err != nil {
		return nil, err
	}
	list := []Standing{}
	for _, id := range slices.Backward(ids[max(0, len(ids)-most):]) {
		s, err := f.Standing(ctx, id)
		if err != nil {
			return nil, err
		}
		s.Tasks = nil
		list = append(list, s)
	}
	return list, nil
}
