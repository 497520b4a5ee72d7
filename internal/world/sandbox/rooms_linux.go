package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/tool"
)

// A keeper whose command has ended, with all its descendants, waits for another one, as
// the start of a keeper takes longer than that of most commands. One that has built a file
// system waits with it; it serves only commands for which the very same would be built. So
// walls are never changed, only built.

const (
	mostWaiting = 2           // keepers of one kind wait at most
	waitsFor    = time.Minute // after the last command, none wait any longer

	// readyAfter is how long making boxes ready waits: the request to the model goes first,
	// and a call that comes at once builds its box itself.
	readyAfter = 10 * time.Millisecond
)

// room is a kind of keepers: those of one may take each other's commands.
type room struct {
	level tool.Level
	scene bool
	lays  bool // with a privilege more, for overlays; none has walls yet
}

// rooms are the keepers of a session that wait for another command. The zero value is
// ready.
type rooms struct {
	mu      sync.Mutex
	closed  bool
	waiting map[room][]link // the longest waiting first
	late    *time.Timer
	soon    *time.Timer // until boxes are made ready; nil: none are to be
	leaving sync.WaitGroup
}

// Ready implements [tool.Readier]. A keeper that nothing waits for runs a command that does
// nothing, and waits for the next one like any other. Commands that are there come first.
func (ps *procs) Ready(list ...tool.Box) {
	switch {
	case ps.boxes.o.Self == "" || ps.boxes.engine != nil:
		return
	case len(list) == 0:
		ps.boxes.rooms.expectNone()
		return
	}
	ps.boxes.rooms.expect(func() {
		for _, box := range list {
			if !ps.boxes.o.Pool.starts.Taken() && ps.boxes.rooms.empty(room{level: ps.boxes.o.level(box)}) {
				ps.try(box)
			}
		}
	})
}

// try runs a command that does nothing. What is wrong the next command tells.
func (ps *procs) try(box tool.Box) {
	p, err := ps.Start(context.Background(), tool.Command{Args: []string{truth()}, Dir: ps.boxes.Root, Env: []string{}, Box: box})
	if err == nil {
		_, _ = p.Wait()
	}
}

// expect has boxes made ready soon, unless that is about to be done.
func (r *rooms) expect(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.soon != nil {
		return
	}
	r.soon = time.AfterFunc(readyAfter, func() {
		r.mu.Lock()
		r.soon = nil
		r.mu.Unlock()
		if r.begin() {
			defer r.leaving.Done()
			do()
		}
	})
}

// expectNone has no boxes made ready, but for those that have been begun.
func (r *rooms) expectNone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.soon != nil && r.soon.Stop() {
		r.soon = nil
	}
}

// replace starts in the background a keeper like the one that a command has just used up, and
// takes away what was made for that.
func (b *boxes) replace(kind room, leave func()) {
	if !b.rooms.begin() {
		leave()
		return
	}
	go func() {
		defer b.rooms.leaving.Done()
		if b.rooms.empty(kind) {
			if l, err := b.network.spawn(b.o, kind.lays); err == nil { // else the next command tells
				b.rooms.give(kind, l)
			}
		}
		leave()
	}()
}

// begin reports whether something is to be made ready, which leaving then waits for.
func (r *rooms) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.leaving.Add(1)
	}
	return !r.closed
}

// empty reports whether keepers of a kind may wait, and none does.
func (r *rooms) empty(want room) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for kind, list := range r.waiting {
		if kind.level == want.level && kind.lays == want.lays && len(list) > 0 {
			return false
		}
	}
	return true
}

// take returns a keeper that waits: one that stands within the same walls, or one that has
// none around itself. Those that stand within others, and for which places were made among
// the temporary files of the session, go before a command that would see these.
func (r *rooms) take(kind room, walls string) (link, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.waiting[kind]
	i := slices.IndexFunc(list, func(l link) bool { return l.walls == walls && (walls != "" || !kind.scene || kind.lays) })
	if i < 0 && !kind.scene {
		i = len(list) - 1
	}
	var out link
	if i >= 0 {
		out = list[i]
		r.waiting[kind] = slices.Delete(list, i, i+1)
	}
	if kind.scene {
		r.clearPlaces(walls)
	}
	return out, i >= 0
}

// clearPlaces ends keepers for which places were made, but those within some walls. r.mu is held.
func (r *rooms) clearPlaces(walls string) {
	for kind, list := range r.waiting {
		r.waiting[kind] = slices.DeleteFunc(list, func(l link) bool {
			goes := l.earlier != nil && (l.walls != walls || walls == "")
			if goes {
				r.dismiss([]link{l})
			}
			return goes
		})
	}
}

// give has a keeper wait, unless enough do, or none are to wait any more.
func (r *rooms) give(kind room, l link) {
	if !r.lodge(kind, l) {
		l.drop()
	}
}

func (r *rooms) lodge(kind room, l link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.waiting == nil {
		r.waiting = map[room][]link{}
	}
	r.waiting[kind] = append(r.waiting[kind], l)
	if list := r.waiting[kind]; len(list) > mostWaiting {
		r.dismiss(list[:1])
		r.waiting[kind] = slices.Delete(list, 0, 1)
	}
	if r.late == nil {
		r.late = time.AfterFunc(waitsFor, r.clear)
	}
	r.late.Reset(waitsFor)
	return true
}

// dismiss ends keepers and does not wait for that; close does.
func (r *rooms) dismiss(list []link) {
	for _, l := range list {
		l.part()
		r.leaving.Go(l.over)
	}
}

// clear ends all that wait.
func (r *rooms) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.waiting {
		r.dismiss(list)
	}
	r.waiting = nil
}

// close ends all that wait. Keepers that come later don't wait.
func (r *rooms) close() {
	r.mu.Lock()
	r.closed = true
	for _, timer := range []*time.Timer{r.late, r.soon} {
		if timer != nil {
			timer.Stop()
		}
	}
	r.mu.Unlock()
	r.clear()
	r.leaving.Wait()
}

// stamped tells the walls of an order from all others: by what it says, and by what was at
// its places and what was mounted where when it was written. What is mounted stays what it
// was when something else takes its place outside, and what Landlock opens around a hole is
// what was there then. It is empty if walls that are built now may be others in a moment.
func (b *boxes) stamped(o protocol.Order) string {
	o.Path, o.Args, o.Dir, o.Env, o.TTY, o.Temp = "", nil, "", nil, false, ""
	data, err := protocol.Marshal(o)
	if err != nil {
		return ""
	}
	var out strings.Builder
	out.Write(data)
	top, _ := paths.StampOf("/")
	fmt.Fprintln(&out, top, b.mounts.changes())
	for _, g := range o.Read {
		is(&out, g.Path)
		for _, hole := range g.Holes {
			is(&out, hole)
			if !o.Isolated && !around(&out, g.Path, hole) {
				return ""
			}
		}
	}
	for _, path := range slices.Concat(o.Write, o.View.Frozen, o.View.Pinned, []string{o.Tmp, o.Cache}) {
		is(&out, path)
	}
	return out.String()
}

// is says what is at a place.
func is(out *strings.Builder, path string) {
	st, _ := paths.StampOf(path)
	fmt.Fprintln(out, st.Dev, st.Ino)
}

// around says what lies around a hole, folder by folder. It reports false if that has
// changed just now, so that it can change again unnoticed.
func around(out *strings.Builder, top, hole string) bool {
	for dir := filepath.Dir(hole); tool.Inside(top, dir); dir = filepath.Dir(dir) {
		st, _ := paths.StampOf(dir)
		if time.Since(st.Changed()) < sensitive.Racy {
			return false
		}
		fmt.Fprintln(out, st)
		if dir == top {
			break
		}
	}
	return true
}

// mounts tells whether what is mounted on the machine has changed. The zero value is ready.
type mounts struct {
	mu    sync.Mutex
	table *os.File
	count int
}

// changes counts how often it has changed, as far as was asked; it changes each time if it
// can't be told.
func (m *mounts) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table == nil {
		m.table, _ = os.Open("/proc/self/mountinfo")
	}
	if m.table == nil {
		m.count++
		return m.count
	}
	fds := []unix.PollFd{{Fd: int32(m.table.Fd()), Events: unix.POLLPRI}}
	if n, err := unix.Poll(fds, 0); n > 0 || err != nil {
		m.count++
	}
	return m.count
}

func (m *mounts) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.table == nil {
		return nil
	}
	table := m.table
	m.table = nil
	return table.Close()
}
