package managed

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/inspan/inspan/internal/service/server"
)

// Work of self-hosted environments. An item is a running session whose tools run on a worker. It is in the
// book, so leases outlast the server; the list of polling workers is not.
//
//   - A running session has one item that is not stopped: [crew.follow] sees to that, whatever started the session and
//     whichever worker has released the previous item.
//   - A claim makes its worker the Nth holder of the item. The token of the claim is valid only for that holder:
//     heartbeats, results and stops of the previous one are refused.
//   - The holder extends the lease by heartbeats. An item with an expired lease goes to the next worker that polls.

// ofWork returns the kind of the work items of an environment.
func ofWork(environment string) string { return "managed.work:" + environment }

const (
	usualLease  = 30 * time.Second
	longest     = 300              // seconds of a lease
	mostBlock   = 999              // milliseconds
	noHeartbeat = "NO_HEARTBEAT"   // expected value for a holder's first heartbeat
	beats       = time.RFC3339Nano // the name of a heartbeat
)

func workEndpoints() []endpoint {
	const all, one = "environments/{environment}/work", "environments/{environment}/work/{work}"
	return []endpoint{
		get(all, (*door).listWork, "limit", "page"),
		get(all+"/poll", (*door).pollWork, "block_ms", "reclaim_older_than_ms").by(workers),
		get(all+"/stats", (*door).workStats),
		get(one, (*door).readWork),
		post(one, reading((*door).updateWork)).by(workers),
		act(one+"/ack", (*door).ackWork).by(workers),
		act(one+"/heartbeat", (*door).beatWork, "desired_ttl_seconds", "expected_last_heartbeat").by(workers),
		post(one+"/stop", (*door).stopWork).by(workers),
	}
}

// keptWork is a work item in the book.
type keptWork struct {
	Session  string            `json:"session"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Nth      int               `json:"nth,omitempty"` // holder, counted from 1; 0: not held yet
	Claimed  time.Time         `json:"claimed,omitzero"`
	Acked    time.Time         `json:"acked,omitzero"`
	Started  time.Time         `json:"started,omitzero"`
	Beat     time.Time         `json:"beat,omitzero"`  // last heartbeat of the holder
	Until    time.Time         `json:"until,omitzero"` // end of the lease
	Asked    time.Time         `json:"asked,omitzero"` // when the stop was requested
	Stopped  time.Time         `json:"stopped,omitzero"`
}

// state returns the state of an item, in terms of the wire.
func (k keptWork) state() string {
	switch {
	case !k.Stopped.IsZero():
		return "stopped"
	case !k.Asked.IsZero():
		return "stopping"
	case !k.Beat.IsZero():
		return "active"
	case !k.Claimed.IsZero():
		return "starting"
	}
	return "queued"
}

// free reports whether a worker may claim an item. An item that was claimed and not acknowledged for longer than
// unacked is free too; 0 means it must wait for the end of its lease.
func (k keptWork) free(now time.Time, unacked time.Duration) bool {
	switch {
	case !k.Stopped.IsZero():
		return false
	case k.Claimed.IsZero() || !now.Before(k.Until):
		return true
	}
	return unacked > 0 && k.Acked.IsZero() && k.Beat.IsZero() && now.Sub(k.Claimed) > unacked
}

// shownWork is an item as clients see it.
type shownWork struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Environment string            `json:"environment_id"`
	State       string            `json:"state"`
	Data        map[string]string `json:"data"`
	Metadata    map[string]string `json:"metadata"`
	Secret      *string           `json:"secret"`
	CreatedAt   string            `json:"created_at"`
	AckedAt     *string           `json:"acknowledged_at"`
	StartedAt   *string           `json:"started_at"`
	BeatAt      *string           `json:"latest_heartbeat_at"`
	AskedAt     *string           `json:"stop_requested_at"`
	StoppedAt   *string           `json:"stopped_at"`
}

func (k keptWork) shown(environment string, o server.Object) shownWork {
	return shownWork{
		ID: o.ID, Type: "work", Environment: environment, State: k.state(), Metadata: patched(k.Metadata, nil),
		Data: map[string]string{"type": "session", "id": k.Session}, CreatedAt: stamp(o.Created), AckedAt: when(k.Acked),
		StartedAt: when(k.Started), BeatAt: when(k.Beat), AskedAt: when(k.Asked), StoppedAt: when(k.Stopped),
	}
}

// hosting returns the environment of the request, if its work is done by workers.
func (d *door) hosting() (string, error) {
	id := d.r.PathValue("environment")
	_, k, err := objectOf[keptEnvironment](d.Object, ofEnvironment, id)
	if err == nil && !k.Config.elsewhere() {
		err = invalid("environment_id", "its sessions work on the server", "a self_hosted environment")
	}
	return id, err
}

func (d *door) readWork() (any, error) {
	environment, err := d.hosting()
	if err != nil {
		return nil, err
	}
	o, k, err := objectOf[keptWork](d.Object, ofWork(environment), d.r.PathValue("work"))
	if err != nil {
		return nil, err
	}
	return k.shown(environment, o), nil
}

func (d *door) listWork() (any, error) {
	environment, err := d.hosting()
	if err != nil {
		return nil, err
	}
	all := entries[keptWork](d.Objects, ofWork(environment))
	return pageOf(d, all, 100, func(e entry[keptWork]) int64 { return e.Turn },
		func(e entry[keptWork]) (shownWork, error) { return e.kept.shown(environment, e.Object), nil })
}

func (d *door) workStats() (any, error) {
	environment, err := d.hosting()
	if err != nil {
		return nil, err
	}
	now, depth, pending := d.Clock.Now(), 0, 0
	var oldest time.Time
	for _, e := range entries[keptWork](d.Objects, ofWork(environment)) {
		switch {
		case e.kept.free(now, 0):
			depth++
		case e.kept.state() == "starting" && e.kept.Acked.IsZero():
			pending++
		default:
			continue
		}
		if oldest.IsZero() {
			oldest = e.Created
		}
	}
	return map[string]any{
		"type": "work_queue_stats", "depth": depth, "pending": pending, "oldest_queued_at": when(oldest),
		"workers_polling": d.crew.polling(environment),
	}, nil
}

// pollWork gives a worker an item, or null if none comes while it waits.
func (d *door) pollWork() (any, error) {
	environment, err := d.hosting()
	if err != nil {
		return nil, err
	}
	block, err := d.number("block_ms", 0, 1, mostBlock)
	if err != nil {
		return nil, err
	}
	unacked, err := d.number("reclaim_older_than_ms", 0, 1, int(24*time.Hour/time.Millisecond))
	if err != nil {
		return nil, err
	}
	d.crew.saw(environment, d.r.Header.Get("Anthropic-Worker-ID"))
	due, stop := d.Clock.At(d.Clock.Now().Add(time.Duration(block) * time.Millisecond))
	defer stop()
	for last := block == 0; ; {
		news := d.News()
		w, err := d.claim(environment, time.Duration(unacked)*time.Millisecond)
		switch {
		case err != nil:
			return nil, err
		case w != nil:
			return w, nil
		case last:
			return json.RawMessage("null"), nil
		}
		select {
		case <-news:
		case <-due:
			last = true
		case <-d.Done():
			return nil, d.Err()
		}
	}
}

// errTaken says that another worker was faster.
var errTaken = errors.New("another worker has taken the item")

// claim makes the visitor the holder of the oldest free item; nil means there is none.
func (d *door) claim(environment string, unacked time.Duration) (*shownWork, error) {
	of := ofWork(environment)
	for _, e := range entries[keptWork](d.Objects, of) {
		if !e.kept.free(d.Clock.Now(), unacked) {
			continue
		}
		t, err := d.Find(e.kept.Session)
		ended := err != nil || isOver(t)
		o, k, err := changed(d, of, e.ID, func(k *keptWork) error {
			now := d.Clock.Now()
			switch {
			case !k.free(now, unacked):
				return errTaken
			case ended || !k.Asked.IsZero():
				k.Stopped = now
				return nil
			}
			*k = keptWork{Session: k.Session, Metadata: k.Metadata, Nth: k.Nth + 1, Claimed: now, Until: now.Add(usualLease)}
			return nil
		})
		switch {
		case errors.Is(err, errTaken) || err == nil && !k.Stopped.IsZero():
			continue
		case err != nil:
			return nil, err
		}
		w := k.shown(environment, o)
		if token := d.Token(server.Grant{Of: of, ID: o.ID, Nth: k.Nth, Tenant: o.Tenant}); token != "" {
			raw, err := json.Marshal(map[string]string{"sessions_token": token})
			if err != nil {
				return nil, err
			}
			w.Secret = new(base64.RawURLEncoding.EncodeToString(raw))
		}
		return &w, nil
	}
	return nil, nil
}

// lost returns the error for a worker that no longer holds an item.
func lost() error {
	return &server.Problem{
		Status: http.StatusPreconditionFailed, Type: "precondition_failed",
		Message: "the lease is lost: another worker has the item, or it was queued again",
	}
}

// held returns an error if the visitor has a grant of an item that it no longer holds.
func (d *door) held(k keptWork) error {
	if g := d.Grant(); g != nil && g.Nth != k.Nth {
		return lost()
	}
	return nil
}

// changeWork changes the item of the request, if its visitor may.
func (d *door) changeWork(f func(k *keptWork, now time.Time) error) (w shownWork, k keptWork, err error) {
	environment, err := d.hosting()
	if err != nil {
		return w, k, err
	}
	id := d.r.PathValue("work")
	if _, err := d.Object(ofWork(environment), id); err != nil && d.Grant() != nil {
		return w, k, lost() // the session has another by now
	}
	o, k, err := changed(d, ofWork(environment), id, func(k *keptWork) error {
		if err := d.held(*k); err != nil {
			return err
		}
		return f(k, d.Clock.Now())
	})
	o.ID = id // it may be gone by now
	return k.shown(environment, o), k, err
}

// changedWork is [door.changeWork] with the item as the response.
func (d *door) changedWork(f func(k *keptWork, now time.Time) error) (any, error) {
	w, _, err := d.changeWork(f)
	return w, err
}

func (d *door) updateWork(in struct {
	Metadata opt[map[string]*string] `json:"metadata"`
},
) (any, error) {
	return d.changedWork(func(k *keptWork, _ time.Time) error {
		k.Metadata = patched(k.Metadata, in.Metadata.value)
		return checkMetadata(k.Metadata)
	})
}

func (d *door) ackWork() (any, error) {
	return d.changedWork(func(k *keptWork, now time.Time) error {
		if k.Claimed.IsZero() || !k.Stopped.IsZero() {
			return conflict("the item is %s; poll for one", k.state())
		}
		if k.Acked.IsZero() {
			k.Acked = now
		}
		return nil
	})
}

// beatWork extends the lease of the holder.
func (d *door) beatWork() (any, error) {
	seconds, err := d.number("desired_ttl_seconds", int(usualLease/time.Second), 1, longest)
	if err != nil {
		return nil, err
	}
	expected := d.query.Get("expected_last_heartbeat")
	_, k, err := d.changeWork(func(k *keptWork, now time.Time) error {
		if expected == "" && d.Grant() == nil { // nothing else distinguishes the holder from previous ones
			return invalid("expected_last_heartbeat", "it is missing", "last_heartbeat of the one before, at first "+noHeartbeat)
		}
		if !k.Stopped.IsZero() {
			return nil
		}
		is := noHeartbeat
		if !k.Beat.IsZero() {
			is = k.Beat.UTC().Format(beats)
		}
		if k.Claimed.IsZero() || cmp.Or(expected, is) != is {
			return lost()
		}
		if !now.After(k.Beat) {
			now = k.Beat.Add(1) // each needs a name of its own
		}
		if k.Started.IsZero() {
			k.Started = now
		}
		k.Beat, k.Until = now, now.Add(time.Duration(seconds)*time.Second)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"type": "work_heartbeat", "state": k.state(), "lease_extended": k.Stopped.IsZero(), "ttl_seconds": seconds,
		"last_heartbeat": k.Beat.UTC().Format(beats),
	}, nil
}

// stopWork ends an item, or asks its holder to. A running session gets another.
func (d *door) stopWork() (any, error) {
	var in struct {
		Force bool `json:"force"`
	}
	if err := d.readAny(&in); err != nil {
		return nil, err
	}
	return d.changedWork(func(k *keptWork, now time.Time) error {
		switch {
		case !k.Stopped.IsZero():
			return conflict("the item is stopped")
		case in.Force || k.free(now, 0):
			k.Stopped = now
		case k.Asked.IsZero():
			k.Asked = now
		}
		return nil
	})
}
