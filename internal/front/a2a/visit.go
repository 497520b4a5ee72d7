package a2a

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
)

// GetTask implements [a2asrv.RequestHandler].
func (v *handler) GetTask(ctx context.Context, req *sdk.GetTaskRequest) (*sdk.Task, error) {
	r, err := v.find(ctx, string(req.ID))
	if err != nil {
		return nil, err
	}
	if _, err := v.revive(ctx, r); err != nil {
		return nil, err
	}
	return r.task(limit(req.HistoryLength)), nil
}

// find reads a task of the principal.
func (v *handler) find(ctx context.Context, id string) (*record, error) {
	if v.refused != nil {
		return nil, v.refused
	}
	return v.server.read(ctx, id, v.sender)
}

// limit returns how many messages are requested; -1 means all.
func limit(n *int) int {
	if n == nil {
		return -1
	}
	return max(0, *n)
}

// revive continues a run that no process drives, for example after a crash. It returns nil if there is none, or
// another process drives it.
func (v *handler) revive(ctx context.Context, r *record) (*running.Run, error) {
	if s := state(r.status); s != sdk.TaskStateWorking {
		return nil, nil
	}
	return v.server.runs().Drive(ctx, r.id, nil)
}

// SendMessage implements [a2asrv.RequestHandler]. It returns when the task rests, unless the client asked not
// to wait.
func (v *handler) SendMessage(ctx context.Context, req *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	id, run, err := v.deliver(ctx, req)
	if err != nil {
		return nil, err
	}
	var history *int
	if req.Config != nil {
		history = req.Config.HistoryLength
	}
	if req.Config == nil || !req.Config.ReturnImmediately {
		for _, err := range v.follow(ctx, id, run, false) {
			if err != nil {
				return nil, err
			}
		}
	}
	r, err := v.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.task(limit(history)), nil
}

// SendStreamingMessage implements [a2asrv.RequestHandler].
func (v *handler) SendStreamingMessage(ctx context.Context, req *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		id, run, err := v.deliver(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		v.follow(ctx, id, run, false)(yield)
	}
}

// SubscribeToTask implements [a2asrv.RequestHandler].
func (v *handler) SubscribeToTask(ctx context.Context, req *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		r, err := v.find(ctx, string(req.ID))
		if err == nil && isOver(state(r.status)) {
			err = fmt.Errorf("%w: the task is over", sdk.ErrUnsupportedOperation)
		}
		var run *running.Run
		if err == nil {
			run, err = v.revive(ctx, r)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, done := v.server.untilServerEnds(ctx)
		defer done()
		v.follow(ctx, r.id, run, true)(yield)
	}
}

// deliver gives a message to its task, and returns the task's id and who drives it.
func (v *handler) deliver(ctx context.Context, req *sdk.SendMessageRequest) (id string, r *running.Run, err error) {
	m := req.Message
	switch {
	case v.refused != nil:
		return "", nil, v.refused
	case m == nil || len(m.Parts) == 0 || slices.Contains(m.Parts, nil):
		return "", nil, fmt.Errorf("%w: there is no message", sdk.ErrInvalidParams)
	case req.Config != nil && req.Config.PushConfig != nil:
		return "", nil, sdk.ErrPushNotificationNotSupported
	}
	key := keyOf(m)
	if key != "" {
		letGo, err := v.server.holdMessage(ctx, v.sender+" "+key)
		if err != nil {
			return "", nil, err
		}
		defer letGo()
	}
	if m.TaskID != "" {
		return v.sendToTask(ctx, m, key)
	}
	return v.begin(ctx, m, key)
}

// sendToTask sends a message to a task that rests or is working.
func (v *handler) sendToTask(ctx context.Context, m *sdk.Message, key string) (string, *running.Run, error) {
	r, err := v.find(ctx, string(m.TaskID))
	if err != nil {
		return "", nil, err
	}
	if r.fold.Took(key) {
		return v.repeatedTask(ctx, r.id)
	}
	if m.ContextID != "" && m.ContextID != r.context {
		return "", nil, fmt.Errorf("%w: the task belongs to another context", sdk.ErrInvalidParams)
	}
	input, err := v.input(r, m, key)
	if err != nil {
		return "", nil, err
	}
	run, err := v.server.runs().Drive(ctx, r.id, nil, input)
	return r.id, run, err
}

// input returns a message to a task as an input of its session.
func (v *handler) input(r *record, m *sdk.Message, key string) (event.Body, error) {
	switch s := state(r.status); {
	case s == sdk.TaskStateInputRequired:
		p, choice, err := answeredQuestion(r.status, m)
		if err != nil {
			return nil, err
		}
		if v.server.DecideHere && !p.IsQuestion {
			return nil, fmt.Errorf("%w: only the machine of the agent can decide this", sdk.ErrUnauthorized)
		}
		d, problem := parseDecision(p, choice)
		if problem != "" {
			return nil, fmt.Errorf("%w: %s", sdk.ErrInvalidParams, problem)
		}
		d.By = v.sender
		d = p.Answer(d)
		d.Message = key
		return d, nil
	case isOver(s):
		return nil, fmt.Errorf("%w: the task is over; send the message to its context instead", sdk.ErrUnsupportedOperation)
	case s == sdk.TaskStateWorking:
		parts, err := messageFor(m)
		return event.Steered{Origin: event.OriginPerson, Parts: parts, By: v.sender, Message: key}, err
	}
	parts, err := messageFor(m)
	return event.Said{Parts: parts, By: v.sender, Message: key}, err
}

// begin creates a task from a message, in the context that it names, if any.
func (v *handler) begin(ctx context.Context, m *sdk.Message, key string) (string, *running.Run, error) {
	parts, err := messageFor(m)
	if err != nil {
		return "", nil, err
	}
	if before, err := v.begunBy(ctx, key); err != nil || before != "" {
		if err != nil {
			return "", nil, err
		}
		return v.repeatedTask(ctx, before)
	}
	if err := v.server.runs().Full(); err != nil {
		return "", nil, err
	}
	s, named, err := v.open(ctx, m.ContextID)
	if err != nil {
		return "", nil, err
	}
	id := s.ID()
	run, err := v.server.runs().Drive(ctx, id, s, event.Said{Parts: parts, By: v.sender, Message: key, Context: named})
	if err == nil {
		v.recordBegun(key, id)
	}
	return id, run, err
}

const maxContext = 256 // bytes of the name of a context

// open opens a session in a context. A new context begins with the session, whose log names it.
func (v *handler) open(ctx context.Context, lineage string) (s *inspan.Session, named string, err error) {
	if lineage != "" {
		if s, err = v.fork(ctx, lineage); s != nil || err != nil {
			return s, "", err
		}
		if len(lineage) > maxContext || text.Visible(lineage) != lineage {
			return nil, "", fmt.Errorf("%w: contextId has more than %d bytes, or hidden characters", sdk.ErrInvalidParams, maxContext)
		}
	}
	s, err = v.server.Host.New(context.WithoutCancel(ctx), v.server.Root)
	return s, lineage, err
}

// fork opens a session that continues the last one of a context; nil if there is none.
func (v *handler) fork(ctx context.Context, lineage string) (*inspan.Session, error) {
	for info, err := range v.server.Host.List(ctx) {
		if err != nil {
			return nil, err
		}
		r, err := v.find(ctx, info.ID)
		if err != nil || r.context != lineage {
			continue
		}
		if !isOver(state(r.status)) {
			return nil, fmt.Errorf("%w: task %s of this context has not ended; send the message to it", sdk.ErrUnsupportedOperation, r.id)
		}
		return v.server.Host.Fork(context.WithoutCancel(ctx), r.id, 0)
	}
	return nil, nil //nolint:nilnil // there is none
}

// cancelTime is how long a task may take to stop before its state is reported.
const cancelTime = 20 * time.Second

// CancelTask implements [a2asrv.RequestHandler].
func (v *handler) CancelTask(ctx context.Context, req *sdk.CancelTaskRequest) (*sdk.Task, error) {
	r, err := v.find(ctx, string(req.ID))
	if err != nil {
		return nil, err
	}
	if s := state(r.status); isOver(s) || s == sdk.TaskStateAuthRequired {
		return nil, sdk.ErrTaskNotCancelable
	}
	run, err := v.server.runs().Drive(ctx, r.id, nil, event.Cancelled{By: v.sender})
	if err != nil {
		return nil, err
	}
	patient, stop := context.WithTimeout(ctx, cancelTime)
	defer stop()
	for _, err := range v.follow(patient, r.id, run, false) {
		if err != nil {
			return nil, err
		}
	}
	if r, err = v.find(ctx, r.id); err != nil {
		return nil, err
	}
	return r.task(-1), nil
}

const (
	usualPage = 50
	mostPage  = 100
)

// ListTasks implements [a2asrv.RequestHandler]. The page token is the id of the last task on the previous page.
func (v *handler) ListTasks(ctx context.Context, req *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	if v.refused != nil {
		return nil, v.refused
	}
	size := cmp.Or(req.PageSize, usualPage)
	if size < 1 || size > mostPage {
		return nil, fmt.Errorf("%w: pageSize is 1 to %d", sdk.ErrInvalidParams, mostPage)
	}
	out := &sdk.ListTasksResponse{Tasks: []*sdk.Task{}, PageSize: size}
	begun := req.PageToken == ""
	for info, err := range v.server.Host.List(ctx) {
		if err != nil {
			return nil, err
		}
		r, err := v.find(ctx, info.ID)
		if errors.Is(err, sdk.ErrTaskNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if req.ContextID != "" && r.context != req.ContextID || req.Status != "" && state(r.status) != req.Status ||
			req.StatusTimestampAfter != nil && r.at.Before(*req.StatusTimestampAfter) {
			continue
		}
		out.TotalSize++
		switch {
		case !begun:
			begun = r.id == req.PageToken
		case len(out.Tasks) == size:
			out.NextPageToken = string(out.Tasks[size-1].ID)
		default:
			t := r.task(limit(req.HistoryLength))
			if req.HistoryLength == nil {
				t.History = nil
			}
			if !req.IncludeArtifacts {
				t.Artifacts = nil
			}
			out.Tasks = append(out.Tasks, t)
		}
	}
	if !begun {
		return nil, fmt.Errorf("%w: no such page", sdk.ErrInvalidParams)
	}
	return out, nil
}
