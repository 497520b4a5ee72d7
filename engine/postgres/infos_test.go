package postgres_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/store"
)

// TestInfos appends in batches of all sizes, forks at random places and appends to the forks too. The list describes
// each session as its events do, and Start finds the last snapshot.
func TestInfos(t *testing.T) {
	bodies := []event.Body{
		event.Opened{Format: event.Format, Root: "/a", Labels: map[string]string{"a": "1"}},
		event.Opened{Format: event.Format, Root: "/b", Parent: "20261121-131502-k3f9"},
		event.Say("one"), event.Say("two"),
		event.Titled{Title: "x"},
		event.Titled{},
		event.Pinned{On: true},
		event.Pinned{},
		event.Asked{Turn: 1},
		event.Stopped{Reason: event.ReasonDone},
		event.Stopped{Reason: event.ReasonBudget},
		event.Note{Text: "n"},
		event.Compacted{Snapshot: json.RawMessage(`{}`)},
		event.Rewound{Snapshot: json.RawMessage(`{}`)},
	}
	s := open(t, fresh(t))
	random := rand.New(rand.NewPCG(1, 27))
	grow := func(l store.Log) {
		if err := l.Lease(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range random.IntN(4) {
			var batch []event.Body
			for range 1 + random.IntN(5) {
				batch = append(batch, bodies[random.IntN(len(bodies))])
			}
			if _, err := harnesstest.Write(t.Context(), l, batch...); err != nil {
				t.Fatal(err)
			}
		}
	}
	logs := map[string]store.Log{}
	for range 40 {
		l, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		grow(l)
		fork, err := s.Fork(t.Context(), l.ID(), random.Uint64N(1+length(t, l)))
		if err != nil {
			t.Fatal(err)
		}
		grow(fork)
		logs[l.ID()], logs[fork.ID()] = l, fork
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != len(logs) {
		t.Fatal(len(list), err)
	}
	for _, got := range list {
		want, start := store.NewInfo(got.ID), uint64(0)
		for e, err := range logs[got.ID].Read(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			want.Add(e)
			switch e.Body.(type) {
			case event.Compacted, event.Rewound:
				start = e.Seq - 1
			}
			line, _ := event.Encode(e)
			want.Size += int64(len(line))
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Info{}, "Size")); diff != "" {
			t.Errorf("%s (-events +list):\n%s", got.ID, diff)
		}
		if off := want.Size - got.Size; off < 0 || off > int64(want.Events)*8 {
			t.Errorf("%s has %d bytes, listed are %d", got.ID, want.Size, got.Size)
		}
		if found, err := logs[got.ID].Start(t.Context()); err != nil || found != start {
			t.Errorf("%s: Start = %d, %v; want %d", got.ID, found, err, start)
		}
	}
}

func length(t *testing.T, l store.Log) (n uint64) {
	t.Helper()
	for _, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
