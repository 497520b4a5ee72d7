package loop

import (
	"slices"
	"strconv"

	"github.com/inspan/inspan/event"
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
	// it; empty: any can.
	After  []string `json:"after,omitempty"`
	For    string   `json:"for,omitempty"`
	Done   bool     `json:"done,omitempty"`
	Result string   `json:"result,omitempty"` // the outcome
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

// After returns the list after an event. Session is the owner of the list; it may release and finish the tasks of
// others. An event that doesn't fit changes nothing.
func (t Tasks) After(session string, e event.Event) Tasks {
	switch b := e.Body.(type) {
	case event.Tasked:
		return t.tasked(session, b)
	case event.Returned:
		return t.release(func(holder string) bool { return holder == b.Child })
	case event.Forked: // the children work for the original session
		return t.release(func(string) bool { return true })
	}
	return t
}

func (t Tasks) tasked(session string, b event.Tasked) Tasks {
	t.List = slices.Clone(t.List)
	if b.Action == event.TaskAdd {
		return t.add(b)
	}
	task := t.Find(b.ID)
	if task == nil || task.Done {
		return t
	}
	allowed := task.Holder == b.By || b.By == session
	switch {
	case b.Action == event.TaskClaim && task.Holder == "" && (task.For == "" || task.For == b.By) && len(t.WaitsFor(task)) == 0:
		task.Holder = b.By
	case b.Action == event.TaskRelease && allowed:
		task.Holder = ""
	case b.Action == event.TaskDone && allowed:
		task.Holder, task.Done, task.Result = b.By, true, b.Text
		task.Untrusted, task.Private = task.Untrusted || b.Untrusted, task.Private || b.Private
	}
	return t
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

func (t Tasks) add(b event.Tasked) Tasks {
	if known := t.Added(b.By, b.Call); known != nil && known.Text == b.Text {
		return t
	}
	for _, id := range b.After { // only earlier tasks, so that none waits for itself
		if n, err := strconv.Atoi(id); err != nil || n < 1 || n > t.Last || strconv.Itoa(n) != id {
			return t
		}
	}
	if len(t.List) >= MaxTasks {
		i := slices.IndexFunc(t.List, func(task Task) bool { return task.Done })
		if i < 0 {
			return t
		}
		t.List = slices.Delete(t.List, i, i+1)
	}
	t.Last++
	t.List = append(t.List, Task{ID: strconv.Itoa(t.Last), Text: b.Text, By: b.By, Call: b.Call, After: b.After, For: b.For, Taint: b.Taint})
	return t
}

// release reopens the unfinished tasks of matching sessions, for all.
func (t Tasks) release(match func(session string) bool) Tasks {
	t.List = slices.Clone(t.List)
	for i := range t.List {
		task := &t.List[i]
		if !task.Done && task.Holder != "" && match(task.Holder) {
			task.Holder = ""
		}
		if task.For != "" && match(task.For) {
			task.For = ""
		}
	}
	return t
}
