package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed jobs.md
var jobsDoc string

const (
	waitUsual = 60 * time.Second  // default for wait
	feedUsual = 3 * time.Second   // default for the answer to input
	waitMost  = 600 * time.Second // a call has a little more
	// quiet is how long a job must have printed nothing for its answer to be complete.
	quiet = 200 * time.Millisecond
	// maxListedLine is how much of a command a list shows, in bytes.
	maxListedLine = 100
)

type jobsArgs struct {
	Action  string   `json:"action" enum:"list,read,wait,feed,kill"`
	ID      string   `json:"id,omitempty" jsonschema:"the job; may be left out where only one runs"`
	Input   *string  `json:"input,omitempty" jsonschema:"for feed: text, sent as it is"`
	Keys    []string `json:"keys,omitempty" jsonschema:"for feed: keys to press then: enter, tab, esc, up, pgdn, ctrl-c, f1 and the like"`
	Pattern string   `json:"pattern,omitempty" jsonschema:"for wait and feed: return when new output matches this regular expression"`
	Seconds int      `json:"seconds,omitempty" jsonschema:"for wait and feed: return after so many seconds; 60 and 3 if not given, at most 600"`
}

func jobs(sh *Shell) tool.Tool {
	t := tool.New("jobs", jobsDoc, sh.runJobs)
	t.Effects = withArgs(jobsEffects)
	return t
}

// jobsEffects: a job executes its input. Looking at jobs of the session, and ending them, touches nothing else.
func jobsEffects(_ context.Context, _ *tool.Call, in jobsArgs) ([]tool.Effect, error) {
	if in.Action != "feed" {
		return []tool.Effect{}, nil
	}
	text := strings.Join(in.Keys, " ")
	if in.Input != nil {
		text = *in.Input + text
	}
	return []tool.Effect{{Kind: tool.Execute, Text: text}}, nil
}

func (sh *Shell) runJobs(ctx context.Context, c *tool.Call, in jobsArgs) (tool.Result, error) {
	switch {
	case in.Action == "list":
		return sh.list(), nil
	case in.Seconds < 0:
		return tool.Result{}, errors.New("seconds is negative")
	}
	j, err := sh.find(in.ID)
	if err != nil {
		return tool.Result{}, err
	}
	switch in.Action {
	case "wait":
		return sh.wait(ctx, c, j, in)
	case "feed":
		return sh.feed(ctx, j, in)
	case "kill":
		j.cancel() // as an interrupt would: gently first
		<-j.done
	}
	return sh.tell(j, ""), nil
}

// wait returns when a job has ended, when a pattern has come or after a time.
func (sh *Shell) wait(ctx context.Context, c *tool.Call, j *job, in jobsArgs) (tool.Result, error) {
	w := watching{most: in.atMost(waitUsual), shown: sh.seen(j)}
	if in.Pattern != "" {
		found, stop := j.out.seek(pattern(in.Pattern), w.shown)
		defer stop()
		w.found = found
	}
	switch watch(ctx, c, j, w) {
	case interrupted:
		return sh.tell(j, ""), fmt.Errorf("the wait was interrupted, and the job was left as it is: %w", ctx.Err())
	case late:
		missed := ""
		if in.Pattern != "" {
			missed = " and the pattern has not come"
		}
		return sh.tell(j, fmt.Sprintf("[waited %v%s]\n", w.most, missed)), nil
	}
	return sh.tell(j, ""), nil
}

// atMost returns the time limit of the call.
func (in jobsArgs) atMost(usual time.Duration) time.Duration {
	if in.Seconds == 0 {
		return usual
	}
	return seconds(in.Seconds, waitMost)
}

func (sh *Shell) list() tool.Result {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.jobs) == 0 {
		return tool.Text("[no jobs]")
	}
	var b strings.Builder
	var told []string
	for _, j := range sh.jobs {
		if j.ended() {
			told = append(told, j.id)
		}
		line, _, _ := strings.Cut(j.command, "\n")
		fmt.Fprintf(&b, "job %s: %s: %s\n", j.id, j.state(), text.Cut(line, maxListedLine))
	}
	return tool.Result{Parts: llm.Say(strings.TrimSuffix(b.String(), "\n")), EndedJobs: told}
}

// Job is a command in the background.
type Job struct {
	ID      string
	Command string
	State   string // in words
	Running bool
}

// Jobs lists the commands in the background, oldest first.
func (sh *Shell) Jobs() []Job {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var out []Job
	for _, j := range sh.jobs {
		out = append(out, Job{ID: j.id, Command: j.command, State: j.state(), Running: !j.ended()})
	}
	return out
}

// Background sends the commands in the foreground to the background, where they continue as jobs, and returns how
// many they are.
func (sh *Shell) Background() (n int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.NoJobs {
		return 0
	}
	for j := range sh.active {
		if j.id != "" || j.moving {
			continue
		}
		j.moving = true
		close(j.moved)
		n++
	}
	return n
}

// Kill ends a job with all its child processes, and returns when they are gone or ctx is done. One that has
// ended already stays as it is.
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

// tell returns the new output of a job, an addition and its state. The state is read first, so that all output
// of a job reported as ended is shown.
func (sh *Shell) tell(j *job, more string) tool.Result {
	state, ended := j.state(), j.ended()
	text := sh.fresh(j)
	if text == "" {
		text = "[no new output]"
	}
	text = endLine(text) + more
	if j.screen != nil && !ended {
		text += j.screen.cursor()
	}
	if !ended {
		return tool.Text(text + "[job " + j.id + " " + state + "]")
	}
	if j.end.blob != "" || j.end.blobErr != nil {
		text += j.end.where() + "\n"
	}
	text += j.walls()
	return tool.Result{Parts: llm.Say(text + "[job " + j.id + " " + state + "]"), EndedJobs: []string{j.id}}
}

// feed sends input to a job and returns its answer.
func (sh *Shell) feed(ctx context.Context, j *job, in jobsArgs) (tool.Result, error) {
	before := j.out.size()
	var found <-chan struct{}
	if in.Pattern != "" {
		var stop func()
		found, stop = j.out.seek(pattern(in.Pattern), before)
		defer stop()
	}
	said, err := j.feed(in)
	if err != nil {
		return tool.Result{}, err
	}
	j.settle(ctx, before, in.atMost(feedUsual), found)
	return sh.tell(j, "["+said+"]\n"), nil
}

// settle waits until a job has answered: until found is closed, if it is not nil, and it has printed something
// and then nothing for a while. It waits for at most the given time.
func (j *job) settle(ctx context.Context, from int64, most time.Duration, found <-chan struct{}) {
	late := time.NewTimer(most)
	defer late.Stop()
	var still <-chan time.Time
	for {
		select {
		case <-j.out.beyond(from):
			if from = j.out.size(); found == nil {
				still = time.After(quiet)
			}
		case <-found: // the match may be the echo of the input
			found, still = nil, time.After(quiet)
		case <-still:
			return
		case <-j.done:
			return
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// feed sends input to a job, or closes its input, and says so.
func (j *job) feed(in jobsArgs) (string, error) {
	input := in.Input
	switch {
	case j.ended():
		return "", fmt.Errorf("job %s has %s", j.id, j.state())
	case j.input == nil:
		return "", errors.New("the job was started without an input; start it with background or interactive set")
	case j.screen == nil && len(in.Keys) > 0:
		return "", errors.New("the job has no terminal, so there are no keys; start it with tty set")
	case j.screen != nil:
		text, err := j.screen.typed(in)
		if err != nil {
			return "", err
		}
		input = &text
	case input == nil:
		_ = j.input.Close() // never fails
		return "closed the input", nil
	}
	switch _, err := j.input.Write([]byte(*input)); {
	case errors.Is(err, keep.ErrClosed):
		return "", errors.New("the standard input of the job is closed")
	case errors.Is(err, keep.ErrFull):
		return "", errors.New("the job does not read its input; nothing was added")
	case err != nil:
		return "", err
	}
	return "sent " + text.Count(len(*input), "byte"), nil
}
