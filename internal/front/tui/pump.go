package tui

import (
	"context"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// frame is the time between two frames while there is more than fits into one. Slow streams take two of these for
// each frame: no one reads faster, and drawing costs the same however little is new.
const frame = time.Second / 60

// Most that one frame may bring, so that keys never wait behind output.
const (
	frameText   = 32 << 10 // bytes of streamed text
	frameEvents = 256
)

// pump takes events from whatever drives the session, and passes them on at most once a frame. Faster text and
// progress are merged before anyone sees them, so the backlog is never larger than the reply itself. Putting
// something in never blocks.
type pump struct {
	send func(any) // takes a batch, or other news one by one

	mu      sync.Mutex
	pending []any // event.Event, *flow and other news, in order
	wake    chan struct{}
}

// batch holds the events of a frame.
type batch []event.Event

// runEnded says that a run has nothing left to do. Err is an error of the harness.
type runEnded struct{ err error }

func newPump(send func(any)) *pump { return &pump{send: send, wake: make(chan struct{}, 1)} }

// flow is streamed text, thoughts or arguments of a call that were not passed on yet.
type flow struct {
	kind flowKind
	time time.Time
	name string // of the tool, for arguments
	text []byte
}

type flowKind int

const (
	flowText flowKind = iota
	flowThought
	flowArgs
)

// put adds an event, or other news such as a ranOut.
func (p *pump) put(item any) {
	p.mu.Lock()
	e, ok := item.(event.Event)
	if !ok || !p.merge(e) {
		p.pending = append(p.pending, item)
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// merge merges a transient event into the backlog. It returns false if the event must be queued by itself.
func (p *pump) merge(e event.Event) bool {
	switch b := e.Body.(type) {
	case event.Delta:
		if b.Void || !e.Transient() {
			return false
		}
		p.add(e.Time, flowThought, "", b.Reasoning)
		p.add(e.Time, flowText, "", b.Text)
		if b.Call != nil {
			p.add(e.Time, flowArgs, b.Call.Name, b.Call.Args)
		}
		return true
	case event.Progress:
		for i := len(p.pending) - 1; i >= 0; i-- {
			if _, ok := p.pending[i].(*flow); ok {
				continue // text and progress don't affect each other
			}
			last, ok := p.pending[i].(event.Event)
			if !ok || !last.Transient() {
				return false
			}
			if was, ok := last.Body.(event.Progress); ok && was.Call == b.Call {
				p.pending[i] = e // only the last one shows
				return true
			}
		}
	}
	return false
}

func (p *pump) add(at time.Time, kind flowKind, name, text string) {
	if text == "" && name == "" {
		return
	}
	for i := len(p.pending) - 1; i >= 0 && name == ""; i-- {
		if e, ok := p.pending[i].(event.Event); ok && e.Body.Kind() == (event.Progress{}).Kind() {
			continue
		}
		if f, ok := p.pending[i].(*flow); ok && f.kind == kind && len(f.text) < frameText {
			f.text = append(f.text, text...)
			return
		}
		break
	}
	p.pending = append(p.pending, &flow{kind: kind, time: at, name: name, text: []byte(text)})
}

// event returns the delta for the whole flow.
func (f *flow) event() event.Event {
	var d event.Delta
	switch text := string(f.text); f.kind {
	case flowText:
		d.Text = text
	case flowThought:
		d.Reasoning = text
	case flowArgs:
		d.Call = &llm.CallDelta{Name: f.name, Args: text}
	}
	return event.Event{Time: f.time, Body: d}
}

// run passes on messages until ctx ends.
func (p *pump) run(ctx context.Context) {
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for some, more := p.flush(); some; some, more = p.flush() {
			for range map[bool]int{true: 1, false: 2}[more] {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		}
	}
}

// flush passes on the messages of one frame, and reports whether there was anything, and whether there is more.
func (p *pump) flush() (some, more bool) {
	p.mu.Lock()
	var out batch
	text, n := 0, 0
	var other any
	for _, item := range p.pending {
		if text >= frameText || n >= frameEvents || other != nil {
			break
		}
		n++
		switch v := item.(type) {
		case event.Event:
			out = append(out, v)
		case *flow:
			text += len(v.text)
			out = append(out, v.event())
		default:
			other = v
		}
	}
	p.pending = p.pending[n:]
	if more = len(p.pending) > 0; !more {
		p.pending = nil
	}
	p.mu.Unlock()
	if len(out) > 0 {
		p.send(out)
	}
	if other != nil {
		p.send(other)
	}
	return n > 0, more
}
