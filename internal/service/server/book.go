package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
)

// Kinds of objects in the book.
const (
	ofTask     = "task"
	ofIdentity = "identity"
	ofTenant   = "tenant"
	ofCancel   = "cancel" // a request to cancel a task
	ofClose    = "close"  // a request to end an open task
	ofRewind   = "rewind" // an open task was rewound
	ofSpec     = "spec"   // the spec of a task from its next run on
	ofLeader   = "leader" // address of the server that has the lease of the book
)

// book is the server's state: a fold over its log, which other processes write too.
type book struct {
	log    *ledger
	redact func(event.Body) event.Body

	turn sync.Mutex // for changing the log or folding it; taken before mu, and held while the disk is slow
	seq  uint64     // of the last folded event

	mu         sync.Mutex // of all below
	tasks      map[string]*Task
	bySession  map[string]*Task
	order      []string // of tasks, the oldest first
	unfinished []*Task  // those of them that are not over
	used       map[string]*usage
	identities map[string]*Identity
	tenants    map[string]*Tenant
	sent       map[sender]answer
	shelves    map[string]*shelf        // objects of doors, by kind
	contents   map[string]bool          // blobs of these
	dropped    []string                 // blobs without an object
	ends       map[string]chan struct{} // of unfinished tasks that have followers; closed when they end
	leader     leader                   // the last recorded one
	grown      chan struct{}            // closed and replaced when the fold has changed

	whose   func(of, id string, value json.RawMessage) Place // nil means objects of doors have no owner
	tells   func(Change) []string                            // the events that webhooks get for changes of doors; nil means none
	hooks   map[string]*hook
	removed map[string]Webhook // removed webhooks, with their positions in lists
	notices []notice           // not yet settled by an enabled webhook, oldest first
}

// sender is the visitor that may repeat a request, and the request's key.
type sender struct{ by, key string }

// answer is the result of the first request with a key.
type answer struct{ digest, id string }

func newBook(log *ledger, redact func(event.Body) event.Body) *book {
	if redact == nil {
		redact = func(b event.Body) event.Body { return b }
	}
	return &book{
		log: log, redact: redact, tasks: map[string]*Task{}, bySession: map[string]*Task{}, identities: map[string]*Identity{},
		tenants: map[string]*Tenant{}, sent: map[sender]answer{}, ends: map[string]chan struct{}{}, shelves: map[string]*shelf{}, contents: map[string]bool{},
		used: map[string]*usage{}, grown: make(chan struct{}),
	}
}

// usage is the total of the tasks of a tenant.
type usage struct {
	open   int         // tasks that are not over
	spent  float64     // US dollars that finished tasks have cost, and open ones up to their last idle moment
	recent []time.Time // times of submissions, in the hour before the last one
	kept   int64       // bytes of the contents of objects
}

// submitted counts one more task.
func (u *usage) submitted(at time.Time) {
	u.open++
	u.recent = append(u.hour(at), at)
}

// hour returns the times of the submissions in the hour before a time.
func (u *usage) hour(at time.Time) []time.Time {
	i := slices.IndexFunc(u.recent, func(t time.Time) bool { return at.Sub(t) < time.Hour })
	if i < 0 {
		return nil
	}
	return u.recent[i:]
}

// left returns the rest of the tenant's budget for a task, including the cost of the task so far, and at least a
// cent; 0 means there is no budget.
func (b *book) left(t Task) float64 {
	bounds := b.tenant(t.Tenant)
	b.mu.Lock()
	defer b.mu.Unlock()
	if bounds.Budget == 0 {
		return 0
	}
	left := bounds.Budget - b.usage(t.Tenant).spent
	if t.Result != nil {
		left += t.Result.Cost // the limit is for the whole session
	}
	return max(0.01, left)
}

// usage returns the usage of a tenant. The caller holds the lock.
func (b *book) usage(tenant string) *usage {
	if b.used[tenant] == nil {
		b.used[tenant] = &usage{}
	}
	return b.used[tenant]
}

// change appends the events that f returns for the current state of the book. Nothing else in this process
// changes the book meanwhile.
func (b *book) change(ctx context.Context, f func() ([]event.Body, error)) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	if err := b.mend(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	bodies, err := f()
	b.mu.Unlock()
	if err != nil || len(bodies) == 0 {
		return err
	}
	for i := range bodies {
		bodies[i] = b.redact(bodies[i])
	}
	if err := b.log.Append(context.WithoutCancel(ctx), bodies...); err != nil {
		return fmt.Errorf("write the book: %w", err)
	}
	return b.read(ctx)
}

// add appends events, whatever the state of the book is.
func (b *book) add(ctx context.Context, bodies ...event.Body) error {
	return b.change(ctx, func() ([]event.Body, error) { return bodies, nil })
}

// mend is heal for a caller that holds turn.
func (b *book) mend(ctx context.Context) error {
	if err := errors.Join(b.log.mend(ctx), b.read(ctx)); err != nil {
		return fmt.Errorf("write the book: %w", err)
	}
	return nil
}

// heal folds events that are in the log although the disk reported an error.
func (b *book) heal(ctx context.Context) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	return b.mend(ctx)
}

// catchUp folds the new events of the log.
func (b *book) catchUp(ctx context.Context) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	return b.read(ctx)
}

// read is catchUp for a caller that holds turn. Readers of the book don't wait for the disk.
func (b *book) read(ctx context.Context) error {
	var came []event.Event
	var failed error
	for e, err := range b.log.Read(context.WithoutCancel(ctx), b.seq) {
		if err == nil {
			err = event.Understood(e)
		}
		if err != nil {
			failed = fmt.Errorf("read the book: %w", err)
			break
		}
		came = append(came, e)
	}
	if len(came) == 0 {
		return failed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range came {
		b.apply(e)
	}
	b.seq = came[len(came)-1].Seq
	close(b.grown)
	b.grown = make(chan struct{})
	return failed
}

// wait waits for the next event, of any writer, and folds it.
func (b *book) wait(ctx context.Context) error {
	b.turn.Lock()
	seq := b.seq
	b.turn.Unlock()
	if err := b.log.Wait(ctx, seq); err != nil {
		return err
	}
	return b.catchUp(ctx)
}

// news returns a channel that is closed when the fold changes.
func (b *book) news() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grown
}

// apply folds an event. Unknown and impossible events change nothing.
func (b *book) apply(e event.Event) {
	c := b.changing(e)
	switch body := e.Body.(type) {
	case event.Recorded:
		b.recorded(e.Time, body)
		b.hooked(e.Seq, body)
	case event.Staged:
		b.staged(e.Time, body)
	}
	b.note(e, c)
}

func (b *book) recorded(at time.Time, r event.Recorded) {
	switch r.Of {
	case ofTask:
		t := &Task{}
		if b.tasks[r.ID] != nil || json.Unmarshal(r.Value, t) != nil {
			return
		}
		t.ID, t.Created, t.History, t.Stage = r.ID, at, nil, ""
		b.tasks[r.ID] = t
		b.order, b.unfinished = append(b.order, r.ID), append(b.unfinished, t)
		b.usage(t.Tenant).submitted(at)
	case ofCancel:
		if t := b.tasks[r.ID]; t != nil && t.cancelled == "" {
			t.cancelled = r.By
		}
	case ofClose:
		if t := b.tasks[r.ID]; t != nil && t.closed == "" {
			t.closed = r.By
		}
	case ofRewind: // stored in the session
	case ofLeader:
		b.leader, _ = leaderIn(r)
	case ofSpec:
		if t := b.tasks[r.ID]; t != nil {
			_ = json.Unmarshal(r.Value, &t.Spec) // we wrote it
		}
	case ofIdentity:
		put(b.identities, r)
	case ofTenant:
		put(b.tenants, r)
	case ofWebhook, ofCursor, ofLetter: // see hooked
	default:
		if b.shelves[r.Of] == nil {
			b.shelves[r.Of] = &shelf{}
		}
		before, now := b.shelves[r.Of].put(at, r, b.place)
		if t := b.tasks[r.ID]; t != nil && now != nil {
			t.place = now.place
		}
		b.keeps(before, now)
	}
	if r.Key != "" {
		b.sent[sender{r.By, r.Key}] = answer{r.Sent, r.ID}
	}
}

// place returns the place of an object of a door with the given value. The caller holds the lock.
func (b *book) place(r event.Recorded, value json.RawMessage) (p Place) {
	if b.whose != nil {
		p = b.whose(r.Of, r.ID, value)
	}
	if t := b.tasks[p.Task]; t != nil {
		p.Agent = t.place.Agent
	}
	p.maker = r.By
	return p
}

// put stores the new value of an object, or removes it.
func put[T any](objects map[string]*T, r event.Recorded) {
	v := new(T)
	switch {
	case len(r.Value) == 0:
		delete(objects, r.ID)
	case json.Unmarshal(r.Value, v) == nil:
		objects[r.ID] = v
	}
}

func (b *book) staged(at time.Time, m event.Staged) {
	t := b.tasks[m.Task]
	if t == nil || !may(t.Stage, m.Stage) {
		return
	}
	from := t.Stage
	t.Stage, t.Why, t.moved = m.Stage, m.Why, at
	t.History = append(t.History, Move{m.Stage, at, m.Why})
	if m.Session != "" {
		t.Session, b.bySession[m.Session] = m.Session, t
	}
	u := b.usage(t.Tenant)
	if r := (&Result{}); len(m.Result) > 0 && json.Unmarshal(m.Result, r) == nil {
		if u.spent += r.Cost; t.Result != nil {
			u.spent -= t.Result.Cost // it is open, and has cost more since
		} else if from == StageHydrating {
			u.spent -= r.Cost // the task that it forks has paid for this
		}
		t.Result = r
	}
	if over(t.Stage) {
		b.unfinished = slices.DeleteFunc(b.unfinished, func(o *Task) bool { return o == t })
		u.open--
		if c := b.ends[t.ID]; c != nil {
			close(c)
			delete(b.ends, t.ID)
		}
	}
}

// move moves a task to its next stage. Only the goroutine that works on the task calls it, so nothing else
// moves the task meanwhile. Moves of several tasks share a sync of the disk.
func (b *book) move(ctx context.Context, m event.Staged) error {
	if t, known := b.task(m.Task); !known || !may(t.Stage, m.Stage) {
		return fmt.Errorf("task %s can't go to stage %s", m.Task, m.Stage)
	}
	if err := b.log.Append(context.WithoutCancel(ctx), b.redact(m)); err != nil {
		return fmt.Errorf("write the book: %w", err)
	}
	return b.catchUp(ctx)
}

// task returns the current state of a task.
func (b *book) task(id string) (Task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tasks[id]
	if t == nil {
		return Task{}, false
	}
	return t.copied(), true
}

// taskOf returns the task of a session.
func (b *book) taskOf(session string) (Task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.bySession[session]
	if t == nil {
		return Task{}, false
	}
	return t.copied(), true
}

// list returns the tasks that keep accepts, newest first, starting after the one with the id after, and at most so
// many.
func (b *book) list(after string, most int, keep func(*Task) bool) (out []Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	begun := after == ""
	for _, id := range slices.Backward(b.order) {
		if len(out) == most {
			break
		}
		if t := b.tasks[id]; begun && keep(t) {
			out = append(out, t.copied())
		}
		begun = begun || id == after
	}
	return out
}

// open returns the tasks that are not over, oldest first, without their histories.
func (b *book) open() []Task { return b.openIf(func(*Task) bool { return true }) }

// openIf returns those that keep accepts. Keep must not change them.
func (b *book) openIf(keep func(*Task) bool) (out []Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.unfinished {
		if keep(t) {
			out = append(out, *t)
			out[len(out)-1].History = nil
		}
	}
	return out
}

// ended returns a channel that is closed when a task has ended.
func (b *book) ended(id string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.ends[id]
	if c != nil {
		return c
	}
	c = make(chan struct{})
	if t := b.tasks[id]; t == nil || over(t.Stage) {
		close(c)
	} else {
		b.ends[id] = c
	}
	return c
}

// bounded returns the tenants that have a limit for the size of their workspaces.
func (b *book) bounded() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]bool{}
	for name, t := range b.tenants {
		if t.Disk > 0 {
			out[name] = true
		}
	}
	return out
}

// tenant returns a tenant; an unknown one has no limits.
func (b *book) tenant(name string) Tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tenants[name]; t != nil {
		return *t
	}
	return Tenant{Name: name}
}
