package a2a

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

const (
	maxText    = 1 << 20 // bytes of one outgoing text
	maxHistory = 200     // messages, unless fewer are requested
)

// record is a task as recorded in a session's log.
type record struct {
	id, context string
	sender      string // who began it; empty if there are no messages yet
	first       string // key of the message that began it; empty if unknown
	known       bool   // its client has sent more messages since
	foreign     bool   // it works for another session, or in another folder than the server
	at          time.Time
	fold        transcript.Fold
	history     []*sdk.Message
	status      inspan.Status
}

// read reads the log of a session. Sessions begun by another sender, or in another folder, are not found.
func (s *Server) read(ctx context.Context, id, sender string) (*record, error) {
	if id == "" || id == "last" || strings.ContainsAny(id, `/\`) {
		return nil, sdk.ErrTaskNotFound
	}
	w, err := s.Host.Watch(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	defer func() { _ = w.Close() }() // it was only read
	r := &record{id: id, context: id, status: w.Status()}
	for e, err := range s.Host.Events(ctx, id) {
		if err != nil {
			return nil, notFound(err)
		}
		if e.Seq > r.status.Seq {
			break // it came after the status
		}
		if opened, is := e.Body.(event.Opened); is {
			r.foreign = opened.Parent != "" || keep.Real(opened.Root) != keep.Real(s.Root)
		}
		r.apply(e)
		if r.foreign || r.sender != "" && r.sender != sender {
			return nil, sdk.ErrTaskNotFound
		}
	}
	if r.sender == "" {
		return nil, sdk.ErrTaskNotFound
	}
	return r, nil
}

// notFound returns the error for a session that can't be read.
func notFound(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return sdk.ErrTaskNotFound
}

// apply records an event.
func (r *record) apply(e event.Event) {
	r.at = e.Time
	switch b := e.Body.(type) {
	case event.Forked: // earlier events belong to another task
		if r.context == r.id {
			r.context = b.From
		}
		r.fold, r.history, r.first, r.known = transcript.Fold{}, nil, "", false
	case event.Said:
		if r.sender == "" {
			r.sender = b.By
		}
		if b.Context != "" && r.context == r.id {
			r.context = b.Context
		}
		if len(r.history) == 0 {
			r.first = b.Message
		} else {
			r.known = true
		}
	case event.Cancelled:
		r.known = r.known || b.By == r.sender
	case event.Decided:
		r.known = r.known || b.By == r.sender
	case event.Steered:
		r.known = r.known || b.By == r.sender
	}
	for _, item := range r.fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Said:
			if i.Seq == e.Seq { // otherwise it was added when it was said
				r.add(e, sdk.MessageRoleUser, i.Parts.Text())
			}
		case *transcript.Reply:
			if i.State == transcript.Whole {
				r.add(e, sdk.MessageRoleAgent, strings.TrimSpace(i.Text))
			}
		}
	}
}

func (r *record) add(e event.Event, role sdk.MessageRole, text string) {
	if text == "" {
		return
	}
	r.history = append(r.history, r.message(e.Seq, role, sdk.NewTextPart(bounded(text))))
}

// message returns a message of the task, with an id that is always the same.
func (r *record) message(seq uint64, role sdk.MessageRole, parts ...*sdk.Part) *sdk.Message {
	return &sdk.Message{ID: fmt.Sprintf("%s-%d", r.id, seq), ContextID: r.context, TaskID: sdk.TaskID(r.id), Role: role, Parts: parts}
}

// task returns the task in the protocol's form. A negative number of messages means all, within reason.
func (r *record) task(messages int) *sdk.Task {
	if messages < 0 || messages > maxHistory {
		messages = maxHistory
	}
	t := &sdk.Task{ID: sdk.TaskID(r.id), ContextID: r.context, Status: r.currentState()}
	t.History = r.history[max(0, len(r.history)-messages):]
	if isOver(t.Status.State) {
		t.Artifacts = r.artifacts()
	}
	return t
}

// currentState returns the state of the task.
func (r *record) currentState() sdk.TaskStatus {
	at := r.at
	st := sdk.TaskStatus{State: state(r.status), Timestamp: &at}
	switch st.State {
	case sdk.TaskStateInputRequired:
		st.Message = r.message(r.status.Seq, sdk.MessageRoleAgent, questionFor(firstQuestion(r.status))...)
	case sdk.TaskStateCompleted, sdk.TaskStateSubmitted, sdk.TaskStateWorking:
	default:
		text := strings.ReplaceAll(string(r.status.Stopped.Reason), "_", " ")
		if r.status.Stopped.Detail != "" {
			text += ": " + r.status.Stopped.Detail
		}
		st.Message = r.message(r.status.Seq, sdk.MessageRoleAgent, sdk.NewTextPart(bounded(text)))
	}
	return st
}

// artifacts returns the last words, and the changed files.
func (r *record) artifacts() []*sdk.Artifact {
	var out []*sdk.Artifact
	if r.fold.Last != "" {
		out = append(out, &sdk.Artifact{ID: "answer", Name: "Answer", Parts: sdk.ContentParts{sdk.NewTextPart(bounded(r.fold.Last))}})
	}
	if len(r.fold.Files) > 0 {
		files := make([]any, len(r.fold.Files))
		for i, path := range r.fold.Files {
			files[i] = path
		}
		out = append(out, &sdk.Artifact{
			ID: "files", Name: "Files changed",
			Parts: sdk.ContentParts{sdk.NewDataPart(map[string]any{"files": files})},
		})
	}
	return out
}

// state returns the task state for the status of its session.
func state(st inspan.Status) sdk.TaskState {
	switch {
	case len(st.Questions()) > 0:
		return sdk.TaskStateInputRequired
	case st.Active:
		return sdk.TaskStateWorking
	case st.Stopped == nil:
		return sdk.TaskStateSubmitted
	case st.Stopped.Reason == event.ReasonDone:
		return sdk.TaskStateCompleted
	case st.Stopped.Reason == event.ReasonCancelled:
		return sdk.TaskStateCanceled
	case st.Stopped.Reason == event.ReasonRefused:
		return sdk.TaskStateRejected
	case slices.Contains([]llm.Kind{llm.KindAuth, llm.KindAuthExpired, llm.KindBilling}, st.Stopped.Cause):
		return sdk.TaskStateAuthRequired
	}
	return sdk.TaskStateFailed
}

// isOver reports whether a task has ended for good.
func isOver(s sdk.TaskState) bool { return s.Terminal() }

// isAtRest reports whether a task does nothing until its client sends a message.
func isAtRest(s sdk.TaskState) bool {
	return isOver(s) || s == sdk.TaskStateInputRequired || s == sdk.TaskStateAuthRequired
}

// bounded bounds a text.
func bounded(s string) string {
	s = text.Clean(s)
	if len(s) <= maxText {
		return s
	}
	return text.Head(s, maxText) + "\n[the rest was cut off]"
}
