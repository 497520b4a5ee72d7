package postgres_test

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// result is an event as most are: a result of 1 KB.
func result() event.Body {
	return event.Note{Topic: "bench", Text: noise(7)[:1000]}
}

// BenchmarkAppend appends one event after another as a driver.
func BenchmarkAppend(b *testing.B) {
	s := open(b, fresh(b))
	l, err := s.Create(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	as := benchDriver(b, l)
	var took []time.Duration
	body := result()
	for b.Loop() {
		began := time.Now()
		events, err := l.AppendAs(b.Context(), as, body)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		as.After = events[0].Seq
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100].Microseconds()), fmt.Sprint("p", p, "-us"))
	}
}

func benchDriver(b *testing.B, l store.Log) event.Driver {
	b.Helper()
	if err := l.Lease(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := l.AppendAs(b.Context(), event.Driver{Epoch: 1}, event.Claimed{Epoch: 1, Writer: "w"}); err != nil {
		b.Fatal(err)
	}
	return event.Driver{Epoch: 1, After: 1}
}

// BenchmarkSessions has 64 drivers append side by side.
func BenchmarkSessions(b *testing.B) {
	const sessions = 64
	c := fresh(b)
	c.Conns = 32
	s := open(b, c)
	var logs []store.Log
	var drivers []event.Driver
	for range sessions {
		l, err := s.Create(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		logs, drivers = append(logs, l), append(drivers, benchDriver(b, l))
	}
	body := result()
	const each = 50
	began := time.Now()
	rounds := 0
	for b.Loop() {
		rounds++
		var group sync.WaitGroup
		for i, l := range logs {
			group.Go(func() {
				for range each {
					events, err := l.AppendAs(b.Context(), drivers[i], body)
					if err != nil {
						b.Error(err)
						return
					}
					drivers[i].After = events[0].Seq
				}
			})
		}
		group.Wait()
	}
	b.ReportMetric(float64(rounds*sessions*each)/time.Since(began).Seconds(), "events/s")
}

// BenchmarkList lists 50,000 sessions, finds the newest, searches some, and reads a log of 10,000
// events.
func BenchmarkList(b *testing.B) {
	c := fresh(b)
	s := open(b, c)
	sql(b, c, `INSERT INTO sessions (id, made, last_seq, created, modified, preview, title, empty, labels)
		SELECT to_char(now() - n * interval '1 minute', 'YYYYMMDD-HH24MISS') || '-' || lpad(to_hex(n), 4, '0'), gen_random_uuid(), 1, now(),
			now() - n * interval '1 minute', repeat('preview ', 20), 'a title', false, '{"ticket": "7"}' FROM generate_series(1, 50000) AS n`)
	sql(b, c, `INSERT INTO events (session, seq, kind, time, line) SELECT key, 1, 'said', now(),
		convert_to('{"seq":1,"time":"2026-11-21T13:15:02.000Z","session":"' || id
			|| '","kind":"said","body":{"parts":[{"type":"text","text":"hello"}]}}', 'UTF8')
		FROM sessions`)
	sql(b, c, "ANALYZE")
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if list, err := s.List(b.Context()); err != nil || len(list) != 50000 {
				b.Fatal(len(list), err)
			}
		}
	})
	b.Run("last", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Resolve(b.Context(), s, "last"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			hits := 0
			for _, err := range s.Search(b.Context(), regexp.MustCompile("hello")) {
				if err != nil {
					b.Fatal(err)
				}
				if hits++; hits == 1000 {
					break
				}
			}
		}
	})
}

// BenchmarkRead reads a log of 10,000 events.
func BenchmarkRead(b *testing.B) {
	s := open(b, fresh(b))
	l, err := s.Create(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	as := benchDriver(b, l)
	for range 100 {
		events, err := l.AppendAs(b.Context(), as, slices.Repeat([]event.Body{result()}, 100)...)
		if err != nil {
			b.Fatal(err)
		}
		as.After = events[99].Seq
	}
	for b.Loop() {
		n := 0
		for _, err := range l.Read(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10001 {
			b.Fatal(n)
		}
	}
}
