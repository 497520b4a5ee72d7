package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

const (
	finishTool = "finish_task"
	// storedLeave is the value that says, in the log of a member, that it has left the team.
	storedLeave = "team.left"

	usualWait   = time.Minute
	mostWait    = 10 * time.Minute
	checkLimit  = 600     // seconds of the check of a task
	mostFailure = 2 << 10 // bytes of the output of a check that failed
)

type finishArgs struct {
	Task  string `json:"task"`
	Text  string `json:"text,omitempty"`
	Check string `json:"check"`
	Own   bool   `json:"own,omitempty"`
}

// finishCall returns the call that marks a task done, if the task has a check. Its command is an argument, so that a
// repeated call runs the same.
func (t *Team) finishCall(by string, in teamArgs) (name string, args json.RawMessage, err error) {
	id := strings.TrimPrefix(in.Task, "#")
	task := t.taskList().Find(id)
	if task == nil || task.Done || task.Check == "" || task.Holder != by && by != t.session.ID() || len(in.Text) > maxResult {
		return "", nil, nil
	}
	args, err = json.Marshal(finishArgs{Task: id, Text: strings.TrimSpace(in.Text), Check: task.Check, Own: in.Own})
	return finishTool, args, err
}

// finish runs the check of a task at the top of the workspace, as a call of its own that is judged and logged, and marks
// the task done if it passes.
func (t *Team) finish(ctx context.Context, c *tool.Call, in finishArgs) (tool.Result, error) {
	command := in.Check
	if c.Cwd != c.Env.Root {
		top, err := syntax.Quote(c.Env.Root, syntax.LangBash)
		if err != nil {
			return tool.Result{}, err
		}
		command = "cd " + top + " && {\n" + command + "\n}"
	}
	args, err := json.Marshal(map[string]any{"command": command, "timeout": checkLimit})
	if err != nil {
		return tool.Result{}, err
	}
	res, err := c.Do(ctx, checkTool, args)
	if err != nil || res.Exit == nil || *res.Exit != 0 {
		head, tail, dropped := text.CutMiddle(res.Parts.Text(), mostFailure)
		if dropped > 0 {
			head += "\n[...]\n" + tail
		}
		why := "it did not end"
		if res.Exit != nil {
			why = fmt.Sprint("it ended with exit code ", *res.Exit)
		}
		failed := tool.Text(head)
		failed.Untrusted = res.Untrusted
		return failed, fmt.Errorf("task %s is not done, as its check did not pass: %s", in.Task, why)
	}
	b := event.Tasked{
		ID: in.Task, Action: loop.TaskDone, By: c.Session, Call: c.ID, Text: in.Text, Check: in.Check, Taint: t.taintOf(c.Session),
	}
	if err := t.completes(ctx, b); err != nil {
		return tool.Result{}, err
	}
	before, after, err := t.change(ctx, b)
	if err != nil {
		return tool.Result{}, err
	}
	if task := before.Find(in.Task); task != nil && task.Done && task.Evidence == c.ID {
		return tool.Text("Task " + in.Task + " is done."), nil // a program that ended meanwhile has recorded it
	}
	t.tellAssigned(ctx)
	return t.outcome(b, before, after)
}

// completes returns the objection of a hook to a task that is about to be marked done; nil means there is none.
func (t *Team) completes(ctx context.Context, b event.Tasked) error {
	task := t.taskList().Find(b.ID)
	if task == nil || task.Done || task.Holder != b.By && b.By != t.session.ID() {
		return nil
	}
	p := tool.Point{Moment: tool.TaskCompleted, Text: task.Text, Why: task.ID}
	t.mu.Lock()
	if k := t.children[b.By]; k != nil {
		p.Who.Name = k.order.Name
	}
	t.mu.Unlock()
	if _, err := t.hookOf(ctx, t.sessionOf(b.By).Status(), p); err != nil {
		return fmt.Errorf("task %s is not done: %w", b.ID, err)
	}
	return nil
}

// leave takes the caller out of the team once its run is over.
func (t *Team) leave(c *tool.Call) (tool.Result, error) {
	t.mu.Lock()
	k := t.children[c.Session]
	t.mu.Unlock()
	if k == nil || k.order.Name == "" {
		return tool.Result{}, errors.New("you are not a member of a team")
	}
	res := tool.Text("You have left the team. Say what is left to say, and end.")
	res.Store = map[string]json.RawMessage{storedLeave: json.RawMessage("true")}
	return res, nil
}

// wait waits until the caller has a message, or there is a task that it can claim.
func (t *Team) wait(ctx context.Context, c *tool.Call, in teamArgs) (tool.Result, error) {
	limit := min(mostWait, cmp.Or(time.Duration(in.Time)*time.Second, usualWait))
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	news := make(chan string, 2)
	wg.Go(func() {
		if t.waitForMail(ctx, c.Session, func() bool { return true }) {
			news <- "There are messages for you."
		}
	})
	if c.Session != t.session.ID() { // the lead gives tasks
		wg.Go(func() {
			if id := t.waitForTask(ctx, c.Session); id != "" {
				news <- "Task " + id + " can be claimed."
			}
		})
	}
	select {
	case text := <-news:
		return tool.Text(text), nil
	case <-ctx.Done():
		if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return tool.Result{}, err
		}
		return tool.Text(fmt.Sprintf("Nothing came in %d seconds.", int(limit/time.Second))), nil
	}
}

// waitForMail waits until a session has unread messages, or while reports false. False means ctx ended first.
func (t *Team) waitForMail(ctx context.Context, id string, while func() bool) bool {
	log, err := t.Sessions.Open(ctx, id)
	if err != nil {
		return false
	}
	defer log.Close()
	box, err := openMailbox(ctx, log)
	for err == nil && while() && !box.unread() {
		if err = log.Wait(ctx, box.end); err == nil {
			err = box.read(ctx, log)
		}
	}
	return err == nil
}

// waitForTask waits until a session can claim a task, and returns its id; empty means ctx ended first.
func (t *Team) waitForTask(ctx context.Context, by string) string {
	st := t.session.Status()
	list := st.Tasks
	place := slices.IndexFunc(st.Children, func(c inspan.Child) bool { return c.Child == by })
	first := func(now time.Time) string { // another for each that waits
		var ids []string
		for i := range list.List {
			if list.Claimable(&list.List[i], by, now) {
				ids = append(ids, list.List[i].ID)
			}
		}
		if len(ids) == 0 {
			return ""
		}
		return ids[max(0, place)%len(ids)]
	}
	if id := first(time.Now()); id != "" {
		return id
	}
	for e, err := range t.session.Events(ctx, st.Seq) {
		if err != nil {
			return ""
		}
		list = list.After(st.Session, e)
		if id := first(e.Time); id != "" {
			return id
		}
	}
	return ""
}
