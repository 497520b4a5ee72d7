package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/tool"
)

// A keeper whose command has ended, with all its descendants, waits for another, since starting a keeper takes
// longer than most commands. One that has built a file system waits with it; it only serves commands that need
// exactly the same, so a box is never changed, only built.

const (
	mostWaiting = 2           // waiting keepers of one kind
	waitsFor    = time.Minute // after the last command

	// readyAfter delays the preparation of boxes: the request to the model goes first, and a call that comes at
	// once builds its own box.
	readyAfter = 10 * time.Millisecond
)

// keeperKind is a kind of keepers: those of one kind are interchangeable.
type keeperKind struct {
	level    tool.Level
	isolated bool
	overlays bool // with an additional privilege, for overlays; such a keeper has no box yet
}

// waitingKeepers are the keepers of a session that wait for a command. The zero value is ready.
type waitingKeepers struct {
	mu      sync.Mutex
	closed  bool
	waiting map[keeperKind][]keeperLink // the longest waiting first
	late    *time.Timer
	soon    *time.Timer // until boxes are prepared; nil means nothing is scheduled
	leaving sync.WaitGroup
}

// Ready implements [ability.Readier]. A new keeper runs an empty command, and then waits for the next one like any
// other. Pending commands come first.
func (ps *procs) Ready(list ...tool.Box) {
	switch {
	case ps.boxes.o.Self == "" || ps.boxes.engine != nil:
		return
	case len(list) == 0:
		ps.boxes.waiting.prepareNone()
		return
	}
	ps.boxes.waiting.prepareSoon(func() {
		for _, box := range list {
			if !ps.boxes.o.Pool.starts.Taken() && ps.boxes.waiting.lacks(keeperKind{level: ps.boxes.o.level(box)}) {
				ps.startNothing(box)
			}
		}
	})
}

// startNothing runs an empty command. The next command reports errors.
func (ps *procs) startNothing(box tool.Box) {
	p, err := ps.Start(context.Background(), tool.Command{Args: []string{nothingProgram()}, Dir: ps.boxes.Root, Env: []string{}, Box: box})
	if err == nil {
		_, _ = p.Wait()
	}
}

// prepareSoon schedules the preparation of boxes, unless it is scheduled.
func (r *waitingKeepers) prepareSoon(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.soon != nil {
		return
	}
	r.soon = time.AfterFunc(readyAfter, func() {
		r.mu.Lock()
		r.soon = nil
		r.mu.Unlock()
		if r.beginWork() {
			defer r.leaving.Done()
			do()
		}
	})
}

// prepareNone cancels the preparation of boxes, except those in progress.
func (r *waitingKeepers) prepareNone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.soon != nil && r.soon.Stop() {
		r.soon = nil
	}
}

// replaceKeeper starts in the background a keeper like the one that a command has just used up, and calls leave
// to remove its files.
func (b *boxes) replaceKeeper(kind keeperKind, leave func()) {
	if !b.waiting.beginWork() {
		leave()
		return
	}
	go func() {
		defer b.waiting.leaving.Done()
		if b.waiting.lacks(kind) {
			if l, err := b.network.spawn(b.o, kind.overlays); err == nil { // otherwise the next command reports the error
				b.waiting.add(kind, l)
			}
		}
		leave()
	}()
}

// beginWork reports whether work may begin; closing then waits for it.
func (r *waitingKeepers) beginWork() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.leaving.Add(1)
	}
	return !r.closed
}

// lacks reports whether a keeper of a kind may wait but none is waiting.
func (r *waitingKeepers) lacks(want keeperKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for kind, list := range r.waiting {
		if kind.level == want.level && kind.overlays == want.overlays && len(list) > 0 {
			return false
		}
	}
	return true
}

// take returns a waiting keeper: one with the same box, or one without a box. Before a command that sees the
// session's temporary files, it ends keepers with another box and mount points there.
func (r *waitingKeepers) take(kind keeperKind, walls string) (keeperLink, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.waiting[kind]
	i := slices.IndexFunc(list, func(l keeperLink) bool { return l.walls == walls && (walls != "" || !kind.isolated || kind.overlays) })
	if i < 0 && !kind.isolated {
		i = len(list) - 1
	}
	var out keeperLink
	if i >= 0 {
		out = list[i]
		r.waiting[kind] = slices.Delete(list, i, i+1)
	}
	if kind.isolated {
		r.dropMounted(walls)
	}
	return out, i >= 0
}

// dropMounted ends keepers with mount points, except those with the given box. The caller holds r.mu.
func (r *waitingKeepers) dropMounted(walls string) {
	for kind, list := range r.waiting {
		r.waiting[kind] = slices.DeleteFunc(list, func(l keeperLink) bool {
			goes := l.undoEarlier != nil && (l.walls != walls || walls == "")
			if goes {
				r.drop([]keeperLink{l})
			}
			return goes
		})
	}
}

// add lets a keeper wait, unless enough do, or the session is closing.
func (r *waitingKeepers) add(kind keeperKind, l keeperLink) {
	if !r.hold(kind, l) {
		l.drop()
	}
}

func (r *waitingKeepers) hold(kind keeperKind, l keeperLink) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.waiting == nil {
		r.waiting = map[keeperKind][]keeperLink{}
	}
	r.waiting[kind] = append(r.waiting[kind], l)
	if list := r.waiting[kind]; len(list) > mostWaiting {
		r.drop(list[:1])
		r.waiting[kind] = slices.Delete(list, 0, 1)
	}
	if r.late == nil {
		r.late = time.AfterFunc(waitsFor, r.dropAll)
	}
	r.late.Reset(waitsFor)
	return true
}

// drop ends keepers without waiting; close waits.
func (r *waitingKeepers) drop(list []keeperLink) {
	for _, l := range list {
		l.disconnect()
		r.leaving.Go(l.waitAndClean)
	}
}

// dropAll ends all waiting keepers.
func (r *waitingKeepers) dropAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.waiting {
		r.drop(list)
	}
	r.waiting = nil
}

// close ends all waiting keepers. Later ones don't wait.
func (r *waitingKeepers) close() {
	r.mu.Lock()
	r.closed = true
	for _, timer := range []*time.Timer{r.late, r.soon} {
		if timer != nil {
			timer.Stop()
		}
	}
	r.mu.Unlock()
	r.dropAll()
	r.leaving.Wait()
}
