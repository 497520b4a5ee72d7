package server

import (
	"errors"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Sessions without a task belong to a person's own terminals. A server with [Server.Ours] shows them to
// visitors who see all tenants, as sessions of a task without an id. Each process may write inputs into a log,
// so visitors can send them messages and answer their questions. They run in other processes or not at all: a
// task with [Spec.Session] continues one.

// seesOurs reports whether the visitor sees the sessions that belong to no task.
func (v *Visit) seesOurs() bool { return v.Ours && v.who.root }

// ours returns the task that stands for a session without a task.
func (v *Visit) ours(session string) (Task, error) {
	if !v.seesOurs() {
		return Task{}, Missing("session", session)
	}
	return Task{Session: kin.Lead(session)}, nil
}

// there returns an error if there is no such session, whatever the text is.
func (v *Visit) there(session string) error {
	if !store.IsID(session) {
		return Missing("session", session)
	}
	if _, err := v.Sessions.Usage(v, session); err != nil {
		return Missing("session", session)
	}
	return nil
}

// left reports whether a task has continued a session of no task, and is over: the session is free again.
func (t *Task) left() bool { return t.Spec.Session != "" && over(t.Stage) }

// driven reports whether the session of a task is running, or will run when it gets a message.
func (v *Visit) driven(t Task) (bool, error) {
	if t.ID != "" {
		return !over(t.Stage), nil
	}
	h, err := v.Sessions.Holder(v, t.Session)
	return h != nil, err
}

// write appends an input to a session. A running session reads it at once; otherwise it waits.
func (v *Visit) write(session string, input event.Body) (uint64, error) {
	log, err := v.Sessions.Open(v, session)
	if err != nil {
		return 0, err
	}
	seq, err := v.put(log, input)
	return seq, errors.Join(err, log.Close())
}

// takenOver returns the spec of a task that continues a session of no task: it works in the same folder, and
// stays open.
func (v *Visit) takenOver(own Spec) (Spec, error) {
	t, err := v.ours(own.Session)
	if err != nil || v.there(own.Session) != nil || t.Session != own.Session {
		return own, Wrong("session", "no session of this id without a task", "the id of one")
	}
	if of, known := v.book.taskOf(own.Session); known && !of.left() {
		return own, Conflict("session %s already belongs to a task", own.Session)
	}
	if own.Folder != "" || own.Repository != nil || own.Beside != "" || own.Fork != nil {
		return own, Wrong("session", "it can't be combined with a folder or repository", "the session alone")
	}
	held, err := v.Sessions.Holder(v, own.Session)
	if err != nil {
		return own, err
	}
	if held != nil {
		return own, Conflict("session %s runs in process %d; end it there first", own.Session, held.PID)
	}
	st, err := v.status(own.Session)
	if err != nil {
		return own, err
	}
	if own.Mode == "" && st.Mode.Check() == nil {
		own.Mode = tool.Modes()[min(slices.Index(tool.Modes(), st.Mode), slices.Index(tool.Modes(), v.mode(v.who.tenant)))]
	}
	own.Folder, own.Open = st.Root, true
	return own, nil
}
