package managed

import (
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
)

// threadPrefix is the prefix of thread ids; the rest is our session's id.
const threadPrefix = "sthr_"

func threadEndpoints() []endpoint {
	return []endpoint{
		get("sessions/{id}/threads", (*door).threads, "limit", "page", "statuses", "statuses[]"),
		get("sessions/{id}/threads/{thread}", (*door).thread),
		act("sessions/{id}/threads/{thread}/archive", (*door).archiveThread),
		get("sessions/{id}/threads/{thread}/events", (*door).threadEvents, "limit", "page"),
		get("sessions/{id}/threads/{thread}/stream", (*door).streamThread, "event_deltas", "event_deltas[]"),
	}
}

// threadView is a thread as clients see it.
type threadView struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Session    string         `json:"session_id"`
	Parent     *string        `json:"parent_thread_id"`
	Agent      threadAgent    `json:"agent"`
	Status     string         `json:"status"`
	Stats      map[string]any `json:"stats"`
	Usage      map[string]any `json:"usage"`
	Workflow   *string        `json:"workflow_run_id"`
	CreatedAt  string         `json:"created_at"`
	UpdatedAt  string         `json:"updated_at"`
	ArchivedAt *string        `json:"archived_at"`
}

// allThreads returns the threads of a session: its own first, then those of subagents.
func (d *door) allThreads(id string) ([]threadView, error) {
	v, err := d.session(id)
	if err != nil {
		return nil, err
	}
	_, k, err := objectOf[keptSession](d.Object, ofSession, id)
	if err != nil {
		return nil, err
	}
	st, err := d.Status(id)
	if err != nil {
		return nil, err
	}
	main := threadView{
		ID: threadPrefix + id, Type: "session_thread", Session: id, Agent: threadAgent{sessionAgent: v.Agent}, Status: v.Status, Stats: v.Stats, Usage: v.Usage,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, ArchivedAt: v.ArchivedAt,
	}
	out := []threadView{main}
	for _, c := range st.Children {
		h, err := d.history(id, c.Child)
		if err != nil {
			return nil, err
		}
		t := main
		t.ID, t.Parent, t.ArchivedAt, t.Status = threadPrefix+c.Child, &main.ID, when(k.Threads[c.Child]), idle
		if t.Agent.Name = agentName(c.Agent); c.Open && v.Status != terminated {
			t.Status = running
		}
		t.Usage = usageOf(inspan.Status{Usage: c.Usage, Cost: c.Cost})
		if n := len(h.events); n > 0 {
			t.CreatedAt, t.UpdatedAt = stamp(h.events[0].At), stamp(h.events[n-1].At)
			t.Stats = map[string]any{"duration_seconds": h.events[n-1].At.Sub(h.events[0].At).Seconds()}
		}
		out = append(out, t)
	}
	return out, nil
}

func (d *door) threads() (any, error) {
	all, err := d.allThreads(d.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	wanted := d.list("statuses")
	var found []int // indexes in all, which only grows
	for i, t := range all {
		if len(wanted) == 0 || slices.Contains(wanted, t.Status) {
			found = append(found, i)
		}
	}
	return pageOf(d, found, 1000, func(i int) int { return i },
		func(i int) (threadView, error) { return all[i], nil })
}

func (d *door) thread() (any, error) {
	all, err := d.allThreads(d.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t threadView) bool { return t.ID == d.r.PathValue("thread") })
	if i < 0 {
		return nil, missing("thread", d.r.PathValue("thread"))
	}
	return all[i], nil
}

// child returns the session of the thread that the request names; empty means the session's own.
func (d *door) child() (string, error) {
	if _, err := d.thread(); err != nil {
		return "", err
	}
	if d.r.PathValue("thread") == threadPrefix+d.r.PathValue("id") {
		return "", nil
	}
	return strings.TrimPrefix(d.r.PathValue("thread"), threadPrefix), nil
}

func (d *door) archiveThread() (any, error) {
	child, err := d.child()
	if err != nil {
		return nil, err
	}
	if child == "" {
		return nil, conflict("the session's own thread is archived with the session")
	}
	if t, err := d.thread(); err != nil || t.(threadView).Status == running {
		return nil, conflict("the thread runs")
	}
	_, _, err = changed(d, ofSession, d.r.PathValue("id"), func(k *keptSession) error {
		if k.Threads == nil {
			k.Threads = map[string]time.Time{}
		}
		if k.Threads[child].IsZero() {
			k.Threads[child] = time.Now()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.thread()
}

func (d *door) threadEvents() (any, error) {
	child, err := d.child()
	if err != nil {
		return nil, err
	}
	return d.listEvents(child)
}

func (d *door) streamThread() (any, error) {
	child, err := d.child()
	if err != nil {
		return nil, err
	}
	return nil, d.streamEvents(child)
}
