package session

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
)

// script returns the markers of the events that live appends, in order.
func script() []string { return strings.Fields("m0 m1 m2 specs m3 m4 m5 m6 m7 m8 m9") }

// told is what a user of the package saw in a run with a fault.
type told struct {
	id      string
	acked   []string // what was in appends that returned without an error
	durable int      // as many of them are promised to survive a power loss
	fork    string   // session that Fork returned
	blob    string   // blob that Put returned
	stopped bool     // a sync of the log failed: the user gives up
}

// say appends, and records the outcome.
func (o *told) say(t *testing.T, l *Log, bodies ...event.Body) {
	if o.stopped {
		return
	}
	events, err := put(t.Context(), l, bodies)
	if err != nil {
		if o.stopped = strings.Contains(err.Error(), "sync"); o.stopped {
			if _, err := l.Append(t.Context(), said("never")); err == nil {
				t.Errorf("an append after a failed sync succeeded")
			}
		}
		return
	}
	for _, e := range events {
		o.acked = append(o.acked, marker(e.Body))
		if event.Synced(e.Body) {
			o.durable = len(o.acked)
		}
	}
}

// live runs a small session on the disk: partly unsynced, in batches, with a reopen, a blob and a fork. Only a failed
// sync stops it: continuing after any other error must do no harm.
func live(t *testing.T, m *memDisk) *told {
	o := new(told)
	s := &Store{Dir: "/store", disk: m}
	l, err := s.create(t.Context(), empty)
	if err != nil {
		return o
	}
	o.id = l.ID()
	_ = l.Lease(t.Context())
	o.say(t, l, event.Opened{Format: 1, App: "m0"})
	o.say(t, l, said("m1"), event.Asked{Route: "m2"})
	o.say(t, l, event.Switched{Route: "specs", Tools: bigTools(2)})
	o.say(t, l, event.Claimed{Epoch: 1, By: "m3"}, event.Started{Call: "m4"}, said("m5"))
	if name, err := l.Blobs().Put(t.Context(), strings.NewReader("big")); err == nil {
		o.blob = name
	}
	_ = l.Close()
	if l, err = s.opened(t.Context(), o.id); err != nil || o.stopped {
		return o
	}
	o.say(t, l, said("m6"))
	o.say(t, l, said("m7"))
	if f, err := s.fork(t.Context(), o.id, 1); err == nil {
		o.fork = f.ID()
		_ = f.Close()
	}
	o.say(t, l, event.Titled{Title: "m8"})
	o.say(t, l, said("m9"))
	_ = l.Close()
	return o
}

func said(text string) event.Body { return event.Say(text) }

// marker returns the text that tells the bodies of live apart.
func marker(b event.Body) string {
	switch b := b.(type) {
	case event.Opened:
		return b.App
	case event.Said:
		return b.Parts.Text()
	case event.Asked:
		return b.Route
	case event.Claimed:
		return b.By
	case event.Switched:
		return b.Route[:len(b.Route)*len(b.Tools)/2]
	case event.Started:
		return b.Call
	case event.Titled:
		return b.Title
	}
	return ""
}

// TestFaults makes the Nth operation fail, in every way, for every N, until a run needs no more operations; once so
// that the run continues, and once as the last action of the process. It checks the disk after a kill and after a power
// loss.
func TestFaults(t *testing.T) {
	seen := map[string]int{}
	for mode := range 2 * faults {
		n, step := 1, 1
		if testing.Short() {
			n, step = 1+int(mode)%3, 3 // make test-long has them all
		}
		for ; ; n += step {
			m := newMemDisk()
			m.failAt, m.how, m.dead = n, mode/2, mode%2 == 1
			o := live(t, m)
			if m.hit == "" {
				break
			}
			seen[strings.Fields(m.hit)[0]]++
			name := fmt.Sprintf("fault %d at operation %d (%s), dead=%v", m.how, n, m.hit, m.dead)
			checkCrashes(t, name, m, o, seen)
			if t.Failed() {
				return
			}
		}
	}
	for _, op := range strings.Fields("write sync syncdir truncate rename open mkdir lock repaired stopped forked") {
		if seen[op] == 0 {
			t.Errorf("no run ever came to %q", op)
		}
	}
	t.Log(seen)
}

// checkCrashes checks all that can be found after the run.
func checkCrashes(t *testing.T, name string, m *memDisk, o *told, seen map[string]int) {
	t.Helper()
	checkAfter(t, name+", killed", m.crash(false, 0, false), o, len(o.acked), seen)
	for _, keep := range []int{0, 1, 150, 1 << 20} {
		checkAfter(t, fmt.Sprintf("%s, power lost, %d kept", name, keep), m.crash(true, keep, false), o, o.durable, seen)
		checkAfter(t, fmt.Sprintf("%s, power lost, %d NUL", name, keep), m.crash(true, keep, true), o, o.durable, seen)
	}
	if o.stopped {
		seen["stopped"]++
	}
	if o.fork != "" {
		seen["forked"]++
	}
}

// checkAfter opens the log on the disk and continues: the acknowledged synced events must be there.
func checkAfter(t *testing.T, name string, m *memDisk, o *told, sure int, seen map[string]int) {
	t.Helper()
	s := &Store{Dir: "/store", disk: m}
	infos, err := s.List(t.Context())
	if err != nil {
		t.Errorf("%s: List: %v", name, err)
	}
	for _, info := range infos {
		if info.Damage != nil {
			t.Errorf("%s: session %s: %v", name, info.ID, info.Damage)
		}
	}
	if o.id == "" {
		return
	}
	got := reopened(t, name, s, o.id, seen)
	if !isWithin(o.acked[:sure], got) {
		t.Errorf("%s: acknowledged %v, found only %v", name, o.acked[:sure], got)
	}
	if !isWithin(got, script()) {
		t.Errorf("%s: found %v, which nobody wrote", name, got)
	}
	if again := reopened(t, name, s, o.id, seen); !slices.Equal(again, append(got, "n1", "n2")) {
		t.Errorf("%s: after two more appends there is %v", name, again)
	}
	checkRest(t, name, s, o)
}

// checkRest checks fork and blob, if there must be any.
func checkRest(t *testing.T, name string, s *Store, o *told) {
	t.Helper()
	if o.fork != "" {
		l, err := s.opened(t.Context(), o.fork)
		if err != nil {
			t.Fatalf("%s: open the fork: %v", name, err)
		}
		if got := readAll(t, l); len(got) != 2 || got[1].Body.Kind() != "forked" {
			t.Errorf("%s: the fork holds %v", name, got)
		}
		_ = l.Close()
	}
	if o.blob != "" {
		r, err := (blobs{s, "/store/" + o.id + "/" + blobsName}).Get(t.Context(), o.blob)
		if err != nil {
			t.Fatalf("%s: blob: %v", name, err)
		}
		if data, err := io.ReadAll(r); string(data) != "big" || err != nil {
			t.Errorf("%s: blob holds %q, %v", name, data, err)
		}
	}
}

// reopened opens a session, returns the markers of its events, and appends two
// more.
func reopened(t *testing.T, name string, s *Store, id string, seen map[string]int) (got []string) {
	t.Helper()
	l, err := s.opened(t.Context(), id)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, e := range readAll(t, l) {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("%s: number %d at place %d", name, e.Seq, i+1)
		}
		if n, ok := e.Body.(event.Note); ok && n.Topic == "recovered" {
			seen["repaired"]++
			continue
		}
		got = append(got, marker(e.Body))
	}
	for _, text := range []string{"n1", "n2"} {
		if _, err := l.Append(t.Context(), said(text)); err != nil {
			t.Fatalf("%s: append: %v", name, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatalf("%s: close: %v", name, err)
	}
	return got
}

// isWithin reports whether all of part stand in whole, in that order.
func isWithin(part, whole []string) bool {
	for _, p := range part {
		n := slices.Index(whole, p)
		if n < 0 {
			return false
		}
		whole = whole[n+1:]
	}
	return true
}

func readAll(t *testing.T, l *Log) (events []event.Event) {
	t.Helper()
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// TestTakenBack lets a write fail in every way: nothing of it must stay, and
// the next append succeeds.
func TestTakenBack(t *testing.T) {
	for how := range faults {
		m := withLog(nil)
		l, err := (&Store{Dir: "/store", disk: m}).opened(t.Context(), sampleID)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, said("a"))
		m.failAt, m.how = m.ops+2, how // lock, write
		if _, err := l.Append(t.Context(), said("b"), said("c")); err == nil || m.hit != "write "+logName {
			t.Errorf("fault %d at %q: append says %v", how, m.hit, err)
		}
		if got := readAll(t, l); len(got) != 1 {
			t.Errorf("fault %d: %d events are there, want 1", how, len(got))
		}
		mustAppend(t, l, said("d"))
		if got := readAll(t, l); len(got) != 2 || marker(got[1].Body) != "d" {
			t.Errorf("fault %d: the log holds %v", how, got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFaultsInRepair makes the Nth operation of a repair fail, and then checks
// that the next one succeeds.
func TestFaultsInRepair(t *testing.T) {
	whole := newMemDisk()
	o := live(t, whole)
	size := len(whole.nodes["/store/"+o.id+"/"+logName].data)
	seen := map[string]int{}
	for cut := 1; cut < 200; cut += 33 {
		for n := 1; ; n++ {
			m := whole.crash(false, 0, false)
			f := m.nodes["/store/"+o.id+"/"+logName]
			f.data = f.data[:size-cut]
			f.synced = f.data
			*m.nodes["/store/"+o.id+"/"+lockName] = memFile{} // what is cut was never promised
			m.failAt, m.how = n, failHalf
			s := &Store{Dir: "/store", disk: m}
			if l, err := s.opened(t.Context(), o.id); err == nil {
				_, _ = l.Append(t.Context(), said("m9"))
				_ = l.Close()
			}
			if m.hit == "" {
				break
			}
			name := fmt.Sprintf("cut %d, operation %d (%s)", cut, n, m.hit)
			for _, power := range []bool{false, true} {
				checkAfter(t, name, m.crash(power, 0, false), &told{id: o.id, acked: script()[:8]}, 8, seen)
			}
			if t.Failed() {
				return
			}
		}
	}
	if seen["repaired"] == 0 {
		t.Error("nothing was ever repaired")
	}
}
