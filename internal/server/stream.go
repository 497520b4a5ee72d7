package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
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
	events  chan event.Event // transient and stored; some are missing for whoever is slow
	turns   chan struct{}    // has a token if something was decided, asked or ended
}

const seatLength = 256

// follow takes a seat. Whoever has it leaves it.
func (f *feeds) follow(session string) *seat {
	s := &seat{feeds: f, session: session, events: make(chan event.Event, seatLength), turns: make(chan struct{}, 1)}
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
	beatEvery = 15 * time.Second // of a stream on which nothing happens
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
// client goes. Live adds the transient events of a run that goes on here; they have no id.
func (s *Server) streamEvents(ctx context.Context, w http.ResponseWriter, session string, after uint64, live bool) error {
	log, err := s.Sessions.Open(ctx, session)
	if err != nil {
		return err
	}
	defer log.Close()
	place := s.live.follow(session)
	defer place.leave()
	f := &stream{log: log, out: newSSE(w), seq: after, live: live}
	if err := f.out.write("retry: 1000\n\n"); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	grown := make(chan struct{}, 1)
	ctx, end := context.WithCancel(ctx)
	defer func() { end(); f.waiter.Wait() }()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for s.ctx.Err() == nil {
		if err := f.upTo(ctx, 0); err != nil {
			return nil //nolint:nilerr // the client has gone, or the log can't be read any further
		}
		if err := f.next(ctx, s.ctx, place, grown, beat.C); err != nil {
			return nil //nolint:nilerr // the same
		}
	}
	return nil
}

// stream is one client that follows a session.
type stream struct {
	log  store.Log
	out  *sse
	seq  uint64 // of the last event that was sent
	live bool

	waits  bool // somebody waits for the log to grow
	waiter sync.WaitGroup
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

// next sends what the run shows until the log has grown by other hands, or nothing comes for a while.
func (f *stream) next(ctx, server context.Context, place *seat, grown chan struct{}, beat <-chan time.Time) error {
	if !f.waits {
		f.waits = true
		seq := f.seq
		f.waiter.Go(func() {
			if f.log.Wait(ctx, seq) == nil {
				grown <- struct{}{}
			}
		})
	}
	for {
		select {
		case e := <-place.events:
			if err := f.take(ctx, e); err != nil {
				return err
			}
		case <-grown:
			if f.waits = false; len(place.events) > 0 { // these come first
				return f.drain(ctx, place)
			}
			return nil
		case <-beat:
			if err := f.out.write(": \n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-server.Done():
			return server.Err()
		}
	}
}

// drain takes what has come meanwhile.
func (f *stream) drain(ctx context.Context, place *seat) error {
	for len(place.events) > 0 {
		if err := f.take(ctx, <-place.events); err != nil {
			return err
		}
	}
	return nil
}

// take sends an event of the run: a stored one with all before it.
func (f *stream) take(ctx context.Context, e event.Event) error {
	if !e.Transient() {
		if e.Seq <= f.seq {
			return nil
		}
		return f.upTo(ctx, e.Seq)
	}
	if !f.live {
		return nil
	}
	raw, err := event.Encode(e)
	if err != nil {
		return err
	}
	return f.out.send("", e.Body.Kind(), raw)
}

// lastEventID is where a client wants to go on: behind the number in the header, or in the query.
func lastEventID(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, wrong("Last-Event-ID", fmt.Sprintf("it is %q", text), "the number of an event, as the stream's ids are")
	}
	return n, nil
}
