package inspan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// asker is what a call asks the person with while it runs. The question goes into
// the log, as one that is raised, and the answer comes from there: whoever looks at
// the session can give it.
type asker struct {
	*Session
	call  *tool.Call
	turn  int
	asked atomic.Int64
}

// ask is [tool.Call.Ask].
func (a *asker) ask(ctx context.Context, question string, options []string) (string, error) {
	w, ok := a.log.(event.Waiter)
	if !ok {
		return "", errors.New("the log can't be waited for, which an answer needs")
	}
	args, err := json.Marshal(struct {
		Question string   `json:"question"`
		Options  []string `json:"options,omitempty"`
	}{question, options})
	if err != nil {
		return "", err
	}
	r := event.Raised{
		ID: fmt.Sprintf("%s.%d.%d", a.call.ID, a.turn, a.asked.Add(1)), Call: a.call.ID, Agent: a.call.Name, Tool: "ask_user", Args: args,
		Effects: []tool.Effect{{Kind: tool.Question, Text: question}}, Preview: listed(question, options),
	}
	if a.agent.AskTimeout > 0 {
		r.Until = time.Now().Add(a.agent.AskTimeout)
	}
	stored, err := a.log.Append(ctx, a.redacted(r))
	if err != nil {
		return "", err
	}
	d, err := a.answer(ctx, w, stored[0].Seq, r)
	return d.Answer, err
}

// found is what the log has of a question: its number, 0 if it was not put, and the answer, nil if
// there is none.
func (a *asker) found(ctx context.Context, r event.Raised) (seq uint64, answer *event.Decided, err error) {
	for e, err := range a.log.Read(ctx, 0) {
		if err != nil {
			return 0, nil, err
		}
		switch b := e.Body.(type) {
		case event.Forked: // what was asked before was asked of whoever answers for the original
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

// answer waits for the decision on a question that was raised.
func (a *asker) answer(ctx context.Context, w event.Waiter, question uint64, r event.Raised) (event.Decided, error) {
	after, asked := question, Asked(Question{Raised: r, Seq: question})
	patient, stop := ctx, context.CancelFunc(func() {})
	if !r.Until.IsZero() {
		patient, stop = context.WithDeadline(ctx, r.Until)
	}
	defer stop()
	for {
		err := w.Wait(patient, after)
		for e, read := range a.log.Read(patient, after) {
			if err = errors.Join(err, read); err != nil {
				break
			}
			after = e.Seq
			if b, ok := e.Body.(event.Decided); ok && asked.answered(b) {
				return b, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return event.Decided{}, context.Cause(ctx)
		case patient.Err() != nil:
			late := event.Decided{Call: r.ID, Question: question, By: "the time-out", Reason: "nobody answered in time"}
			_, err := a.log.Append(ctx, late)
			return late, err
		case err != nil:
			return event.Decided{}, err
		}
	}
}

// listed is a question with the answers to choose from.
func listed(question string, options []string) string {
	var b strings.Builder
	b.WriteString(question)
	for i, o := range options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, o)
	}
	return b.String()
}
