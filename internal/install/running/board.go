package running

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Standing is the state of a session for a person who looks at all of them.
type Standing string

// Standings, the most important for a person first.
const (
	StandsWaiting Standing = "waiting" // for a person's answer
	StandsRunning Standing = "running"
	StandsIdle    Standing = "idle" // interrupted, cut off, or without messages
	StandsFailed  Standing = "failed"
	StandsDone    Standing = "done"
)

// Standings lists all of them, in that order.
func (*Board) Standings() []Standing {
	return []Standing{StandsWaiting, StandsRunning, StandsIdle, StandsFailed, StandsDone}
}

// Row is a session on the board that works for no other. Its texts may be by anyone.
type Row struct {
	ID, Name, Root string
	Modified       time.Time
	Standing       Standing
	Driven         bool // a process drives it now
	Agents         int  // sessions that have worked for it
	Open           bool // it may wait for a person, which only its log tells
	Stale          bool // the fields below were not read yet, or have changed since

	Known     bool   // the fields below were read
	Words     string // its question, why it has failed, or the last message
	Cost      float64
	Unpriced  bool
	Questions []inspan.Pending // questions for a person, including those of subagents
}

// Board is the state of all sessions. [Board.List] costs as much as listing the store; the log of a session is only
// read by [Board.Look]. It is safe for concurrent use. End it with [Board.Close].
type Board struct {
	table *Table

	mu      sync.Mutex
	infos   []store.Info        // those that work for no other, the most recently changed first
	stands  map[string]Standing // by the state in the store
	agents  map[string]int
	held    map[string]bool // when it was listed
	driven  map[string]bool // then or the time before: a driver that gets an answer lets go for a moment
	details map[string]detail
	watches map[string]*inspan.Watch // of driven sessions, so that only new events are read
}

// detail holds the facts from the log of a session.
type detail struct {
	seq    uint64 // of the last event then
	status inspan.Status
	err    error
}

// mostWatches is how many driven sessions stay open, and lookTime how long reading a log may take.
const (
	mostWatches = 64
	lookTime    = 10 * time.Second
)

// NewBoard returns a board of the sessions. Nothing is read before [Board.List].
func (t *Table) NewBoard() *Board {
	return &Board{table: t, held: map[string]bool{}, details: map[string]detail{}, watches: map[string]*inspan.Watch{}}
}

// Close closes the logs.
func (b *Board) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, w := range b.watches {
		_ = w.Close()
		delete(b.watches, id)
	}
}

// List lists the present sessions, and returns the board.
func (b *Board) List(ctx context.Context) ([]Row, error) {
	infos, err := b.table.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	held, err := b.holds(ctx, infos)
	if err != nil {
		return nil, err
	}
	stands, err := b.table.stand(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stands, b.agents, b.held, b.driven = stands, map[string]int{}, held, b.held
	for id := range held {
		b.driven[id] = true
	}
	b.infos = slices.DeleteFunc(infos, func(i store.Info) bool {
		if i.Parent != "" {
			b.agents[kin.Lead(i.ID)]++
		}
		return i.Parent != ""
	})
	for id, w := range b.watches {
		if !b.driven[id] {
			_ = w.Close()
			delete(b.watches, id)
		}
	}
	return b.rows(), nil
}

// holds returns the driven sessions. On this machine it only checks sessions for which, or for whose children,
// no run has ended, since each check costs a file.
func (b *Board) holds(ctx context.Context, infos []store.Info) (map[string]bool, error) {
	out := map[string]bool{}
	if b.table.Server != "" {
		held, err := b.table.Sessions.Held(ctx)
		for _, h := range held {
			out[h.Session] = true
		}
		return out, err
	}
	asked := map[string]bool{}
	for _, i := range infos {
		id := kin.Lead(i.ID)
		if i.Stop != "" || asked[id] {
			continue
		}
		asked[id] = true
		h, err := b.table.Sessions.Holder(ctx, id)
		if err != nil {
			return nil, err
		}
		if h != nil {
			out[id] = true
		}
	}
	return out, nil
}

// Look reads the new parts of the logs of sessions, and returns the board. Errors are shown in the row.
func (b *Board) Look(ctx context.Context, ids ...string) []Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, info := range b.infos {
		if slices.Contains(ids, info.ID) && ctx.Err() == nil {
			b.look(ctx, info)
		}
	}
	return b.rows()
}

// look reads one log. The caller holds the lock.
func (b *Board) look(ctx context.Context, info store.Info) {
	ctx, stop := context.WithTimeout(ctx, lookTime)
	defer stop()
	w, err := b.watches[info.ID], error(nil)
	if w == nil {
		w, err = b.table.Watch(ctx, info.ID)
	}
	d := detail{seq: info.Events, err: err}
	if err == nil {
		d.err = upTo(ctx, w, info.Events)
		d.status = w.Status()
		d.seq = max(d.seq, d.status.Seq)
		b.keep(info.ID, w, d.err)
	}
	b.details[info.ID] = d
}

// keep keeps the log of a driven session open, and closes any other.
func (b *Board) keep(id string, w *inspan.Watch, err error) {
	if _, kept := b.watches[id]; err == nil && b.driven[id] && (kept || len(b.watches) < mostWatches) {
		b.watches[id] = w
		return
	}
	delete(b.watches, id)
	_ = w.Close()
}

// upTo reads on to an event that is known to exist.
func upTo(ctx context.Context, w *inspan.Watch, seq uint64) error {
	if w.Status().Seq >= seq {
		return nil
	}
	for e, err := range w.Events(ctx, w.Status().Seq) {
		if err != nil || e.Seq >= seq {
			return err
		}
	}
	return ctx.Err()
}

// rows returns the board: waiting sessions, running ones, and the rest, each with the most recently changed
// first. The caller holds the lock.
func (b *Board) rows() []Row {
	var waiting, running []Row
	early := map[string]bool{}
	for i := range b.infos {
		if !b.open(&b.infos[i]) {
			continue
		}
		switch r := b.row(&b.infos[i]); r.Standing {
		case StandsWaiting:
			waiting, early[r.ID] = append(waiting, r), true
		case StandsRunning:
			running, early[r.ID] = append(running, r), true
		}
	}
	out := append(append(make([]Row, 0, len(b.infos)), waiting...), running...)
	for i := range b.infos {
		if !early[b.infos[i].ID] {
			out = append(out, b.row(&b.infos[i]))
		}
	}
	return out
}

// open reports whether a session may wait for a person.
func (b *Board) open(i *store.Info) bool {
	return i.Damage == nil && (b.driven[i.ID] || i.Stop == "" && !i.Empty)
}

func (b *Board) row(i *store.Info) Row {
	d, known := b.details[i.ID]
	r := Row{
		ID: i.ID, Name: cmp.Or(i.Name(), i.ID), Root: i.Root, Modified: i.Modified, Driven: b.driven[i.ID], Agents: b.agents[i.ID],
		Open: b.open(i), Known: known, Stale: !known || d.seq < i.Events,
	}
	if known && r.Open {
		r.Questions = inspan.Sets(d.status.Questions())
	}
	r.Standing = StandingOf(len(r.Questions) > 0, i.Stop, r.Driven && !i.Empty)
	if i.Damage != nil && len(r.Questions) == 0 {
		r.Standing = StandsFailed
	}
	if said, known := b.stands[i.ID]; known && len(r.Questions) == 0 {
		r.Standing = said
	}
	r.Cost, r.Unpriced, r.Words = d.status.Cost, d.status.Unpriced, said(i, d, r)
	return r
}

// StandingOf returns the state of a session from whether it has open questions, why its last run stopped (empty if it
// has not), and whether a process runs it.
func StandingOf(asks bool, stop event.Reason, runs bool) Standing {
	switch {
	case asks:
		return StandsWaiting
	case stop == event.ReasonDone:
		return StandsDone
	case stop == "" && runs:
		return StandsRunning
	case stop == "" || stop == event.ReasonCancelled:
		return StandsIdle
	}
	return StandsFailed
}

// said returns the text about a session next to its name.
func said(i *store.Info, d detail, r Row) string {
	st := d.status
	switch {
	case len(r.Questions) > 0:
		p := r.Questions[0]
		if p.IsQuestion {
			said, _ := words.Question(p.Call)
			return cmp.Or(said, p.Call.Name+" asks")
		}
		about := words.Subject(p.Call)
		if len(p.Set) > 0 {
			about = words.Together(p.Root, p.Calls())
		}
		return strings.TrimSuffix(p.Name()+" asks: "+about, ": ")
	case i.Damage != nil:
		return i.Damage.Error()
	case d.err != nil:
		return d.err.Error()
	case r.Standing == StandsFailed:
		why := strings.ReplaceAll(string(i.Stop), "_", " ")
		if st.Stopped != nil && st.Stopped.Detail != "" {
			why += ": " + st.Stopped.Detail
		}
		return why
	case i.Title != "" || !strings.HasPrefix(text.Flat(st.Task), i.Preview): // which is the name
		return st.Task
	}
	return ""
}

// mostFound is how many sessions a search finds.
const mostFound = 500

// Search finds the sessions in which, or in whose subagents, people, models or tools said a text. It returns the
// passages by the id of the row. When ctx ends, it returns the hits so far.
func (b *Board) Search(ctx context.Context, text string) (map[string]string, error) {
	found := map[string]string{}
	match, err := regexp.Compile("(?i)" + regexp.QuoteMeta(text))
	if err != nil {
		return nil, err
	}
	if b.table.Server != "" {
		return nil, errors.New("on a server only names can be searched; press / and type")
	}
	for hit, err := range b.table.Sessions.Search(ctx, match) {
		if err != nil && hit.Session == "" {
			return found, err
		}
		if id := kin.Lead(hit.Session); err == nil && found[id] == "" {
			found[id] = hit.Text
		}
		if ctx.Err() != nil || len(found) == mostFound {
			break
		}
	}
	return found, nil
}
