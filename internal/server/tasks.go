package server

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

// submit admits a task.
func (c *call) submit(spec Spec) (Task, error) {
	if err := c.check(c, c.who.tenant, spec); err != nil {
		return Task{}, err
	}
	if c.isDraining() {
		return Task{}, ending()
	}
	wait := defaultTimeout
	if spec.Timeout > 0 {
		wait = time.Duration(spec.Timeout) * time.Second
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	t := Task{
		ID: "task_" + strings.ToLower(rand.Text()), Tenant: c.who.tenant, By: c.who.name, Spec: spec, Created: now, Deadline: now.Add(wait),
	}
	t.Workspace = c.workspace(t)
	id, err := c.record(ofTask, t.ID, t, spec, func() error { return c.admit(t.Tenant, now) })
	if err != nil {
		return Task{}, err
	}
	c.stir()
	t, _ = c.book.task(id)
	return t, nil
}

// admit reports why a tenant can have no more tasks. The book's lock is held.
func (c *call) admit(name string, now time.Time) error {
	bounds := Tenant{}
	if t := c.book.tenants[name]; t != nil {
		bounds = *t
	}
	used := c.book.usage(name)
	full := func(retry int, format string, args ...any) error {
		return &Problem{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Message: fmt.Sprintf(format, args...), Retry: retry}
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

const mostKey = 256 // bytes of an idempotency key

// record writes an object into the book, once for the same key of the same visitor, and returns its
// id: that of the first time, if this is not it. Said is what the client has sent.
func (c *call) record(of, id string, v, said any, admit func() error) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	request, err := json.Marshal([]any{of, said})
	if err != nil {
		return "", err
	}
	m := event.Recorded{Of: of, ID: id, Value: raw, By: c.who.name, Key: c.r.Header.Get("Idempotency-Key")}
	if m.Key != "" {
		m.Sent = tool.Digest(request)
	}
	if len(m.Key) > mostKey {
		return "", wrong("Idempotency-Key", fmt.Sprintf("it has %d bytes", len(m.Key)), fmt.Sprintf("at most %d", mostKey))
	}
	err = c.book.change(c, func() ([]event.Body, error) {
		if before, again := c.book.sent[sender{m.By, m.Key}]; again && m.Key != "" {
			if before.digest != m.Sent {
				return nil, conflict("this Idempotency-Key was used for a different request")
			}
			id = before.id
			return nil, nil
		}
		if admit != nil {
			if err := admit(); err != nil {
				return nil, err
			}
		}
		bodies := []event.Body{m}
		if of == ofTask {
			bodies = append(bodies, event.Staged{Task: id, Stage: event.StageSubmitted, By: m.By})
		}
		return bodies, nil
	})
	return id, err
}

// page asks for a part of a list.
type page struct {
	Stage string `json:"-" query:"stage"`
	After string `json:"-" query:"after"`
	Limit *int   `json:"-" query:"limit"`
}

// most is how many things a client wants at most, or what there is without its word.
func most(l *int, without int) (int, error) {
	switch {
	case l == nil:
		return without, nil
	case *l < 1 || *l > mostListed:
		return 0, wrong("limit", fmt.Sprintf("it is %d", *l), fmt.Sprintf("1 to %d", mostListed))
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
	if in.Stage != "" && !over(event.Stage(in.Stage)) && follow(event.Stage(in.Stage)) == nil {
		return taskPage{}, wrong("stage", fmt.Sprintf("it is %q", words.OneLine(in.Stage, 80)), "a stage, such as running or completed")
	}
	if in.After != "" {
		if _, err := c.find(in.After); err != nil {
			return taskPage{}, err
		}
	}
	list := c.book.list(in.After, limit+1, func(t *Task) bool { return c.who.sees(t) && (in.Stage == "" || in.Stage == string(t.Stage)) })
	out := taskPage{Tasks: list[:min(limit, len(list))]}
	if out.Tasks == nil {
		out.Tasks = []Task{}
	}
	if len(list) > limit {
		out.Next = list[limit-1].ID
	}
	return out, nil
}

// find is a task that the visitor sees. Of others it is not told whether they are there.
func (c *call) find(id string) (Task, error) {
	t, known := c.book.task(id)
	if !known || !c.who.sees(&t) {
		return Task{}, missing("task", id)
	}
	return t, nil
}

// one names a task.
type one struct {
	ID string `json:"-" path:"id"`
}

func (c *call) task(in one) (Task, error) { return c.find(in.ID) }

func (c *call) cancelTask(in one) (Task, error) {
	t, err := c.find(in.ID)
	if err != nil || over(t.Stage) || t.cancelled != "" {
		return t, err
	}
	err = c.book.change(c, func() ([]event.Body, error) {
		return []event.Body{event.Recorded{Of: ofCancel, ID: t.ID, By: c.who.name}}, nil
	})
	c.stir()
	if err != nil {
		return Task{}, err
	}
	return c.find(in.ID)
}

func (c *call) removeWorkspace(in one) (nothing, error) {
	t, err := c.find(in.ID)
	switch {
	case err != nil:
		return nothing{}, err
	case !over(t.Stage):
		return nothing{}, conflict("task %s is %s; cancel it first", t.ID, t.Stage)
	case t.Spec.Folder != "":
		return nothing{}, conflict("task %s worked in a folder of the server's operator", t.ID)
	}
	defer c.stir()
	defer c.weigh()
	return nothing{}, os.RemoveAll(c.workspace(t))
}

// said is what is said to the agent of a task.
type said struct {
	ID   string `json:"-" path:"id"`
	Text string `json:"text" jsonschema:"the model sees it with the results of its current calls"`
}

// sent is where something came to in a session.
type sent struct {
	Seq uint64 `json:"seq" jsonschema:"number of the event in the session"`
}

func (c *call) message(in said) (sent, error) {
	t, err := c.find(in.ID)
	switch {
	case err != nil:
		return sent{}, err
	case strings.TrimSpace(in.Text) == "":
		return sent{}, wrong("text", "it is missing", "a text")
	case len(in.Text) > mostPrompt:
		return sent{}, wrong("text", fmt.Sprintf("it has %d bytes", len(in.Text)), fmt.Sprintf("at most %d", mostPrompt))
	case t.Session == "" || over(t.Stage) || t.Stage == event.StageFinalizing:
		return sent{}, conflict("task %s is %s, so its agent can't be steered", t.ID, t.Stage)
	}
	e, err := c.Send(c, t.Session, app.Message{By: c.who.name, Text: in.Text, Steer: true})
	return sent{e.Seq}, err
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
	t, err := c.find(in.ID)
	if err != nil {
		return err
	}
	if t.Session == "" && !over(t.Stage) {
		if t, err = c.until(in.ID, func(t Task) bool { return t.Session != "" || over(t.Stage) }); err != nil {
			return err
		}
	}
	if t.Session == "" {
		return conflict("task %s is %s and has no session", t.ID, t.Stage)
	}
	return c.streamEvents(c, t.Session, after, in.Live, over(t.Stage))
}

// until waits for a task to be so.
func (c *call) until(id string, so func(Task) bool) (Task, error) {
	for {
		news := c.book.news()
		t, err := c.find(id)
		if err != nil || so(t) {
			return t, err
		}
		select {
		case <-news:
		case <-c.Done():
			return t, c.Err()
		case <-c.ctx.Done():
			return t, ending()
		}
	}
}

// invoke submits a task and returns it when it is over.
func (c *call) invoke(spec Spec) (Task, error) {
	t, err := c.submit(spec)
	if err != nil {
		return Task{}, err
	}
	return c.until(t.ID, func(t Task) bool { return over(t.Stage) })
}
