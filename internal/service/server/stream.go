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

// feeds passes events of sessions that run here to their followers, and does not wait for them. The zero value
// is ready.
type feeds struct {
	mu    sync.Mutex
	seats map[string]map[*seat]bool // by session
	begun map[string]bool           // sessions with a partly passed on reply
}

// seat is a follower of a session.
type seat struct {
	feeds   *feeds
	session string
	events  chan event.Event // transient and stored; a slow follower misses some; nil means not wanted
	turns   chan struct{}    // has a token if something was decided, asked or ended
	torn    bool             // some text of the reply in progress was missed: the rest is not passed on either
}

const seatLength = 256

// follow adds a follower, with events if they are wanted. The caller must call leave.
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

// tell passes an event on. A follower that has missed some text of a reply gets no more of that text: the
// stored reply has it whole.
func (f *feeds) tell(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text(e)
	for s := range f.seats[e.Session] {
		if s.torn = s.torn && f.begun[e.Session]; !text || !s.torn {
			select {
			case s.events <- e:
			default: // it is slow, and finds stored events in the log
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

// text reports whether an event is text of a reply in progress, and records whether there is one. The caller
// holds the lock.
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
	beatEvery = 30 * time.Second // interval on an idle stream
	oursEvery = 2 * time.Second  // interval of looks at the sessions of other processes
	writeTime = 30 * time.Second // how long a client may take to accept data
)

// SSE is a stream of server-sent events to one client.
type SSE struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

// NewSSE begins the response to a client.
func NewSSE(w http.ResponseWriter) *SSE {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer
	w.WriteHeader(http.StatusOK)
	return &SSE{w: w, ctl: http.NewResponseController(w)}
}

// Send sends one event; without an id, a client can't ask for the events after it. A client that does not accept it
// in time is disconnected.
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

// Feed selects the events of a task to follow.
type Feed struct {
	Child string // id of a subagent whose session is meant; empty means the task's own session
	After uint64 // after this number
	Live  bool   // includes transient events of a run on this server; they have no number
}

// Follow yields the events of a session of a task, and then new ones, until the visitor disconnects or loses
// access, the server ends, or no more can come. An event without a body comes at the beginning, and now and
// then while nothing happens. If there is no session yet, it waits for one.
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

// followed yields the events of a session like [Visit.Follow], until its task has ended; without a task, as
// long as they come.
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

// reaches returns an error if a log has no event with the number that a client wants to continue after.
func (v *Visit) reaches(log store.Log, after uint64) error {
	if after == 0 {
		return nil
	}
	for _, err := range log.Read(v, after-1) {
		return err
	}
	return Wrong("Last-Event-ID", fmt.Sprintf("the session has no event %d", after), "the id of the last event that you have")
}

// follower follows a session.
type follower struct {
	*Visit
	*source
	task  string
	seq   uint64             // of the last yielded event
	live  <-chan event.Event // nil means only stored events are wanted
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

// upTo yields further stored events, up to a number; 0 means all.
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

// next yields transient events until the log has grown or the task has ended, and those that come with that
// change.
func (f *follower) next(grown, ended <-chan struct{}, beat <-chan time.Time) bool {
	for {
		select {
		case e := <-f.live:
			if !f.take(e) {
				return false
			}
		case <-grown:
			for len(f.live) > 0 { // transient events before stored ones
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

// take yields an event of the run: a stored one with all before it. A visitor that was removed meanwhile gets
// none.
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

// event sends an event of a session, with its number as id if it has one. An event without a body only keeps
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

// sources are the logs that streams read. Each is open once, for all its readers. The zero value is ready.
type sources struct {
	mu  sync.Mutex
	all map[string]*source // by session
}

// source is one log.
type source struct {
	log   store.Log
	of    *sources
	users int
	end   context.CancelFunc // ends the wait for the log to grow
	done  chan struct{}

	mu    sync.Mutex
	grown chan struct{} // closed and replaced when the log has grown
}

// open opens the log of a session, or shares the open one. The caller must release it.
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

// watch signals growth of the log, until ctx is done or the log can't be read any more.
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

// news returns a channel that is closed when the log grows.
func (s *source) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grown
}

// lastEventID returns the event after which a client wants to continue: the number in the query, or in the header
// that a reconnecting client sets by itself.
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
