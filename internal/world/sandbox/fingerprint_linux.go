package sandbox

import (
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

// fingerprint tells the walls of an order from all others: by what it says, and by what was at
// its places and what was mounted where when it was written. What is mounted stays what it
// was when something else takes its place outside, and what Landlock opens around a hole is
// what was there then. It is empty if walls that are built now may be others in a moment.
func (b *boxes) fingerprint(o protocol.Order) string {
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
