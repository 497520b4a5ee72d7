package temporal_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// calls is a script of calls, a reply each, and a last word.
func calls(names ...string) string {
	var s strings.Builder
	for n, name := range names {
		fmt.Fprintf(&s, "-- reply --\ncall: %s {\"N\":%d}\n", name, n)
	}
	return s.String() + "-- reply --\nAll done.\n"
}

// TestMoves moves a session of 200 turns between three workers ten times, alternately by kill -9 and by drain. Except
// for the claims, its log equals that of an undisturbed session, and each change is made once.
func TestMoves(t *testing.T) {
	for _, kind := range []string{byDatabase, byTemporal} {
		t.Run(cmp.Or(kind, "Temporal"), func(t *testing.T) { moves(t, kind) })
	}
}

func moves(t *testing.T, kind string) {
	names := slices.Repeat(append(slices.Repeat([]string{"step"}, 19), "look"), 10)
	p := openPlace(t, conf{Kind: kind, Script: calls(names...)})
	workers := map[int]*process{}
	more := func() {
		w := p.worker()
		workers[w.Process.Pid] = w
	}
	for range 3 {
		more()
	}
	id := p.begins()
	p.wakes(id)
	drivers := map[int]bool{}
	for n := 19; n < len(names); n += 20 {
		pid := p.reached(fmt.Sprint("look", n), 0)
		drivers[pid] = true
		workers[pid].sends(t, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[n/20%2])
		p.opens(n)
		<-workers[pid].ended
		more()
	}
	p.until("it has stopped", func() bool {
		return p.kinds(id, func(b event.Body) bool { _, is := b.(event.Stopped); return is }) == 1
	})
	if diff := gocmp.Diff(p.undisturbed(), bodies(t, p.store, id)); diff != "" {
		t.Errorf("the log of the session that moved (-stays +moves):\n%s", diff)
	}
	if len(drivers) != 10 {
		t.Errorf("%d workers drove it", len(drivers))
	}
	p.changedOnce(names)
	kills, drains := p.handovers(id)
	t.Logf("behind kills, with a lease of %s: %v; behind drains: %v", p.Conf.Lease, kills, drains)
}

// handovers is how long the log stood still before each claim but the first, which are in turn after a kill and
// after a drain.
func (p *place) handovers(id string) (kills, drains []time.Duration) {
	p.t.Helper()
	claims, last := 0, time.Time{}
	for e, err := range store.Events(p.t.Context(), p.store, id) {
		if err != nil {
			p.t.Fatal(err)
		}
		if claim(e.Body) {
			switch gap := e.Time.Sub(last); {
			case claims%2 == 1:
				kills = append(kills, gap)
			case claims > 0:
				drains = append(drains, gap)
			}
			claims++
		}
		last = e.Time
	}
	return kills, drains
}

// changedOnce wants every change in the ledger once.
func (p *place) changedOnce(names []string) {
	p.t.Helper()
	times := map[string]int{}
	for _, line := range p.ledger() {
		call, _, _ := strings.Cut(line, ",")
		times[call]++
	}
	for n, name := range names {
		if call := fmt.Sprint(name, n); name == "step" && times[call] != 1 {
			p.t.Errorf("%s was done %d times", call, times[call])
		}
	}
}
