package temporal_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
)

// BenchmarkSteps drives sessions of 30 calls side by side, with everything on this machine:
// Temporal over SQLite, PostgreSQL, two workers and the client. A step is a call with the request
// before it.
func BenchmarkSteps(b *testing.B) {
	names := slices.Repeat([]string{"step"}, 30)
	for _, many := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("sessions=", many), func(b *testing.B) {
			p := newPlace(b, calls(names...))
			p.Conf.Beat, p.client.Heartbeat, p.Conf.Lease = 5*time.Second, time.Minute, 15*time.Second
			p.worker()
			p.worker()
			for b.Loop() {
				p.all(b, many, len(names)+1)
			}
		})
	}
}

// all drives so many new sessions to their end.
func (p *place) all(b *testing.B, many, steps int) {
	b.Helper()
	ids := make([]string, many)
	side(many, func(n int) { ids[n] = p.begins() })
	began := time.Now()
	side(many, func(n int) {
		if err := p.client.Start(b.Context(), ids[n]); err != nil {
			b.Error(err)
		}
	})
	side(many, func(n int) { p.stops(b, ids[n]) })
	b.ReportMetric(float64(many*steps)/time.Since(began).Seconds(), "steps/s")
}

// stops waits for the end of a run, by the log.
func (p *place) stops(b *testing.B, id string) {
	w, err := (&inspan.Host{Store: p.store}).Watch(b.Context(), id)
	if err != nil {
		b.Error(err)
		return
	}
	defer w.Close()
	for e, err := range w.Events(b.Context(), 0) {
		if _, over := e.Body.(event.Stopped); over || err != nil {
			return
		}
	}
}

// side does something many times, 50 at a time.
func side(many int, do func(n int)) {
	var wg sync.WaitGroup
	turn := make(chan struct{}, 50)
	for n := range many {
		turn <- struct{}{}
		wg.Go(func() { do(n); <-turn })
	}
	wg.Wait()
}

// BenchmarkTurn is a run of one step through the engine, beside the same without it.
func BenchmarkTurn(b *testing.B) {
	script := "-- reply --\nDone.\n"
	b.Run("alone", func(b *testing.B) {
		p := newPlace(b, script)
		for b.Loop() {
			s, err := p.Conf.host(p.store).Open(b.Context(), p.begins())
			if err != nil {
				b.Fatal(err)
			}
			conduct := inspan.Conductor{Session: s}
			if err := conduct.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
			_ = s.Close()
		}
	})
	b.Run("supervised", func(b *testing.B) {
		p := newPlace(b, script)
		p.worker()
		warm := p.begins()
		if err := p.client.Start(b.Context(), warm); err != nil {
			b.Fatal(err)
		}
		p.stands(warm, temporal.Done)
		for b.Loop() {
			id := p.begins()
			if err := p.client.Start(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			p.stops(b, id)
		}
	})
}
