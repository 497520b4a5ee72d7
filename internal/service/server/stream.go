package server

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// feeds tells those who follow sessions that run here what happens. Nobody is waited for. The zero
// value is ready.
type feeds struct {
	mu    sync.Mutex
	seats map[string]map[*seat]bool // by session
	begun map[string]bool           // sessions of whose reply some text was told
}

// seat is one who follows a session.
type seat struct {
	feeds   *feeds
	session string
	events  chan event.Event // transient and stored; some are missing for whoever is slow; nil: not wanted
	turns   chan struct{}    // has a token if something was decided, asked or ended
	torn    bool             // some text of the reply that is written was not told: the rest is not either
}

const seatLength = 256

// follow takes a seat, for the events too if they are wanted. Whoever has it leaves it.
func (f *feeds) follow(session string, events bool) *seat {
	s := &seat{feeds: f, session: session, turns: make(chan struct{}, 1)}
	if events {
		s.events = make(chan event.Event, seatLength)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seats == nil {
		f.seats = map[string]map[*seat]bool{}
	}
	if f.seats[session] == nil {
		f.seats[session] = map[*seat]bool{}
	}
	f.seats[session][s] = true
	s.torn = f.begun[session]
	return s
}

func (s *seat) leave() {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	if delete(s.feeds.seats[s.session], s); len(s.feeds.seats[s.session]) == 0 {
		delete(s.feeds.seats, s.session)
	}
}

// tell passes an event on. Of a reply whose text somebody has missed some of they are told nothing
// more: the stored reply has it whole.
func (f *feeds) tell(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text(e)
	for s := range f.seats[e.Session] {
		if s.torn = s.torn && f.begun[e.Session]; !text || !s.torn {
			select {
			case s.events <- e:
			default: // it is slow, and finds what is stored in the log
				s.torn = s.torn || text
			}
		}
		if turns(e.Body) {
			select {
			case s.turns <- struct{}{}:
			default:
			}
		}
	}
}

// turns reports whether something was decided, asked or ended.
func turns(b event.Body) bool {
	switch b.(type) {
	case event.Waiting, event.Raised, event.Decided, event.Ended, event.Returned, event.Stopped, event.Claimed:
		return true
	}
	return false
}

// text reports whether an event is text of a reply that is written, and notes whether one is. The
// lock is held.
func (f *feeds) text(e event.Event) bool {
	d, is := e.Body.(event.Delta)
	switch {
	case is && !d.Void:
		if f.begun == nil {
			f.begun = map[string]bool{}
		}
		f.begun[e.Session] = true
		return true
	case is, !e.Transient():
		delete(f.begun, e.Session)
	}
	return false
}

const (
	beatEvery = 30 * time.Second // of a stream on which nothing happens
	writeTime = 30 * time.Second // that a client may take to accept what is sent
)

// SSE is a stream of server-sent events to one client.
type SSE struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

// NewSSE begins the answer to a client.
func NewSSE(w http.ResponseWriter) *SSE {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies pass on what comes as it comes
	w.WriteHeader(http.StatusOK)
	return &SSE{w: w, ctl: http.NewResponseController(w)}
}

// Send sends one event; without an id a client can't ask for what follows it. A client that does
// not take it in time is gone.
func (s *SSE) Send(id, name string, data []byte) error {
	text := "event: " + name + "\ndata: " + string(data) + "\n\n"
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	return s.write(text)
}

// Beat keeps the connection alive. It also sends the headers, if nothing was sent before.
func (s *SSE) Beat() error { return s.write(": \n\n") }

func (s *SSE) write(text string) error {
	if err := s.ctl.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.ctl.Flush()
}

// Feed says which events of a task are followed.
type Feed struct {
	Child string // those of the session of a subagent with that id; empty: those of the task's own
	After uint64 // behind this number
	Live  bool   // with the transient events of a run that goes on here; they have no number
}

// Follow yields the events of a session of a task, and then what comes, until the visitor goes, is
// not known any more, the server ends, or nothing more can come. An event without a body comes at
// the beginning, and now and then where nothing happens. It waits for a session if there is none
// yet.
func (v *Visit) Follow(id string, feed Feed) (iter.Seq[event.Event], error) {
	t, err := v.Find(id)
	if err == nil && t.Session == "" && !over(t.Stage) {
		t, err = v.Wait(id, func(t Task) bool { return t.Session != "" || over(t.Stage) })
	}
	if err == nil && t.Session == "" {
		err = Conflict("task %s is %s and has no session", t.ID, t.Stage)
	}
	session := t.Session
	if err == nil && feed.Child != "" {
		if session = feed.Child; !worksFor(session, t.Session) {
			err = Missing("session", session)
		}
	}
	if err != nil {
		return nil, err
	}
	return v.followed(session, t.ID, feed)
}

// followed yields the events of a session as [Visit.Follow] does, until its task has ended; without
// a task as long as they come.
func (v *Visit) followed(session, task string, feed Feed) (iter.Seq[event.Event], error) {
	src, err := v.sources.open(v, v.Sessions, session)
	if err != nil {
		return nil, err
	}
	if err := v.reaches(src.log, feed.After); err != nil {
		src.release()
		return nil, err
	}
	return func(yield func(event.Event) bool) {
		defer src.release()
		f := &follower{Visit: v, source: src, task: task, seq: feed.After, yield: yield}
		if feed.Live {
			place := v.live.follow(session, true)
			defer place.leave()
			f.live = place.events
		}
		if f.yield(event.Event{}) { // from here on nothing is missed
			f.follow()
		}
	}, nil
}

// reaches reports whether a log has an event with a number, behind which somebody wants to go on.
func (v *Visit) reaches(log store.Log, after uint64) error {
	if after == 0 {
		return nil
	}
	for _, err := range log.Read(v, after-1) {
		return err
	}
	return Wrong("Last-Event-ID", fmt.Sprintf("the session has no event %d", after), "the id of the last event that you have")
}

// follower is one who follows a session.
type follower struct {
	*Visit
	*source
	task  string
	seq   uint64             // of the last event that was yielded
	live  <-chan event.Event // nil: what is not stored is not wanted
	yield func(event.Event) bool
}

func (f *follower) follow() {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	var ended <-chan struct{}
	if f.task != "" {
		ended = f.book.ended(f.task)
	}
	for {
		grown, last := f.news(), isClosed(ended)
		if !f.Known() || !f.upTo(0) || last || !f.next(grown, ended, beat.C) {
			return
		}
	}
}

// upTo yields the stored events that were not yielded, up to a number; 0: all.
func (f *follower) upTo(seq uint64) bool {
	for e, err := range f.log.Read(f, f.seq) {
		if err != nil || !f.yield(e) {
			return false
		}
		if f.seq = e.Seq; e.Seq == seq {
			break
		}
	}
	return true
}

// next yields what the run shows until the log has grown or the task has ended, and what of that
// comes with it.
func (f *follower) next(grown, ended <-chan struct{}, beat <-chan time.Time) bool {
	for {
		select {
		case e := <-f.live:
			if !f.take(e) {
				return false
			}
		case <-grown:
			for len(f.live) > 0 { // what is shown before what is stored
				if !f.take(<-f.live) {
					return false
				}
			}
			return true
		case <-ended:
			return true
		case <-beat:
			return f.Known() && f.yield(event.Event{})
		case <-f.done:
			return false // the log can't be followed any more
		case <-f.Done():
			return false
		case <-f.ctx.Done():
			return false
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// take yields an event of the run: a stored one with all before it. Whoever was removed meanwhile
// gets none.
func (f *follower) take(e event.Event) bool {
	switch {
	case !f.Known():
		return false
	case e.Transient():
		return f.yield(e)
	case e.Seq <= f.seq:
		return true
	}
	return f.upTo(e.Seq)
}

// stream sends events to the client.
func (c *call) stream(events iter.Seq[event.Event]) {
	out := NewSSE(c.w)
	err := out.write("retry: 1000\n\n")
	for e := range events {
		if err != nil {
			return
		}
		err = out.event(e)
	}
}

// event sends an event of a session: under its number, if it has one. One without a body only keeps
// the connection alive.
func (s *SSE) event(e event.Event) error {
	if e.Body == nil {
		return s.Beat()
	}
	raw, err := event.Encode(e)
	if err != nil {
		return err
	}
	id := ""
	if !e.Transient() {
		id = strconv.FormatUint(e.Seq, 10)
	}
	return s.Send(id, e.Body.Kind(), raw)
}

// sources are the logs that streams read, each open once however many read it. The zero value is
// ready.
type sources struct {
	mu  sync.Mutex
	all map[string]*source // by session
}

// source is one of them.
type source struct {
	log   store.Log
	of    *sources
	users int
	end   context.CancelFunc // of who waits for the log to grow
	done  chan struct{}

	mu    sync.Mutex
	grown chan struct{} // closed and replaced when the log has grown
}

// open opens the log of a session, or finds it open. It is released.
func (s *sources) open(ctx context.Context, sessions store.Store, session string) (*source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if src := s.all[session]; src != nil {
		src.users++
		return src, nil
	}
	log, err := sessions.Open(ctx, session)
	if err != nil {
		return nil, err
	}
	src := &source{log: log, of: s, users: 1, done: make(chan struct{}), grown: make(chan struct{})}
	ctx, src.end = context.WithCancel(context.WithoutCancel(ctx))
	go src.watch(ctx)
	if s.all == nil {
		s.all = map[string]*source{}
	}
	s.all[session] = src
	return src, nil
}

func (s *source) release() {
	s.of.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(s.of.all, s.log.ID())
	}
	s.of.mu.Unlock()
	if last {
		s.end()
		<-s.done
		_ = s.log.Close() // it was only read
	}
}

// watch says whenever the log has grown, until ctx is done or the log can't be read any more.
func (s *source) watch(ctx context.Context) {
	defer close(s.done)
	seq := uint64(0)
	for s.log.Wait(ctx, seq) == nil {
		for e, err := range s.log.Read(ctx, seq) {
			if err != nil {
				return
			}
			seq = e.Seq
		}
		s.mu.Lock()
		close(s.grown)
		s.grown = make(chan struct{})
		s.mu.Unlock()
	}
}

// news is closed when the log grows.
func (s *source) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grown
}

// lastEventID is where a client wants to go on: behind the number in the query, or in the header,
// which a client that reconnects sets by itself.
func lastEventID(r *http.Request) (last uint64, err error) {
	for _, at := range [][2]string{{"after", r.URL.Query().Get("after")}, {"Last-Event-ID", r.Header.Get("Last-Event-ID")}} {
		field, text := at[0], at[1]
		if text == "" {
			continue
		}
		if last, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, Wrong(field, fmt.Sprintf("it is %q", words.OneLine(text, 80)), "the number of an event, as the stream's ids are")
		}
	}
	return last, nil
}
