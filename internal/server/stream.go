package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/store"
)

// feeds tells those who follow sessions that run here what happens. Nobody is waited for. The zero
// value is ready.
type feeds struct {
	mu    sync.Mutex
	seats map[string]map[*seat]bool // by session
}

// seat is one who follows a session.
type seat struct {
	feeds   *feeds
	session string
	events  chan event.Event // transient and stored; some are missing for whoever is slow; nil: not wanted
	turns   chan struct{}    // has a token if something was decided, asked or ended
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
	return s
}

func (s *seat) leave() {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	if delete(s.feeds.seats[s.session], s); len(s.feeds.seats[s.session]) == 0 {
		delete(s.feeds.seats, s.session)
	}
}

// tell passes an event on.
func (f *feeds) tell(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.seats[e.Session] {
		select {
		case s.events <- e:
		default: // it is slow, and finds what is stored in the log
		}
		switch e.Body.(type) {
		case event.Waiting, event.Raised, event.Decided, event.Ended, event.Returned, event.Stopped, event.Claimed:
			select {
			case s.turns <- struct{}{}:
			default:
			}
		}
	}
}

const (
	beatEvery = 30 * time.Second // of a stream on which nothing happens
	writeTime = 30 * time.Second // that a client may take to accept what is sent
)

// sse is a stream of server-sent events to one client.
type sse struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

func newSSE(w http.ResponseWriter) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies pass on what comes as it comes
	w.WriteHeader(http.StatusOK)
	return &sse{w: w, ctl: http.NewResponseController(w)}
}

// send sends one event; without an id a client can't ask for what follows it. A client that does not
// take it in time is gone.
func (s *sse) send(id, name string, data []byte) error {
	text := "event: " + name + "\ndata: " + string(data) + "\n\n"
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	return s.write(text)
}

func (s *sse) write(text string) error {
	if err := s.ctl.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.ctl.Flush()
}

// streamEvents sends the events of a session behind the number after, and then what comes, until the
// client goes, is not known any more, or nothing more can come. Live adds the transient events of a
// run that goes on here; they have no id.
func (c *call) streamEvents(ctx context.Context, session string, after uint64, live, ended bool) error {
	src, err := c.sources.open(ctx, c.Sessions, session)
	if err != nil {
		return err
	}
	defer src.release()
	f := &stream{source: src, out: newSSE(c.w), seq: after}
	if live {
		place := c.live.follow(session, true)
		defer place.leave()
		f.live = place.events
	}
	err = f.out.write("retry: 1000\n\n")
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for err == nil {
		grown := src.news()
		if !c.known() {
			break
		}
		if err = f.upTo(ctx, 0); err != nil || ended {
			break
		}
		err = f.next(ctx, c.ctx, grown, beat.C, c.known)
	}
	return nil // the client has gone, the server ends, or the log can't be read any further
}

// stream is one client that follows a session.
type stream struct {
	*source
	out  *sse
	seq  uint64             // of the last event that was sent
	live <-chan event.Event // nil: what is not stored is not wanted
}

// upTo sends the stored events that were not sent, up to a number; 0: all.
func (f *stream) upTo(ctx context.Context, seq uint64) error {
	for e, err := range f.log.Read(ctx, f.seq) {
		if err != nil {
			return err
		}
		raw, err := event.Encode(e)
		if err == nil {
			err = f.out.send(strconv.FormatUint(e.Seq, 10), e.Body.Kind(), raw)
		}
		if err != nil {
			return err
		}
		if f.seq = e.Seq; e.Seq == seq {
			break
		}
	}
	return nil
}

// next sends what the run shows until the log has grown, and what of that comes with it.
func (f *stream) next(ctx, server context.Context, grown <-chan struct{}, beat <-chan time.Time, known func() bool) error {
	for {
		select {
		case e := <-f.live:
			if err := f.take(ctx, e); err != nil {
				return err
			}
		case <-grown:
			for len(f.live) > 0 { // what is shown before what is stored
				if err := f.take(ctx, <-f.live); err != nil {
					return err
				}
			}
			return nil
		case <-beat:
			if !known() {
				return nil
			}
			if err := f.out.write(": \n\n"); err != nil {
				return err
			}
		case <-f.done:
			return errors.New("the log can't be followed any more")
		case <-ctx.Done():
			return ctx.Err()
		case <-server.Done():
			return server.Err()
		}
	}
}

// take sends an event of the run: a stored one with all before it.
func (f *stream) take(ctx context.Context, e event.Event) error {
	if !e.Transient() {
		if e.Seq <= f.seq {
			return nil
		}
		return f.upTo(ctx, e.Seq)
	}
	raw, err := event.Encode(e)
	if err != nil {
		return err
	}
	return f.out.send("", e.Body.Kind(), raw)
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

// lastEventID is where a client wants to go on: behind the number in the header, or in the query.
func lastEventID(r *http.Request) (uint64, error) {
	field, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		field, text = "after", r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, wrong(field, fmt.Sprintf("it is %q", words.OneLine(text, 80)), "the number of an event, as the stream's ids are")
	}
	return n, nil
}
