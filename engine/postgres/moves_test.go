package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

const steps = 30 // calls of the session that moves

// worker is a host over a store, whose one tool counts what it does.
func worker(s store.Store, dir string, did *[steps]atomic.Int32) *inspan.Host {
	work := tool.New("work", "Does one step.", func(_ context.Context, _ *tool.Call, in struct{ N int }) (tool.Result, error) {
		did[in.N].Add(1)
		return tool.Text(fmt.Sprint("finished ", in.N)), nil
	})
	work.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return nil, nil }
	var replies strings.Builder
	for n := range steps {
		fmt.Fprintf(&replies, "-- reply --\ncall: work {\"N\":%d}\n", n)
	}
	return &inspan.Host{Store: s, Dir: dir, Agent: func(context.Context, inspan.Place) (*inspan.Agent, error) {
		model, err := script.Parse([]byte(replies.String() + "-- reply --\nAll done.\n"))
		return &inspan.Agent{Model: model, Tools: []tool.Tool{work}, Mode: "auto"}, err
	}}
}

// drives runs a session until so many calls have ended, and reports whether it has stopped.
func drives(t *testing.T, s *inspan.Session, calls int, inputs ...event.Body) bool {
	t.Helper()
	for e, err := range s.Run(t.Context(), inputs...) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ended := e.Body.(event.Ended); ended {
			calls--
		}
		if calls == 0 {
			break
		}
	}
	stopped := s.Status().Stopped != nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return stopped
}

// bodies are those of a log as text, without claims, and without how long things took.
func bodies(t *testing.T, s store.Store, id string) (out []string) {
	t.Helper()
	for e, err := range store.Events(t.Context(), s, id) {
		if err != nil {
			t.Fatal(err)
		}
		if _, claim := e.Body.(event.Claimed); !claim {
			switch b := e.Body.(type) {
			case event.Replied:
				b.Millis, b.First = 0, 0
				e.Body = b
			case event.Ended:
				b.Millis = 0
				e.Body = b
			}
			data, err := json.Marshal(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e.Body.Kind()+" "+string(data))
		}
	}
	return out
}

// TestMoves moves a session between three workers ten times. Its log is the one of a session that
// stays, but for the claims, and each call is made once.
func TestMoves(t *testing.T) {
	c, dir := fresh(t), t.TempDir()
	var did, still [steps]atomic.Int32
	var stores []*postgres.Store
	for range 3 {
		stores = append(stores, open(t, c))
	}
	id, stopped := "", false
	for life := 0; !stopped; life++ {
		host := worker(stores[life%3], dir, &did)
		if id == "" {
			s, err := host.New(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			id = s.ID()
			stopped = drives(t, s, 3, event.Say("Do all steps."))
			continue
		}
		s, err := host.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		stopped = drives(t, s, 3)
	}
	for n := range did {
		if times := did[n].Load(); times != 1 {
			t.Errorf("step %d was done %d times", n, times)
		}
	}
	var memory store.Memory
	s, err := worker(&memory, dir, &still).New(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	drives(t, s, -1, event.Say("Do all steps."))
	if diff := cmp.Diff(bodies(t, &memory, s.ID()), bodies(t, stores[0], id)); diff != "" {
		t.Errorf("the log of the session that moved (-stays +moves):\n%s", diff)
	}
}
