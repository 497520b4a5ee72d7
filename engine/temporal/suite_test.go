package temporal_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// TestDurability strikes sessions under each supervisor with each fault: three real workers, some
// sessions in the middle of their work, and a fault from outside. Whatever it is, afterwards
//
//   - no change is made twice,
//   - every event that a store has acknowledged to a worker is in the log, where it was and as it was,
//   - the log is the one of a session that nothing has happened to, but for claims, for what was
//     begun again, and for calls whose outcome no one can know,
//   - the sessions have gone on by themselves, within two seconds where another worker has to.
//
// INSPAN_RUNS says how many sessions are to be struck in all; the table of docs/DURABILITY.md is of
// 500.
func TestDurability(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("INSPAN_RUNS"))
	var cells []*cell
	for _, f := range faults() {
		for _, kind := range []string{byFolder, byDatabase, byTemporal} {
			if !slices.Contains(f.not, kind) {
				cells = append(cells, &cell{fault: f, kind: kind})
			}
		}
	}
	for _, c := range cells {
		t.Run(strings.ReplaceAll(c.fault.name+"/"+cmp.Or(c.kind, "Temporal"), " ", "-"), func(t *testing.T) {
			needs(t, c.kind)
			for seed := 0; seed == 0 || c.struck*len(cells) < runs && !t.Failed(); seed++ {
				t.Run(strconv.Itoa(seed), func(t *testing.T) { c.round(t, uint64(seed)) })
			}
			t.Log(c)
		})
	}
	var table strings.Builder
	for _, c := range cells {
		fmt.Fprintln(&table, c)
	}
	t.Logf("\n| fault | supervisor | sessions struck | changes made twice | acknowledged events lost "+
		"| outcome unknown | continues after: median / longest |\n|---|---|---|---|---|---|---|\n%s", table.String())
}

// cell is one fault under one supervisor, with its result.
type cell struct {
	fault                        fault
	kind                         string
	struck, twice, lost, unknown int
	after                        []time.Duration
}

func (c *cell) String() string {
	took := "its worker keeps them"
	if len(c.after) > 0 {
		slices.Sort(c.after)
		at := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
		took = at(c.after[len(c.after)/2]) + " / " + at(c.after[len(c.after)-1])
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %s |",
		c.fault.name, cmp.Or(c.kind, "Temporal"), c.struck, c.twice, c.lost, c.unknown, took)
}

// round is three workers and some sessions that are struck once.
type round struct {
	*place
	*rand.Rand
	cell    *cell
	workers map[int]*process
	ids     []string
	drivers map[string]int // of the sessions when they are struck, by process
	victim  *process       // drives the first of them
	at      time.Time      // when they are struck
	early   bool           // the call that they are struck in can end before
	all     bool           // all sessions are struck, and not only those of the victim
	runs    int            // of each session; one more if something was said meanwhile
	skew    time.Duration  // by which the clock of the log is ahead from then on
	world                  // what the fault needs
}

// Sessions make these calls. They are struck in the one at middle, or soon after it.
const (
	sessionsARound = 4
	middle         = 5
)

func suiteCalls() []string {
	return []string{"step", "look", "step", "step", "step", "look", "step", "step", "look", "step", "step"}
}

func (c *cell) round(t *testing.T, seed uint64) {
	t.Helper()
	r := &round{cell: c, runs: 1, Rand: rand.New(rand.NewPCG(seed, 27)), workers: map[int]*process{}, drivers: map[string]int{}}
	r.early, r.all = seed%2 == 1, c.fault.all
	conf := conf{Kind: c.kind, Script: calls(suiteCalls()...), Apart: true, Bulk: c.fault.bulk}
	if c.fault.before != nil {
		c.fault.before(t, r, &conf)
	}
	r.place = openPlace(t, conf)
	for n, name := range suiteCalls() {
		if name == "look" && n != middle {
			r.opens(n)
		}
	}
	for range 3 {
		r.hires(0)
	}
	r.begin()
	c.fault.strike(r)
	r.until("all sessions have stopped", func() bool {
		return !slices.ContainsFunc(r.ids, func(id string) bool { return !r.stopped(id) })
	})
	if c.fault.after != nil {
		c.fault.after(r)
	}
	r.check()
	if t.Failed() {
		t.Logf("seed %d, struck %v (early %v), drivers %v, victim %d", seed, r.at, r.early, r.drivers, r.victim.Process.Pid)
	}
}

// hires starts a worker of a version, and tells its process.
func (r *round) hires(version int) int {
	conf := r.Conf
	conf.Version = version
	w := r.starts(conf)
	r.workers[w.Process.Pid] = w
	return w.Process.Pid
}

// begin has the sessions get to the middle of their work.
func (r *round) begin() {
	for range sessionsARound {
		r.ids = append(r.ids, r.begins())
		r.wakes(r.ids[len(r.ids)-1])
	}
	for _, id := range r.ids {
		r.until("session "+id+" is in the middle", func() bool {
			for _, line := range r.lines("ledger." + id) {
				if rest, ok := strings.CutPrefix(line, fmt.Sprint("look", middle, ",")); ok {
					r.drivers[id], _ = strconv.Atoi(rest)
				}
			}
			return r.drivers[id] > 0
		})
	}
	r.victim = r.workers[r.drivers[r.ids[0]]]
}

// hits strikes the sessions while the call in the middle runs, or a little later.
func (r *round) hits(do func()) {
	if r.early {
		r.opens(middle)
		r.passes(time.Duration(r.IntN(60)) * time.Millisecond)
	}
	r.at = time.Now()
	do()
	r.opens(middle)
}

// passes lets the sessions continue for a while.
func (r *round) passes(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func (r *round) stopped(id string) bool {
	stops := 0
	for e, err := range store.Events(r.t.Context(), r.store, id) {
		if err != nil {
			return false // the database may be away
		}
		if _, is := e.Body.(event.Stopped); is {
			stops++
		}
	}
	return stops == r.runs
}

// ends ends a worker by SIGTERM.
func (r *round) ends(w *process) {
	w.sends(r.t, syscall.SIGTERM)
	r.until("the worker ends", func() bool {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	})
}

// check checks the promises.
func (r *round) check() {
	r.t.Helper()
	want := r.undisturbed(slices.Repeat([]event.Body{event.Say(again)}, r.runs-1)...)
	want = slices.DeleteFunc(want, r.extra)
	for _, id := range r.ids {
		r.kept(id)
		unknown := r.same(id, want)
		r.cell.unknown += unknown
		r.once(id, unknown)
		if r.all || r.drivers[id] == r.victim.Process.Pid {
			r.gone(id)
		}
	}
}

// kept checks that the log has everything that was acknowledged.
func (r *round) kept(id string) {
	r.t.Helper()
	stored := map[string]bool{}
	for e, err := range store.Events(r.t.Context(), r.store, id) {
		if err != nil {
			r.t.Fatal(err)
		}
		line, err := event.Encode(e)
		if err != nil {
			r.t.Fatal(err)
		}
		stored[string(line)] = true
	}
	lines := r.lines("acknowledged." + id)
	if len(lines) == 0 {
		r.t.Error("nothing was acknowledged")
	}
	for _, line := range lines {
		if !stored[line] {
			r.cell.lost++
			r.t.Errorf("acknowledged, and not in the log: %.300s", line)
		}
	}
}

// same checks that the log equals the undisturbed one, except for calls whose outcome is unknown, which it counts.
func (r *round) same(id string, want []string) (unknown int) {
	r.t.Helper()
	got := slices.DeleteFunc(bodies(r.t, r.store, id), r.extra)
	want = slices.Clone(want)
	for n, line := range got {
		if n < len(want) && strings.HasPrefix(line, "ended ") && strings.Contains(line, `"outcome":"unknown"`) {
			unknown++
			want[n] = line
		}
	}
	if unknown > 0 { // what the model is told of it is in all that follows
		want, got = withoutSizes(want), withoutSizes(got)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		r.t.Errorf("the log of session %s (-undisturbed +this):\n%s", id, diff)
	}
	return unknown
}

// withoutSizes leaves out how big prompts were, and the digest of the whole.
func withoutSizes(lines []string) (out []string) {
	sizes := regexp.MustCompile(`"(input":[0-9]+|digest":"[^"]*")`)
	for _, line := range lines {
		out = append(out, sizes.ReplaceAllString(line, ""))
	}
	return out
}

// extra reports whether an event is in the log because of the fault.
func (r *round) extra(line string) bool { return r.cell.fault.drop != nil && r.cell.fault.drop(line) }

// once holds that every change was made once, and those whose outcome is unknown at most once.
func (r *round) once(id string, unknown int) {
	r.t.Helper()
	times := map[string]int{}
	for _, line := range r.lines("ledger." + id) {
		call, _, _ := strings.Cut(line, ",")
		times[call]++
	}
	missing := 0
	for n, name := range suiteCalls() {
		switch did := times[fmt.Sprint(name, n)]; {
		case name != "step":
		case did > 1:
			r.cell.twice++
			r.t.Errorf("session %s: change %d was made %d times", id, n, did)
		case did == 0:
			missing++
		}
	}
	if missing > unknown {
		r.t.Errorf("session %s: %d changes were not made, and %d are unknown", id, missing, unknown)
	}
}

// gone counts a session that was struck, and measures how long it stood still. One that had ended
// before was not.
func (r *round) gone(id string) {
	r.t.Helper()
	struck := !r.early
	for e, err := range store.Events(r.t.Context(), r.store, id) {
		if err != nil {
			r.t.Fatal(err)
		}
		took := e.Time.Add(-r.skew).Sub(r.at)
		if took > 30*time.Minute { // before the clock was set back
			continue
		}
		if struck = struck || took >= 0; took < 0 || !r.all && !claim(e.Body) { // after the victim another has to go on
			continue
		}
		r.cell.struck++
		r.cell.after = append(r.cell.after, took)
		if took > cmp.Or(r.cell.fault.within, 2*time.Second) {
			r.t.Errorf("session %s went on after %s", id, took)
		}
		return
	}
	if struck {
		r.cell.struck++
	}
	if struck && !slices.Contains(r.cell.fault.stays, r.cell.kind) {
		r.t.Errorf("session %s has not gone on", id)
	}
}
