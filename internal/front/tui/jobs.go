package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/words"
)

// Jobs are the commands that go on in the background of one session. Its methods
// may be called from any goroutine.
type Jobs interface {
	// List returns them in the order they were started, those that have ended among
	// them.
	List() []Job
	// Kill ends one with all that it has started, and returns when that is gone. That
	// one has ended already is no error; that there is none of the id is.
	Kill(ctx context.Context, id string) error
}

// Job is one command in the background.
type Job struct {
	ID      string
	Command string
	State   string // in words: "running for 3s", "ended after 2s with exit code 0"
}

// jobs lists what goes on in the background, or ends one of it.
func (c *commander) jobs(args string) tea.Cmd { return c.jobsOf(c.background(), args) }

func (c *commander) jobsOf(jobs Jobs, args string) tea.Cmd {
	verb, id, _ := strings.Cut(args, " ")
	id = strings.TrimSpace(id)
	switch {
	case args == "":
		return c.talk.work(listJobs(jobs, c.talk.view.jobs), c.print)
	case verb != "kill" || id == "" || strings.Contains(id, " "):
		c.hints.say("use /jobs, or /jobs kill ID")
		return nil
	case jobs == nil:
		c.hints.say("this session has no jobs that can be killed here")
		return nil
	}
	return c.talk.work(func(ctx context.Context) (string, error) {
		return "job " + words.OneLine(id, 40) + " killed", jobs.Kill(ctx, id)
	}, c.print)
}

// background are the jobs of the session that is open; nil: nothing is known of
// them.
func (c *commander) background() Jobs {
	id := c.talk.runner.id()
	if c.tui.Jobs == nil || id == "" {
		return nil
	}
	return c.tui.Jobs(id)
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

// startedJobs tells what was started, for want of what has become of it.
func startedJobs(started []string) string {
	if len(started) == 0 {
		return "no background jobs were started"
	}
	return "Background jobs of this session; the model can read them, write to them and kill them:\n  " + strings.Join(started, "\n  ")
}
