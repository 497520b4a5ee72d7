package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/words"
)

// Jobs are the background commands of one session. Its methods may be called from any goroutine.
type Jobs interface {
	// List returns them in the order of their starts, including those that have ended.
	List() []Job
	// Kill ends one with all of its processes, and returns when they are gone. It is not an error if the job
	// has ended already; an unknown id is.
	Kill(ctx context.Context, id string) error
	// Background sends the running commands to the background, and returns how many they are. It returns at once.
	Background() int
}

// Job is one background command.
type Job struct {
	ID      string
	Command string
	State   string // in words: "running for 3s", "ended after 2s with exit code 0"
	Running bool
}

// jobs lists the background jobs, or ends one of them.
func (c *commander) jobs(args string) tea.Cmd { return c.jobsOf(c.talk.background(), args) }

func (c *commander) jobsOf(jobs Jobs, args string) tea.Cmd {
	verb, id, _ := strings.Cut(args, " ")
	id = strings.TrimSpace(id)
	switch {
	case args == "":
		return c.talk.work(listJobs(jobs, c.talk.view.jobs), c.showText)
	case verb != "kill" || id == "" || strings.Contains(id, " "):
		c.hints.say("use /jobs, or /jobs kill ID")
		return nil
	case jobs == nil:
		c.hints.say("this session has no jobs that can be killed here")
		return nil
	}
	return c.talk.work(func(ctx context.Context) (string, error) {
		return "job " + words.OneLine(id, 40) + " killed", jobs.Kill(ctx, id)
	}, c.showText)
}

// background returns the jobs of the open session; nil if nothing is known about them.
func (t *talk) background() Jobs {
	id := t.runner.id()
	if t.tui.Jobs == nil || id == "" {
		return nil
	}
	return t.tui.Jobs(id)
}

// wouldEnd says which jobs end with the tools of a session; empty if none runs.
func wouldEnd(jobs Jobs) string {
	if jobs == nil {
		return ""
	}
	for _, j := range jobs.List() {
		if j.Running {
			return fmt.Sprintf("this would end job %s, %s; wait for it, or use /jobs kill %s first",
				words.OneLine(j.ID, 40), words.OneLine(j.Command, 60), words.OneLine(j.ID, 40))
		}
	}
	return ""
}

func listJobs(jobs Jobs, started []string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if jobs == nil {
			return startedJobs(started), nil
		}
		var b strings.Builder
		for _, j := range jobs.List() {
			fmt.Fprintf(&b, "%s  %s\t%s\n", j.ID, j.State, words.OneLine(j.Command, 200))
		}
		if b.Len() == 0 {
			return "no background jobs", nil
		}
		return b.String() + "/jobs kill ID kills one. The model can also read them, write to them and kill them.", nil
	}
}

// startedJobs lists what was started, if nothing more is known.
func startedJobs(started []string) string {
	if len(started) == 0 {
		return "no background jobs were started"
	}
	return "Background jobs of this session; the model can read them, write to them and kill them:\n  " + strings.Join(started, "\n  ")
}
