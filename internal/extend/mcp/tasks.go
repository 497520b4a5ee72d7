package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/view/words"
)

// Tasks (an extension of revision 2026-07-28; see required.go for the revision before): a server may answer a
// call with a task, which continues after the response. It is polled until it ends, and cancelled when the call
// no longer waits for it.

const (
	usualPoll  = time.Second // between two questions for a task whose server does not say
	leastPoll  = 100 * time.Millisecond
	mostPoll   = 30 * time.Second
	cancelTime = 2 * time.Second // that a server may take to cancel a task
)

// follower follows one task to its end.
type follower struct {
	caller
	conn  *client
	by    *patience
	tell  func(string)
	began time.Time

	id      string
	last    task            // as it was when it was last heard of
	asked   map[string]bool // what the server has asked, by its keys
	answers sdk.InputResponseMap

	fetches bool           // the task is one of a revision in which its result is fetched
	early   <-chan brought // what comes of a request for the result that goes on; nil means there is none
}

func (c caller) follower(conn *client, by *patience, tell func(string)) *follower {
	return &follower{caller: c, conn: conn, by: by, tell: tell, began: time.Now(), asked: map[string]bool{}, answers: sdk.InputResponseMap{}}
}

// follow returns the result of a call, immediate or from a task.
func (c caller) follow(ctx context.Context, conn *client, by *patience,
	res *sdk.CallToolResult, tell func(string),
) (*sdk.CallToolResult, error) {
	made, is := res.Meta[taskKey]
	if !is {
		return res, nil
	}
	if conn.session.InitializeResult().ProtocolVersion <= lastHandshake {
		return nil, errNoTask
	}
	data, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	return c.follower(conn, by, tell).follow(ctx, data)
}

// follow follows a task from its creation to its end.
func (f *follower) follow(ctx context.Context, made json.RawMessage) (*sdk.CallToolResult, error) {
	if json.Unmarshal(made, &f.last) != nil || f.last.ID == "" || len(f.last.ID) > maxTaskID {
		return nil, &taskError{"was answered with a task without a usable id, so its effects are unknown", true}
	}
	f.id = f.last.ID
	running, stop := context.WithCancel(ctx)
	out, err := f.run(running)
	stop()
	if f.early != nil {
		<-f.early
	}
	var ended *taskError
	if err == nil || errors.As(err, &ended) && ended.over {
		return out, err
	}
	if ended == nil && f.conn.life.Err() != nil || errors.Is(err, sdk.ErrConnectionClosed) {
		return nil, &taskError{"is a task whose server has gone, so its effects are unknown: " + f.conn.ending(err).Error(), true}
	}
	f.cancel(ctx)
	return nil, err
}

// run polls the task until it has ended.
func (f *follower) run(ctx context.Context) (*sdk.CallToolResult, error) {
	f.hear(task{}, f.last)
	// In any other state it may have ended, or wait for us.
	for wait := f.last.State == "working"; !wait || f.rest(ctx); wait = true {
		select {
		case early := <-f.early:
			f.early = nil
			return early.result, early.err
		default:
		}
		now, err := f.get(ctx)
		if err != nil {
			return nil, err
		}
		f.hear(f.last, now)
		f.last = now
		age := time.Since(f.began) // without the time that a person takes now
		switch {
		case f.fetches && f.early != nil: // it brings what there is to have
		case f.fetches && (now.State == "completed" || now.State == "failed"):
			return f.fetched(ctx)
		case f.fetches && now.State == "input_required":
			f.ahead(ctx)
		case now.State == "completed":
			return now.result()
		case now.State == "failed", now.State == "cancelled":
			return nil, now.failure()
		case now.State == "working":
		case now.State == "input_required":
			if err := f.answer(ctx, now.Asks); err != nil {
				return nil, err
			}
		default:
			return nil, &taskError{
				fmt.Sprintf("is in the unknown state %q, so its effects are unknown", words.OneLine(now.State, 40)),
				false,
			}
		}
		if life := now.life(); age > life {
			return nil, &taskError{fmt.Sprintf("was abandoned after %v, the lifetime of the task at its server; its effects until then are unknown",
				life), false}
		}
	}
	return nil, ctx.Err()
}

// rest waits until the next poll; false means the call no longer waits.
func (f *follower) rest(ctx context.Context) bool {
	wait := usualPoll
	if ms := cmp.Or(f.last.Poll, f.last.OldPoll); ms != nil {
		wait = time.Duration(min(max(*ms, float64(leastPoll/time.Millisecond)), float64(mostPoll/time.Millisecond))) * time.Millisecond
	}
	return keep.Sleep(ctx, wait) == nil
}

// hear restarts the time limit if the task has changed.
func (f *follower) hear(before, now task) {
	if before.State != now.State || before.Said != now.Said || before.Updated != now.Updated {
		f.by.again()
	}
	if text := words.OneLine(now.Said, 300); before.Said != now.Said && text != "" {
		f.tell(text + "\n")
	}
}

// get polls the task, and retries temporary failures.
func (f *follower) get(ctx context.Context) (task, error) {
	for {
		data, err := f.send(ctx, "tasks/get", nil)
		if err == nil {
			var now task
			if json.Unmarshal(data, &now) != nil || now.ID != f.id {
				return now, &taskError{"got an answer about another task, so its effects are unknown", false}
			}
			return now, nil
		}
		if err := f.final(err); err != nil {
			return task{}, err
		}
		if !f.rest(ctx) {
			return task{}, errors.Join(ctx.Err(), err)
		}
	}
}

// send sends one request about the task.
func (f *follower) send(ctx context.Context, method string, answers sdk.InputResponseMap) (json.RawMessage, error) {
	reply, err := sdk.CallCustomMethod[*taskParams, *taskReply](ctx, f.conn.session, method, &taskParams{ID: f.id, Answers: answers})
	if err != nil {
		return nil, err
	}
	return reply.data, nil
}

// final returns the meaning of a permanent error; nil means it may be temporary.
func (f *follower) final(err error) error {
	var answer *jsonrpc.Error
	switch {
	case errors.Is(err, sdk.ErrConnectionClosed), f.conn.life.Err() != nil:
		return err
	case !errors.As(err, &answer), answer.Code == notSent, answer.Code == jsonrpc.CodeInternalError:
		return nil
	case answer.Code == jsonrpc.CodeInvalidParams:
		return &taskError{"is a task that its server no longer knows, so its effects are unknown: " + phrase(answer.Message), true}
	}
	return &taskError{"is a task whose server does not report it, so its effects are unknown: " + phrase(answer.Message), false}
}

// cancel tells the server that the task is no longer needed.
func (f *follower) cancel(ctx context.Context) {
	ctx, stop := f.conn.bound(context.WithoutCancel(ctx))
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	_, _ = f.send(ctx, "tasks/cancel", nil) // nothing more can be done
}
