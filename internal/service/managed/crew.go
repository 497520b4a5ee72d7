package managed

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

const pollsWithin = 30 * time.Second // time since its last poll in which a worker counts as polling

// crew tracks the workers of a server's sessions.
type crew struct {
	*server.Server

	mu     sync.Mutex
	polled map[[2]string]time.Time // by environment and worker
}

// saw records that a worker has polled.
func (c *crew) saw(environment, worker string) {
	if worker == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	for key, at := range c.polled {
		if now.Sub(at) > pollsWithin {
			delete(c.polled, key)
		}
	}
	c.polled[[2]string{environment, worker}] = now
}

// polling returns the number of workers that poll.
func (c *crew) polling(environment string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.polled {
		if key[0] == environment && c.Clock.Now().Sub(at) <= pollsWithin {
			n++
		}
	}
	return n
}

// follow makes sure that running sessions have a work item, until ctx is done.
func (c *crew) follow(ctx context.Context) {
	v := c.Self(ctx)
	for ctx.Err() == nil {
		news := v.News()
		if err := c.supply(v); err != nil && c.Warn != nil && ctx.Err() == nil {
			c.Warn("work for workers can't be queued: " + err.Error())
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// supply makes the missing items.
func (c *crew) supply(v *server.Visit) error {
	runs := func(t *server.Task) bool {
		return t.Spec.Elsewhere && (t.Stage == server.StageRunning || t.Stage == server.StageWaiting)
	}
	for _, t := range v.Unfinished(runs) {
		_, k, err := objectOf[keptSession](v.Object, ofSession, t.ID)
		if err != nil || k.worked(v) {
			continue // it is not a session of this door, or was deleted
		}
		if st, err := v.Status(t.ID); err != nil || !st.Active {
			continue // its run has ended, and its task is about to be idle
		}
		if err := v.Edit(func(e *server.Edit) error { return supplied(e, t.ID) }); err != nil {
			return err
		}
	}
	return nil
}

// worked reports whether a session has an item that is not stopped, or needs none.
func (k keptSession) worked(s interface {
	Object(of, id string) (server.Object, error)
},
) bool {
	_, w, err := objectOf[keptWork](s.Object, ofWork(k.Environment), k.Work)
	return !k.Elsewhere || err == nil && w.Stopped.IsZero()
}

// supplied makes an item for a session, if it has none that is not stopped. The previous item is removed.
func supplied(e *server.Edit, session string) error {
	o, err := e.Object(ofSession, session)
	if err != nil {
		return nil //nolint:nilerr // it was deleted
	}
	var k keptSession
	if err := json.Unmarshal(o.Value, &k); err != nil || k.worked(e) {
		return err
	}
	of := ofWork(k.Environment)
	next := keptWork{Session: session}
	if k.Work != "" {
		var before keptWork
		if last, err := e.Object(of, k.Work); err == nil && json.Unmarshal(last.Value, &before) == nil && before.Metadata[begunCall] != "" {
			next.Metadata = map[string]string{begunCall: before.Metadata[begunCall]} // its result may be missing
		}
		e.Remove(of, k.Work)
	}
	k.Works++
	k.Work = derived("work_", session, fmt.Sprint(k.Works))
	if err := e.Put(of, k.Work, o.Tenant, next, server.Content{}); err != nil {
		return err
	}
	return e.Put(ofSession, session, o.Tenant, k, o.Content)
}
