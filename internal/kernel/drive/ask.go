package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

// asker lets a running call ask the person. Question and answer are events, so anyone who can append to the log can
// answer.
type asker struct {
	cfg     *Config
	journal *journal
	call    *tool.Call
	turn    int
	count   atomic.Int64
}

// ask implements [tool.Call.Ask].
func (a *asker) ask(ctx context.Context, question string, options []string) (string, error) {
	args, err := json.Marshal(struct {
		Question string   `json:"question"`
		Options  []string `json:"options,omitempty"`
	}{question, options})
	if err != nil {
		return "", err
	}
	preview := question
	for i, o := range options {
		preview += fmt.Sprintf("\n%d. %s", i+1, o)
	}
	r := event.Raised{
		ID: fmt.Sprintf("%s.%d.%d", a.call.ID, a.turn, a.count.Add(1)), Call: a.call.ID, Agent: a.call.Name, Tool: "ask_user", Args: args,
		Effects: []tool.Effect{{Kind: tool.Question, Text: question}}, Preview: preview,
	}
	if a.cfg.AskTimeout > 0 {
		r.Until = time.Now().Add(a.cfg.AskTimeout)
	}
	if _, ok := a.journal.log.(event.Waiter); !ok {
		return "", errNoWaiter
	}
	stored, err := a.journal.log.Append(ctx, a.journal.secrets.Body(r))
	if err != nil {
		return "", err
	}
	d, err := awaitAnswer(ctx, a.journal.log, stored[0].Seq, r)
	return d.Answer, err
}

var errNoWaiter = errors.New("questions need a log that implements event.Waiter, to notice the answer")

// FindAnswer looks up a raised question in the log. It returns the number of its event, 0 if there is none, and the
// answer, nil if there is none. It fails if the log is not an [event.Waiter]. Any goroutine may call it.
func (d *Driver) FindAnswer(ctx context.Context, r event.Raised) (seq uint64, answer *event.Decided, err error) {
	if _, ok := d.journal.log.(event.Waiter); !ok {
		return 0, nil, errNoWaiter
	}
	for e, err := range d.journal.log.Read(ctx, 0) {
		if err != nil {
			return 0, nil, err
		}
		switch b := e.Body.(type) {
		case event.Forked: // earlier questions belong to the original session
			seq, answer = 0, nil
		case event.Raised:
			if b.ID == r.ID && b.Child == "" && seq == 0 {
				seq = e.Seq
			}
		case event.Decided:
			if seq > 0 && answer == nil && b.On(r.ID, seq) {
				answer = &b
			}
		}
	}
	return seq, answer, nil
}

// AwaitAnswer waits for the decision on the raised question with number seq. Any goroutine may call it.
func (d *Driver) AwaitAnswer(ctx context.Context, seq uint64, r event.Raised) (event.Decided, error) {
	return awaitAnswer(ctx, d.journal.log, seq, r)
}

func awaitAnswer(ctx context.Context, log event.Log, question uint64, r event.Raised) (event.Decided, error) {
	w, ok := log.(event.Waiter)
	if !ok {
		return event.Decided{}, errNoWaiter
	}
	after, waiting, stop := question, ctx, context.CancelFunc(func() {})
	if !r.Until.IsZero() {
		waiting, stop = context.WithDeadline(ctx, r.Until)
	}
	defer stop()
	for {
		err := w.Wait(waiting, after)
		for e, read := range log.Read(waiting, after) {
			if err = errors.Join(err, read); err != nil {
				break
			}
			after = e.Seq
			if b, ok := e.Body.(event.Decided); ok && b.OnCall(r.ID, "", question) {
				return b, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return event.Decided{}, context.Cause(ctx)
		case waiting.Err() != nil:
			denied := event.Decided{Call: r.ID, Question: question, By: loop.By, Reason: "nobody answered in time"}
			_, err := log.Append(ctx, denied)
			return denied, err
		case err != nil:
			return event.Decided{}, err
		}
	}
}
