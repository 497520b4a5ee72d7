package subagent

import (
	"context"
	"errors"
	"iter"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// full is a log whose disk is full for a number of appends.
type full struct {
	*event.Memory
	times int
}

func (f *full) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	if f.times > 0 {
		f.times--
		return nil, syscall.ENOSPC
	}
	return f.Memory.Append(ctx, bodies...)
}

// TestDeliver checks that a full disk loses no report about a child, and that delivery ends.
func TestDeliver(t *testing.T) {
	for _, times := range []int{0, 1, 9, 1 << 30} {
		synctest.Test(t, func(t *testing.T) {
			log := &full{event.NewMemory("s"), 0}
			s, err := (&inspan.Agent{Model: &script.Model{}}).Open(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			log.times = times
			ctx, cancel := context.WithTimeout(t.Context(), mostDelivery)
			defer cancel()
			began := time.Now()
			err = deliver(ctx, s, event.Returned{Child: "s.1", Reason: event.ReasonDone})
			told := 0
			for e, err := range log.Read(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Body.Kind() == "returned" {
					told++
				}
			}
			lost := times == 1<<30
			if errors.Is(err, syscall.ENOSPC) != lost || told == 1 == lost || time.Since(began) > mostDelivery {
				t.Errorf("full %d times: %v after %v, told %d times", times, err, time.Since(began), told)
			}
		})
	}
}

// deaf is a log that can't be followed any more.
type deaf struct {
	*event.Memory
	broken error
}

func (d *deaf) Wait(ctx context.Context, after uint64) error {
	if d.broken != nil {
		return d.broken
	}
	return d.Memory.Wait(ctx, after)
}

// pensive never answers.
type pensive struct{ llm.Model }

func (pensive) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		<-ctx.Done()
		yield(llm.Chunk{}, llm.AsError(ctx.Err()))
	}
}

// TestNobodyFollows checks that agents stop when the log of their session can't be read any more, because they
// could not be answered or interrupted.
func TestNobodyFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, theirs := &deaf{Memory: event.NewMemory("s")}, event.NewMemory("s.1")
		agent := &inspan.Agent{Model: &script.Model{}}
		s, err := agent.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		child, err := (&inspan.Agent{Model: pensive{&script.Model{}}}).Open(t.Context(), theirs)
		if err != nil {
			t.Fatal(err)
		}
		team := &Team{}
		if !team.setTeam(s) {
			t.Fatal("the team takes no session")
		}
		k := newChild(child, Order{}, "c@1")
		team.children[k.id] = k
		over := make(chan error)
		go func() { over <- team.drive(k, []event.Body{said("think", event.Taint{})}) }()
		synctest.Wait()
		log.broken = errors.New("the disk is gone")
		team.follow(s, s.Status())
		team.wg.Wait()
		if err := <-over; err != nil || child.Status().Stopped == nil {
			t.Errorf("its run did not stop in order: %v", err)
		}
		var why []string
		for e, err := range theirs.Read(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := e.Body.(event.Cancelled); ok {
				why = append(why, c.Reason)
			}
		}
		if len(why) != 1 || !strings.Contains(why[0], "the disk is gone") || k.ctx.Err() == nil {
			t.Errorf("the child was told %q, and its context says %v", why, k.ctx.Err())
		}
	})
}
