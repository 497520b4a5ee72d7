package server

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Submit admits a task.
func (c *Visit) Submit(spec Spec) (Task, error) {
	return c.submitted("task_", spec, spec, nil, nil)
}

// SubmitAs admits a task together with an object of a kind, which has the same id: one that begins with the prefix.
// Said is the whole request, as for [Visit.Make]. More gets that id and puts related objects; nil means there are
// none. If it fails, nothing is admitted.
func (c *Visit) SubmitAs(of, prefix string, object, said any, spec Spec, more func(e *Edit, id string) error) (Task, error) {
	raw, err := shelved(c.who.tenant, object, Content{})
	if err != nil {
		return Task{}, err
	}
	return c.submitted(prefix, spec, said, &event.Recorded{Of: of, Value: raw, By: c.who.name}, more)
}

func (c *Visit) submitted(prefix string, spec Spec, said any, beside *event.Recorded, more func(*Edit, string) error) (Task, error) {
	if err := c.check(c, c.who.tenant, spec); err != nil {
		return Task{}, err
	}
	if c.isDraining() {
		return Task{}, ending()
	}
	if spec.Fork != nil {
		forked, err := c.forked(spec)
		if err != nil {
			return Task{}, err
		}
		spec = forked
	}
	if spec.Session != "" {
		taken, err := c.takenOver(spec)
		if err != nil {
			return Task{}, err
		}
		spec = taken
	}
	if spec.Beside != "" && c.Carry != nil {
		return Task{}, Wrong("beside", "on this server each workspace moves with one task", "a new task")
	}
	if spec.Beside != "" {
		other, err := c.Find(spec.Beside)
		if err != nil || over(other.Stage) || other.Spec.Beside != "" {
			return Task{}, Wrong("beside", "no such task, it is over, or it shares the workspace of another", "the id of a task that stays open")
		}
	}
	now := moment()
	t := Task{
		ID: newID(prefix), Tenant: c.who.tenant, By: c.who.name, Spec: spec, Created: now,
	}
	switch {
	case spec.Timeout > 0:
		t.Deadline = now.Add(time.Duration(spec.Timeout) * time.Second)
	case !spec.Open:
		t.Deadline = now.Add(defaultTimeout)
	}
	t.Workspace = c.workspace(t)
	id, err := c.record(ofTask, t.ID, said, func(e *Edit) error {
		if err := c.admit(t.Tenant, now); err != nil {
			return err
		}
		err := e.write(ofTask, t.ID, t)
		e.bodies = append(e.bodies, event.Staged{Task: t.ID, Stage: StageSubmitted, By: c.who.name})
		if beside != nil {
			beside.ID = t.ID
			e.bodies = append(e.bodies, *beside)
		}
		if err == nil && more != nil {
			err = more(e, t.ID)
		}
		return err
	})
	if err != nil {
		return Task{}, err
	}
	c.stir()
	t, _ = c.book.task(id)
	return t, nil
}

// admit returns the reason why a tenant can have no more tasks. The caller holds the book's lock.
func (c *Visit) admit(name string, now time.Time) error {
	bounds := Tenant{}
	if t := c.book.tenants[name]; t != nil {
		bounds = *t
	}
	used := c.book.usage(name)
	full := func(retry int, format string, args ...any) error {
		p := &Problem{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Message: fmt.Sprintf(format, args...), Retry: retry}
		if c.who.confined() { // a confined visitor may not learn of other tasks
			p.Message, p.Retry = "the tenant has reached one of its limits", 0
		}
		return p
	}
	switch {
	case bounds.Queue > 0 && used.open >= bounds.Queue:
		return full(10, "the tenant has %d unfinished tasks; its limit is %d", used.open, bounds.Queue)
	case bounds.Budget > 0 && used.spent >= bounds.Budget:
		return full(0, "the tenant has spent $%.2f; its budget is $%.2f", used.spent, bounds.Budget)
	}
	if hour := used.hour(now); bounds.PerHour > 0 && len(hour) >= bounds.PerHour {
		free := hour[len(hour)-bounds.PerHour].Add(time.Hour)
		return full(int(math.Ceil(free.Sub(now).Seconds())), "the tenant can submit %d tasks an hour", bounds.PerHour)
	}
	return nil
}

// moment returns the current time, in the precision of the book.
func moment() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

const mostKey = 256 // bytes of an idempotency key

// record calls f to change the book, once for each key of a visitor, and returns the id of the object that f
// puts first; for a repeated key, that of the first time. Said is the client's request.
func (c *Visit) record(of, id string, said any, f func(*Edit) error) (string, error) {
	request, err := json.Marshal([]any{of, said})
	if err != nil {
		return "", err
	}
	key, digest := c.key, ""
	if key != "" {
		digest = tool.Digest(request)
	}
	err = c.Edit(func(e *Edit) error {
		if before, again := c.book.sent[sender{c.who.name, key}]; again && key != "" {
			if before.digest != digest {
				return Conflict("this Idempotency-Key was used for a different request")
			}
			id = before.id
			return nil
		}
		if err := f(e); err != nil {
			return err
		}
		first, _ := e.bodies[0].(event.Recorded)
		first.Key, first.Sent = key, digest
		e.bodies[0] = first
		return nil
	})
	return id, err
}

// repeated reports whether the visitor has used the idempotency key of the request before.
func (c *Visit) repeated() bool {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	_, again := c.book.sent[sender{c.who.name, c.key}]
	return again && c.key != ""
}

// page is a request for a part of a list.
type page struct {
	Stage string `json:"-" query:"stage"`
	After string `json:"-" query:"after"`
	Limit *int   `json:"-" query:"limit"`
}

// most returns the largest number of entries that a client wants, or the default.
func most(l *int, without int) (int, error) {
	switch {
	case l == nil:
		return without, nil
	case *l < 1 || *l > mostListed:
		return 0, Wrong("limit", fmt.Sprintf("it is %d", *l), fmt.Sprintf("1 to %d", mostListed))
	}
	return *l, nil
}

// taskPage is a part of the list of tasks.
type taskPage struct {
	Tasks []Task `json:"tasks"`
	Next  string `json:"next,omitempty" jsonschema:"value of after for the next page"`
}

const mostListed = 1000

func (c *call) tasks(in page) (taskPage, error) {
	limit, err := most(in.Limit, 100)
	if err != nil {
		return taskPage{}, err
	}
	if c.r.URL.Query().Has("stage") && !slices.Contains(stages(), event.Stage(in.Stage)) {
		return taskPage{}, Wrong("stage", fmt.Sprintf("it is %q", words.OneLine(in.Stage, 80)), "a stage, such as running or completed")
	}
	if in.After != "" {
		if _, err := c.Find(in.After); err != nil {
			return taskPage{}, err
		}
	}
	list := c.book.list(in.After, limit+1, func(t *Task) bool {
		return c.who.sees(t.Tenant, t.place) && (in.Stage == "" || in.Stage == string(t.Stage))
	})
	out := taskPage{Tasks: list[:min(limit, len(list))]}
	if out.Tasks == nil {
		out.Tasks = []Task{}
	}
	if len(list) > limit {
		out.Next = list[limit-1].ID
	}
	return out, nil
}

// one names a task.
type one struct {
	ID string `json:"-" path:"id"`
}

func (c *call) submit(spec Spec) (Task, error) { return c.Submit(spec) }

func (c *call) task(in one) (Task, error) { return c.Find(in.ID) }

func (c *call) cancelTask(in one) (Task, error) { return c.Cancel(in.ID) }

func (c *call) closeTask(in one) (Task, error) { return c.Finish(in.ID) }

// removal names the workspace to remove.
type removal struct {
	ID      string `json:"-" path:"id"`
	Discard bool   `json:"-" query:"discard"` // also unmerged changes in copies of its agents
}

func (c *call) removeWorkspace(in removal) (nothing, error) {
	t, err := c.Find(in.ID)
	switch {
	case err != nil:
		return nothing{}, err
	case !over(t.Stage):
		return nothing{}, Conflict("task %s is %s; cancel it first", t.ID, t.Stage)
	case t.Spec.Folder+t.Spec.Beside != "":
		return nothing{}, Conflict("task %s worked in a folder of yours", t.ID)
	case c.works(t.ID, ""):
		return nothing{}, Conflict("another task works in the workspace of task %s", t.ID)
	}
	if t.Session != "" && !in.Discard {
		if why := c.unmerged(t); why != "" {
			return nothing{}, Conflict("the workspace of task %s stays: %s", t.ID, why)
		}
	}
	defer c.stir()
	defer c.weigh()
	return nothing{}, c.discard(t)
}

// stopped is the reason why a run is interrupted.
type stopped struct {
	ID     string `json:"-" path:"id"`
	Reason string `json:"reason,omitempty" jsonschema:"for people"`
}

// accepted is the position of an input in a session.
type accepted struct {
	Seq uint64 `json:"seq" jsonschema:"number of the event in the session"`
}

func (c *call) interrupt(in stopped) (accepted, error) {
	if len(in.Reason) > mostPrompt {
		return accepted{}, Wrong("reason", fmt.Sprintf("it has %d bytes", len(in.Reason)), fmt.Sprintf("at most %d", mostPrompt))
	}
	seq, err := c.Interrupt(in.ID, in.Reason, c.Key())
	return accepted{seq}, err
}

// newMessage is a message to the agent of a task.
type newMessage struct {
	ID   string `json:"-" path:"id"`
	Text string `json:"text" jsonschema:"what to say"`
}

func (c *call) message(in newMessage) (accepted, error) {
	parts, err := spoken("text", in.Text)
	if err != nil {
		return accepted{}, err
	}
	seq, err := c.Say(in.ID, parts, c.Key())
	return accepted{seq}, err
}

// followed says how a session is followed.
type followed struct {
	ID    string `json:"-" path:"id"`
	Live  bool   `json:"-" query:"live"`
	After string `json:"-" query:"after"`
}

func (c *call) events(in followed) error {
	after, err := lastEventID(c.r)
	if err != nil {
		return err
	}
	events, err := c.Follow(in.ID, Feed{After: after, Live: in.Live})
	if err != nil {
		return err
	}
	c.stream(events)
	return nil
}
