package running_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// year is a simulated year on one disk.
type year struct {
	*running.Table
	store  *session.Store
	roots  []string       // of workspaces; sessions of the first tenth work in the first, and none later
	whole  map[string]int // events of the sessions that must stay, by id
	middle time.Time      // when half of the sessions were there
}

// live makes a year of n sessions: of 50 one is long, of 20 one has two children, of 10 one a blob,
// and some are pinned, wait or are open. Now and then one tool changes.
func live(tb testing.TB, n int) *year {
	tb.Helper()
	set := &config.Installation{StateDir: tb.TempDir()}
	y := &year{store: &session.Store{Dir: set.SessionsDir(), Sync: session.SyncKill}, whole: map[string]int{}}
	y.Table = &running.Table{Installation: set, Sessions: y.store}
	for range 8 {
		y.roots = append(y.roots, tb.TempDir())
	}
	for i := range n {
		if i == n/2 {
			y.middle = time.Now()
		}
		if err := y.session(tb, i, n); err != nil {
			tb.Fatal(err)
		}
	}
	return y
}

func (y *year) session(tb testing.TB, i, n int) error {
	ctx, root := tb.Context(), y.roots[0]
	later := i >= n/10
	if later {
		root = y.roots[1+i%(len(y.roots)-1)]
	}
	l, err := y.store.Create(ctx)
	if err != nil {
		return err
	}
	bodies := work(i, root)
	pinned, waits, open := later && i%100 == 1, later && i%100 == 2, later && i%(n/3) == 3
	switch {
	case pinned:
		bodies = append(bodies, event.Pinned{On: true})
	case waits:
		bodies = append(bodies, event.Replied{Parts: asks()}, event.Judged{Call: "c", Action: tool.Ask}, event.Waiting{Call: "c"})
	default:
		bodies = append(bodies, event.Stopped{Reason: event.ReasonDone})
	}
	if pinned || waits || open {
		y.whole[l.ID()] = len(bodies)
	}
	if err = l.Lease(ctx); err == nil {
		_, err = harnesstest.Write(ctx, l, bodies...)
	}
	if err == nil && i%10 == 1 {
		_, err = l.Blobs().Put(ctx, strings.NewReader(strings.Repeat(fmt.Sprint("output ", i), 2000)))
	}
	if err == nil && i%20 == 1 {
		err = errors.Join(y.child(ctx, l.ID(), root, "a"), y.child(ctx, l.ID(), root, "b"))
	}
	if err == nil && i%(n/20) == 0 {
		err = y.checkpoint(ctx, root)
	}
	if open {
		tb.Cleanup(func() { _ = l.Close() })
		return err
	}
	return errors.Join(err, l.Close())
}

// work is a message of usual length, or a long one.
func work(i int, root string) []event.Body {
	turns := 3
	if i%50 == 0 {
		turns = 200
	}
	bodies := []event.Body{
		event.Opened{Format: event.Format, App: "test", Root: root}, event.Switched{Route: "p/m", Tools: specs(i)}, event.Say(fmt.Sprint("task ", i)),
	}
	for turn := range turns {
		id := fmt.Sprint("call", turn)
		bodies = append(bodies, event.Asked{Turn: turn + 1, Route: "p/m"},
			event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: "bash"}}, Stop: llm.StopCalls, Route: "p/m", Cost: 0.01},
			event.Judged{Call: id, Action: tool.Allow}, event.Started{Call: id},
			event.Ended{Call: id, Outcome: event.OutcomeOK, Parts: llm.Say(strings.Repeat("\treturn err\n", 40))})
	}
	return bodies
}

// specs are the specs of 15 tools, one of which changes now and then.
func specs(i int) (out []llm.ToolSpec) {
	for n := range 15 {
		version := 0
		if n == 14 {
			version = i / 100
		}
		out = append(out, llm.ToolSpec{Name: fmt.Sprint("tool", n), Description: strings.Repeat(fmt.Sprint("version ", version, " does this. "), 40)})
	}
	return out
}

func (y *year) child(ctx context.Context, parent, root, name string) error {
	l, _, err := y.store.Child(ctx, parent, name)
	if err != nil {
		return err
	}
	if err = l.Lease(ctx); err == nil {
		_, err = harnesstest.Write(ctx, l, event.Opened{Format: event.Format, Root: root, Parent: parent},
			event.Switched{Route: "p/m", Tools: specs(0)[:5]}, event.Say("work"), event.Stopped{Reason: event.ReasonDone})
	}
	return errors.Join(err, l.Close())
}

func (y *year) snapshots(root string) *snapshot.Store {
	return &snapshot.Store{Dir: filepath.Join(y.StateDir, "snapshots", tool.Digest([]byte(root))), Root: root}
}

func (y *year) checkpoint(ctx context.Context, root string) error {
	if err := os.WriteFile(filepath.Join(root, "file"), []byte(time.Now().String()), 0o600); err != nil {
		return err
	}
	_, err := y.snapshots(root).Take(ctx)
	return err
}

// prune does what 'inspan sessions prune --yes' does, with recent changes as old as the rest.
func (y *year) prune(tb testing.TB, age time.Duration, size int64) (left int64) {
	tb.Helper()
	rest := running.Rest{Age: age, Before: time.Now().Add(time.Hour)}
	stale, left, err := y.Stale(tb.Context(), age, size)
	if err != nil {
		tb.Fatal(err)
	}
	unused, err := y.Unused(tb.Context(), stale, rest)
	if err != nil {
		tb.Fatal(err)
	}
	for id, err := range y.store.RemoveEach(tb.Context(), ids(stale)) {
		if err != nil {
			tb.Errorf("%s: %v", id, err)
		}
	}
	err = errors.Join(y.store.Sweep(tb.Context(), rest.Before), y.Discard(tb.Context(), unused, rest, func(running.Unused) {}))
	if err != nil {
		tb.Fatal(err)
	}
	return left
}

// check checks that the remaining sessions are within the limit and whole.
func (y *year) check(tb testing.TB, left, most int64) {
	tb.Helper()
	fresh := &session.Store{Dir: y.store.Dir, Sync: session.SyncKill}
	list, err := fresh.List(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var size int64
	events := map[string]int{}
	for _, info := range list {
		n, err := fresh.Usage(tb.Context(), info.ID)
		if err != nil || info.Damage != nil {
			tb.Fatalf("%s: %v, %v", info.ID, err, info.Damage)
		}
		if kin.Lead(info.ID) != info.ID && !slices.ContainsFunc(list, func(i store.Info) bool { return i.ID == info.Parent }) {
			tb.Errorf("%s has lost its parent", info.ID)
		}
		size += n
		for _, err := range fresh.Events(tb.Context(), info.ID) {
			if events[info.ID]++; err != nil {
				tb.Fatal(err)
			}
		}
	}
	if size != left || size > most {
		tb.Errorf("%d bytes are left, %d were said, and the limit is %d", size, left, most)
	}
	for id, want := range y.whole {
		if r, err := fresh.Fsck(tb.Context(), id, false); events[id] != want || err != nil || !r.OK() || r.Torn > 0 {
			tb.Errorf("%s must stay with %d events, has %d: %+v, %v", id, want, events[id], r, err)
		}
	}
	if rest, err := fresh.Leftovers(tb.Context(), time.Now().Add(time.Hour)); err != nil || len(rest) > 0 {
		tb.Errorf("nobody needs %+v, %v", rest, err)
	}
	for i, root := range y.roots {
		kept, err := y.snapshots(root).List(tb.Context())
		used := slices.ContainsFunc(list, func(info store.Info) bool { return info.Root == root })
		if err != nil || used != (len(kept) > 0) {
			tb.Errorf("workspace %d is used: %v, and has %d checkpoints, %v", i, used, len(kept), err)
		}
	}
	if err := os.RemoveAll(filepath.Join(y.store.Dir, "list.index")); err != nil {
		tb.Fatal(err)
	}
	again, err := fresh.List(tb.Context())
	if diff := cmp.Diff(again, list); err != nil || diff != "" {
		tb.Errorf("%v (-without +with the index):\n%s", err, diff)
	}
}

// TestYear prunes a small year by age and then by size.
func TestYear(t *testing.T) {
	y := live(t, 300)
	left := y.prune(t, time.Since(y.middle), 0)
	y.check(t, left, left)
	y.check(t, y.prune(t, 0, left*3/4), left*3/4)
}

// BenchmarkYear prunes a whole year: 10,000 sessions, 200 of them long.
func BenchmarkYear(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		y := live(b, 10_000)
		var all int64
		err := filepath.WalkDir(y.StateDir, func(_ string, d os.DirEntry, err error) error {
			if info, bad := d.Info(); bad == nil && !d.IsDir() {
				all += info.Size()
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		left := y.prune(b, time.Since(y.middle), 64<<20)
		b.StopTimer()
		y.check(b, left, 64<<20)
		b.ReportMetric(float64(all)/1e6, "MB-before")
		b.ReportMetric(float64(left)/1e6, "MB-after")
		b.StartTimer()
	}
}
