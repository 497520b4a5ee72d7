package server

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/inspan/inspan"
)

// Fork is the session whose copy a task continues.
type Fork struct {
	Task string `json:"task" jsonschema:"id of a task of yours that is not over"`
	At   uint64 `json:"at,omitempty" jsonschema:"number of the last event to copy (default: all)"`
}

// forked returns the spec of a task that forks another: that of the other, with the fields that its own spec
// may set. It works in the other's workspace.
func (v *Visit) forked(own Spec) (Spec, error) {
	if v.Carry != nil {
		return own, Wrong("fork", "a fork works in the workspace of another task, and those of this server travel, each with one task", "a new task")
	}
	other, err := v.Find(own.Fork.Task)
	switch {
	case err != nil || over(other.Stage):
		return own, Wrong("fork.task", "no such task, or it is over", "the id of a task that is not over")
	case v.book.furnished(other.ID):
		return own, Wrong("fork.task", "it belongs to a Managed Agents session, which can't be forked", "a task of POST /api/v1/tasks")
	case other.Session == "":
		return own, Conflict("task %s is %s, and has no session yet", other.ID, other.Stage)
	}
	st, err := v.status(other.Session)
	switch {
	case err != nil:
		return own, err
	case own.Fork.At > st.Seq:
		return own, Wrong("fork.at", fmt.Sprintf("the session has %d events", st.Seq), "the number of one of them")
	}
	spec, says := other.Spec, reflect.ValueOf(own)
	its := []string{"prompt", "title", "fork", "max_cost", "max_turns", "timeout_seconds", "open", "idle_timeout_seconds"}
	for i := range says.NumField() {
		name, _, _ := strings.Cut(says.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case slices.Contains(its, name):
			reflect.ValueOf(&spec).Elem().Field(i).Set(says.Field(i))
		case !says.Field(i).IsZero():
			return own, Wrong(name, "a fork has that of its task", "the request without it")
		}
	}
	if spec.Session != "" { // its folder is that of the other's session
		spec.Session, spec.Folder = "", ""
	}
	if spec.Repository = nil; spec.Folder == "" {
		spec.Beside = cmp.Or(other.Spec.Beside, other.ID)
	}
	if home, _ := v.book.task(spec.Beside); spec.Beside != "" && over(home.Stage) {
		return own, Conflict("task %s, in whose workspace it would work, is over", home.ID)
	}
	fork := Fork{other.ID, own.Fork.At}
	spec.Fork = &fork
	return spec, nil
}

// open opens the session of a task that has none yet: a new one, or a copy of another.
func (w *work) open(ctx context.Context, host *inspan.Host, t Task, dir string) (*inspan.Session, error) {
	return w.inTurn(ctx, func() (*inspan.Session, error) {
		switch {
		case t.Spec.Session != "":
			return host.Open(ctx, t.Spec.Session)
		case t.Spec.Fork == nil:
			return host.New(ctx, dir)
		}
		other, _ := w.book.task(t.Spec.Fork.Task)
		return host.Fork(ctx, other.Session, t.Spec.Fork.At)
	})
}

// inTurn opens a session while no other one is being opened.
func (s *Server) inTurn(ctx context.Context, open func() (*inspan.Session, error)) (*inspan.Session, error) {
	end, err := s.opens.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return open()
}

// furnished reports whether an object of a door has the id of a task.
func (b *book) furnished(task string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shelves {
		if s.all[task] != nil {
			return true
		}
	}
	return false
}

// works reports whether a task that is not over, except one, works in the workspace of another.
func (s *Server) works(beside, but string) bool {
	return len(s.book.openIf(func(t *Task) bool { return t.Spec.Beside == beside && t.ID != but })) > 0
}
