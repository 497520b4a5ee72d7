package running

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

// Exporter reports the work of sessions to an OpenTelemetry receiver while they run. It is told when a session has
// grown, and reads the log by itself, so no run ever waits for it, and the log, not a queue, has the events that
// were not sent. Events that a receiver does not accept in time are counted and dropped; the session can be
// exported later. It is safe for concurrent use. Nil exports nothing.
type Exporter struct {
	sessions store.Store
	to       *Receiver
	as       transcript.OTLP

	mu       sync.Mutex
	followed map[string]*followed
	hurry    chan struct{} // someone is waiting
	stop     context.CancelFunc
	working  sync.WaitGroup
	works    bool
	lost     int   // spans
	why      error // why the last of them were lost
	told     bool  // the loss was reported

	queue    []transcript.Trace // only accessed by the worker, like the next two fields
	measures transcript.Measures
	failures int // in a row
}

// followed is a session that is working.
type followed struct {
	spans *transcript.Spans
	from  uint64 // earlier events are not from this process
	upto  uint64 // folded so far
	grown bool
	over  chan struct{} // someone waits until everything was sent; nil while it works
}

const (
	exportEvery = time.Second
	mostSlow    = time.Minute // between two attempts after failures
	mostQueued  = 4096        // spans
	exportGrace = time.Second // how long the end of a session waits for its receiver
)

// NewExporter returns the exporter for a receiver; nil for none.
func NewExporter(sessions store.Store, to *Receiver, release string) *Exporter {
	if to == nil {
		return nil
	}
	attributes := map[string]string{"service.instance.id": rand.Text()} // so that sums of two processes stay apart
	for name, value := range to.Attributes {
		attributes[name] = value
	}
	x := &Exporter{
		sessions: sessions, to: to, as: transcript.OTLP{Release: release, Attributes: attributes, Live: true, Content: to.Content},
		followed: map[string]*followed{}, hurry: make(chan struct{}, 1),
	}
	x.measures = transcript.Measures{OTLP: x.as, Since: time.Now()}
	return x
}

// OnEvent records that a session has grown by an event.
func (x *Exporter) OnEvent(e event.Event) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.followed[e.Session]
	if f == nil {
		f = &followed{spans: transcript.NewSpans(x.as.Content), from: e.Seq}
		x.followed[e.Session] = f
	}
	f.grown = true
	x.workLocked()
}

func (x *Exporter) workLocked() {
	if !x.works {
		var ctx context.Context
		ctx, x.stop = context.WithCancel(context.Background())
		x.works = true
		x.working.Go(func() { x.work(ctx) })
	}
}

// Over records that a session does not work here any more. It waits a moment for the receiver. It returns an error
// once, with the number of items that the receiver has not accepted from this process.
func (x *Exporter) Over(session string) error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	f := x.followed[session]
	if f == nil {
		x.mu.Unlock()
		return nil
	}
	over := make(chan struct{})
	f.over = over
	x.workLocked()
	x.mu.Unlock()
	if kin.Parent(session) != "" {
		return nil // the session that it works for ends later
	}
	select {
	case x.hurry <- struct{}{}:
	default:
	}
	timer := time.NewTimer(exportGrace)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
		x.leave(session)
	}
	return x.missed()
}

// leave gives up a session that has waited long enough, and ends the worker if it was the last.
func (x *Exporter) leave(session string) {
	x.mu.Lock()
	delete(x.followed, session)
	last, stop := len(x.followed) == 0, x.stop
	x.mu.Unlock()
	if !last {
		return
	}
	stop()
	x.working.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(0, errors.New("it did not answer in time"))
}

// missed reports lost items once.
func (x *Exporter) missed() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lost == 0 || x.told {
		return nil
	}
	x.told = true
	return fmt.Errorf("the receiver of traces did not accept %d spans: %w; 'inspan trace export' sends a session again", x.lost, x.why)
}

// work sends until there is nothing left to send.
func (x *Exporter) work(ctx context.Context) {
	for x.pause(ctx) {
		x.collect(ctx)
		x.send(ctx)
		if x.done() {
			return
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.works = false
}

// pause waits for the next round. It returns false if there is none.
func (x *Exporter) pause(ctx context.Context) bool {
	timer := time.NewTimer(min(exportEvery<<min(x.failures, 10), mostSlow))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.hurry:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// done removes sessions that are over, and reports whether nothing is left to do.
func (x *Exporter) done() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	idle := true
	for id, f := range x.followed {
		if f.over != nil && !f.grown {
			close(f.over)
			delete(x.followed, id)
		} else if f.grown || f.over != nil {
			idle = false
		}
	}
	if len(x.followed) == 0 { // no one will retry what could not be sent
		x.dropLocked(0, x.why)
	}
	if idle = idle && len(x.queue) == 0; idle {
		x.works = false
	}
	return idle
}

// dropLocked drops what does not fit into a queue of so many spans.
func (x *Exporter) dropLocked(most int, why error) {
	n := 0
	for _, t := range x.queue {
		n += len(t.Spans)
	}
	for len(x.queue) > 0 && n > most {
		n -= len(x.queue[0].Spans)
		x.lost, x.why = x.lost+len(x.queue[0].Spans), why
		x.queue = x.queue[1:]
	}
}

// collect reads the new parts of sessions that have grown.
func (x *Exporter) collect(ctx context.Context) {
	x.mu.Lock()
	grown := map[string]*followed{}
	for id, f := range x.followed {
		if f.grown || f.over != nil {
			grown[id], f.grown = f, false
		}
	}
	x.mu.Unlock()
	for id, f := range grown {
		t := f.read(ctx, x.sessions, id)
		for _, span := range t.Spans {
			x.measures.Add(span)
		}
		if len(t.Spans) > 0 {
			x.queue = append(x.queue, t)
		}
	}
}

// read folds the new part of a session's log, and returns the new spans.
func (f *followed) read(ctx context.Context, sessions store.Store, id string) transcript.Trace {
	log, err := sessions.Open(ctx, id)
	if err != nil {
		return transcript.Trace{} // it was removed, or can't be read, which its driver reports
	}
	defer log.Close()
	for e, err := range log.Read(ctx, f.upto) {
		if err != nil {
			break
		}
		if e.Seq == f.from {
			f.spans.News() // of an earlier process
		}
		f.spans.Apply(e)
		f.upto = e.Seq
	}
	t := f.spans.Of(id)
	t.Spans = f.spans.News()
	return t
}

// send sends the collected items, and keeps those that a receiver may accept later.
func (x *Exporter) send(ctx context.Context) {
	requests, err := x.as.Traces(x.queue...)
	if x.to.Traces == "" {
		requests = nil
	}
	for _, raw := range requests {
		if err = x.to.Send(ctx, x.to.Traces, raw); err != nil {
			break
		}
	}
	if err == nil && x.to.Metrics != "" && x.measures.Changed() {
		var raw []byte
		if raw, err = x.measures.Request(time.Now()); err == nil {
			err = x.to.Send(ctx, x.to.Metrics, raw)
		}
		if err == nil {
			x.measures.Sent()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var later *laterError
	switch {
	case err == nil:
		x.queue, x.failures = nil, 0
	case errors.As(err, &later):
		x.failures++
		x.why = err
		x.dropLocked(mostQueued, err)
	default:
		x.failures++
		x.dropLocked(0, err)
	}
}
