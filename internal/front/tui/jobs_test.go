package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// twoJobs are jobs of a session, one of which runs.
type twoJobs struct{ killed []string }

func (*twoJobs) List() []Job {
	return []Job{
		{ID: "1", Command: "make\nall", State: "running for 3s", Running: true},
		{ID: "2", Command: "true \x1b[2J", State: "ended after 1s with exit code 0"},
	}
}

func (j *twoJobs) Background() int { return 0 }

func (j *twoJobs) Kill(_ context.Context, id string) error {
	if id != "1" {
		return errors.New("there is no job \"" + id + "\"")
	}
	j.killed = append(j.killed, id)
	return nil
}

func TestJobs(t *testing.T) {
	for _, tc := range []struct {
		args   string
		shows  []string
		killed int
	}{
		{"", []string{"1  running for 3s", "make all", "2  ended after 1s with exit code 0", "/jobs kill ID"}, 0},
		{"kill 1", []string{"job 1 killed"}, 1},
		{"kill  1 ", []string{"job 1 killed"}, 1},
		{"kill 7", []string{`! there is no job "7"`}, 0},
		{"kill", []string{"use /jobs, or /jobs kill ID"}, 0},
		{"kill 1 2", []string{"use /jobs, or /jobs kill ID"}, 0},
		{"stop 1", []string{"use /jobs, or /jobs kill ID"}, 0},
	} {
		t.Run(tc.args, func(t *testing.T) {
			jobs := &twoJobs{}
			m := still(t, 80, 24, look{noColor: true}, nil)
			comes(m, m.commands.jobsOf(jobs, tc.args))
			got := drawn(m)
			for _, want := range tc.shows {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing:\n%s", want, got)
				}
			}
			if len(jobs.killed) != tc.killed || strings.Contains(got, "\x1b") {
				t.Errorf("killed %v\n%s", jobs.killed, got)
			}
		})
	}
}

// TestJobsThatNobodyKnows checks the list if only the events are known.
func TestJobsThatNobodyKnows(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, nil)
	m.Jobs = func(string) Jobs { t.Error("asked without a session"); return nil }
	comes(m, m.command("jobs", ""))
	if got := drawn(m); !strings.Contains(got, "no background jobs were started") {
		t.Error(got)
	}
	m.talk.view.jobs = []string{"sleep 60"}
	comes(m, m.command("jobs", ""))
	if got := drawn(m); !strings.Contains(got, "sleep 60") {
		t.Error(got)
	}
	if m.command("jobs", "kill 1"); !strings.Contains(m.hints.text, "no jobs that can be killed") {
		t.Errorf("%q", m.hints.text)
	}
	var none twoJobs
	if comes(m, m.commands.jobsOf(empty{&none}, "")); !strings.Contains(drawn(m), "no background jobs") {
		t.Error(drawn(m))
	}
}

// TestJobsOutliveChanges checks that a change which starts the tools of a session anew says so instead of ending its jobs.
func TestJobsOutliveChanges(t *testing.T) {
	var jobs twoJobs
	if got := wouldEnd(&jobs); got != "this would end job 1, make all; wait for it, or use /jobs kill 1 first" {
		t.Error(got)
	}
	if got := wouldEnd(empty{&jobs}) + wouldEnd(nil); got != "" {
		t.Error(got)
	}
}

type empty struct{ *twoJobs }

func (empty) List() []Job { return nil }

func (empty) Background() int { return 0 }
