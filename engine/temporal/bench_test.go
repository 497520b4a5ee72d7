package temporal_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/event"
)

// BenchmarkSteps drives sessions of 30 calls concurrently, with everything on this machine: PostgreSQL, Temporal over
// SQLite where it has a part, two workers and the client. A step is a call with the request before it. Each watched
// session has a client that receives every event.
func BenchmarkSteps(b *testing.B) {
	for _, kind := range []string{byDatabase, byTemporal} {
		name := cmp.Or(kind, "Temporal") + "/sessions="
		for _, many := range []int{1, 100, 1000} {
			b.Run(fmt.Sprint(name, many), func(b *testing.B) { load(b, kind, many, "", false) })
		}
		b.Run(name+"100/watched", func(b *testing.B) { load(b, kind, 100, "", true) })
	}
}

// BenchmarkLoad runs INSPAN_SESSIONS sessions concurrently at the pace of real ones: a model takes ten seconds for each
// reply. docs/SCALE.md reports its figures.
func BenchmarkLoad(b *testing.B) {
	many, err := strconv.Atoi(os.Getenv("INSPAN_SESSIONS"))
	if err != nil {
		many = 200
	}
	load(b, byTemporal, many, "delay: 10s\n", false)
}

// load drives so many sessions at once, of 30 calls, or of 12 whose replies take a while.
func load(b *testing.B, kind string, many int, delay string, watched bool) {
	steps := 30
	if delay != "" {
		steps = 12
	}
	script := strings.ReplaceAll(calls(slices.Repeat([]string{"step"}, steps)...), "-- reply --\n", "-- reply --\n"+delay)
	p := openPlace(b, conf{Kind: kind, Script: script})
	p.Conf.Beat, p.Conf.Lease, p.Conf.AtOnce = 5*time.Second, 0, many // the usual lease
	p.worker()
	p.worker()
	for b.Loop() {
		p.ends(b, many, steps+1, watched)
	}
}

// ends drives so many new sessions to their end.
func (p *place) ends(b *testing.B, many, steps int, watched bool) {
	b.Helper()
	ids := make([]string, many)
	side(many, func(n int) { ids[n] = p.begins() })
	size := p.stored(b)
	began, before := time.Now(), p.spent(b)
	side(many, func(n int) { p.wakes(ids[n]) })
	if watched {
		var all sync.WaitGroup
		defer all.Wait()
		for _, id := range ids {
			all.Go(func() { p.stops(b, id) })
		}
	}
	most := p.finished(b, ids)
	took, done := time.Since(began), float64(many*steps)
	b.ReportMetric(done/took.Seconds(), "steps/s")
	for part, after := range p.spent(b) {
		b.ReportMetric((after-before[part]).Seconds()*1000/done, "ms-"+part+"/step")
	}
	b.ReportMetric(float64(p.stored(b)-size)/done, "disk-bytes/step")
	b.ReportMetric(float64(most)/float64(many), "worker-KB/session")
	b.ReportMetric(float64(p.claims(b)-len(ids)), "false-takeovers")
}

// finished waits for the end of all sessions, and returns the most memory that the workers had together,
// in KB.
func (p *place) finished(b *testing.B, ids []string) (most int) {
	b.Helper()
	tick := time.NewTicker(min(max(time.Duration(len(ids))*time.Millisecond, 20*time.Millisecond), time.Second))
	defer tick.Stop()
	for ; ; <-tick.C {
		list, err := p.store.List(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		now, over := 0, 0
		for _, w := range p.all {
			now += resident(w.Process.Pid)
		}
		most = max(most, now)
		for _, info := range list {
			if info.Stop != "" && slices.Contains(ids, info.ID) {
				over++
			}
		}
		if over == len(ids) {
			return most
		}
	}
}

// claims counts the claims of drivers in all sessions.
func (p *place) claims(b *testing.B) (n int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), p.Conf.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }() // it only reads
	query := "SELECT count(*) FROM " + pgx.Identifier{p.Conf.Schema, "events"}.Sanitize() + " WHERE kind = 'claimed'"
	if err := conn.QueryRow(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// resident is how many KB of memory a process has.
func resident(pid int) (kb int) {
	data, _ := os.ReadFile(fmt.Sprint("/proc/", pid, "/status"))
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	_, _ = fmt.Sscan(rest, &kb)
	return kb
}

// stored is how many bytes the database has of the sessions, with indexes.
func (p *place) stored(b *testing.B) (bytes int64) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), p.Conf.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }() // it only reads
	const query = `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE relkind = 'r' AND nspname = $1`
	if err := conn.QueryRow(b.Context(), query, p.Conf.Schema).Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// spent is the processor time of everything so far, by part.
func (p *place) spent(b *testing.B) map[string]time.Duration {
	b.Helper()
	out := map[string]time.Duration{"client": testkit.Spent(os.Getpid(), false)}
	for _, w := range p.all {
		out["worker"] += testkit.Spent(w.Process.Pid, true)
	}
	if p.Conf.Kind == byTemporal {
		out["temporal"] = testkit.Spent(engine.cmd.Process.Pid, true)
	}
	if p.Conf.Kind != byFolder {
		out["postgres"] = cluster.Spent()
	}
	for _, part := range slices.Collect(maps.Values(out)) {
		out["all"] += part
	}
	return out
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

// BenchmarkTurn compares a run of one step through the engine with the same run without it.
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
