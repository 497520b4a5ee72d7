package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/feed"
	"github.com/inspan/inspan/tool"
)

//go:embed jobs.md
var jobsDoc string

type jobsArgs struct {
	Action string  `json:"action" jsonschema:"list, read, feed or kill"`
	ID     string  `json:"id,omitempty" jsonschema:"the job, for all actions but list"`
	Input  *string `json:"input,omitempty" jsonschema:"for feed: text for the job's standard input, sent as it is; leave out to close the input"`
}

func jobs(sh *Shell) tool.Tool {
	t := tool.New("jobs", jobsDoc, sh.runJobs)
	t.Effects = jobsEffects
	return t
}

// jobsEffects: what is fed to a job is executed by it. Looking at jobs of the
// session, and ending them, touches nothing else.
func jobsEffects(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
	in, err := tool.Args[jobsArgs](c)
	if err != nil {
		return nil, err
	}
	if in.Action != "feed" {
		return []tool.Effect{}, nil
	}
	text := ""
	if in.Input != nil {
		text = *in.Input
	}
	return []tool.Effect{{Kind: tool.Execute, Text: text}}, nil
}

func (sh *Shell) runJobs(_ context.Context, _ *tool.Call, in jobsArgs) (tool.Result, error) {
	if in.Action == "list" {
		return tool.Text(sh.list()), nil
	}
	if !slices.Contains([]string{"read", "feed", "kill"}, in.Action) {
		return tool.Result{}, fmt.Errorf("action %q is not one of list, read, feed, kill", in.Action)
	}
	j, err := sh.find(in.ID)
	if err != nil {
		return tool.Result{}, err
	}
	switch in.Action {
	case "feed":
		return feedJob(j, in.Input)
	case "kill":
		return tool.Text(sh.kill(j)), nil
	}
	return tool.Text(sh.tell(j)), nil
}

func (sh *Shell) list() string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.jobs) == 0 {
		return "[no jobs]"
	}
	var b strings.Builder
	for _, j := range sh.jobs {
		line, _, _ := strings.Cut(j.command, "\n")
		if len(line) > 100 {
			line = string(cutRune([]byte(line[:100]))) + "…"
		}
		fmt.Fprintf(&b, "job %s: %s: %s\n", j.id, j.state(), line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Job is a command that went to the background.
type Job struct {
	ID      string
	Command string
	State   string // in words
}

// Jobs lists the commands in the background, the oldest first.
func (sh *Shell) Jobs() []Job {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var out []Job
	for _, j := range sh.jobs {
		out = append(out, Job{ID: j.id, Command: j.command, State: j.state()})
	}
	return out
}

// Kill ends a job with all that it has started, and returns when that is gone or ctx
// is done. One that has ended already stays as it is.
func (sh *Shell) Kill(ctx context.Context, id string) error {
	j, err := sh.find(id)
	if err != nil {
		return err
	}
	j.cancel()
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *job) state() string {
	if !j.ended() {
		return "running for " + time.Since(j.started).Round(time.Second).String()
	}
	return fmt.Sprintf("ended after %v %s", j.end.at.Sub(j.started).Round(time.Second), j.end.outcome())
}

// tell returns the new output of a job and its state. The state is taken
// first, so that of a job said to have ended all output is shown.
func (sh *Shell) tell(j *job) string {
	state, ended := j.state(), j.ended()
	text := sh.fresh(j)
	if text == "" {
		text = "[no new output]"
	}
	text = endLine(text)
	if ended && (j.end.blob != "" || j.end.blobErr != nil) {
		text += j.end.where() + "\n"
	}
	return text + "[job " + j.id + " " + state + "]"
}

// kill ends a job as an interrupt would: gently first.
func (sh *Shell) kill(j *job) string {
	if j.ended() {
		return sh.tell(j)
	}
	j.cancel()
	<-j.done
	return sh.tell(j)
}

func feedJob(j *job, input *string) (tool.Result, error) {
	switch {
	case j.ended():
		return tool.Result{}, fmt.Errorf("job %s has %s", j.id, j.state())
	case j.input == nil:
		return tool.Result{}, errors.New("the job was started without an input; start it with background or interactive set")
	case input == nil:
		_ = j.input.Close() // never fails
		return tool.Text("closed the input of job " + j.id), nil
	}
	switch _, err := j.input.Write([]byte(*input)); {
	case errors.Is(err, feed.ErrClosed):
		return tool.Result{}, errors.New("the standard input of the job is closed")
	case errors.Is(err, feed.ErrFull):
		return tool.Result{}, errors.New("the job does not read its input; nothing was added")
	case err != nil:
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("sent %s to job %s", count(len(*input), "byte"), j.id)), nil
}
