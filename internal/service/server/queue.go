package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
)

// dispatch begins what may begin, whenever there may be something.
func (s *Server) dispatch() {
	late := time.NewTimer(time.Hour) // the time of an idle task is over
	defer late.Stop()
	for {
		select {
		case <-s.wake:
		case <-late.C:
		case <-s.ctx.Done():
			return
		}
		late.Reset(s.begin())
	}
}

// begin begins tasks while there is room: those that were begun before the queued ones, and of
// these one of the tenant with the fewest at work. Whoever wants a task cancelled is heard. It
// returns how long no idle task runs out of time.
func (s *Server) begin() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := time.Hour
	if s.draining {
		return rest
	}
	busy, all, now := map[string]int{}, 0, time.Now()
	for _, w := range s.at {
		if !w.idle.Load() {
			busy[w.tenant]++
			all++
		}
	}
	queue := s.book.openIf(func(t *Task) bool {
		w := s.at[t.ID]
		left, rests := t.rests(now)
		switch {
		case w != nil && t.cancelled != "":
			w.cancel(errCancelled)
		case w == nil && rests && !s.poked[t.ID]:
			rest = min(rest, left)
		case w == nil:
			return all < s.atOnce() || t.light()
		}
		return false
	})
	full := s.disk.trouble() != nil
	queue = slices.DeleteFunc(queue, func(t Task) bool { // but for what takes no room
		return t.cancelled == "" && (full || t.Session == "" && t.Spec.Folder == "" && s.overQuota(t.Tenant))
	})
	for len(queue) > 0 {
		i := s.next(queue, busy)
		if i < 0 {
			break
		}
		t := queue[i]
		queue = append(queue[:i], queue[i+1:]...)
		busy[t.Tenant]++
		s.launch(t)
	}
	return rest
}

// next is the place in the queue of the task that is begun next; -1: none may be.
func (s *Server) next(queue []Task, busy map[string]int) int {
	all, best := 0, -1
	for _, n := range busy {
		all += n
	}
	for i, t := range queue {
		if t.light() {
			return i
		}
		if all >= s.atOnce() {
			continue
		}
		if most := s.book.tenant(t.Tenant).AtOnce; most > 0 && busy[t.Tenant] >= most {
			continue
		}
		begun := t.Stage != event.StageSubmitted && t.Stage != event.StageQueued
		if begun {
			return i
		}
		if best < 0 || busy[t.Tenant] < busy[queue[best].Tenant] {
			best = i
		}
	}
	return best
}

// atOnce is how many tasks may work at the same time.
func (s *Server) atOnce() int { return cmp.Or(s.AtOnce, DefaultAtOnce) }

// launch has a task worked on. The lock is held.
func (s *Server) launch(t Task) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	w := &work{Server: s, tenant: t.Tenant, cancel: cancel}
	if t.cancelled != "" {
		cancel(errCancelled)
	}
	s.at[t.ID] = w
	delete(s.poked, t.ID)
	s.pulse.busy.Add(1)
	s.wg.Go(func() {
		defer s.pulse.busy.Add(-1)
		if !t.Deadline.IsZero() {
			var late context.CancelFunc
			ctx, late = context.WithDeadlineCause(ctx, t.Deadline, errTimedOut)
			defer late()
		}
		if err := w.run(ctx, t); err != nil && s.ctx.Err() == nil && !s.isDraining() {
			if !diskFault(err) && !lacksRoom(err) { // of which the operator is told once, or the task says it
				s.warn("task " + t.ID + ": " + err.Error())
			}
			rest(w.ctx)
		}
		cancel(nil)
		s.mu.Lock()
		delete(s.at, t.ID)
		s.mu.Unlock()
		s.stir()
	})
}
