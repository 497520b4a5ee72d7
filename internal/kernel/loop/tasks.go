package loop

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/inspan/inspan/event"
)

// Task actions.
const (
	TaskAdd     event.TaskAction = "add"
	TaskClaim   event.TaskAction = "claim"   // an open task is assigned to By
	TaskRelease event.TaskAction = "release" // it is open again; by its holder, or the session
	TaskDone    event.TaskAction = "done"    // by its holder, or the session
	TaskAssign  event.TaskAction = "assign"  // it is taken from its holder and is For another, or for all; by the session
	TaskEdit    event.TaskAction = "edit"    // fields that are set replace those of the task; by who added it, or the session
)

// MaxTasks bounds the tasks in a list. Finished tasks make room for new ones, the oldest first.
const MaxTasks = 200

// Tasks is the task list that a session shares with its children. Its methods return a changed copy.
type Tasks struct {
	Last int    `json:"last,omitempty"` // number of the newest
	List []Task `json:"list,omitempty"`
}

// Task is one entry of the list.
type Task struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	By     string `json:"by"`               // session that added it
	Call   string `json:"call,omitempty"`   // call that added it, of that session
	Holder string `json:"holder,omitempty"` // session that claimed or finished it; empty if none
	// After are the tasks that must be done before it can be claimed, and For is the session that alone can claim
	// it; empty means any can.
	After []string  `json:"after,omitempty"`
	At    time.Time `json:"at,omitzero"` // it can't be claimed before
	For   string    `json:"for,omitempty"`
	// Assigned is the number of the event that made it For that session.
	Assigned uint64 `json:"assigned,omitempty"`
	Done     bool   `json:"done,omitempty"`
	Result   string `json:"result,omitempty"` // the outcome
	// Check is the command that must pass before it is done. Evidence is the call of Holder that ran it and found that
	// it passes; empty as long as none has.
	Check    string `json:"check,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	event.Taint
}

// Find returns a task; nil if there is none.
func (t Tasks) Find(id string) *Task {
	for i := range t.List {
		if t.List[i].ID == id {
			return &t.List[i]
		}
	}
	return nil
}

// WaitsFor returns the tasks that must be done before a task can be claimed.
func (t Tasks) WaitsFor(task *Task) (ids []string) {
	for _, id := range task.After {
		if first := t.Find(id); first != nil && !first.Done { // a task that is no longer listed was done
			ids = append(ids, id)
		}
	}
	return ids
}

// Claimable reports whether a session can claim a task at a time.
func (t Tasks) Claimable(task *Task, session string, now time.Time) bool {
	return !task.Done && task.Holder == "" && (task.For == "" || task.For == session) && t.due(task, now)
}

// due reports whether nothing that a task waits for is left.
func (t Tasks) due(task *Task, now time.Time) bool {
	return len(t.WaitsFor(task)) == 0 && !now.Before(task.At)
}

// After returns the list after an event. Session is the owner of the list; it may release and finish the tasks of
// others. An event that doesn't fit changes nothing.
func (t Tasks) After(session string, e event.Event) Tasks {
	switch b := e.Body.(type) {
	case event.Tasked:
		return t.tasked(session, b, e)
	case event.Returned:
		return t.release(func(holder string) bool { return holder == b.Child }, func(task *Task) bool { return b.Idle && !t.due(task, e.Time) })
	case event.Forked: // the children work for the original session
		return t.release(func(string) bool { return true }, func(*Task) bool { return false })
	}
	return t
}

func (t Tasks) tasked(session string, b event.Tasked, e event.Event) Tasks {
	t.List = slices.Clone(t.List)
	if b.Action == TaskAdd {
		return t.add(b, e.Seq)
	}
	task := t.Find(b.ID)
	if task == nil || task.Done {
		return t
	}
	allowed := task.Holder == b.By || b.By == session
	switch {
	case b.Action == TaskClaim && t.Claimable(task, b.By, e.Time):
		task.Holder = b.By
	case b.Action == TaskRelease && allowed:
		task.Holder = ""
	case b.Action == TaskDone && allowed && b.Check == task.Check:
		task.Holder, task.Done, task.Result = b.By, true, b.Text
		if task.Check != "" {
			task.Evidence = b.Call
		}
	case b.Action == TaskAssign && b.By == session:
		task.Holder, task.For, task.Assigned = "", b.For, e.Seq
	case b.Action == TaskEdit && (b.By == session || b.By == task.By) && t.areEarlier(b.After, task.ID):
		task.Text, task.Check = cmp.Or(b.Text, task.Text), cmp.Or(b.Check, task.Check)
		if b.After != nil {
			task.After = b.After
		}
		if !b.At.IsZero() {
			task.At = b.At
		}
	default:
		return t
	}
	task.Untrusted, task.Private = task.Untrusted || b.Untrusted, task.Private || b.Private
	return t
}

// areEarlier reports whether a task can come after others: only tasks that were added earlier, so that none waits for
// itself.
func (t Tasks) areEarlier(after []string, task string) bool {
	self, _ := strconv.Atoi(task)
	return !slices.ContainsFunc(after, func(id string) bool {
		n, err := strconv.Atoi(id)
		return err != nil || n < 1 || n >= self || strconv.Itoa(n) != id
	})
}

// Added returns the task that a call added; nil if there is none.
func (t Tasks) Added(by, call string) *Task {
	for i := range t.List {
		if task := &t.List[i]; call != "" && task.By == by && task.Call == call {
			return task
		}
	}
	return nil
}

func (t Tasks) add(b event.Tasked, seq uint64) Tasks {
	if known := t.Added(b.By, b.Call); known != nil && known.Text == b.Text {
		return t
	}
	if !t.areEarlier(b.After, strconv.Itoa(t.Last+1)) {
		return t
	}
	if len(t.List) >= MaxTasks {
		i := slices.IndexFunc(t.List, func(task Task) bool { return task.Done })
		if i < 0 {
			return t
		}
		t.List = slices.Delete(t.List, i, i+1)
	}
	t.Last++
	task := Task{ID: strconv.Itoa(t.Last), Text: b.Text, By: b.By, Call: b.Call, After: b.After, At: b.At, For: b.For, Check: b.Check, Taint: b.Taint}
	if task.For != "" {
		task.Assigned = seq
	}
	t.List = append(t.List, task)
	return t
}

// release reopens the unfinished tasks of matching sessions, for all unless one is kept for the session.
func (t Tasks) release(match func(session string) bool, kept func(*Task) bool) Tasks {
	t.List = slices.Clone(t.List)
	for i := range t.List {
		task := &t.List[i]
		if !task.Done && task.Holder != "" && match(task.Holder) {
			task.Holder = ""
		}
		if task.For != "" && match(task.For) && !kept(task) {
			task.For = ""
		}
	}
	return t
}
