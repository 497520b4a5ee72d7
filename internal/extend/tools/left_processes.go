package tools

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

// remains are processes that a finished command may have left behind.
type remains struct {
	process tool.Process
	command string
	keep    bool            // they must outlive the session
	done    <-chan struct{} // closed when the command has ended; nil means it has ended
}

// alive reports whether any of it is known to run.
func (r remains) alive() bool {
	if r.done != nil {
		select {
		case <-r.done:
		default:
			return true
		}
	}
	l, ok := r.process.(ability.Leaver)
	return ok && l.Left()
}

// leaves reports whether finished commands have left processes that still run and must not outlive the session.
func (sh *Shell) leaves() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.ended = slices.DeleteFunc(sh.ended, func(r remains) bool {
		_, tells := r.process.(ability.Leaver)
		return tells && !r.alive()
	})
	return slices.ContainsFunc(sh.ended, func(r remains) bool { return !r.keep && r.alive() })
}

// Leaving determines how processes that still run are treated when a session ends.
type Leaving struct {
	All  bool // all outlive the session; else only those that bash was asked to keep
	None bool // none does
	// To is the shell of another session, which takes over the processes that outlive this one: each may outlive
	// that one too, or ends with it. Nil means each continues alone, by Keep.
	To *Shell
	// Keep lets a process continue. It returns where its output goes.
	Keep func(l tool.Leftover, p ability.Keepable) (tool.Leftover, error)
}

// keeps reports whether a process outlives the session.
func (how Leaving) keeps(told bool) bool { return !how.None && (how.All || told) }

// Leave releases the processes that outlive the session and ends all others that it has started, including
// remaining descendants. It returns when these are gone, with both lists. Commands fail afterwards.
func (sh *Shell) Leave(how Leaving) (kept, ended []tool.Leftover) {
	var ending []*job
	for _, j := range sh.shut() {
		if how.To != nil && how.keeps(j.keep) && how.To.inherit(remains{j.process, j.command, j.keep, j.done}) {
			sh.mu.Lock()
			sh.handed = true
			delete(sh.active, j) // its later end does not concern this session
			sh.mu.Unlock()
			continue
		}
		l, ok := sh.letGo(j, how)
		if ok {
			kept = append(kept, l)
			continue
		}
		j.cancel()
		ending = append(ending, j)
		ended = append(ended, l)
	}
	for _, j := range ending {
		<-j.done
	}
	more, gone := sh.leaveRest(how)
	return append(kept, more...), append(ended, gone...)
}

// shut prevents further commands. It returns those that run, oldest first.
func (sh *Shell) shut() []*job {
	sh.mu.Lock()
	sh.closed = true
	sh.mu.Unlock()
	sh.starting.Wait()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	jobs := slices.Collect(maps.Keys(sh.active))
	slices.SortFunc(jobs, func(a, b *job) int { return a.started.Compare(b.started) })
	return jobs
}

// inherit takes over the processes that another session leaves running. It reports false if this one has ended
// too.
func (sh *Shell) inherit(r remains) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return false
	}
	sh.ended = append(sh.ended, r)
	return true
}

// Pass lets the environment of a session that has left outlive it, as long as another session's shell needs it
// for inherited processes: that one ends it when it closes. It reports false if none does, so that the caller
// must.
func (sh *Shell) Pass(to *Shell, end func() error) bool {
	sh.mu.Lock()
	handed, after := sh.handed, sh.after
	sh.after = nil
	sh.mu.Unlock()
	if handed && to != nil && to.endAfter(append(after, end)) {
		return true
	}
	for _, f := range after {
		_ = f() // the error can't be reported any more
	}
	return false
}

// endAfter takes over environments to end after the session. It reports false if the session has ended.
func (sh *Shell) endAfter(list []func() error) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return false
	}
	sh.after = append(sh.after, list...)
	return true
}

// letGo lets a job continue, if it may. It reports false if the job must be ended.
func (sh *Shell) letGo(j *job, how Leaving) (tool.Leftover, bool) {
	l := tool.Leftover{Job: j.id, Command: j.command}
	if !how.keeps(j.keep) || how.To != nil || j.ended() {
		return l, false
	}
	if j.screen != nil {
		l.Error = "its terminal ends with the session"
		return l, false
	}
	sh.mu.Lock()
	finished := j.finished
	j.finished = nil // it does not end
	sh.mu.Unlock()
	l, ok := how.let(l, j.process)
	if ok {
		return l, true
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	j.finished = finished
	return l, false
}

// let lets a process go on.
func (how Leaving) let(l tool.Leftover, p tool.Process) (tool.Leftover, bool) {
	k, ok := p.(ability.Keepable)
	if !ok {
		l.Error = "it can't go on without inspan here"
		return l, false
	}
	out, err := how.Keep(l, k)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.Error = err.Error()
	}
	if err != nil {
		return l, false
	}
	return out, true
}

// leaveRest does the same for processes that finished commands have left behind.
func (sh *Shell) leaveRest(how Leaving) (kept, ended []tool.Leftover) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range sh.ended {
		alive := r.alive()
		if how.To != nil && how.keeps(r.keep) && how.To.inherit(r) {
			sh.handed = true
			continue
		}
		l := tool.Leftover{Command: r.command}
		if alive && how.keeps(r.keep) && how.To == nil {
			var ok bool
			if l, ok = how.let(l, r.process); ok {
				kept = append(kept, l)
				continue
			}
		}
		r.process.Kill()
		if alive {
			ended = append(ended, l)
		}
	}
	sh.ended = nil
	return kept, ended
}

// Close ends everything the session has started, including remaining descendants, and returns when it is gone.
// Commands fail afterwards.
func (sh *Shell) Close() { sh.Leave(Leaving{None: true}) }
