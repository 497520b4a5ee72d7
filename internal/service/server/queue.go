package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// dispatch begins tasks whenever some may begin.
func (s *Server) dispatch() {
	late := time.NewTimer(time.Hour) // fires when the time of an idle task is over
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

// begin begins tasks while there is room: first those that had begun before, then queued ones, next one of the
// tenant with the fewest tasks at work. It also handles requests to cancel. It returns the time until the next idle
// task runs out of time.
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
	queue = slices.DeleteFunc(queue, func(t Task) bool { // except those that take no room
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

// next returns the index in the queue of the task to begin next; -1: none may begin.
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
		begun := t.Stage != StageSubmitted && t.Stage != StageQueued
		if begun {
			return i
		}
		if best < 0 || busy[t.Tenant] < busy[queue[best].Tenant] {
			best = i
		}
	}
	return best
}

// atOnce returns how many tasks may work at the same time.
func (s *Server) atOnce() int { return cmp.Or(s.AtOnce, DefaultAtOnce) }

// working reports whether a task does more than wait for a person.
func (s *Server) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.at {
		if !w.rests.Load() {
			return true
		}
	}
	return false
}

// launch starts the work on a task. The caller holds the lock.
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
			if !diskFault(err) && !lacksRoom(err) { // which the operator is warned of once, or the task reports
				s.warn("task " + t.ID + ": " + err.Error())
			}
			_ = keep.Sleep(w.ctx, again)
		}
		cancel(nil)
		s.mu.Lock()
		delete(s.at, t.ID)
		s.mu.Unlock()
		s.stir()
	})
}
